"""RowsView: the rows of a partition as of an offset. Immutable, while the fold goes on.

A row version is live as of an offset if it was made below it and did not die below it. Row numbers
and deaths are in the order of the log, so a view is two numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import Malformed, OutOfRange
from frazil.tables.definition import CHANGE, OFFSET, ROW
from frazil.tables.keys import kernels
from frazil.tables.keys.kernels import NO_ROW, Bits, Longs
from frazil.tables.keys.key_block import KeyBlock, block_of, key_array
from frazil.tables.rows.deaths import NO_SUCCESSOR
from frazil.tables.rows.row_segment import (
    OFFSET_FIELD,
    RowSegment,
    live_mask,
    rows_before,
    segment_with,
    take_rows,
    upgraded,
)
from frazil.tables.state import PartitionState

INSERT, UPDATE, DELETE = "insert", "update", "delete"
Key = object | tuple[object, ...]
"""The value of the key column, or of all key columns in order."""


class RowsView:
    """Any thread may use it."""

    def __init__(
        self,
        state: PartitionState,
        segments: Sequence[RowSegment],
        row_count: int,
        death_count: int,
        end_offset: int,
    ) -> None:
        self._state = state
        self._segments = segments
        self.definition = state.definition
        self._schema = state.schema
        self._names = state.schema.names
        self._key_types = state.key_types
        self.row_count = row_count
        """Row versions that were made."""
        self.death_count = death_count
        """How many of them died."""
        self.end_offset = end_offset
        """The view is as of this offset: it has every change below."""

    @property
    def live_count(self) -> int:
        """Rows of the table."""
        return self.row_count - self.death_count

    def as_of(self, offset: int) -> RowsView:
        """Return the rows as of an earlier offset."""
        if not 0 <= offset <= self.end_offset:
            raise OutOfRange(f"offset {offset} is not in 0 to {self.end_offset}, the changes known")
        if offset == self.end_offset:
            return self
        rows = rows_before(self._shown_segments, offset)
        with self._state.lock:
            deaths = min(self._state.deaths.before(offset), self.death_count)
        return RowsView(self._state, self._segments, rows, deaths, offset)

    @property
    def _shown_segments(self) -> list[RowSegment]:
        """The segments up to the end of the view; the last one may have later rows."""
        return [segment for segment in self._segments if segment.base_row < self.row_count]

    @cached_property
    def live(self) -> Bits:
        """One bit per row version, the lowest first: whether it is live."""
        state = self._state
        with state.lock:
            live = state.live[: (self.row_count + 7) // 8].copy()
            died = state.deaths.between(self.death_count, state.deaths.count).rows
        kernels.set_bits(live, np.array(died[died < self.row_count]))
        if self.row_count % 8:
            live[-1] &= (1 << self.row_count % 8) - 1
        return live

    def pieces(self) -> Iterator[tuple[pa.RecordBatch, pa.BooleanArray]]:
        """Yield all row versions and which are live, segment by segment, in the types of the
        table."""
        schema = self._schema
        for segment in self._shown_segments:
            segment = self._cut(segment)
            names = [name for name in schema.names if name in segment.batch.schema.names]
            yield upgraded(segment.batch.select(names), schema), live_mask(self.live, segment)

    def _cut(self, segment: RowSegment) -> RowSegment:
        if segment.end_row <= self.row_count:
            return segment
        batch = segment.batch.slice(0, self.row_count - segment.base_row)
        return replace(segment, batch=batch)

    def rows_since(self, begin_row: int) -> Iterator[pa.RecordBatch]:
        """Yield the live rows from a row number on: the columns, `_offset` and `_row`."""
        schema = pa.schema([*self._schema, OFFSET_FIELD])
        for segment in self._shown_segments:
            if segment.end_row <= begin_row:
                continue
            segment = self._cut(segment)
            first = max(0, begin_row - segment.base_row)
            mask = live_mask(self.live, segment).slice(first)
            names = [name for name in schema.names if name in segment.batch.schema.names]
            batch = upgraded(segment.batch.select(names), schema).slice(first)
            numbers = pa.array(np.arange(segment.base_row + first, segment.end_row))
            yield batch.append_column(ROW, numbers).filter(mask)

    def died_since(self, offset: int, below: int) -> Longs:
        """Return the row versions below a row number that died at an offset or later, ascending."""
        with self._state.lock:
            first = self._state.deaths.before(offset)
            died = self._state.deaths.between(min(first, self.death_count), self.death_count).rows
        return np.sort(died[died < below])

    def offset_after(self, begin_row: int, bytes_max: int) -> int:
        """Return an offset up to which about `bytes_max` of row versions follow a row number; the
        end of the view if it has fewer."""
        size = 0
        for segment in self._shown_segments:
            begin = max(0, begin_row - segment.base_row)
            rows = min(segment.end_row, self.row_count) - segment.base_row - begin
            if rows <= 0:
                continue
            row_bytes = max(1, segment.size_bytes // segment.batch.num_rows)
            if size + rows * row_bytes > bytes_max:
                at = begin + max(0, bytes_max - size) // row_bytes
                # At least one offset: all rows of one are frozen together.
                return max(int(segment.offsets[at]), int(segment.offsets[begin]) + 1)
            size += rows * row_bytes
        return self.end_offset

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the live rows, in the order of their last changes."""
        for batch, mask in self.pieces():
            yield (batch if columns is None else batch.select(list(columns))).filter(mask)

    def scan(self, lower: Key | None, upper: Key | None) -> Iterator[pa.RecordBatch]:
        """Yield the live rows with `lower` <= key < `upper`, in no order. Only of tables with one
        key column."""
        if len(self.definition.key) > 1:
            raise Malformed("a range scan needs a key of one column; use SQL for others")
        (column,) = self.definition.key_columns
        kind = column.field().type
        for batch, mask in self.pieces():
            keys = batch[column.name]
            if lower is not None:
                mask = pc.and_(mask, pc.greater_equal(keys, pa.scalar(lower, kind)))
            if upper is not None:
                mask = pc.and_(mask, pc.less(keys, pa.scalar(upper, kind)))
            found = batch.filter(mask)
            if found.num_rows:
                yield found

    def get(self, key: Key) -> dict[str, object] | None:
        """Return the row of a key, None if there is none."""
        block = block_of(key_array_of(self._key_types, [key]))
        row = self._find_one(block)
        if row == NO_ROW:
            return None
        segment = segment_with(self._segments, row)
        position, batch = row - segment.base_row, segment.batch
        if segment.definition == self.definition.version:
            # The columns of the table come first, in this order.
            return {
                name: batch.column(number)[position].as_py()
                for number, name in enumerate(self._names)
            }
        (found,) = take_rows([segment], np.array([row]), self._schema).to_pylist()
        return dict(found)

    def _find_one(self, block: KeyBlock) -> int:
        """Do what `find` does, for one key."""
        state = self._state
        hashes = block.hashes(state.index.seed)
        with state.lock:
            row = int(state.index.find(block, hashes)[0])
            if 0 <= row < self.row_count:
                return row
            died = state.deaths.between(self.death_count, state.deaths.count).rows
            died = np.array(died[died < self.row_count])
            return state.index.find_among(block, died) if len(died) else NO_ROW

    def get_many(self, keys: Sequence[Key] | pa.Array) -> pa.RecordBatch:
        """Return the rows of the keys that exist, in the order of the keys."""
        array = keys if isinstance(keys, pa.Array) else key_array_of(self._key_types, keys)
        rows = self.find(block_of(array))
        return take_rows(self._segments, rows[rows != NO_ROW], self._schema)

    def find(self, block: KeyBlock) -> Longs:
        """Return the row number of each key that is live in this view, else -1."""
        state = self._state
        hashes = block.hashes(state.index.seed)
        with state.lock:
            rows = state.index.find(block, hashes)
        # A row that is live now, and was made before the view, was live all the time.
        missing = np.flatnonzero((rows == NO_ROW) | (rows >= self.row_count))
        for position in missing.tolist():
            rows[position] = self._find_one(block_of(block.array.slice(position, 1)))
        return rows

    def changes(self, begin: int, end: int) -> pa.RecordBatch:
        """Return the changes of the offsets from `begin` up to `end`, in the order of the log:
        `_change` (insert, update, delete), `_offset`, and the columns after the change, or before
        it if the row was deleted."""
        if not 0 <= begin <= end <= self.end_offset:
            raise OutOfRange(
                f"offsets {begin} up to {end} are not in 0 to {self.end_offset}, the changes known"
            )
        first, last = self.as_of(begin), self.as_of(end)
        with self._state.lock:
            died = self._state.deaths.between(first.death_count, last.death_count)
        made: Longs = np.arange(first.row_count, last.row_count)
        is_update = np.zeros(len(made), np.bool_)
        is_deleted = died.successors == NO_SUCCESSOR
        is_update[died.successors[~is_deleted] - first.row_count] = True
        rows = np.concatenate([made, died.rows[is_deleted]])
        schema = pa.schema([*self._schema, pa.field(OFFSET, pa.int64())])
        table = take_rows(self._segments, rows, schema)
        offsets = table[OFFSET].to_numpy().copy()
        offsets[len(made) :] = died.offsets[is_deleted]
        kinds = np.concatenate([is_update.astype(np.int8), np.full(len(rows) - len(made), 2)])
        order = np.argsort(offsets, kind="stable")
        names = pa.array([INSERT, UPDATE, DELETE]).take(pa.array(kinds[order].astype(np.int64)))
        sorted_rows = table.select(self._names).take(pa.array(order))
        return pa.RecordBatch.from_arrays(
            [names, pa.array(offsets[order]), *sorted_rows.columns],
            names=[CHANGE, OFFSET, *self._names],
        )


def view_of(state: PartitionState, end_offset: int) -> RowsView:
    """Return the rows as they are. Called by the owner of the state."""
    return RowsView(state, state.segments, state.row_count, state.deaths.count, end_offset)


def key_array_of(types: Sequence[pa.DataType], keys: Sequence[Key]) -> pa.Array:
    """Return Python keys in canonical form. Raises `Malformed` if one cannot be a key."""
    try:
        if len(types) == 1:
            return key_array([pa.array(keys, types[0])])
        values = zip(*(_tuple(key, len(types)) for key in keys), strict=True)
        return key_array([pa.array(each, kind) for each, kind in zip(values, types, strict=True)])
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise Malformed(f"not a key of this table: {error}") from None


def _tuple(key: Key, count: int) -> tuple[object, ...]:
    if not isinstance(key, tuple) or len(key) != count:
        raise Malformed(f"a key of this table is a tuple of {count} values")
    return key
