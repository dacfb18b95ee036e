"""FreezePlan: what a later state of a partition has, and lacks, compared with an earlier one.

The lake holds the rows as of an offset. To hold those as of a later one it appends the row versions
made in between that are live then, and deletes those that died. A row version that was made and
died in between is in neither: no snapshot ever had it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from frazil.tables.keys.kernels import Longs
from frazil.tables.view import RowsView


@dataclass(frozen=True, slots=True, eq=False)
class FreezePlan:
    """From the rows as of `then` to those as of `now`. Any thread may use it."""

    then: RowsView
    now: RowsView
    dead_rows: Longs
    """Numbers of row versions that were live then and are dead now, sorted. All are below
    `begin_row`."""

    @property
    def begin_row(self) -> int:
        """The number of the first row version made after `then`."""
        return self.then.row_count

    @property
    def end_row(self) -> int:
        """The number of the next row version to be made after `now`."""
        return self.now.row_count

    def batches(
        self, begin_row: int | None = None, end_row: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the row versions made in between that are live now, by number: the columns of the
        table, `_offset` and `_row`. Of a range of numbers, if given: slices of the work."""
        begin = self.begin_row if begin_row is None else max(begin_row, self.begin_row)
        end = self.end_row if end_row is None else min(end_row, self.end_row)
        return self.now.rows_between(begin, end)

    def slices(self, rows_max: int) -> list[tuple[int, int]]:
        """Return ranges of row numbers, each with at most `rows_max` of the rows to append."""
        if not self.row_count:
            return []
        numbers = self.now.live_rows(self.begin_row, self.end_row)
        bounds = [self.begin_row, *numbers[rows_max::rows_max].tolist(), self.end_row]
        return list(pairwise(bounds))

    @property
    def row_count(self) -> int:
        """How many row versions are to be appended."""
        made = self.end_row - self.begin_row
        died = self.now.death_count - self.then.death_count - len(self.dead_rows)
        return made - died


def freeze_plan(view_then: RowsView, view_now: RowsView) -> FreezePlan:
    """Compare two views of one partition. Raises `OutOfRange` if the first is the later one, or is
    older than what the second still knows."""
    return FreezePlan(view_then, view_now, view_now.died_since(view_then))
