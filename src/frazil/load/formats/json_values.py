"""One JSON document per row, read by Python: exact, slow, and the reference of the fast path.

Numbers keep their spelling until they have a type. A name that appears twice, NaN, and half of a
surrogate pair are errors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

import pyarrow as pa

from frazil.load.formats.blocks import (
    ADD_HINT,
    JSON_TEXT,
    ExactError,
    target_types,
    written_type,
)
from frazil.load.formats.text_cast import EXACT_INT_MAX, cast_text, exact_float
from frazil.load.formats.type_merge import DEPTH_MAX, merge_fields, merge_types

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
VALUE_CHARACTERS_MAX = 80


class _Fraction(str):
    """The spelling of a number with a point or an exponent."""

    __slots__ = ()


class Misfit(ValueError):
    """A value that is not of the type of its column."""


def parse_row(line: bytes) -> dict[str, Any]:
    """Parse an object. ValueError, with the reason, if it is none."""
    value = parse_document(line)
    if not isinstance(value, dict):
        raise ValueError("it is JSON, but not an object")
    return value


def parse_document(line: bytes) -> Any:
    """Parse a JSON document. ValueError, with the reason, if it is none."""
    try:
        return _DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} at character {error.pos + 1}") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} appears twice")
    return result


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_Fraction, parse_constant=_constant
)


def type_of_value(value: Any, depth: int = 0) -> pa.DataType:
    """Return the type of a value, before `finished`."""
    if value is None:
        return pa.null()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        if not INT_MIN <= value <= INT_MAX:
            return JSON_TEXT
        return pa.int64() if abs(value) <= EXACT_INT_MAX else pa.uint64()
    if isinstance(value, _Fraction):
        return JSON_TEXT if exact_float(value) is None else pa.float64()
    if isinstance(value, str):
        return pa.string()
    if depth >= DEPTH_MAX:
        return JSON_TEXT
    if isinstance(value, dict):
        return pa.struct([pa.field(k, type_of_value(v, depth + 1)) for k, v in value.items()])
    kind = pa.null()
    for item in value:
        kind = merge_types(kind, type_of_value(item, depth + 1), JSON_TEXT)
    return pa.list_(kind)


def schema_of_rows(rows: Sequence[dict[str, Any]]) -> pa.Schema:
    """Return the merged schema of rows, before `finished`."""
    fields: list[pa.Field] = []
    for row in rows:
        new = [pa.field(name, type_of_value(value)) for name, value in row.items()]
        known = {field.name: field.type for field in fields}
        if any(known.get(field.name) != field.type for field in new):
            fields = merge_fields(fields, new, JSON_TEXT)
    return pa.schema(fields)


def rows_to_table(
    rows: Sequence[dict[str, Any]], schema: pa.Schema
) -> tuple[pa.Table, dict[int, ExactError]]:
    """Return rows with the types of a table, and the indices of those that do not fit."""
    bad: dict[int, ExactError] = {}
    names = set(schema.names)
    for index, row in enumerate(rows):
        unknown = next((name for name in row if name not in names), None)
        if unknown is not None:
            bad[index] = (unknown, f"the table has no such column{ADD_HINT}")
    columns = []
    for field in schema:
        values: list[Any] = []
        for index, row in enumerate(rows):
            try:
                values.append(value_as(row.get(field.name), field.type))
            except Misfit as error:
                bad.setdefault(index, (field.name, str(error)))
                values.append(None)
        columns.append(pa.array(values, written_type(field.type)))
    return pa.Table.from_arrays(columns, schema=target_types(schema)), bad


def value_as(value: Any, kind: pa.DataType) -> Any:
    """Return a value as Arrow takes it. `Misfit` if it is not of this type."""
    if value is None:
        return None
    if kind == JSON_TEXT:
        return text_of(value)
    if kind == pa.string():
        if isinstance(value, _Fraction) or not isinstance(value, str):
            _misfit(value, kind)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Misfit("it has half of a surrogate pair") from None
        return value
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else _misfit(value, kind)
    if pa.types.is_integer(kind):
        is_int = isinstance(value, int) and not isinstance(value, bool)
        is_signed = pa.types.is_signed_integer(kind)
        end = 2 ** (kind.bit_width - is_signed)
        return value if is_int and -end * is_signed <= value < end else _misfit(value, kind)
    if pa.types.is_floating(kind):
        return _float_as(value, kind)
    if pa.types.is_list(kind):
        if not isinstance(value, list):
            _misfit(value, kind)
        return [value_as(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return _struct_as(value, kind)
    if pa.types.is_map(kind):
        if not isinstance(value, dict) or kind.key_type != pa.string():
            _misfit(value, kind)
        return [(name, value_as(item, kind.item_type)) for name, item in value.items()]
    return _text_as(value, kind)


def _float_as(value: Any, kind: pa.DataType) -> float:
    number: float | None = None
    if isinstance(value, _Fraction):
        number = exact_float(value)
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) <= EXACT_INT_MAX:
        number = float(value)
    if number is None:
        _misfit(value, kind)
    if kind == pa.float32() and pa.scalar(number, pa.float32()).as_py() != number:
        _misfit(value, kind)
    return number


def _struct_as(value: Any, kind: pa.DataType) -> dict[str, Any]:
    if not isinstance(value, dict):
        _misfit(value, kind)
    known = {field.name for field in kind}
    unknown = next((name for name in value if name not in known), None)
    if unknown is not None:
        raise Misfit(f"its field {unknown!r} is not in the table's column")
    return {field.name: value_as(value.get(field.name), field.type) for field in kind}


def _text_as(value: Any, kind: pa.DataType) -> Any:
    """Return a date, time, decimal, UUID or bytes from a string; decimals also from a number."""
    is_number = isinstance(value, int | _Fraction) and not isinstance(value, bool)
    if not isinstance(value, str) and not is_number:
        _misfit(value, kind)
    if (isinstance(value, _Fraction) or is_number) and not pa.types.is_decimal(kind):
        _misfit(value, kind)
    values, bad = cast_text(pa.array([str(value)]), kind)
    if bad:
        _misfit(value, kind)
    return values[0].as_py()


def _misfit(value: Any, kind: pa.DataType) -> NoReturn:
    text = text_of(value)
    if len(text) > VALUE_CHARACTERS_MAX:
        text = f"{text[:VALUE_CHARACTERS_MAX]}…"
    raise Misfit(f"{text} is not {name_of(kind)}")


def name_of(kind: pa.DataType) -> str:
    """Return a type as SQL has it."""
    names = {
        pa.int32(): "an INT",
        pa.int64(): "a BIGINT",
        pa.float32(): "a FLOAT without loss of digits",
        pa.float64(): "a DOUBLE without loss of digits",
        pa.string(): "a string",
        pa.bool_(): "true or false",
        pa.date32(): "a date as 2026-11-18",
        pa.timestamp("us"): "a time as 2026-11-18T09:30:00",
        pa.timestamp("us", tz="UTC"): "a time as 2026-11-18T09:30:00Z",
        pa.binary(): "base64",
        pa.binary(16): "a UUID",
    }
    return names.get(kind, f"of type {kind}")


def text_of(value: Any) -> str:
    """Return the JSON text of a parsed value; numbers as they were spelled."""
    if isinstance(value, _Fraction):
        return str(value)
    if isinstance(value, dict):
        members = ",".join(f"{json.dumps(k)}:{text_of(v)}" for k, v in value.items())
        return f"{{{members}}}"
    if isinstance(value, list):
        return f"[{','.join(map(text_of, value))}]"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return json.dumps(value)
    return json.dumps(value, ensure_ascii=False)
