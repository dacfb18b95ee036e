"""Values of statements in the types of columns. No value changes in silence: a number does not
become a text, a text no number, and what does not fit exactly is an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from frazil.errors import Malformed

DECIMAL_DIGITS_MAX = 38
INTEGER_DIGITS_MAX = 19
SHOWN_CHARS_MAX = 60
"""Of a value in an error."""
_INTEGER = re.compile(r"[+-]?\s*\d{1,40}")
_DECIMAL = re.compile(
    r"[+-]?\s*(?:\d{1,400}\.\d{0,400}|\.\d{1,400}|\d{1,400})(?:[eE][+-]?\d{1,4})?"
)
_STRING = re.compile(r"'(?:''|[^'])*'", re.DOTALL)
_TYPED = re.compile(r"(?i:(date|timestamp|x))\s*('(?:''|[^'])*')", re.DOTALL)

Value = bool | int | Decimal | str | bytes | date | datetime | None


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of a statement."""

    value: Value


def literal_of(text: str) -> Literal | None:
    """Return the value of an expression that is a constant; None if it has to be evaluated."""
    word = text.lower()
    if word in ("null", "true", "false"):
        return Literal({"null": None, "true": True, "false": False}[word])
    if _INTEGER.fullmatch(text):
        return Literal(int(re.sub(r"\s", "", text)))
    if _DECIMAL.fullmatch(text):
        return Literal(Decimal(re.sub(r"\s", "", text)))
    if _STRING.fullmatch(text):
        return Literal(_unquoted(text))
    match = _TYPED.fullmatch(text)
    return None if match is None else Literal(_typed(match[1].lower(), _unquoted(match[2])))


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _typed(kind: str, text: str) -> Value:
    try:
        if kind == "date":
            return date.fromisoformat(text)
        if kind == "timestamp":
            return datetime.fromisoformat(text)
        return bytes.fromhex(text)
    except ValueError:
        raise Malformed(f"{kind.upper()} {_shown(text)!r} is no {kind}") from None


def literal_array(values: Sequence[Value], field: pa.Field) -> pa.Array:
    """Return constants as a column."""
    fitted = [_fitted(value, field) for value in values]
    try:
        return pa.array(fitted, field.type)
    except (pa.ArrowException, OverflowError, InvalidOperation) as error:
        raise Malformed(f"column {field.name} is {field.type}: {error}") from None


def _fitted(value: Value, field: pa.Field) -> Value | float:
    """Return a constant as Python's value of the column's type, if it is exactly that."""
    kind = field.type
    if value is None:
        return None
    for accepts, fit in _FITS:
        if accepts(kind):
            fitted = fit(value, kind)
            if fitted is not None:
                return fitted
    raise Malformed(
        f"column {field.name} is {kind}; {_shown(str(value))!r} is no such value, or does not fit "
        f"exactly{_hint(value, kind)}"
    )


def _hint(value: Value, kind: pa.DataType) -> str:
    if isinstance(value, str) and not (types.is_string(kind) or types.is_binary(kind)):
        return "; a text is not converted: write CAST('…' AS type), DATE '…' or TIMESTAMP '…'"
    return ""


def _fit_integer(value: Value, kind: pa.DataType) -> Value:
    if type(value) is not int:
        return None
    low, high = _integer_range(kind)
    return value if low <= value <= high else None


def _integer_range(kind: pa.DataType) -> tuple[int, int]:
    if types.is_signed_integer(kind):
        return -(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1
    return 0, (1 << kind.bit_width) - 1


def _fit_float(value: Value, kind: pa.DataType) -> float | None:
    """A whole number must be exactly that; a decimal number is the nearest one, as everywhere."""
    if type(value) is int:
        number = float(np.float32(value)) if types.is_float32(kind) else float(value)
        return number if number == value else None
    if not isinstance(value, Decimal):
        return None
    number = float(value)
    if types.is_float32(kind) and abs(number) > float(np.finfo(np.float32).max):
        return None
    return number if number not in (float("inf"), float("-inf")) else None


def _fit_decimal(value: Value, kind: pa.DataType) -> Decimal | None:
    if type(value) is int:
        value = Decimal(value)
    if not isinstance(value, Decimal):
        return None
    try:
        scaled = value.scaleb(kind.scale, _CONTEXT)
        whole = scaled.to_integral_exact(context=_CONTEXT)
    except InvalidOperation:
        return None
    if whole != scaled or len(whole.as_tuple().digits) > kind.precision:
        return None
    return value


_CONTEXT = Context(prec=1000)


def _fit_timestamp(value: Value, kind: pa.DataType) -> datetime | None:
    if not isinstance(value, datetime):
        return None
    if kind.tz is None:
        return value if value.tzinfo is None else None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _fit_date(value: Value, _: pa.DataType) -> date | None:
    return value if type(value) is date else None


_FITS: list[tuple[Callable[[pa.DataType], bool], Callable[..., Value | float]]] = [
    (types.is_boolean, lambda value, _: value if isinstance(value, bool) else None),
    (types.is_integer, _fit_integer),
    (types.is_floating, _fit_float),
    (types.is_decimal, _fit_decimal),
    (types.is_timestamp, _fit_timestamp),
    (types.is_date32, _fit_date),
    (types.is_string, lambda value, _: value if isinstance(value, str) else None),
    (types.is_binary, lambda value, _: value if isinstance(value, bytes) else None),
]


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}…"


def strict_column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return computed values in the type of a column. `Malformed` if one would change."""
    source, target = column.type, field.type
    if source == target:
        return column
    if types.is_null(source):
        return pa.chunked_array([pa.nulls(len(column), target)], target)
    if (_family(source), _family(target)) not in _EXACT:
        raise Malformed(
            f"column {field.name} is {target}, but its values are {source}, which are not "
            "converted; write CAST(… AS type)"
        )
    try:
        cast = _cast(column, target)
    except pa.ArrowException as error:
        raise Malformed(f"a value does not fit column {field.name}, {target}: {error}") from None
    if types.is_floating(source) or types.is_floating(target):
        _check_same(column, cast, field)
    return cast


_EXACT = {
    *((kind, kind) for kind in ("bool", "integer", "float", "decimal", "text", "binary", "date")),
    *(("integer", "decimal"), ("integer", "float"), ("float", "decimal"), ("decimal", "float")),
    *(("timestamp", "timestamp"), ("timestamp", "timestamptz"), ("timestamptz", "timestamptz")),
}
"""Families of types between which values are converted, if each stays what it is."""


def _family(kind: pa.DataType) -> str:
    tests: list[tuple[str, Callable[[pa.DataType], bool]]] = [
        ("bool", types.is_boolean),
        ("integer", types.is_integer),
        ("float", types.is_floating),
        ("decimal", types.is_decimal),
        ("date", types.is_date),
        ("text", lambda k: types.is_string(k) or types.is_large_string(k) or k == pa.string_view()),
        (
            "binary",
            lambda k: types.is_binary(k) or types.is_large_binary(k) or k == pa.binary_view(),
        ),
        ("timestamptz", lambda k: types.is_timestamp(k) and k.tz is not None),
        ("timestamp", types.is_timestamp),
    ]
    return next((name for name, is_one in tests if is_one(kind)), str(kind))


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    if types.is_integer(column.type) and types.is_decimal(target):
        # Arrow asks for room for every value of the integer type, also for absent ones.
        scale = min(target.scale, DECIMAL_DIGITS_MAX - INTEGER_DIGITS_MAX)
        wide = column.cast(pa.int64()).cast(pa.decimal128(DECIMAL_DIGITS_MAX, scale))
        return wide.cast(target)
    return column.cast(target, safe=not types.is_floating(column.type) or _is_widening(target))


def _is_widening(target: pa.DataType) -> bool:
    return not types.is_floating(target)


def _check_same(before: pa.ChunkedArray, after: pa.ChunkedArray, field: pa.Field) -> None:
    """Raise `Malformed` if a number is another one now."""
    back = after.cast(before.type, safe=False)
    is_same = pc.equal(before, back)
    if types.is_floating(before.type):
        is_same = pc.or_(is_same, pc.and_(pc.is_nan(before), pc.is_nan(back)))
    if pc.all(is_same).as_py() is False:
        at = is_same.index(pa.scalar(False)).as_py()
        raise Malformed(
            f"{before[at].as_py()} does not fit column {field.name}, {field.type}, exactly; write "
            "CAST(… AS type)"
        )
