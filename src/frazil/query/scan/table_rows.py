"""The rows of one table for one query, as the process that runs it sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

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
    unfilled: tuple[str, ...] = ()
    """Promoted columns that they lack: their values are in the maps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfilledRows:
    """Rows in memory without some promoted columns."""

    columns: tuple[str, ...]
    """Those columns, whose values are in the maps."""
    batches: Sequence[pa.RecordBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """The rows of one table: batches in memory and data files of the lake."""

    batches: Sequence[pa.RecordBatch] = ()
    versions: Sequence[pa.RecordBatch] = ()
    """Row versions of keyed tables: those are rows whose last column, `LIVE`, is true."""
    unfilled: Sequence[UnfilledRows] = ()
    scans: Sequence[ParquetScan] = ()
    lake_schema: pa.Schema | None = None
    """All columns of the table, with the types of its data files."""
    columns: Sequence[str] | None = None
    """Columns given to DataFusion, also from data files; None for all."""

    @property
    def scan_count(self) -> int:
        """How many inputs DataFusion reads for one scan of the table."""
        other = bool(self.versions) + len(self.unfilled) + len(self.scans)
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
    unfilled: tuple[str, ...] = ()
    """Promoted columns that are null in all rows, because the rows are older."""


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class FilePart:
    """A data file of the lake."""

    path: str
    row_count: int
    time_min_us: int | None
    time_max_us: int | None
    unfilled: tuple[str, ...] = ()
    """Promoted columns that it lacks."""


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
    pieces = _by_unfilled(piece for scan in scans for piece in scan.pieces)
    batches = {names: [b for piece in some for b in piece.batches] for names, some in pieces}
    return TableRows(
        batches=batches.pop((), []),
        unfilled=[UnfilledRows(columns=names, batches=some) for names, some in batches.items()],
        versions=[batch for scan in scans for batch in scan.versions],
        scans=[
            ParquetScan(
                root=scan.root,
                paths=tuple(file.path for file in files),
                where=scan.where,
                unfilled=names,
            )
            for scan in scans
            if scan.root is not None
            for names, files in _by_unfilled(scan.files)
        ],
        lake_schema=next((scan.schema for scan in scans if scan.schema is not None), None),
    )


P = TypeVar("P", PiecePart, FilePart)


def _by_unfilled(parts: Iterable[P]) -> Iterable[tuple[tuple[str, ...], list[P]]]:
    """Return the parts by the promoted columns that they lack: few groups, one for each change of
    the settings."""
    groups: dict[tuple[str, ...], list[P]] = {}
    for part in parts:
        groups.setdefault(part.unfilled, []).append(part)
    return groups.items()
