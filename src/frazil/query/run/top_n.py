"""The first rows by time need not look at all rows: `ORDER BY time DESC LIMIT 100` is answered by
the newest pieces of the hot tier, or files of the lake, mostly.

The query runs over a few of these from the end where its rows must be. If these give enough rows,
those that lie behind the last of them cannot have a better one. If not, it runs again over four
times as many, so that all runs together cost a third more than one over everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Union

import pyarrow as pa

from frazil.errors import FrazilError
from frazil.query.plan.plan import TopN
from frazil.query.plan.pruning import PrunedScan
from frazil.query.scan.table_rows import RowsByTable
from frazil.query.scan.tiers import rows_of
from frazil.results import RunningQuery

if TYPE_CHECKING:
    from frazil.hot import Piece
    from frazil.lake import TableFile

FIRST_PIECES = 2
GROWTH = 4
ROWS_MAX = 10_000
"""More rows than that are not kept in hand; such queries read everything at once."""


Part = Union["Piece", "TableFile"]


def is_worthwhile(newest: TopN, kept: PrunedScan) -> bool:
    parts = kept.parts
    return (
        kept.is_plain
        and newest.row_count <= ROWS_MAX
        and len(parts) > FIRST_PIECES
        and all(part.time_min_us is not None for part in parts)
    )


class TopNRun:
    """A run over as few pieces as will do."""

    is_cut = False

    def __init__(
        self,
        newest: TopN,
        kept: PrunedScan,
        others: RowsByTable,
        start: Callable[[RowsByTable], RunningQuery],
    ) -> None:
        self._newest = newest
        self._lot = kept.lots[0]
        self._pieces = sorted(kept.parts, key=self._best, reverse=newest.is_descending)
        self._others = others
        self._start = start
        self._error: FrazilError | None = None
        self._found: list[pa.RecordBatch] | None = None
        self._count = FIRST_PIECES
        self._run = start(self._rows(self._count))
        self.schema = self._run.schema

    def next(self) -> pa.RecordBatch | None:
        if self._found is None:
            self._found = self._search()
        return self._found.pop(0) if self._found else None

    def _search(self) -> list[pa.RecordBatch]:
        """The rows, once no piece that was left out can have a better one."""
        while True:
            found = self._read()
            needed = self._needed(found)
            if needed <= self._count:
                return found
            self._count = needed
            self._run.close()
            self._run = self._start(self._rows(needed))
            if self._error is not None:
                self._run.cancel(self._error)

    def _read(self) -> list[pa.RecordBatch]:
        found = []
        while (batch := self._run.next()) is not None:
            found.append(batch)
        return found

    def _needed(self, found: list[pa.RecordBatch]) -> int:
        """How many pieces the answer must be looked for in, by what was found in `_count`."""
        total = len(self._pieces)
        if sum(batch.num_rows for batch in found) < self._newest.row_count:
            return min(total, self._count * GROWTH) if self._count < total else total
        last = self._last_time(found)
        if self._newest.is_descending:
            return next((n for n in range(total) if self._best(self._pieces[n]) < last), total)
        return next((n for n in range(total) if self._best(self._pieces[n]) > last), total)

    def _last_time(self, found: list[pa.RecordBatch]) -> int:
        """No row that was found is further away than this."""
        column = self._newest.time_column
        if column is not None:
            times = (batch.column(column).cast(pa.int64()) for batch in reversed(found))
            return int(next(time[-1].as_py() for time in times if len(time)))
        read = self._pieces[: self._count]
        if self._newest.is_descending:
            return min(_bound(piece.time_min_us) for piece in read)
        return max(_bound(piece.time_max_us) for piece in read)

    def _best(self, piece: Part) -> int:
        return _bound(piece.time_max_us if self._newest.is_descending else piece.time_min_us)

    def _rows(self, count: int) -> RowsByTable:
        some = self._pieces[:count]
        lot = replace(
            self._lot,
            pieces=tuple(piece for piece in self._lot.pieces if piece in some),
            files=tuple(file for file in self._lot.files if file in some),
        )
        return {**self._others, self._newest.table: rows_of([lot])}

    def cancel(self, error: FrazilError) -> None:
        self._error = self._error or error
        self._run.cancel(error)

    def close(self) -> None:
        self._pieces = []
        self._others = {}
        self._run.close()


def _bound(value: int | None) -> int:
    assert value is not None, "pieces without bounds are not read this way"
    return value
