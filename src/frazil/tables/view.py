"""RowsView: the rows of a partition as of an offset. Immutable, while the fold goes on.

A row version is live as of an offset if it was made below it and did not die below it. Row numbers
and deaths are in the order of the log, so a view is two numbers. It keeps the segments and deaths
of its time: a compaction replaces those of the state, and files that are mapped stay readable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import Malformed, OutOfRange
from frazil.tables.definition import CHANGE, OFFSET, ROW
from frazil.tables.keys.kernels import NO_ROW, Bits, Longs
from frazil.tables.keys.key_block import KeyBlock, block_of, key_array
from frazil.tables.keys.key_index import KeyTable
from frazil.tables.rows.deaths import NO_SUCCESSOR, Deaths
from frazil.tables.rows.mapped_pages import FAULT_BYTES
from frazil.tables.rows.row_segment import (
    OFFSET_FIELD,
    RowSegment,
    live_mask,
    rows_before,
    segment_with,
    take_rows,
    upgraded,
)
from frazil.tables.rows.rows_part import RowsPart, rows_part
from frazil.tables.state import PartitionState

INSERT, UPDATE, DELETE = "insert", "update", "delete"
Key = object | tuple[object, ...]
"""The value of the key column, or of all key columns in order."""


class RowsView:
    """Any thread may use it."""

    def __init__(
        self,
        state: PartitionState,
        segments: tuple[RowSegment, ...],
        deaths: Deaths,
        row_count: int,
        death_count: int,
        end_offset: int,
    ) -> None:
        self._state = state
        self._segments = segments
        self._deaths = deaths
        self._pages = state.pages
        self.definition = state.definition
        self._schema = state.schema
        self._names = state.schema.names
        self._key_types = state.key_types
        self.row_count = row_count
        """Row versions that were made: the number of the next one."""
        self.death_count = death_count
        """How many of them died."""
        self.end_offset = end_offset
        """The view is as of this offset: it has every change below."""

    @property
    def first_offset(self) -> int:
        """The earliest offset that `as_of` and `changes` take; a compaction forgot those before."""
        return self._deaths.horizon

    @property
    def live_count(self) -> int:
        """Rows of the table."""
        return self.row_count - self.death_count

    def as_of(self, offset: int) -> RowsView:
        """Return the rows as of an earlier offset."""
        if offset == self.end_offset:
            return self
        self._check_known(offset, offset)
        row = rows_before(self._shown_segments, offset)
        rows = self.row_count if row is None else min(row, self.row_count)
        with self._state.lock:
            deaths = min(self._deaths.before(offset), self.death_count)
        return RowsView(self._state, self._segments, self._deaths, rows, deaths, offset)

    def _check_known(self, begin: int, end: int) -> None:
        if self.first_offset <= begin <= end <= self.end_offset:
            return
        wanted = f"offset {begin} is" if begin == end else f"offsets {begin} to {end} are"
        older = "; older ones are in the lake" if self.first_offset else ""
        raise OutOfRange(
            f"{wanted} not in {self.first_offset} to {self.end_offset}, the changes of table "
            f"{self.definition.name} that are known here{older}"
        )

    @property
    def _shown_segments(self) -> list[RowSegment]:
        """The segments up to the end of the view; the last one may have later rows."""
        return [segment for segment in self._segments if segment.base_row < self.row_count]

    @cached_property
    def live(self) -> tuple[Bits, ...]:
        """Which row versions are live: bits by position, the lowest first, of each segment that
        `pieces` yields."""
        segments = self._shown_segments
        with self._state.lock:
            bits = [segment.live.copy() for segment in segments]
            died = self._deaths.since(self.death_count).rows
            died = np.array(died[died < self.row_count])
        entries = [s.entry._replace(live=b) for s, b in zip(segments, bits, strict=True)]
        KeyTable(entries).put_bits(died, is_live=True)
        return tuple(bits)

    def pieces(self) -> Iterator[tuple[pa.RecordBatch, pa.BooleanArray]]:
        """Yield all row versions that are there and which are live, segment by segment, in the
        types of the table."""
        for segment, batch, mask in self._pieces(self._schema):
            self._pages.used_segment(segment)
            yield batch, mask

    def _pieces(
        self, schema: pa.Schema
    ) -> Iterator[tuple[RowSegment, pa.RecordBatch, pa.BooleanArray]]:
        for segment, bits in zip(self._shown_segments, self.live, strict=True):
            names = [name for name in schema.names if name in segment.batch.schema.names]
            count = segment.count_below(self.row_count)
            batch = upgraded(segment.batch.select(names).slice(0, count), schema)
            yield segment, batch, live_mask(bits, count)

    @cached_property
    def parts(self) -> tuple[RowsPart, ...]:
        """What a query reads, segment by segment."""
        return tuple(
            rows_part(segment, live_mask(bits, segment.count_below(self.row_count)))
            for segment, bits in zip(self._shown_segments, self.live, strict=True)
        )

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the live rows, in the order of their last changes."""
        for batch, mask in self.pieces():
            yield (batch if columns is None else batch.select(list(columns))).filter(mask)

    def rows_between(self, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield the live row versions with numbers from `begin` up to `end`, in this order: the
        columns of the table, `_offset` and `_row`."""
        schema = pa.schema([*self._schema, OFFSET_FIELD])
        numbered = schema.append(pa.field(ROW, pa.int64(), nullable=False))
        for segment, batch, mask in self._pieces(schema):
            first = segment.count_below(begin)
            count = min(batch.num_rows, segment.count_below(end)) - first
            if count <= 0:
                continue
            self._pages.used_segment(segment)
            arrays = [*batch.slice(first, count).columns]
            arrays.append(pa.array(segment.rows[first : first + count]))
            found = pa.RecordBatch.from_arrays(arrays, schema=numbered)
            found = found.filter(mask.slice(first, count))
            if found.num_rows:
                yield found

    def live_rows(self, begin: int, end: int) -> Longs:
        """Return the numbers of the live row versions from `begin` up to `end`."""
        parts = []
        for segment, bits in zip(self._shown_segments, self.live, strict=True):
            first, last = (segment.count_below(min(row, self.row_count)) for row in (begin, end))
            is_live = np.unpackbits(bits, count=last, bitorder="little")[first:].view(np.bool_)
            parts.append(segment.rows[first:last][is_live])
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def died_since(self, then: RowsView) -> Longs:
        """Return the numbers of the row versions that were live in an earlier view of the same
        partition, and are not in this one; sorted."""
        if then.end_offset > self.end_offset:
            raise OutOfRange(f"{then.end_offset} is after {self.end_offset}, the end of this view")
        self._check_known(then.end_offset, self.end_offset)
        with self._state.lock:
            died = self._deaths.between(then.death_count, self.death_count).rows
            rows = np.array(died[died < then.row_count])
        rows.sort()
        return rows

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
        position, batch = segment.count_below(row), segment.batch
        self._pages.used(segment.mapped, FAULT_BYTES * batch.num_columns)
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
            died = self._deaths.since(self.death_count).rows
            died = np.array(died[died < self.row_count])
        found = self._table.find_among(block, died, 1) if len(died) else died
        return int(found[0]) if len(found) else NO_ROW

    @cached_property
    def _table(self) -> KeyTable:
        """The keys of this view's segments: the state may have compacted them away."""
        return KeyTable([segment.entry for segment in self._shown_segments])

    def get_many(self, keys: Sequence[Key] | pa.Array) -> pa.RecordBatch:
        """Return the rows of the keys that exist, in the order of the keys."""
        array = keys if isinstance(keys, pa.Array) else key_array_of(self._key_types, keys)
        rows = self.find(block_of(array))
        found = rows[rows != NO_ROW]
        self._pages.used_rows(self._segments, found, len(self._names) + 1)
        return take_rows(self._segments, found, self._schema)

    def take(self, keys: pa.Array) -> pa.RecordBatch:
        """Return the rows of those canonical keys that exist, with their `_offset`."""
        rows = self.find(block_of(keys))
        found = rows[rows != NO_ROW]
        self._pages.used_rows(self._segments, found, len(self._names) + 1)
        return take_rows(self._segments, found, pa.schema([*self._schema, OFFSET_FIELD]))

    def find(self, block: KeyBlock) -> Longs:
        """Return the row number of each key that is live in this view, else -1."""
        state = self._state
        hashes = block.hashes(state.index.seed)
        with state.lock:
            rows = state.index.find(block, hashes)
            has_died = len(self._deaths.since(self.death_count).rows) > 0
        # A row that is live now, and was made before the view, was live all the time.
        missing = np.flatnonzero((rows == NO_ROW) | (rows >= self.row_count))
        if not has_died:
            rows[missing] = NO_ROW
            return rows
        for position in missing.tolist():
            rows[position] = self._find_one(block_of(block.array.slice(position, 1)))
        return rows

    def changes(self, begin: int, end: int) -> pa.RecordBatch:
        """Return the changes of the offsets from `begin` up to `end`, in the order of the log:
        `_change` (insert, update, delete), `_offset`, and the columns after the change, or before
        it if the row was deleted."""
        self._check_known(begin, end)
        first, last = self.as_of(begin), self.as_of(end)
        with self._state.lock:
            died = self._deaths.between(first.death_count, last.death_count)
        made: Longs = np.arange(first.row_count, last.row_count)
        is_update = np.zeros(len(made), np.bool_)
        is_deleted = died.successors == NO_SUCCESSOR
        is_update[died.successors[~is_deleted] - first.row_count] = True
        rows = np.concatenate([made, died.rows[is_deleted]])
        self._pages.used_rows(self._segments, rows, len(self._names) + 1)
        table = take_rows(self._segments, rows, pa.schema([*self._schema, OFFSET_FIELD]))
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

    def history(self, key: Key) -> pa.RecordBatch:
        """Return the versions of one key from `first_offset` on, and the one that was live there,
        in the columns of `changes`. `_change` is null of a version that was made before: whether
        it was an insert or an update is not known any more."""
        block = block_of(key_array_of(self._key_types, [key]))
        with self._state.lock:
            died = self._deaths.between(self._deaths.before(self.first_offset), self.death_count)
        self._pages.used_rows(self._segments, died.rows, 1)
        dead = self._table.find_among(block, np.array(died.rows), len(died.rows))
        live = self._find_one(block)
        made = np.sort(dead if live == NO_ROW else np.append(dead, live))
        ends = died.where(np.isin(died.rows, dead))
        deleted = ends.where(ends.successors == NO_SUCCESSOR)
        rows = np.concatenate([made, deleted.rows])
        self._pages.used_rows(self._segments, rows, len(self._names) + 1)
        table = take_rows(self._segments, rows, pa.schema([*self._schema, OFFSET_FIELD]))
        offsets = table[OFFSET].to_numpy().copy()
        kinds: list[str | None] = [
            UPDATE if row in ends.successors else INSERT if offset >= self.first_offset else None
            for row, offset in zip(made.tolist(), offsets.tolist(), strict=False)
        ]
        kinds += [DELETE] * len(deleted.rows)
        offsets[len(made) :] = deleted.offsets
        # A version comes after the end of the one before, and before its own.
        order = np.lexsort((np.arange(len(rows)) >= len(made), rows))
        sorted_rows = table.select(self._names).take(pa.array(order))
        names = pa.array([kinds[at] for at in order.tolist()], pa.string())
        return pa.RecordBatch.from_arrays(
            [names, pa.array(offsets[order]), *sorted_rows.columns],
            names=[CHANGE, OFFSET, *self._names],
        )


def view_of(state: PartitionState, end_offset: int) -> RowsView:
    """Return the rows as they are. Called by the owner of the state."""
    return RowsView(
        state, state.segments, state.deaths, state.row_count, state.deaths.count, end_offset
    )


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
