"""OpenSegment: rows that are visible and not in a file yet.

Requests come in small portions, thousands of them. Small batches are joined as they come, each
with a neighbour of its size, so that a query sees a handful of them and a row is copied only a
few times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from frazil.hot.segment.column_stats import SERVICE, TIME, bounded_services, services_of
from frazil.hot.segment.piece import Piece

OPEN = "open"
"""What a piece is called that is in no file."""
BATCH_ROWS = 2048
BATCH_BYTES = 4 * 1024 * 1024
"""A batch of this many rows or bytes is large enough for a query; joining it would only cost."""

SEALED_ROWS = 8192
"""Of a batch in a file: what the query engine works on at a time. It cuts larger ones, and then
looks a key up in the maps of the whole batch for every part. With smaller ones, handing them over
takes longer than looking at them."""


class OpenTable:
    """The rows of one table."""

    def __init__(self) -> None:
        self.row_count = 0
        self.size_bytes = 0
        self._large: list[pa.RecordBatch] = []
        self._small: list[tuple[pa.RecordBatch, int]] = []
        """With its bytes. Each has at least twice the rows of the next, so there are few."""
        self._time_min_us: int | None = None
        self._time_max_us: int | None = None
        self._services: frozenset[str] | None = frozenset()

    def add(self, batch: pa.RecordBatch) -> None:
        size = batch.nbytes
        self.row_count += batch.num_rows
        self.size_bytes += size
        self._note_facts(batch)
        while not _is_large(batch, size) and self._has_small_before(batch):
            before, before_size = self._small.pop()
            batch, size = pa.concat_batches([before, batch]), before_size + size
        if _is_large(batch, size):
            self._large = [*self.joined(), batch]
            self._small = []
        else:
            self._small.append((batch, size))

    def _has_small_before(self, batch: pa.RecordBatch) -> bool:
        return bool(self._small) and self._small[-1][0].num_rows < 2 * batch.num_rows

    def batches(self) -> tuple[pa.RecordBatch, ...]:
        """All rows as they are now, in few batches."""
        return (*self._large, *(batch for batch, _ in self._small))

    def joined(self) -> list[pa.RecordBatch]:
        """The same, with all that is small in one batch."""
        small = [batch for batch, _ in self._small]
        return [*self._large, pa.concat_batches(small)] if small else self._large

    def piece(self, topic: str, partition: int, begin_offset: int, end_offset: int) -> Piece:
        return Piece(
            name=OPEN,
            batches=self.batches(),
            row_count=self.row_count,
            time_min_us=self._time_min_us,
            time_max_us=self._time_max_us,
            services=self._services,
            topic=topic,
            partition=partition,
            offset_begin=begin_offset,
            offset_end=end_offset,
        )

    def _note_facts(self, batch: pa.RecordBatch) -> None:
        times = pc.min_max(batch[TIME].cast(pa.int64()))
        low, high = times["min"].as_py(), times["max"].as_py()
        self._time_min_us = low if self._time_min_us is None else min(low, self._time_min_us)
        self._time_max_us = high if self._time_max_us is None else max(high, self._time_max_us)
        if self._services is not None:
            found = services_of(batch[SERVICE]) if SERVICE in batch.schema.names else None
            self._services = None if found is None else bounded_services(self._services | found)


def _is_large(batch: pa.RecordBatch, size: int) -> bool:
    return batch.num_rows >= BATCH_ROWS or size >= BATCH_BYTES


class OpenSegment:
    """The rows of some neighbouring offsets. Belongs to the reading thread; once frozen, nobody
    changes it any more."""

    def __init__(self, begin_offset: int, opened_ns: int) -> None:
        self.begin_offset = begin_offset
        self.end_offset = begin_offset
        self.opened_ns = opened_ns
        self._tables: dict[str, OpenTable] = {}

    @property
    def size_bytes(self) -> int:
        return sum(table.size_bytes for table in self._tables.values())

    def add(self, rows: Mapping[str, pa.RecordBatch], end_offset: int) -> None:
        """Take in the rows of everything up to `end_offset`, by table."""
        assert end_offset > self.end_offset
        for name, batch in rows.items():
            if batch.num_rows:
                self._tables.setdefault(name, OpenTable()).add(batch)
        self.end_offset = end_offset

    def slots(self) -> dict[str, list[pa.RecordBatch]]:
        """All rows, by table."""
        return {name: for_sealing(table.batches()) for name, table in self._tables.items()}

    def pieces(self, topic: str, partition: int) -> dict[str, Piece]:
        """The rows as they are now."""
        return {
            name: table.piece(topic, partition, self.begin_offset, self.end_offset)
            for name, table in self._tables.items()
        }


def for_sealing(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same rows in batches as files have them."""
    whole = pa.Table.from_batches(batches).combine_chunks()
    sealed: list[pa.RecordBatch] = whole.to_batches(max_chunksize=SEALED_ROWS)
    return sealed
