"""TableRows: the rows of one table for one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from frazil.query.scan.parquet_scan import ParquetScan


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """The rows of one table: batches in memory and data files of the lake."""

    batches: Sequence[pa.RecordBatch] = ()
    scans: Sequence[ParquetScan] = ()
    lake_schema: pa.Schema | None = None
    """All columns of the table, with the types of its data files."""
    columns: Sequence[str] | None = None
    """Columns given to DataFusion, also from data files; None for all."""

    @property
    def scan_count(self) -> int:
        """How many inputs DataFusion reads for one scan of the table."""
        return len(self.scans) + bool(self.batches or not self.scans)


NO_ROWS = TableRows()

RowsByTable = Mapping[str, TableRows]
"""A missing table is empty."""
