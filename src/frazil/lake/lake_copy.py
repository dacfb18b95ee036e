"""LakeCopy: copies the embedded catalog and every file that its tables name, while they are used.

    1. catalog     one consistent copy, by SQLite's own backup
    2. tables      metadata, manifest lists, manifests, data files: all that any snapshot names

Files of a table never change, so they are linked where possible. Maintenance may delete a file
before it is linked: then the catalog has a newer state, and the copy starts again from that, with
the files it has.
"""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from frazil.disk import FileCopier, RealDisk
from frazil.errors import Conflict, InvalidSetting, Unavailable
from frazil.lake.append.commit import NEXT_OFFSETS, offsets_of_text
from frazil.lake.catalog.catalog import BUSY_TIMEOUT_S
from frazil.lake.catalog.relocate import LOCATIONS, WAREHOUSE
from frazil.model import TopicPartition
from frazil.settings import LakeConfig

CATALOG = "lake/catalog.db"
ATTEMPTS_MAX = 20
"""An attempt fails because maintenance deleted a file; snapshots are expired once an hour."""
NO_SNAPSHOT = -1
DELETED = 2
"""The `status` of a manifest entry whose file the snapshot does not have any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTable:
    """One table in a copy."""

    name: str
    snapshot_id: int | None
    metadata: str
    """Path of its metadata, below the data folder."""
    next_offsets: dict[TopicPartition, int]


def check_embedded(config: LakeConfig) -> None:
    """Raise `InvalidSetting` if the tables are not in the data folder."""
    for name, value in (("lake.catalog", config.catalog), ("lake.warehouse", config.warehouse)):
        if value:
            raise InvalidSetting(
                f"{name} is set, so the tables are not in the data folder, and a copy of the "
                "folder would not have them; back them up where they are, with the log at rest",
                name,
            )


class LakeCopy:
    """A copy in the making. Owned by one thread; changes nothing in the source."""

    def __init__(self, copier: FileCopier, source: RealDisk, target: RealDisk) -> None:
        self._copier = copier
        self._source = source
        self._target = target

    def take(self) -> list[CopiedTable]:
        """Copy catalog and tables as they are now; nothing if there is no catalog."""
        if not (self._source.root / CATALOG).exists():
            return []
        reason: Exception | None = None
        for _ in range(ATTEMPTS_MAX):
            needed: set[str] = set()
            try:
                tables = [self._take_table(*row, needed) for row in self._copy_catalog()]
            except FileNotFoundError as error:
                reason = error
                continue
            for path in list(self._copier.files):
                if path.startswith(WAREHOUSE[1:]) and path not in needed:
                    self._copier.remove(path)
            return tables
        raise Conflict(
            f"the tables name a file that was missing in {ATTEMPTS_MAX} attempts: {reason}; retry, "
            "or check the tables with `frazil doctor`"
        )

    def _copy_catalog(self) -> list[tuple[str, str, str]]:
        """Copy the catalog. Returns namespace, name and metadata location of its tables."""
        self._copier.make_folder("lake")
        self._copier.remove(CATALOG)
        scratch = self._target.root / f"{CATALOG}.tmp"
        source = f"{(self._source.root.absolute() / CATALOG).as_uri()}?mode=ro"
        try:
            with (
                closing(sqlite3.connect(source, timeout=BUSY_TIMEOUT_S, uri=True)) as catalog,
                closing(sqlite3.connect(scratch, isolation_level=None)) as copy,
            ):
                catalog.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")  # one file; the next owner enables WAL
                try:
                    tables = copy.execute(LOCATIONS).fetchall()
                except sqlite3.OperationalError:
                    tables = []  # not created yet
        except sqlite3.Error as error:
            raise Unavailable(
                f"{CATALOG} cannot be read: {error}; `frazil doctor` checks it"
            ) from error
        self._copier.adopt(f"{CATALOG}.tmp", CATALOG)
        return [row for row in tables if row[2] is not None]

    def _take_table(
        self, namespace: str, name: str, location: str, needed: set[str]
    ) -> CopiedTable:
        before, found, _ = location.rpartition(WAREHOUSE)
        files = _TableFiles(self._copier, self._target, f"{before}{found}", needed)
        if not found:
            raise Conflict(f"table {namespace}.{name} is in {location}, outside this data folder")
        metadata = files.take_all(location)
        return CopiedTable(
            name=f"{namespace}.{name}",
            snapshot_id=_snapshot_id(metadata),
            metadata=files.path_of(location),
            next_offsets=offsets_of_text(metadata.get("properties", {}).get(NEXT_OFFSETS, "{}")),
        )


class _TableFiles:
    """The files of one table."""

    def __init__(self, copier: FileCopier, target: RealDisk, prefix: str, needed: set[str]) -> None:
        self._copier = copier
        self._target = target
        self._prefix = prefix
        self._needed = needed

    def path_of(self, location: str) -> str:
        """Return a path below the data folder."""
        if not location.startswith(self._prefix):
            raise Conflict(
                f"a table names {location}, which is not below {self._prefix}; a copy of the "
                "folder would not have it"
            )
        return f"{WAREHOUSE[1:]}{location.removeprefix(self._prefix)}"

    def take_all(self, location: str) -> dict[str, Any]:
        """Link or copy everything that the metadata names. Returns the metadata."""
        metadata: dict[str, Any] = json.loads(self._take(location))
        for manifest_list in {s["manifest-list"] for s in metadata.get("snapshots", [])}:
            for manifest in _records(self._take(manifest_list)):
                self._take_manifest(manifest["manifest_path"])
        for each in (*metadata.get("statistics", []), *metadata.get("partition-statistics", [])):
            self._link(each["statistics-path"])
        for entry in metadata.get("metadata-log", []):
            if entry["metadata-file"].startswith(self._prefix):
                with suppress(FileNotFoundError):  # history: tables are whole without it
                    self._link(entry["metadata-file"])
        return metadata

    def _take_manifest(self, location: str) -> None:
        if self.path_of(location) in self._needed:
            return  # of several snapshots
        for entry in _records(self._take(location)):
            if entry["status"] != DELETED:
                self._link(entry["data_file"]["file_path"])

    def _take(self, location: str) -> bytes:
        """Link or copy a file, and read it where nothing deletes it."""
        self._link(location)
        with closing(self._target.open(self.path_of(location))) as file:
            return file.read(0, file.size())

    def _link(self, location: str) -> None:
        path = self.path_of(location)
        self._copier.link(path)
        self._needed.add(path)


def _snapshot_id(metadata: dict[str, Any]) -> int | None:
    """Return the current snapshot; None for an empty table, for which some writers store -1."""
    found: int | None = metadata.get("current-snapshot-id")
    return None if found == NO_SNAPSHOT else found


def _records(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the records of an Avro file."""
    import fastavro

    for record in fastavro.reader(io.BytesIO(data)):
        assert isinstance(record, dict)
        yield record
