"""RowsPart: what a query reads of one segment of a view."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from frazil.tables.rows.row_segment import RowSegment


@dataclass(frozen=True, slots=True, eq=False)
class RowsPart:
    """The first `length` row versions of a segment, of which `row_count` are live."""

    segment: RowSegment
    length: int
    live: pa.BooleanArray | None
    """Which row versions are live; None if all are."""
    row_count: int

    @property
    def batch(self) -> pa.RecordBatch:
        """The row versions, in the columns of the segment."""
        return self.segment.batch.slice(0, self.length)


def rows_part(segment: RowSegment, live: pa.BooleanArray) -> RowsPart:
    """Return what a query reads; `live` has a bit per row version that belongs to the view."""
    length, row_count = len(live), live.true_count
    return RowsPart(segment, length, None if row_count == length else live, row_count)
