"""The rows of one table for one query, as the process that runs it sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa

LIVE = "_frazil_live"
"""The column that says which row versions of a keyed table are rows."""


class ParquetScan(msgspec.Struct, frozen=True, kw_only=True):
    """Data files of one table to read."""

    root: str
    """The folder the paths are relative to; the scan can read nothing outside it."""
    paths: tuple[str, ...]
    where: str | None = None
    """SQL filter on their rows; None to read all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """The rows of one table: batches in memory and data files of the lake."""

    batches: Sequence[pa.RecordBatch] = ()
    versions: Sequence[pa.RecordBatch] = ()
    """Row versions of keyed tables: those are rows whose last column, `LIVE`, is true."""
    scans: Sequence[ParquetScan] = ()
    lake_schema: pa.Schema | None = None
    """All columns of the table, with the types of its data files."""
    columns: Sequence[str] | None = None
    """Columns given to DataFusion, also from data files; None for all."""

    @property
    def scan_count(self) -> int:
        """How many inputs DataFusion reads for one scan of the table."""
        other = bool(self.versions) + len(self.scans)
        return other + bool(self.batches or not other)


NO_ROWS = TableRows()

RowsByTable = Mapping[str, TableRows]
"""A missing table is empty."""


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class PiecePart:
    """A piece of the hot tier or a row segment, mapped or copied."""

    batches: tuple[pa.RecordBatch, ...]
    row_count: int
    time_min_us: int | None
    time_max_us: int | None


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class FilePart:
    """A data file of the lake."""

    path: str
    row_count: int
    time_min_us: int | None
    time_max_us: int | None


Part = PiecePart | FilePart


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanParts:
    """Pieces and data files to read of one table, of one snapshot."""

    pieces: tuple[PiecePart, ...] = ()
    versions: tuple[pa.RecordBatch, ...] = ()
    """Row versions of a keyed table, with the column `LIVE`."""
    files: tuple[FilePart, ...] = ()
    root: str | None = None
    """The folder of the data files; None without a snapshot."""
    schema: pa.Schema | None = None
    """The columns of the data files."""
    where: str | None = None
    """SQL filter on the rows of the data files; None to read all."""

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.pieces, *self.files)


def is_plain(scans: Sequence[ScanParts]) -> bool:
    """Return whether every row of the pieces and data files is a row of the table, and there are
    no others."""
    return len(scans) == 1 and scans[0].where is None and not scans[0].versions


def rows_of(scans: Sequence[ScanParts]) -> TableRows:
    """Return all rows of one table, for DataFusion."""
    return TableRows(
        batches=[batch for scan in scans for piece in scan.pieces for batch in piece.batches],
        versions=[batch for scan in scans for batch in scan.versions],
        scans=[
            ParquetScan(root=scan.root, paths=tuple(f.path for f in scan.files), where=scan.where)
            for scan in scans
            if scan.root is not None and scan.files
        ],
        lake_schema=next((scan.schema for scan in scans if scan.schema is not None), None),
    )
