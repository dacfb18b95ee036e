"""Types of Parquet, ORC and Avro files: what they become in a table, and strict casts to it."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import Malformed
from frazil.load.formats.blocks import (
    ADD_HINT,
    JSON_TEXT,
    Block,
    ExactError,
    target_types,
    without_bad,
)
from frazil.load.formats.json_values import name_of

SMALL = frozenset({pa.int8(), pa.int16(), pa.uint8(), pa.uint16()})
DECIMAL_DIGITS_MAX = 38
VALUE_CHARACTERS_MAX = 80


def table_type(kind: pa.DataType, column: str) -> pa.DataType:
    """Return the type that a column of a file has in a table. `Malformed` if there is none."""
    if kind in SMALL:
        return pa.int32()
    if kind == pa.uint32():
        return pa.int64()
    if kind == pa.uint64():
        return pa.decimal128(20, 0)
    if kind == pa.float16():
        return pa.float32()
    if pa.types.is_dictionary(kind):
        return table_type(kind.value_type, column)
    if pa.types.is_large_string(kind) or kind == pa.string_view() or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or kind == pa.binary_view():
        return pa.binary()
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_decimal(kind) and kind.precision <= DECIMAL_DIGITS_MAX and kind.scale >= 0:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_map(kind):
        return pa.map_(table_type(kind.key_type, column), table_type(kind.item_type, column))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", table_type(kind.value_type, column)))
    if pa.types.is_struct(kind) and kind.num_fields:
        return pa.struct([pa.field(f.name, table_type(f.type, f"{column}.{f.name}")) for f in kind])
    if isinstance(kind, pa.BaseExtensionType):
        return table_type(kind.storage_type, column)
    if kind in PLAIN or pa.types.is_fixed_size_binary(kind):
        return kind
    raise Malformed(f"column {column} has the type {kind}, which tables do not have")


PLAIN = frozenset(
    {
        pa.bool_(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
    }
)


def table_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a table for the columns of a file."""
    return pa.schema([pa.field(f.name, table_type(f.type, f.name)) for f in schema])


def check_columns(found: pa.Schema, schema: pa.Schema) -> None:
    """Raise `Malformed` if columns of a file do not fit the table, whatever their values."""
    for field in found:
        if field.name not in schema.names:
            raise Malformed(f"it has the column {field.name!r}, which the table has not{ADD_HINT}")
        kind, wanted = table_type(field.type, field.name), schema.field(field.name).type
        is_same = pa.types.is_null(field.type) or field.type == wanted
        if not is_same and not _may_cast(kind, wanted):
            raise Malformed(
                f"its column {field.name} has the type {kind}, and the table's {wanted}; values "
                "are not converted"
            )


def _may_cast(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of one type may be values of the other."""
    if kind == wanted or (wanted == JSON_TEXT and kind == pa.string()):
        return True
    if pa.types.is_integer(kind):
        return bool(
            pa.types.is_integer(wanted)
            or pa.types.is_floating(wanted)
            or pa.types.is_decimal(wanted)
        )
    if pa.types.is_list(kind) and pa.types.is_list(wanted):
        return _may_cast(kind.value_type, wanted.value_type)
    if pa.types.is_struct(kind) and pa.types.is_struct(wanted):
        names = {field.name: field.type for field in wanted}
        return all(f.name in names and _may_cast(f.type, names[f.name]) for f in kind)
    if pa.types.is_map(kind) and pa.types.is_map(wanted):
        return _may_cast(kind.key_type, wanted.key_type) and _may_cast(
            kind.item_type, wanted.item_type
        )
    groups = (pa.types.is_floating, pa.types.is_decimal, pa.types.is_timestamp)
    is_same_group = any(group(kind) and group(wanted) for group in groups)
    if is_same_group and pa.types.is_timestamp(kind):
        return bool(kind.tz is None) == (wanted.tz is None)
    return is_same_group


def cast_rows(
    columns: Mapping[str, pa.Array], row_count: int, schema: pa.Schema, first_row: int
) -> Block:
    """Return rows with the types of a table; those with a value that would change are errors."""
    result, bad = [], dict[int, ExactError]()
    for field in target_types(schema):
        column = columns.get(field.name)
        if column is None:
            result.append(pa.nulls(row_count, field.type))
            continue
        values, misfits = cast_array(column, field.type)
        result.append(values)
        for index in misfits:
            text = str(column[index])[:VALUE_CHARACTERS_MAX]
            bad.setdefault(index, (field.name, f"{text} is not {name_of(field.type)}"))
    table = pa.Table.from_arrays(result, schema=target_types(schema))
    return without_bad(table, bad, first_row)


def cast_array(values: pa.Array, kind: pa.DataType) -> tuple[pa.Array, set[int]]:
    """Cast values without changing any. Returns the indices of those that would change."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.type == kind:
        return values, set()
    try:
        result = _cast(values, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if len(values) <= 1:
            return pa.nulls(len(values), kind), set(range(len(values)))
        half = len(values) // 2
        low, low_bad = cast_array(values.slice(0, half), kind)
        high, high_bad = cast_array(values.slice(half), kind)
        return pa.concat_arrays([low, high]), low_bad | {half + index for index in high_bad}
    return result, set()


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast all values; ArrowInvalid if one would change."""
    result = values.cast(kind)
    if pa.types.is_floating(kind) and not pa.types.is_floating(values.type):
        is_same = pc.equal(result.cast(values.type), values)
    elif kind == pa.float32() and values.type == pa.float64():
        is_same = pc.or_(pc.equal(result.cast(pa.float64()), values), pc.is_nan(values))
    else:
        return result
    if not pc.all(pc.fill_null(is_same, True)).as_py():
        raise pa.ArrowInvalid("a value would change")
    return result
