"""TableRows: the rows of one table for one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from frazil.query.scan.parquet_scan import ParquetScan


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """The rows of one table: batches in memory, and files of the lake."""

    batches: Sequence[pa.RecordBatch] = ()
    scans: Sequence[ParquetScan] = ()
    cold_schema: pa.Schema | None = None
    """All columns of the table, as its files have them."""
    columns: Sequence[str] | None = None
    """Columns handed to the engine, also from files; None for all."""


NO_ROWS = TableRows()

RowsByTable = Mapping[str, TableRows]
"""A table that is not there is empty."""
