"""The data files of a keyed table's snapshot, each with its delete file, and what may be in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)

from frazil.errors import Conflict
from frazil.lake.keyed.definition import LOG_PARTITION, ROW
from frazil.lake.keyed.schema import SYSTEM_IDS
from frazil.lake.scan.position_deletes import deleted_path

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedFile:
    """A data file. Bounds are inclusive."""

    data: DataFile
    deletes: DataFile | None
    partition_min: int
    partition_max: int
    row_min: int
    row_max: int

    @property
    def path(self) -> str:
        path: str = self.data.file_path
        return path

    @property
    def deletes_path(self) -> str | None:
        return None if self.deletes is None else self.deletes.file_path

    @property
    def dead_count(self) -> int:
        return 0 if self.deletes is None else self.deletes.record_count

    @property
    def live_count(self) -> int:
        count: int = self.data.record_count
        return count - self.dead_count

    @property
    def live_bytes(self) -> int:
        """Estimated size of the rows that are alive."""
        size: int = self.data.file_size_in_bytes
        return size * self.live_count // max(1, self.data.record_count)


class ManifestCache:
    """Reads each manifest list and each manifest of a table once. Files never change. Owned by one
    thread."""

    def __init__(self) -> None:
        self._lists: dict[str, tuple[ManifestFile, ...]] = {}
        self._entries: dict[str, tuple[ManifestEntry, ...]] = {}

    def manifests(self, snapshot: Snapshot, io: FileIO) -> tuple[ManifestFile, ...]:
        """Return the manifests of a snapshot that have files."""
        path = snapshot.manifest_list
        if path not in self._lists:
            self._lists[path] = tuple(
                manifest
                for manifest in snapshot.manifests(io)
                if manifest.has_added_files() or manifest.has_existing_files()
            )
        return self._lists[path]

    def entries(self, manifest: ManifestFile, io: FileIO) -> tuple[ManifestEntry, ...]:
        """Return the entries of the files that a manifest has."""
        path = manifest.manifest_path
        if path not in self._entries:
            self._entries[path] = tuple(manifest.fetch_manifest_entry(io, discard_deleted=True))
        return self._entries[path]

    def keep_only(self, table: Table) -> None:
        """Forget what the current snapshot does not use."""
        snapshot = table.current_snapshot()
        used = () if snapshot is None else self.manifests(snapshot, table.io)
        paths = {manifest.manifest_path for manifest in used}
        self._lists = {} if snapshot is None else {snapshot.manifest_list: tuple(used)}
        self._entries = {path: found for path, found in self._entries.items() if path in paths}


def snapshot_files(
    table: Table, snapshot: Snapshot | None, cache: ManifestCache | None = None
) -> list[KeyedFile]:
    """Return the files of a snapshot. Raises `Conflict` if it has delete files of others."""
    if snapshot is None:
        return []
    cache = cache or ManifestCache()
    data: list[DataFile] = []
    deletes: dict[str, DataFile] = {}
    for manifest in cache.manifests(snapshot, table.io):
        files = [entry.data_file for entry in cache.entries(manifest, table.io)]
        if manifest.content == ManifestContent.DATA:
            data += files
            continue
        for file in files:
            path = deleted_path(file)
            if path is None or path in deletes:
                raise _foreign(table, snapshot, file)
            deletes[path] = file
    found = [_keyed_file(file, deletes.pop(file.file_path, None)) for file in data]
    for file in deletes.values():
        raise _foreign(table, snapshot, file)
    return found


def _foreign(table: Table, snapshot: Snapshot, file: DataFile) -> Conflict:
    kind = "equality" if file.content is DataFileContent.EQUALITY_DELETES else "position"
    return Conflict(
        f"snapshot {snapshot.snapshot_id} of {'.'.join(table.name())} has the {kind} delete file "
        f"{file.file_path}, which Frazil did not write; roll the table back, or drop it: it is "
        "written again as a whole"
    )


def _keyed_file(data: DataFile, deletes: DataFile | None) -> KeyedFile:
    def bound(bounds: dict[int, bytes] | None, name: str, default: int) -> int:
        value = (bounds or {}).get(SYSTEM_IDS[name])
        return default if value is None else int.from_bytes(value, "little", signed=True)

    return KeyedFile(
        data=data,
        deletes=deletes,
        partition_min=bound(data.lower_bounds, LOG_PARTITION, 0),
        partition_max=bound(data.upper_bounds, LOG_PARTITION, 2**31 - 1),
        row_min=bound(data.lower_bounds, ROW, 0),
        row_max=bound(data.upper_bounds, ROW, 2**63 - 1),
    )
