"""Deletes orphan files: files below a table's location that no snapshot references, left behind by
killed tasks.

1. list     all files below the location, with their age
2. load     the table afterwards, so that files committed meanwhile are referenced
3. compare  normalized paths; if a referenced one is not below the location, nothing is deleted
4. delete   files that are not referenced and old

A file is written before it is referenced, so young files are never orphans. The minimum age is a
day: no round, and no job of another writer, takes that long. Ages are relative to the youngest
file, because a wrong clock would make all files old. While nothing of ours runs, files with names
of ours need no age: they are what a kill has left behind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from frazil.errors import Conflict
from frazil.lake.catalog.own_files import is_own
from frazil.lake.loaded.ledger import LEDGER
from frazil.lake.maintain.delete_files import delete_files
from frazil.lake.maintain.reachable_files import manifests_of, paths_in
from frazil.model import NS_PER_MS

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

    from frazil.lake.spark.jobs import TaskRunner

WITH_VALUES = (".avro", ".orc", ".parquet", ".puffin", ".stats")
"""Endings of files that may have values of rows, if only as bounds of columns."""
SAME_SCHEMES = {"s3a": "s3", "s3n": "s3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """An existing file."""

    path: str
    size_bytes: int
    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTask:
    """The input of a task."""

    location: str
    io: FileIO = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansRemoved:
    """Orphan files that were deleted."""

    file_count: int
    size_bytes: int
    young: tuple[str, ...] = ()
    """Files that are not referenced and may have values of rows, but may be in use by another
    writer."""


def remove_orphans(
    catalog: Catalog,
    name: str,
    do: TaskRunner,
    *,
    now_ms: int,
    age_ms: int,
    is_idle: bool = False,
) -> OrphansRemoved:
    """Delete files that are not referenced and older than `age_ms`. With `is_idle` no task of ours
    is running: then files with names of ours go at any age.

    Raises `Conflict` if the table references files outside its location.
    """
    before = catalog.load_table(name)
    (files,) = do(_list, [ListTask(location=before.location(), io=before.io)])
    table = catalog.load_table(name)
    referenced = {normalized(path) for path in _referenced(table, do)}
    _check_below(table, referenced)
    last_ms = min([now_ms, max((file.time_ms for file in files), default=now_ms)])

    def is_old(file: FoundFile) -> bool:
        return (is_idle and is_own(file.path)) or file.time_ms < last_ms - age_ms

    unreferenced = [file for file in files if normalized(file.path) not in referenced]
    orphans = [file for file in unreferenced if is_old(file)]
    delete_files([file.path for file in orphans], table.io, do)
    young = [file.path for file in unreferenced if not is_old(file)]
    return OrphansRemoved(
        file_count=len(orphans),
        size_bytes=sum(file.size_bytes for file in orphans),
        young=tuple(path for path in young if path.endswith(WITH_VALUES)),
    )


def _referenced(table: Table, do: TaskRunner) -> set[str]:
    """Return every file that belongs to the table."""
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
        *([table.properties[LEDGER]] if LEDGER in table.properties else []),
    }


def normalized(path: str) -> str:
    """Return a path in one form: Spark writes local files as `file:/…`, we as `file:///…`."""
    scheme, separator, rest = path.partition(":")
    if not separator or "/" in scheme:
        scheme, rest = "file", path
    return f"{SAME_SCHEMES.get(scheme, scheme)}://{rest.removeprefix('//')}"


def _check_below(table: Table, referenced: set[str]) -> None:
    location = f"{normalized(table.location()).rstrip('/')}/"
    outside = sorted(path for path in referenced if not path.startswith(location))
    if outside:
        raise Conflict(
            f"{'.'.join(table.name())} references {outside[0]}, which is not below {location}: "
            "orphan files cannot be found by comparing paths, so nothing was deleted"
        )


def _list(work: ListTask) -> list[FoundFile]:
    """List all files below a location."""
    from pyarrow.fs import FileSelector, FileType
    from pyiceberg.io.pyarrow import PyArrowFileIO

    assert isinstance(work.io, PyArrowFileIO), "tables are read with pyarrow"
    location = work.location.rstrip("/")
    scheme, netloc, path = work.io.parse_location(location, work.io.properties)
    path = path.rstrip("/")
    filesystem = work.io.fs_by_scheme(scheme, netloc)
    infos = filesystem.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    return [
        FoundFile(
            path=f"{location}{info.path.removeprefix(path)}",
            size_bytes=info.size,
            time_ms=info.mtime_ns // NS_PER_MS,
        )
        for info in infos
        if info.type == FileType.File
    ]
