"""Counts: the distinct rows of pieces and data files, with their counts, cached.

A query that only counts rows by columns with few distinct values need not read every row: counting
the services of ten million rows reads some thousands. The counts of a piece or data file live as
long as its object.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

import pyarrow as pa

from frazil.query.counts.group_count import count_distinct
from frazil.query.counts.parquet_counts import count_file
from frazil.query.plan.session import processors
from frazil.query.scan.table_rows import ParquetScan, Part, PiecePart, ScanParts

CACHED_MAX = 16
"""Column sets cached per piece or data file."""


class Counts:
    """The cache. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cached: WeakKeyDictionary[Part, dict[tuple[str, ...], pa.RecordBatch]] = (
            WeakKeyDictionary()
        )

    def of(self, rows: ScanParts, columns: tuple[str, ...]) -> list[pa.RecordBatch] | None:
        """Return the distinct values of these columns in each part, with their counts; None if
        they are too many."""
        parts = rows.parts
        counts = {part: batch for part in parts if (batch := self._get(part, columns))}
        missing = [part for part in parts if part not in counts]
        if missing:
            # The first part is a sample: if it has too many distinct rows, so have the others.
            counts |= self._count(rows, missing[:1], columns) or {}
            if len(counts) == len(parts) - len(missing):
                return None
            rest = self._count(rows, missing[1:], columns)
            if rest is None:
                return None
            counts |= rest
        return [counts[part] for part in parts]

    def _get(self, part: Part, columns: tuple[str, ...]) -> pa.RecordBatch | None:
        with self._lock:
            return self._cached.get(part, {}).get(columns)

    def _count(
        self,
        rows: ScanParts,
        parts: Sequence[Part],
        columns: tuple[str, ...],
    ) -> dict[Part, pa.RecordBatch] | None:
        def count(part: Part) -> pa.RecordBatch | None:
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


def _count_part(rows: ScanParts, part: Part, columns: tuple[str, ...]) -> pa.RecordBatch | None:
    if isinstance(part, PiecePart):
        return count_distinct([batch.select(columns) for batch in part.batches])
    assert rows.root is not None and rows.schema is not None
    return count_file(rows.schema, ParquetScan(root=rows.root, paths=(part.path,)), columns)
