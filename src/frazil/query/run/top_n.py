"""TopNRun: `ORDER BY time DESC LIMIT 100`, answered from the newest few pieces if possible.

The query runs over the pieces and data files with the best times first. Once it has enough rows,
the others cannot have a better one if their times lie beyond the last row. Otherwise it runs again
over four times as many, so all runs together cost a third more than one over everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from frazil.query.plan.plan import TopN
from frazil.query.scan.table_rows import Part, RowsByTable, ScanParts, is_plain, rows_of

FIRST_PIECES = 2
GROWTH = 4
ROWS_MAX = 10_000
"""Rows of a result are held in memory between runs; larger results are read in one run."""


class Run(Protocol):
    """A query that is running in this process."""

    schema: pa.Schema

    def next(self) -> pa.RecordBatch | None:
        """Return the next batch, None at the end."""


def is_worthwhile(top_n: TopN, scans: Sequence[ScanParts]) -> bool:
    parts = [part for scan in scans for part in scan.parts]
    return (
        is_plain(scans)
        and top_n.row_count <= ROWS_MAX
        and len(parts) > FIRST_PIECES
        and all(part.time_min_us is not None for part in parts)
    )


class TopNRun:
    """A query that reads as few pieces and data files as it needs."""

    def __init__(
        self,
        top_n: TopN,
        scan: ScanParts,
        rows: RowsByTable,
        start: Callable[[RowsByTable], Run],
    ) -> None:
        self._top_n = top_n
        self._scan = scan
        self._parts = sorted(scan.parts, key=self._best, reverse=top_n.is_descending)
        self._rows = rows
        self._start = start
        self._batches: list[pa.RecordBatch] | None = None
        self._count = FIRST_PIECES
        self._run = start(self._first_rows(self._count))
        self.schema = self._run.schema

    def next(self) -> pa.RecordBatch | None:
        if self._batches is None:
            self._batches = self._search()
        return self._batches.pop(0) if self._batches else None

    def _search(self) -> list[pa.RecordBatch]:
        """Return the result, once no unread part can have a better row."""
        while True:
            batches = self._read()
            needed = self._needed(batches)
            if needed <= self._count:
                return batches
            self._count = needed
            self._run = self._start(self._first_rows(needed))

    def _read(self) -> list[pa.RecordBatch]:
        batches = []
        while (batch := self._run.next()) is not None:
            batches.append(batch)
        return batches

    def _needed(self, batches: list[pa.RecordBatch]) -> int:
        """Return how many parts must be read, given the result over the first `_count`."""
        total = len(self._parts)
        if sum(batch.num_rows for batch in batches) < self._top_n.row_count:
            return min(total, self._count * GROWTH) if self._count < total else total
        last = self._last_time(batches)
        if self._top_n.is_descending:
            return next((n for n in range(total) if self._best(self._parts[n]) < last), total)
        return next((n for n in range(total) if self._best(self._parts[n]) > last), total)

    def _last_time(self, batches: list[pa.RecordBatch]) -> int:
        """Return a time that no row of the result lies beyond."""
        column = self._top_n.time_column
        if column is not None:
            times = (batch.column(column).cast(pa.int64()) for batch in reversed(batches))
            return int(next(time[-1].as_py() for time in times if len(time)))
        read = self._parts[: self._count]
        if self._top_n.is_descending:
            return min(_bound(part.time_min_us) for part in read)
        return max(_bound(part.time_max_us) for part in read)

    def _best(self, part: Part) -> int:
        return _bound(part.time_max_us if self._top_n.is_descending else part.time_min_us)

    def _first_rows(self, count: int) -> RowsByTable:
        parts = set(self._parts[:count])
        scan = replace(
            self._scan,
            pieces=tuple(piece for piece in self._scan.pieces if piece in parts),
            files=tuple(file for file in self._scan.files if file in parts),
        )
        return {**self._rows, self._top_n.table: rows_of([scan])}


def _bound(value: int | None) -> int:
    assert value is not None, "parts without times are not read this way"
    return value
