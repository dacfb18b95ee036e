"""OpenSegment: rows that are visible and not in a file yet.

Thousands of small requests arrive. Their batches are merged as they come, each with a neighbour of
similar size, so that a query sees few batches and a row is copied only a few times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

import pyarrow as pa
import pyarrow.compute as pc

from frazil.hot.segment.column_stats import SERVICE, TIME, bounded_services, services_of
from frazil.hot.segment.piece import Piece, SharedLocation
from frazil.hot.segment.shared_memory import Extent, SharedMemory
from frazil.model import MiB

OPEN = "open"
"""Name of a piece that is in no file."""
BATCH_ROWS = 2048
BATCH_BYTES = 4 * MiB
"""Batches of this many rows or bytes are not merged: queries are no faster with larger ones."""

SEALED_ROWS = 8192
"""Rows of a batch in a file: what the query engine processes at a time. It slices larger batches,
and then searches the maps of the whole batch for every slice; with smaller ones the overhead per
batch dominates."""


class OpenTable:
    """The rows of one table. Large batches are moved into shared memory, if there is one: queries
    run in other processes, which map it."""

    def __init__(self, memory: SharedMemory | None) -> None:
        self.row_count = 0
        self.size_bytes = 0
        self._memory = memory
        self._large: list[pa.RecordBatch] = []
        self._extents: list[Extent] = []
        """Of the large batches, in the shared memory."""
        self._small: list[tuple[pa.RecordBatch, int]] = []
        """Batches and their bytes. Each has at least twice the rows of the next: there are few."""
        self._time_min_us: int | None = None
        self._time_max_us: int | None = None
        self._services: frozenset[str] | None = frozenset()

    def add(self, batch: pa.RecordBatch) -> None:
        size = batch.nbytes
        self.row_count += batch.num_rows
        self.size_bytes += size
        self._update_stats(batch)
        while not _is_large(batch, size) and self._has_small_before(batch):
            before, before_size = self._small.pop()
            batch, size = pa.concat_batches([before, batch]), before_size + size
        if _is_large(batch, size):
            small = [pa.concat_batches([each for each, _ in self._small])] if self._small else []
            for large in (*small, *sliced(batch)):
                self._add_large(large)
            self._small = []
        else:
            self._small.append((batch, size))

    def _add_large(self, batch: pa.RecordBatch) -> None:
        if self._memory is not None:
            batch, extent = self._memory.add(batch)
            self._extents.append(extent)
        self._large = [*self._large, batch]

    def share(self, memory: SharedMemory) -> None:
        """Move the large batches into shared memory."""
        self._memory = memory
        large, self._large = self._large, []
        for batch in large:
            self._add_large(batch)

    def _has_small_before(self, batch: pa.RecordBatch) -> bool:
        return bool(self._small) and self._small[-1][0].num_rows < 2 * batch.num_rows

    def batches(self) -> tuple[pa.RecordBatch, ...]:
        """Return all rows, in few batches."""
        return (*self._large, *(batch for batch, _ in self._small))

    def piece(self, topic: str, partition: int, begin_offset: int, end_offset: int) -> Piece:
        assert self._memory is not None
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
            location=SharedLocation(memory=self._memory, extents=tuple(self._extents)),
        )

    def _update_stats(self, batch: pa.RecordBatch) -> None:
        times = pc.min_max(batch[TIME].cast(pa.int64()))
        low, high = times["min"].as_py(), times["max"].as_py()
        self._time_min_us = low if self._time_min_us is None else min(low, self._time_min_us)
        self._time_max_us = high if self._time_max_us is None else max(high, self._time_max_us)
        if self._services is not None:
            names = services_of(batch[SERVICE]) if SERVICE in batch.schema.names else None
            self._services = None if names is None else bounded_services(self._services | names)


def _is_large(batch: pa.RecordBatch, size: int) -> bool:
    return batch.num_rows >= BATCH_ROWS or size >= BATCH_BYTES


class OpenSegment:
    """The rows of adjacent offsets. Owned by the reading thread; immutable once frozen.

    A hidden one is not visible before it is sealed, or revealed: while the reading thread is far
    behind, its rows need not be copied into shared memory for the moment until they are in a file.
    """

    def __init__(self, begin_offset: int, opened_ns: int, *, is_hidden: bool = False) -> None:
        self.begin_offset = begin_offset
        self.end_offset = begin_offset
        self.opened_ns = opened_ns
        self._memory = None if is_hidden else SharedMemory()
        self._tables: dict[str, OpenTable] = {}

    @property
    def is_hidden(self) -> bool:
        return self._memory is None

    def reveal(self) -> None:
        """Make a hidden segment one that queries can read."""
        memory = SharedMemory()
        for table in self._tables.values():
            table.share(memory)
        self._memory = memory

    @property
    def size_bytes(self) -> int:
        return sum(table.size_bytes for table in self._tables.values())

    def add(self, rows: Mapping[str, pa.RecordBatch], end_offset: int) -> None:
        """Add the rows of all offsets up to `end_offset`, by table."""
        assert end_offset > self.end_offset
        for name, batch in rows.items():
            if batch.num_rows:
                self._table(name).add(batch)
        self.end_offset = end_offset

    def _table(self, name: str) -> OpenTable:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = OpenTable(self._memory)
        return table

    def slots(self) -> dict[str, list[pa.RecordBatch]]:
        """Return all rows by table, in batches for a file."""
        return {name: for_sealing(table.batches()) for name, table in self._tables.items()}

    def pieces(self, topic: str, partition: int) -> dict[str, Piece]:
        """Return the current rows by table."""
        return {
            name: table.piece(topic, partition, self.begin_offset, self.end_offset)
            for name, table in self._tables.items()
        }


def for_sealing(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the rows in batches of `SEALED_ROWS` or little less. Those that are large enough are
    not copied."""
    sealed: list[pa.RecordBatch] = []
    for is_large, group in groupby(batches, lambda batch: batch.num_rows >= SEALED_ROWS // 2):
        if is_large:
            sealed += (part for batch in group for part in sliced(batch))
        else:
            sealed += sliced(pa.concat_batches(list(group)))
    return sealed


def sliced(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows in equal batches of at most `SEALED_ROWS`."""
    count = -(-batch.num_rows // SEALED_ROWS)
    ends = [batch.num_rows * number // count for number in range(1, count + 1)]
    for begin, end in pairwise([0, *ends]):
        yield batch.slice(begin, end - begin)
