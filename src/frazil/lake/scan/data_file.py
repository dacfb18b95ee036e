"""Pinned snapshots of tables and their data files. Immutable, and usable without PyIceberg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.model import TopicPartition

if TYPE_CHECKING:
    from pyiceberg.table import Table

OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1
Bound = int | str
Bounds = tuple[Bound, Bound]


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class TableFile:
    """A data file of a table, with the metrics of its manifest."""

    location: str
    """Location in Iceberg's metadata."""
    path: str
    """Path relative to the root of its table."""
    row_count: int
    size_bytes: int
    time_min_us: int | None = None
    time_max_us: int | None = None
    """Bounds of the column `time`."""
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """Column -> lower and upper bound, both inclusive. Times are in microseconds."""
    times: frozenset[str] = frozenset({"time", "ingest_time"})
    """Columns whose bounds are times."""
    empty: frozenset[str] = frozenset()
    """Columns that are null in every row."""
    partition: str = ""
    """Iceberg partition as written in paths: `time_day=2026-11-16`."""
    field_ids: frozenset[int] = frozenset()
    """Ids of its columns, of a file that certainly was written by us."""
    deletes: str | None = None
    """Path of the file with its dead positions, relative to the root; only in keyed tables."""
    dead_count: int = 0
    """Rows of it that are dead: not rows of the table."""

    @property
    def offset_min(self) -> int:
        return self.lower_bound("_offset")

    @property
    def offset_max(self) -> int:
        return self.upper_bound("_offset", OFFSET_MAX)

    def may_hold(self, partition: int, begin: int, end: int) -> bool:
        """Return False if the file has no row of these offsets of a log partition."""
        low, high = (
            self.lower_bound("_log_partition"),
            self.upper_bound("_log_partition", PARTITION_MAX),
        )
        return low <= partition <= high and self.offset_min < end and begin <= self.offset_max

    def lower_bound(self, column: str) -> int:
        """Return the lower bound of an integer column without negative values; 0 if unknown."""
        bounds = self.bounds.get(column)
        return int(bounds[0]) if bounds is not None else 0

    def upper_bound(self, column: str, most: int) -> int:
        """Return the upper bound of an integer column; `most` if unknown."""
        bounds = self.bounds.get(column)
        return int(bounds[1]) if bounds is not None else most


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotInfo:
    """A snapshot that a table still has."""

    snapshot_id: int
    parent_id: int | None
    committed_ms: int
    operation: str
    added_rows: int | None
    total_rows: int | None
    total_files: int | None
    offsets: Mapping[TopicPartition, int] | None
    """The first offset of each partition that it does not hold, or None if unknown."""
    is_first: bool
    """Whether it is the first snapshot of the table."""
    is_current_line: bool
    """Whether it is the current snapshot or one of its ancestors."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableView:
    """One snapshot of a table."""

    name: str
    schema: pa.Schema
    """Our columns; those that older files lack are nullable."""
    root: str = ""
    """Folder or URI that contains all its files."""
    snapshot_id: int | None = None
    """None if the table is missing or has no snapshot yet."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The first offset of each partition that this snapshot does not hold."""
    files: tuple[TableFile, ...] = ()
    refusal: str | None = None
    """Why its files cannot be read directly, or None."""
    snapshots: tuple[SnapshotInfo, ...] = ()
    """All snapshots, in commit order."""
    tags: Mapping[str, int] = field(default_factory=dict)
    """Tag or branch -> snapshot id."""
    removed: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The offset after the last row that was removed from the table, by partition."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Ids of the topics of the rows, if known."""
    table_id: str | None = None
    """Id of a keyed table; None for others."""
    promoted: Mapping[str, int | None] = field(default_factory=dict)
    """Promoted column of the settings -> its id in the table; None if it is not there."""

    def unfilled(self, file: TableFile) -> tuple[str, ...]:
        """Return the promoted columns that must be computed from the maps of a file: it is older,
        or another program has written it, which may have left them out."""
        return tuple(name for name, i in self.promoted.items() if i not in file.field_ids)

    @property
    def row_count(self) -> int:
        return sum(file.row_count - file.dead_count for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TablesView:
    """A snapshot of each table."""

    tables: Mapping[str, TableView]

    def held(self, table: str, topic: str, partition: int) -> int:
        """Return the first offset of a partition that a table does not hold."""
        return self.tables[table].offsets.get(TopicPartition(topic, partition), 0)

    def removed_below(self, topic: str, partition: int) -> int:
        """Return the offset after the last row that was removed from any table."""
        key = TopicPartition(topic, partition)
        return max((table.removed.get(key, 0) for table in self.tables.values()), default=0)


def plain_location(location: str) -> str:
    """Return a `file:` URI, with any number of slashes, as a path; others unchanged."""
    if not location.startswith("file:"):
        return location
    return f"/{location.removeprefix('file:').lstrip('/')}"


def root_of(table: Table) -> str:
    """Return the folder or URI that contains the files of a table."""
    return f"{plain_location(table.location()).rstrip('/')}/"
