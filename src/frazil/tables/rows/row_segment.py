"""RowSegment: consecutive row versions as one Arrow batch. Immutable.

The batch has the columns of a definition, `_offset`, and `_key` if no column is the canonical key.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from frazil.tables.definition import KEY, OFFSET, TableDefinition
from frazil.tables.keys.kernels import Bits, Longs
from frazil.tables.keys.key_block import KeyBlock, block_of, is_own_key, key_array
from frazil.tables.rows.segment_file import RowFileLocation

OFFSET_FIELD = pa.field(OFFSET, pa.int64(), nullable=False)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class RowSegment:
    """The row versions `base_row` up to `end_row`."""

    base_row: int
    batch: pa.RecordBatch
    keys: KeyBlock
    size_bytes: int
    definition: int
    """Version of the definition that the columns are of."""
    location: RowFileLocation | None = None
    """The file that has exactly these rows; None if only this process has them."""

    @property
    def end_row(self) -> int:
        end: int = self.base_row + self.batch.num_rows
        return end

    @property
    def offsets(self) -> Longs:
        """The offset that made each row version; they never decrease."""
        offsets: Longs = self.batch[OFFSET].to_numpy()
        return offsets


def has_own_key(definition: TableDefinition) -> bool:
    """Return whether a column of the table is its canonical key."""
    return is_own_key([column.field().type for column in definition.key_columns])


def key_width(definition: TableDefinition) -> int:
    """Return the bytes of every key, 0 if they vary."""
    kinds = [column.field().type for column in definition.key_columns]
    empty = key_array([pa.array([], kind) for kind in kinds])
    return block_of(empty).width


def stored_schema(definition: TableDefinition) -> pa.Schema:
    """Return the columns of a row segment."""
    fields = [*definition.schema, OFFSET_FIELD]
    if not has_own_key(definition):
        width = key_width(definition)
        fields.append(pa.field(KEY, pa.int64() if width else pa.binary(), nullable=False))
    return pa.schema(fields)


def upgraded(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows in a later version of their table: wider types, more columns, which are null."""
    if batch.schema.equals(schema):
        return batch
    names = set(batch.schema.names)
    arrays = [
        batch[field.name].cast(field.type)
        if field.name in names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def segment_of_rows(
    definition: TableDefinition, rows: pa.RecordBatch, offsets: Longs, base_row: int
) -> RowSegment:
    """Return new row versions, whose columns are those of the definition."""
    keys = key_array([rows[name] for name in definition.key])
    arrays = [*rows.columns, pa.array(offsets)]
    if not has_own_key(definition):
        arrays.append(keys)
    batch = pa.RecordBatch.from_arrays(arrays, schema=stored_schema(definition))
    return RowSegment(base_row, batch, block_of(keys), batch.nbytes, definition.version)


def segment_of_batch(
    definition: TableDefinition,
    batch: pa.RecordBatch,
    base_row: int,
    version: int,
    location: RowFileLocation | None = None,
) -> RowSegment:
    """Return row versions that have all columns of a version of the definition."""
    keys = batch[definition.key[0] if has_own_key(definition) else KEY]
    return RowSegment(base_row, batch, block_of(keys), batch.nbytes, version, location)


def merged(definition: TableDefinition, segments: Sequence[RowSegment]) -> RowSegment:
    """Return adjacent segments as one."""
    if len(segments) == 1 and segments[0].definition == definition.version:
        return segments[0]
    schema = stored_schema(definition)
    batch = pa.concat_batches([upgraded(segment.batch, schema) for segment in segments])
    return segment_of_batch(definition, batch, segments[0].base_row, definition.version)


def live_mask(live: Bits, segment: RowSegment) -> pa.BooleanArray:
    """Return which rows of a segment are live, without copying."""
    offset, count = segment.base_row, segment.batch.num_rows
    first = offset >> 3
    buffer = pa.py_buffer(live[first : (offset + count + 7) >> 3])
    return pa.BooleanArray.from_buffers(pa.bool_(), count, [None, buffer], 0, offset & 7)


def take_rows(segments: Sequence[RowSegment], rows: Longs, schema: pa.Schema) -> pa.RecordBatch:
    """Return row versions by number, in this order. Gathered segment by segment: Arrow's own
    `take` over many chunks is slower by far."""
    if not len(rows):
        return empty_batch(schema)
    bases = np.array([segment.base_row for segment in segments], np.int64)
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    owners = np.searchsorted(bases, ordered, side="right") - 1
    firsts = np.flatnonzero(np.diff(owners, prepend=-1))
    ends = [*firsts[1:].tolist(), len(rows)]
    parts = []
    for begin, end in zip(firsts.tolist(), ends, strict=True):
        segment = segments[int(owners[begin])]
        positions = pa.array(ordered[begin:end] - segment.base_row)
        batch = upgraded(segment.batch.select(_present(segment, schema)), schema)
        parts.append(batch.take(positions))
    found = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
    if np.array_equal(ordered, rows):
        return found
    back = np.empty(len(rows), np.int64)
    back[order] = np.arange(len(rows))
    return found.take(pa.array(back))


def _present(segment: RowSegment, schema: pa.Schema) -> list[str]:
    names = set(segment.batch.schema.names)
    return [name for name in schema.names if name in names]


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def segment_with(segments: Sequence[RowSegment], row: int) -> RowSegment:
    """Return the segment that has a row version."""
    return segments[bisect_right(segments, row, key=lambda segment: segment.base_row) - 1]


def rows_before(segments: Sequence[RowSegment], offset: int) -> int:
    """Return how many row versions were made by offsets below `offset`."""
    low, high = 0, len(segments)
    while low < high:  # the first segment that begins at or after the offset
        middle = (low + high) // 2
        if segments[middle].batch[OFFSET][0].as_py() < offset:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return 0
    segment = segments[low - 1]
    return segment.base_row + int(np.searchsorted(segment.offsets, offset))
