"""Reads which manifests and data files snapshots reference, in tasks, as there may be many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
    read_manifest_list,
)

from frazil.lake.maintain.compaction import CompactionFile
from frazil.lake.spark.jobs import TaskRunner

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table.snapshots import Snapshot

TASK_FILES = 50
"""Manifests, or manifest lists, read per task."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestTask:
    """The input of one task."""

    lists: Sequence[str] = ()
    manifests: Sequence[ManifestFile] = ()
    time_id: int = 0
    """Field id of the column whose lower bound is read."""
    io: FileIO = field(repr=False)
    """Contains passwords."""


def manifests_of(
    snapshots: Iterable[Snapshot], io: FileIO, do: TaskRunner
) -> dict[str, ManifestFile]:
    """Return all manifests that the snapshots reference, by path."""
    lists = [snapshot.manifest_list for snapshot in snapshots]
    manifests: dict[str, ManifestFile] = {}
    for result in do(_read_lists, [ManifestTask(lists=part, io=io) for part in _parts(lists)]):
        for manifest in result:
            manifests.setdefault(manifest.manifest_path, manifest)
    return manifests


def has_deleted_entries(snapshots: Iterable[Snapshot], io: FileIO, do: TaskRunner) -> bool:
    """Return whether a manifest lists files that are no longer in the table."""
    return any(each.deleted_files_count for each in manifests_of(snapshots, io, do).values())


def paths_in(
    manifests: Iterable[ManifestFile], io: FileIO, do: TaskRunner, *, is_alive: bool
) -> set[str]:
    """Return the data files that manifests reference; with `is_alive`, without deleted ones."""
    read = _read_alive if is_alive else _read_all
    work = [ManifestTask(manifests=part, io=io) for part in _parts(list(manifests))]
    return set().union(*do(read, work))


def parts_in(
    manifests: Iterable[ManifestFile], io: FileIO, do: TaskRunner, *, time_id: int
) -> list[CompactionFile]:
    """Return the data files of a table, without days that have delete files."""
    manifests = list(manifests)
    data = [manifest for manifest in manifests if manifest.content == ManifestContent.DATA]
    excluded = partitions_with_deletes(manifests, io)
    work = [ManifestTask(manifests=part, time_id=time_id, io=io) for part in _parts(data)]
    files = [file for result in do(_read_parts, work) for file in result]
    return [file for file in files if file.partition not in excluded]


def partition_of(file: DataFile) -> tuple[Any, ...]:
    """Return the partition values of a file."""
    return tuple(file.partition[at] for at in range(len(file.partition)))


def partitions_with_deletes(
    manifests: Iterable[ManifestFile], io: FileIO
) -> set[tuple[object, ...]]:
    """Return the partitions that have delete files."""
    return {
        partition_of(entry.data_file)
        for manifest in manifests
        if manifest.content == ManifestContent.DELETES
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=True)
    }


def _read_lists(work: ManifestTask) -> list[ManifestFile]:
    return [
        manifest for path in work.lists for manifest in read_manifest_list(work.io.new_input(path))
    ]


def _read_alive(work: ManifestTask) -> set[str]:
    return _read_paths(work, discard_deleted=True)


def _read_all(work: ManifestTask) -> set[str]:
    return _read_paths(work, discard_deleted=False)


def _read_paths(work: ManifestTask, *, discard_deleted: bool) -> set[str]:
    return {
        entry.data_file.file_path
        for manifest in work.manifests
        for entry in manifest.fetch_manifest_entry(work.io, discard_deleted=discard_deleted)
    }


def _read_parts(work: ManifestTask) -> list[CompactionFile]:
    return [
        CompactionFile(
            path=entry.data_file.file_path,
            spec_id=manifest.partition_spec_id,
            day=entry.data_file.partition[0],
            size_bytes=entry.data_file.file_size_in_bytes,
            row_count=entry.data_file.record_count,
            first_us=_number(entry.data_file.lower_bounds, work.time_id),
        )
        for manifest in work.manifests
        for entry in manifest.fetch_manifest_entry(work.io, discard_deleted=True)
        if entry.status != ManifestEntryStatus.DELETED
        and entry.data_file.content == DataFileContent.DATA
    ]


def _number(bounds: dict[int, bytes] | None, field_id: int) -> int:
    return int.from_bytes((bounds or {}).get(field_id, b""), "little", signed=True)


def _parts(items: Sequence[Item]) -> list[Sequence[Item]]:
    return [items[at : at + TASK_FILES] for at in range(0, len(items), TASK_FILES)]
