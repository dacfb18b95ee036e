"""What queries see of the tables: pinned snapshots, their data files, and what is known of those.

Nouns only: no library of Iceberg is needed to hold them, and nothing in them ever changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyiceberg.table import Table

Place = tuple[str, int]
"""A topic and a partition of it."""
OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1
Bound = int | str
Bounds = tuple[Bound, Bound]


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class TableFile:
    """A Parquet file of a table, and what its manifest says of the rows in it."""

    location: str
    """Its address."""
    path: str
    """The same, below the root of its table."""
    row_count: int
    size_bytes: int
    time_min_us: int | None = None
    time_max_us: int | None = None
    """Bounds of the column `time`."""
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """By column: no value is less than the first nor greater than the second. Times are in
    microseconds."""
    empty: frozenset[str] = frozenset()
    """Columns in which every row is null."""
    partition: str = ""
    """What its rows have in common, as Iceberg writes it in paths: `time_day=2026-11-16`."""

    @property
    def offset_min(self) -> int:
        return self.least("_offset")

    @property
    def offset_max(self) -> int:
        return self.greatest("_offset", OFFSET_MAX)

    def may_hold(self, partition: int, begin: int, end: int) -> bool:
        """Can it have a row of these offsets of a partition?"""
        least, greatest = (
            self.least("_log_partition"),
            self.greatest("_log_partition", PARTITION_MAX),
        )
        return least <= partition <= greatest and self.offset_min < end and begin <= self.offset_max

    def least(self, column: str) -> int:
        """No value of a column of whole numbers is less; none of these columns has less than 0."""
        found = self.bounds.get(column)
        return int(found[0]) if found is not None else 0

    def greatest(self, column: str, most: int) -> int:
        """No value of a column of whole numbers is greater; `most` when nobody knows."""
        found = self.bounds.get(column)
        return int(found[1]) if found is not None else most


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotInfo:
    """One snapshot that a table still has."""

    snapshot_id: int
    parent_id: int | None
    committed_ms: int
    operation: str
    added_rows: int | None
    total_rows: int | None
    total_files: int | None
    offsets: Mapping[Place, int] | None
    """The first offset of each partition that it does not hold; None when nobody knows any more."""
    is_first: bool
    """Is it the first that the table ever had?"""
    is_current_line: bool
    """Is it the current snapshot, or one of those that it came from?"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableView:
    """One snapshot of a table."""

    name: str
    schema: pa.Schema
    """Our columns, as the table has them: what older files lack may be null."""
    root: str = ""
    """The folder, or the address, that all its files are below."""
    snapshot_id: int | None = None
    """None when the table has none yet, or is not there."""
    offsets: Mapping[Place, int] = field(default_factory=dict)
    """The first offset of each partition that this snapshot does not hold."""
    files: tuple[TableFile, ...] = ()
    refusal: str | None = None
    """Why its files cannot be read as they are; None when they can."""
    snapshots: tuple[SnapshotInfo, ...] = ()
    """All there are, in the order of their commits."""
    tags: Mapping[str, int] = field(default_factory=dict)
    """Names of snapshots: tags and branches."""

    @property
    def row_count(self) -> int:
        return sum(file.row_count for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TablesView:
    """A snapshot of each table."""

    tables: Mapping[str, TableView]

    def held(self, table: str, topic: str, partition: int) -> int:
        """The first offset of a partition that a table does not hold."""
        return self.tables[table].offsets.get((topic, partition), 0)


def plain_location(location: str) -> str:
    """A file of this machine as a path, however many slashes its URI has; others as they are."""
    if not location.startswith("file:"):
        return location
    return f"/{location.removeprefix('file:').lstrip('/')}"


def root_of(table: Table) -> str:
    """The folder, or the address, that the files of a table are below."""
    return f"{plain_location(table.location()).rstrip('/')}/"
