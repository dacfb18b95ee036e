"""RowSegment: row versions as one Arrow batch, in the order of their numbers.

The batch has the columns of a definition, `_offset`, and `_key` if no column is the canonical key.
Numbers have gaps where a compaction removed row versions. Immutable, except for the bits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from frazil.disk import Mapped
from frazil.tables.definition import KEY, OFFSET, TableDefinition
from frazil.tables.keys.kernels import Bits, Longs
from frazil.tables.keys.key_block import KeyBlock, block_of, is_own_key, key_array
from frazil.tables.keys.key_index import TableEntry

OFFSET_FIELD = pa.field(OFFSET, pa.int64(), nullable=False)


@dataclass(frozen=True, slots=True, eq=False)
class RowSegment:
    """Row versions from `base_row` on."""

    base_row: int
    batch: pa.RecordBatch
    keys: KeyBlock
    definition: int
    """Version of the definition that the columns are of."""
    live: Bits
    """One bit per position, the lowest first: whether the row version is live now. Changed by the
    owner of the state; a view copies it and corrects the copy."""
    numbers: Longs | None = None
    """The number of each row version, if there are gaps."""
    mapped: Mapped | None = None
    """The file, if it is in one."""

    @property
    def size_bytes(self) -> int:
        size: int = self.batch.nbytes
        return size

    @property
    def offsets(self) -> Longs:
        """The offset that made each row version; they never decrease."""
        offsets: Longs = self.batch[OFFSET].to_numpy()
        return offsets

    @property
    def rows(self) -> Longs:
        """The number of each row version."""
        if self.numbers is not None:
            return self.numbers
        return np.arange(self.base_row, self.base_row + self.batch.num_rows)

    def row_at(self, position: int) -> int:
        return self.base_row + position if self.numbers is None else int(self.numbers[position])

    def count_below(self, row: int) -> int:
        """Return how many row versions have a number below this one: the position that it has, or
        would have."""
        if self.numbers is not None:
            return int(np.searchsorted(self.numbers, row))
        return min(max(0, row - self.base_row), len(self.keys))

    def positions_of(self, rows: Longs) -> Longs:
        """Return the positions of row versions that are here."""
        positions: Longs = (
            rows - self.base_row
            if self.numbers is None
            else np.searchsorted(self.numbers, rows).astype(np.int64)
        )
        return positions

    def has(self, rows: Longs) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which of some row versions, none below `base_row`, are here."""
        if self.numbers is None:
            return rows < self.base_row + len(self.keys)
        positions = np.minimum(np.searchsorted(self.numbers, rows), len(self.numbers) - 1)
        return np.asarray(self.numbers[positions] == rows)

    @property
    def is_live(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each row version is live now."""
        bits = np.unpackbits(self.live, count=self.batch.num_rows, bitorder="little")
        return bits.view(np.bool_)

    @property
    def entry(self) -> TableEntry:
        return TableEntry(self.base_row, self.keys, self.numbers, self.live)


def all_live(count: int) -> Bits:
    """Return bits that say of all positions that they are live."""
    return np.full((count + 7) // 8, 0xFF, np.uint8)


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
    live = all_live(batch.num_rows)
    return RowSegment(base_row, batch, block_of(keys), definition.version, live)


def segment_of_batch(
    definition: TableDefinition,
    batch: pa.RecordBatch,
    base_row: int,
    version: int,
    live: Bits | None = None,
) -> RowSegment:
    """Return row versions that have all columns of a version of the definition. All are live if
    nothing else is said."""
    keys = batch[definition.key[0] if has_own_key(definition) else KEY]
    bits = all_live(batch.num_rows) if live is None else live
    return RowSegment(base_row, batch, block_of(keys), version, bits)


def merged(definition: TableDefinition, segments: Sequence[RowSegment]) -> RowSegment:
    """Return adjacent segments in memory as one."""
    if len(segments) == 1 and segments[0].definition == definition.version:
        return segments[0]
    schema = stored_schema(definition)
    batch = pa.concat_batches([upgraded(segment.batch, schema) for segment in segments])
    bits = np.concatenate([segment.is_live for segment in segments])
    live = np.packbits(bits, bitorder="little")
    return segment_of_batch(definition, batch, segments[0].base_row, definition.version, live)


def live_mask(live: Bits, count: int) -> pa.BooleanArray:
    """Return bits as an array, without copying."""
    return pa.BooleanArray.from_buffers(pa.bool_(), count, [None, pa.py_buffer(live)])


def take_rows(segments: Sequence[RowSegment], rows: Longs, schema: pa.Schema) -> pa.RecordBatch:
    """Return row versions by number, in this order. Gathered segment by segment: Arrow's own
    `take` over many chunks is slower by far."""
    if not len(rows):
        return empty_batch(schema)
    bases = base_rows(segments)
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    owners = np.searchsorted(bases, ordered, side="right") - 1
    firsts = np.flatnonzero(np.diff(owners, prepend=-1))
    ends = [*firsts[1:].tolist(), len(rows)]
    parts = []
    for begin, end in zip(firsts.tolist(), ends, strict=True):
        segment = segments[int(owners[begin])]
        positions = pa.array(segment.positions_of(ordered[begin:end]))
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


def base_rows(segments: Sequence[RowSegment]) -> Longs:
    return np.array([segment.base_row for segment in segments], np.int64)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def segment_with(segments: Sequence[RowSegment], row: int) -> RowSegment:
    """Return the segment that has a row version."""
    return segments[bisect_right(segments, row, key=lambda segment: segment.base_row) - 1]


def rows_before(segments: Sequence[RowSegment], offset: int) -> int | None:
    """Return the number of the first row version made at an offset or later, None if there is none
    in these segments."""
    low, high = 0, len(segments)
    while low < high:  # the first segment that begins at or after the offset
        middle = (low + high) // 2
        if segments[middle].batch[OFFSET][0].as_py() < offset:
            low = middle + 1
        else:
            high = middle
    if low > 0:
        segment = segments[low - 1]
        position = int(np.searchsorted(segment.offsets, offset))
        if position < segment.batch.num_rows:
            return segment.row_at(position)
    return segments[low].row_at(0) if low < len(segments) else None
