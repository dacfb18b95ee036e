"""PartitionState: the fold of all changes of a partition below an offset.

    upsert   the row version of the key dies, a new one is appended
    update   the same, with the columns that are not set taken from the version that dies
    delete   the row version dies

A function of the changes alone: equal changes make equal row numbers and deaths, in however many
steps they come. Changed by one thread. `lock` is held while index, bits and segments change, in
short turns, so that others can look up keys in between.

Row numbers and deaths are never numbered again. A compaction takes away row versions, which leaves
gaps in the numbers; the index does not change.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from frazil.errors import TooLarge
from frazil.tables.changes import Changes, Operation
from frazil.tables.definition import TableDefinition
from frazil.tables.keys import kernels
from frazil.tables.keys.kernels import NO_ROW, Longs
from frazil.tables.keys.key_block import block_of, key_array
from frazil.tables.keys.key_index import KeyIndex
from frazil.tables.rows.deaths import NO_SUCCESSOR, Deaths
from frazil.tables.rows.mapped_pages import MappedPages
from frazil.tables.rows.row_segment import (
    RowSegment,
    key_width,
    merged,
    segment_of_rows,
    take_rows,
    upgraded,
)

TURN_ROWS = 2048
"""Rows that are indexed while the lock is held."""
MERGED_ROWS = 65_536
"""Segments in memory with more rows are not merged before they are sealed."""


class PartitionState:
    """Row versions, deaths and keys of a partition."""

    def __init__(self, definition: TableDefinition, pages: MappedPages) -> None:
        self.change_definition(definition)
        self.pages = pages
        self.index = KeyIndex(key_width(definition), definition.seed)
        self.segments: tuple[RowSegment, ...] = ()
        """Sealed ones, then those in memory."""
        self.sealed_segments = 0
        self.deaths = Deaths()
        self.row_count = 0
        """Row versions ever made: the number of the next one."""
        self.lock = threading.Lock()

    @property
    def open_segments(self) -> tuple[RowSegment, ...]:
        return self.segments[self.sealed_segments :]

    @property
    def open_bytes(self) -> int:
        """Memory of what is in no file."""
        return sum(segment.size_bytes for segment in self.open_segments) + self.deaths.open_bytes

    @property
    def row_bytes(self) -> int:
        """Of all row versions, in memory and in files."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def dead_rows(self) -> int:
        """Row versions that were replaced or deleted, and not compacted away yet."""
        rows: int = sum(segment.batch.num_rows for segment in self.segments)
        return rows - len(self.index)

    def apply(self, changes: Changes, offsets: Longs) -> Longs:
        """Apply changes, each with its offset; offsets never decrease. Returns the positions of
        those that were not applied: updates of keys that do not exist."""
        if changes.operation is Operation.UPSERT:
            self._put(upgraded(changes.batch, self.schema), offsets)
        elif changes.operation is Operation.DELETE:
            self._delete(changes.batch, offsets)
        else:
            return self._update(changes, offsets)
        return np.empty(0, np.int64)

    def _put(self, rows: pa.RecordBatch, offsets: Longs) -> None:
        """Append row versions, and make them the live ones of their keys."""
        count = rows.num_rows
        if not count:
            return
        if self.row_count + count > kernels.ROWS_MAX:
            raise TooLarge(f"a partition has at most {kernels.ROWS_MAX} row versions")
        segment = segment_of_rows(self.definition, rows, offsets, self.row_count)
        hashes = segment.keys.hashes(self.index.seed)
        positions: Longs = np.arange(count)
        rows_made = segment.base_row + positions
        with self.lock:
            self._replace(len(self.segments), [segment])
        for begin in range(0, count, TURN_ROWS):
            end = min(count, begin + TURN_ROWS)
            turn = positions[begin:end]
            with self.lock:
                killed = self.index.put(segment.keys, hashes[begin:end], turn, rows_made[begin:end])
                by = killed.by + begin
                self.index.table.put_bits(killed.rows, is_live=False)
                self.deaths.append(killed.rows, offsets[by], rows_made[by])
                self.row_count = segment.base_row + end
        self._merge_small()

    def _delete(self, keys: pa.RecordBatch, offsets: Longs) -> None:
        block = block_of(key_array([keys[name] for name in self.definition.key]))
        if not len(block):
            return
        hashes = block.hashes(self.index.seed)
        with self.lock:
            killed = self.index.remove(block, hashes)
            self.index.table.put_bits(killed.rows, is_live=False)
            gone = np.full(len(killed.rows), NO_SUCCESSOR, np.int64)
            self.deaths.append(killed.rows, offsets[killed.by], gone)

    def _update(self, changes: Changes, offsets: Longs) -> Longs:
        """Gather the rows once: all changes of a batch set the same columns, so that a second
        change of a key finds the others as the first one did."""
        batch, schema = changes.batch, self.schema
        rows = self.index.find(block_of(key_array([batch[name] for name in self.definition.key])))
        present = np.flatnonzero(rows != NO_ROW)
        positions = pa.array(present)
        kept = pa.schema([field for field in schema if field.name not in batch.schema.names])
        old = take_rows(self.segments, rows[present], kept)
        arrays = [
            old[field.name]
            if field.name in kept.names
            else batch[field.name].take(positions).cast(field.type)
            for field in schema
        ]
        self._put(pa.RecordBatch.from_arrays(arrays, schema=schema), offsets[present])
        return np.flatnonzero(rows == NO_ROW)

    def _replace(self, begin: int, segments: Sequence[RowSegment]) -> None:
        """Put segments at `begin`, in place of those that follow. The lock is held."""
        self.segments = (*self.segments[:begin], *segments)
        self.index.table.replace(begin, [segment.entry for segment in segments])

    def _merge_small(self) -> None:
        """Merge small segments with neighbours of similar size: there are few at any time, and a
        row is copied a few times only."""
        end = len(self.segments)
        begin = end - 1
        rows = self.segments[begin].batch.num_rows
        while begin > self.sealed_segments:
            before = self.segments[begin - 1].batch.num_rows
            if before >= 2 * rows or before + rows > MERGED_ROWS:
                break
            begin -= 1
            rows += before
        if begin < end - 1:
            segment = merged(self.definition, self.segments[begin:end])
            with self.lock:
                self._replace(begin, [segment])

    def put_sealed(self, segment: RowSegment) -> None:
        """Replace all segments in memory by the same rows in a file; or add one at a start, when
        there is nothing in memory."""
        with self.lock:
            self._replace(self.sealed_segments, [segment] if segment.batch.num_rows else [])
            self.sealed_segments = len(self.segments)

    def put_compacted(
        self, begin_row: int, end_row: int, segment: RowSegment | None, deaths: Deaths
    ) -> None:
        """Put a segment, if any rows are left, in place of the sealed ones with numbers from
        `begin_row` up to `end_row`. The deaths take the place of those that are."""
        begin = bisect_left(self.segments, begin_row, key=lambda each: each.base_row)
        end = bisect_left(self.segments, end_row, key=lambda each: each.base_row)
        end = min(end, self.sealed_segments)
        put = [] if segment is None else [segment]
        with self.lock:
            after = self.segments[end:]
            self._replace(begin, [*put, *after])
            self.sealed_segments += len(put) - (end - begin)
            self.deaths.later = deaths
            self.deaths = deaths

    def change_definition(self, definition: TableDefinition) -> None:
        """Use a definition, or a later version of it. Segments stay as they are."""
        self.definition = definition
        self.schema = definition.schema
        self.key_types = [column.field().type for column in definition.key_columns]
