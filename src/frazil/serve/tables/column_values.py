"""JSON values as values of a column. A value that its column cannot hold is refused: nothing is
rounded, cut or guessed. Written as SQL returns them: see `frazil.results.json_csv`."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

import pyarrow as pa
from msgspec import Meta

from frazil.errors import Malformed
from frazil.tables import TableColumn

NAMED_NUMBERS = Literal["NaN", "Infinity", "-Infinity"]
_MOMENT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?"
_ZONE = r"(Z|[+-]\d\d:\d\d)"
MOMENTS = {"timestamp": re.compile(_MOMENT), "timestamptz": re.compile(_MOMENT + _ZONE)}
MOMENT_HINTS = {
    "timestamp": "a time without a zone, such as 2026-11-16T10:00:00.5",
    "timestamptz": "a time with a zone, such as 2026-11-16T10:00:00.5Z",
}
MICROSECONDS = "; at most 6 digits of a second"


def json_type(kind: str) -> Any:
    """Return the Python type of a column's JSON values, for msgspec."""
    plain: dict[str, Any] = {
        "bool": bool,
        "date": datetime.date,
        "string": str,
        "timestamp": str,
        "timestamptz": str,
        "binary": bytes,
        "uint64": Annotated[int, Meta(ge=0)],
        "float32": float | NAMED_NUMBERS,
        "float64": float | NAMED_NUMBERS,
    }
    if kind in plain:
        return plain[kind]
    if kind.startswith("decimal"):
        return Decimal
    bits = int(kind.removeprefix("uint").removeprefix("int"))
    if kind.startswith("u"):
        return Annotated[int, Meta(ge=0, le=2**bits - 1)]
    return Annotated[int, Meta(ge=-(2 ** (bits - 1)), le=2 ** (bits - 1) - 1)]


def column_array(column: TableColumn, values: Sequence[Any], lines: Sequence[int]) -> pa.Array:
    """Return the values of a column, which msgspec has checked, as Arrow. Raises `Malformed` with
    the line of the first value that does not fit."""
    try:
        return _array(column, [column_value(column, value) for value in values])
    except Malformed:
        for line, value in zip(lines, values, strict=True):
            try:
                _array(column, [column_value(column, value)])
            except Malformed as error:
                raise Malformed(f"line {line}, column {column.name}: {error}") from None
        raise


def column_value(column: TableColumn, value: Any) -> Any:
    """Return a value as Arrow takes it. Raises `Malformed` if the column cannot hold it."""
    if value is None:
        return None
    if column.type in MOMENTS:
        return _moment(column.type, value)
    if column.type in ("float32", "float64"):
        return _number(column.type, float(value))
    return value


def _moment(kind: str, text: str) -> datetime.datetime:
    if MOMENTS[kind].fullmatch(text) is None:
        raise Malformed(f"{text!r} is not {MOMENT_HINTS[kind]}{MICROSECONDS}")
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise Malformed(f"{text!r} is no time: {error}") from None


def _number(kind: str, value: float) -> float:
    if kind == "float32" and math.isfinite(value) and abs(value) > _FLOAT32_MAX:
        raise Malformed(f"{value} is out of the range of float32")
    return value


_FLOAT32_MAX = (2 - 2**-23) * 2.0**127


def _array(column: TableColumn, values: list[Any]) -> pa.Array:
    try:
        return pa.array(values, column.field().type)
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
        raise Malformed(f"not a {column.type}: {error}") from None
