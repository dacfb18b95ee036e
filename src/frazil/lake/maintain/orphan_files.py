"""Files below a table's location that no snapshot names, left behind by tasks that were killed.

1. list     what is there, with its age
2. load     the table, after that: whatever has been committed meanwhile is named by now
3. compare  their paths, written alike; if one is not below the location, nothing is removed
4. remove   what nobody names and what is old

A file is written before it is named. So young files are never orphans, and how old is old has a
lower limit: no round, and no job of anybody else, takes a day. Ages are counted from the youngest
file there is, as a clock that is wrong would make everything old.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from frazil.errors import Conflict
from frazil.lake.maintain.delete_files import remove
from frazil.lake.maintain.reachable_files import manifests_of, paths_in

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

    from frazil.lake.spark.jobs import TaskRunner

SAME_SCHEMES = {"s3a": "s3", "s3n": "s3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A file that is there."""

    path: str
    size_bytes: int
    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTask:
    """The work of a task."""

    location: str
    io: FileIO = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansRemoved:
    """Orphans that were taken away."""

    file_count: int
    size_bytes: int


def remove_orphans(
    catalog: Catalog, name: str, do: TaskRunner, *, now_ms: int, age_ms: int
) -> OrphansRemoved:
    """Take away what nobody names and what is older than `age_ms`.

    `Conflict` when the table names files by other paths than those that are found.
    """
    seen = catalog.load_table(name)
    (found,) = do(_list, [ListTask(location=seen.location(), io=seen.io)])
    table = catalog.load_table(name)
    named = {alike(path) for path in _named(table, do)}
    _check_below(table, named)
    young_ms = min([now_ms, max((file.time_ms for file in found), default=now_ms)]) - age_ms
    orphans = [file for file in found if alike(file.path) not in named and file.time_ms < young_ms]
    remove([file.path for file in orphans], table.io, do)
    return OrphansRemoved(
        file_count=len(orphans), size_bytes=sum(file.size_bytes for file in orphans)
    )


def _named(table: Table, do: TaskRunner) -> set[str]:
    """Every file that belongs to the table."""
    metadata = table.metadata
    manifests = manifests_of(metadata.snapshots, table.io, do)
    return {
        table.metadata_location,
        *(entry.metadata_file for entry in metadata.metadata_log),
        *(snapshot.manifest_list for snapshot in metadata.snapshots),
        *manifests,
        *paths_in(manifests.values(), table.io, do, is_alive=False),
        *(file.statistics_path for file in metadata.statistics),
        *(file.statistics_path for file in metadata.partition_statistics),
    }


def alike(path: str) -> str:
    """A path as all would write it: Spark names local files `file:/…`, and we `file:///…`."""
    scheme, separator, rest = path.partition(":")
    if not separator or "/" in scheme:
        scheme, rest = "file", path
    return f"{SAME_SCHEMES.get(scheme, scheme)}://{rest.removeprefix('//')}"


def _check_below(table: Table, named: set[str]) -> None:
    begin = f"{alike(table.location()).rstrip('/')}/"
    strange = sorted(path for path in named if not path.startswith(begin))
    if strange:
        raise Conflict(
            f"{'.'.join(table.name())} names {strange[0]}, which is not below {begin}: what is an "
            "orphan cannot be told by comparing paths, so nothing was removed"
        )


def _list(work: ListTask) -> list[FoundFile]:
    """Everything below a location."""
    from pyarrow.fs import FileSelector, FileType
    from pyiceberg.io.pyarrow import PyArrowFileIO

    assert isinstance(work.io, PyArrowFileIO), "tables are read by Arrow"
    location = work.location.rstrip("/")
    scheme, netloc, path = work.io.parse_location(location, work.io.properties)
    files = work.io.fs_by_scheme(scheme, netloc)
    path = path.rstrip("/")
    found = files.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    return [
        FoundFile(
            path=f"{location}{each.path.removeprefix(path)}",
            size_bytes=each.size,
            time_ms=each.mtime_ns // 1_000_000,
        )
        for each in found
        if each.type == FileType.File
    ]
