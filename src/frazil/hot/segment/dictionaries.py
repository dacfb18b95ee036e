"""Unifies dictionaries, so that all batches of a stream share one per column.

Arrow streams may replace a dictionary half-way, but then no batch can be read without those before
it. If the unified dictionary overflows the index type, the index is widened, and the stream has the
wider schema.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types

WIDE = pa.int32()
"""2^31 distinct values: more than a segment has rows."""


def unified(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the rows in batches that share their dictionaries. All have one schema."""
    schema = batches[0].schema
    if not any(map(_has_dictionary, schema.types)):
        return list(batches)
    table = pa.Table.from_batches(batches)
    try:
        table = table.unify_dictionaries()
    except pa.ArrowInvalid:  # more values than the index type can hold
        wide = [field.with_type(_widened(field.type)) for field in schema]
        table = table.cast(pa.schema(wide, schema.metadata)).unify_dictionaries()
    shared: list[pa.RecordBatch] = table.to_batches()
    return shared


def _has_dictionary(kind: pa.DataType) -> bool:
    return types.is_dictionary(kind) or any(
        _has_dictionary(kind.field(number).type) for number in range(kind.num_fields)
    )


def _widened(kind: pa.DataType) -> pa.DataType:
    if types.is_dictionary(kind):
        return pa.dictionary(WIDE, kind.value_type, kind.ordered)
    if types.is_list(kind):
        return pa.list_(_widened_field(kind.value_field))
    if types.is_map(kind):
        return pa.map_(_widened_field(kind.key_field), _widened_field(kind.item_field))
    if types.is_struct(kind):
        return pa.struct([_widened_field(field) for field in kind])
    return kind


def _widened_field(field: pa.Field) -> pa.Field:
    return field.with_type(_widened(field.type))
