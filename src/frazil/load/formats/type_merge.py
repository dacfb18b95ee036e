"""Merges the types that files and blocks have, upward: to a type that holds the values of both.

null < bool
null < int64 < float64      integers beyond 2^53, here uint64, do not become doubles
null < list, struct         by element and by field
anything else               the `mixed` type: the text itself, or JSON text
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from frazil.errors import Malformed, TooLarge
from frazil.load.formats.blocks import JSON_TEXT

COLUMNS_MAX = 2000
"""Columns and fields of a table."""
DEPTH_MAX = 32
"""Levels of lists and structs."""


def merge_types(one: pa.DataType, other: pa.DataType, mixed: pa.DataType | None) -> pa.DataType:
    """Return the type of both. Without a `mixed` type, raise TypeError if there is none."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(merge_types(one.value_type, other.value_type, mixed))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return pa.struct(merge_fields(list(one), list(other), mixed))
    number = _number(one, other)
    if number is not None:
        return number
    if mixed is None:
        raise TypeError(f"{one} and {other}")
    return mixed


def _number(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    both = {one, other}
    if both == {pa.int64(), pa.uint64()}:
        return pa.uint64()
    if both == {pa.int64(), pa.float64()}:
        return pa.float64()
    if both == {pa.int32(), pa.int64()}:
        return pa.int64()
    if both in ({pa.float32(), pa.float64()}, {pa.int32(), pa.float64()}):
        return pa.float64()
    if pa.types.is_decimal(one) and pa.types.is_decimal(other):
        scale = max(one.scale, other.scale)
        whole = max(one.precision - one.scale, other.precision - other.scale)
        return pa.decimal128(whole + scale, scale) if whole + scale <= 38 else None
    return None


def merge_fields(
    one: Iterable[pa.Field], other: Iterable[pa.Field], mixed: pa.DataType | None
) -> list[pa.Field]:
    """Return the fields of both, in the order in which they appear."""
    fields = {field.name: field for field in one}
    for field in other:
        before = fields.get(field.name)
        try:
            kind = field.type if before is None else merge_types(before.type, field.type, mixed)
        except TypeError as error:
            raise Malformed(
                f"column {field.name} has several types, {error}; load these files separately"
            ) from None
        fields[field.name] = pa.field(field.name, kind)
    if len(fields) > COLUMNS_MAX:
        raise TooLarge(
            f"there are more than {COLUMNS_MAX} columns; load the lines with TYPE=TEXT instead"
        )
    return list(fields.values())


def merge_schemas(schemas: Iterable[pa.Schema], mixed: pa.DataType | None) -> pa.Schema:
    """Return the schema of all, before `finished`."""
    fields: list[pa.Field] = []
    for schema in schemas:
        fields = merge_fields(fields, list(schema), mixed)
    return pa.schema(fields)


def finished(schema: pa.Schema) -> pa.Schema:
    """Return a schema that a table can have: columns without any value hold strings, and those with
    JSON text inside of lists or structs hold JSON text as a whole."""
    fields = []
    for field in schema:
        kind = _finished(field.type, 0)
        fields.append(pa.field(field.name, JSON_TEXT if _has_json(kind) else kind))
    return pa.schema(fields)


def _has_json(kind: pa.DataType) -> bool:
    inner = [kind.field(index) for index in range(kind.num_fields)]
    return kind == JSON_TEXT or any(_has_json(field.type) for field in inner)


def _finished(kind: pa.DataType, depth: int) -> pa.DataType:
    if pa.types.is_null(kind):
        return pa.string()
    if kind == pa.uint64():
        return pa.int64()
    if depth >= DEPTH_MAX and pa.types.is_nested(kind):
        return JSON_TEXT
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _finished(kind.value_type, depth + 1)))
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            return JSON_TEXT
        return pa.struct([pa.field(f.name, _finished(f.type, depth + 1)) for f in kind])
    return kind
