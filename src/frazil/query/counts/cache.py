"""Counts: the distinct rows of pieces and data files, with their counts, cached.

A query that only counts rows by columns with few distinct values need not read every row: counting
the services of ten million rows reads some thousands. The counts of a piece or data file live as
long as its object.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa

from frazil.query.counts.parquet_counts import count_file
from frazil.query.plan.session import processors
from frazil.query.scan.parquet_scan import ParquetScan

if TYPE_CHECKING:
    from frazil.hot import Piece
    from frazil.lake import TableFile
    from frazil.query.scan.tiers import TierRows

    Part: TypeAlias = Piece | TableFile

CACHED_MAX = 16
"""Column sets cached per piece or data file."""


class Counts:
    """The cache. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cached: WeakKeyDictionary[Part, dict[tuple[str, ...], pa.RecordBatch]] = (
            WeakKeyDictionary()
        )

    def of(
        self, rows: TierRows, columns: tuple[str, ...], check: Callable[[], None]
    ) -> list[pa.RecordBatch] | None:
        """Return the distinct values of these columns in each part, with their counts; None if
        they are too many. Calls `check` between parts."""
        parts = rows.parts
        counts = {part: batch for part in parts if (batch := self._get(part, columns))}
        missing = [part for part in parts if part not in counts]
        if missing:
            # The first part is a sample: if it has too many distinct rows, so have the others.
            counts |= self._count(rows, missing[:1], columns, check) or {}
            if len(counts) == len(parts) - len(missing):
                return None
            rest = self._count(rows, missing[1:], columns, check)
            if rest is None:
                return None
            counts |= rest
        return [counts[part] for part in parts]

    def _get(self, part: Part, columns: tuple[str, ...]) -> pa.RecordBatch | None:
        with self._lock:
            return self._cached.get(part, {}).get(columns)

    def _count(
        self,
        rows: TierRows,
        parts: Sequence[Part],
        columns: tuple[str, ...],
        check: Callable[[], None],
    ) -> dict[Part, pa.RecordBatch] | None:
        def count(part: Part) -> pa.RecordBatch | None:
            check()
            batch = _count_part(rows, part, columns)
            if batch is not None:
                self._put(part, columns, batch)
            return batch

        if len(parts) < 2:
            batches = list(map(count, parts))
        else:
            with ThreadPoolExecutor(processors(), "frazil-count") as pool:
                batches = list(pool.map(count, parts))
        if any(batch is None for batch in batches):
            return None
        return dict(zip(parts, batches, strict=True))

    def _put(self, part: Part, columns: tuple[str, ...], batch: pa.RecordBatch) -> None:
        with self._lock:
            by_columns = self._cached.setdefault(part, {})
            if len(by_columns) >= CACHED_MAX:
                by_columns.clear()
            by_columns[columns] = batch


def _count_part(rows: TierRows, part: Part, columns: tuple[str, ...]) -> pa.RecordBatch | None:
    # Imported by the first query that needs it: loading compiled code takes time.
    from frazil.hot import Piece
    from frazil.query.counts.group_count import count_distinct

    if isinstance(part, Piece):
        return count_distinct([batch.select(columns) for batch in part.batches])
    assert rows.view is not None
    scan = ParquetScan(root=rows.view.root, paths=(part.path,))
    return count_file(rows.view.schema, scan, columns)
