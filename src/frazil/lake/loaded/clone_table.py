"""Clones a table: a new table with the rows of one snapshot, without copying them.

1. choose   a snapshot of the source
2. link     each of its data files into the folder of the clone: a second name for the same bytes
3. sync     the folders
4. commit   a new table whose only snapshot has these files

Data files never change, and a file lives as long as it has a name. So each table owns all of its
names, and nothing that happens to one table, by us or by other programs, can take files from the
other. A crash before 4 leaves names that no table references.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.disk import RealDisk, make_directories
from frazil.errors import Conflict, Malformed, Unavailable, Unknown
from frazil.lake.append.commit import COMMIT_ID, find_commit
from frazil.lake.catalog.catalog import catalog_calls
from frazil.lake.loaded.ledger import LEDGER, read_ledger, write_ledger
from frazil.lake.loaded.load_commit import METADATA_FOLDER, creation_errors
from frazil.lake.loaded.load_table import FORMAT_VERSION
from frazil.lake.loaded.load_writer import DATA_FOLDER
from frazil.lake.tables.properties import LOADED, REQUIRED_PROPERTIES

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import CreateTableTransaction, Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from frazil.model import Clock
    from frazil.settings import LakeConfig

CLONE_OF = "frazil.clone-of"
"""Table property: `table@snapshot` that a clone was made from."""
OWN = "frazil."
"""Prefix of properties that say where the rows of a table come from: a clone does not have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneSource:
    """What to clone. At most one of `version` and `time` is set; neither: the current snapshot."""

    name: str
    version: int | str | None = None
    """Snapshot id or tag."""
    time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneResult:
    """A table that was created."""

    snapshot_id: int
    """Of the source."""
    row_count: int
    file_count: int


def clone_table(
    catalog: Catalog,
    config: LakeConfig,
    name: str,
    source: CloneSource,
    *,
    unique: str,
    clock: Clock,
) -> CloneResult:
    """Create a table with the rows of another. `Conflict` if it exists, or if the snapshot expires
    meanwhile; `Unknown` if there is no such table or snapshot."""
    from pyiceberg.exceptions import (
        CommitStateUnknownException,
        NoSuchNamespaceError,
        NoSuchTableError,
    )

    with catalog_calls(config):
        try:
            table = catalog.load_table((config.namespace, source.name))
        except (NoSuchTableError, NoSuchNamespaceError):
            raise Unknown(
                f"the lake has no table {source.name}; rows that came from the log are there after "
                "`frazil flush`"
            ) from None
        identifier = (config.namespace, name)
        if catalog.table_exists(identifier):
            raise Conflict(f"table {name} exists; DROP TABLE {name}, or choose another name")
        snapshot = chosen_snapshot(table, source)
        files = _data_files(table, snapshot)
        clone = _Clone(catalog, table, snapshot, identifier, unique)
        refusals: tuple[type[Exception], ...] = (*creation_errors(), Conflict)
        try:
            clone.link(files)
            clone.commit(files, clock)
        except refusals as error:
            if not _is_created(catalog, identifier, unique):
                if not isinstance(error, CommitStateUnknownException):
                    clone.discard()
                raise Conflict(f"table {name} was not created: {error}") from error
    return CloneResult(
        snapshot_id=snapshot.snapshot_id,
        row_count=sum(file.record_count for file in files),
        file_count=len(files),
    )


def chosen_snapshot(table: Table, source: CloneSource) -> Snapshot:
    """Return the snapshot of a version, of a time, or the current one."""
    metadata = table.metadata
    found: Snapshot | None = None
    if source.version is not None:
        ref = metadata.refs.get(str(source.version))
        wanted = ref.snapshot_id if ref is not None else source.version
        found = metadata.snapshot_by_id(wanted) if isinstance(wanted, int) else None
        what = f"no snapshot or tag {source.version}"
    elif source.time is not None:
        time_ms = int(source.time.timestamp() * 1000)
        known = {each.snapshot_id: each for each in metadata.snapshots}
        at = metadata.current_snapshot_id
        while at is not None and (found := known.get(at)) is not None:
            if found.timestamp_ms <= time_ms:
                break
            at, found = found.parent_snapshot_id, None
        what = f"no snapshot as old as {source.time.isoformat()}"
    else:
        found, what = table.current_snapshot(), "no snapshot yet"
    if found is None:
        raise Unknown(f"{source.name} has {what}; the table `snapshots` lists those that it has")
    return found


def _data_files(table: Table, snapshot: Snapshot) -> list[DataFile]:
    """Return the files of a snapshot. `Malformed` if they cannot be cloned."""
    from pyiceberg.manifest import DataFileContent, FileFormat

    name = ".".join(table.name())
    if not _path(table.location()).is_absolute():
        raise Malformed(
            f"{name} is at {table.location()}; only tables in a local warehouse can be cloned, "
            "because their files can have a second name"
        )
    if table.format_version != FORMAT_VERSION:
        raise Malformed(f"{name} has Iceberg format version {table.format_version}, not 2")
    files = []
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            file = entry.data_file
            if (
                file.content != DataFileContent.DATA
                or file.file_format != FileFormat.PARQUET
                or manifest.partition_spec_id != table.metadata.default_spec_id
            ):
                raise Malformed(
                    f"{name} has delete files, files that are not Parquet, or files of an earlier "
                    "partition spec; rewrite it with Spark's procedure rewrite_data_files first"
                )
            files.append(file)
    return files


def _path(location: str) -> Path:
    """Return a local path; a relative one if the location is not local."""
    if location.startswith("file:"):
        return Path(f"/{location.removeprefix('file:').lstrip('/')}")
    return Path(location)


class _Clone:
    """One attempt to create a clone."""

    def __init__(
        self,
        catalog: Catalog,
        table: Table,
        snapshot: Snapshot,
        identifier: tuple[str, str],
        unique: str,
    ) -> None:
        self._source = table
        self._snapshot = snapshot
        self._unique = unique
        self._creation = _creation(catalog, table, snapshot, identifier)
        self._disk = RealDisk(_path(self._creation.table_metadata.location))
        self._folder = f"{DATA_FOLDER}/{unique[:12]}"
        self._paths: dict[str, str] = {}
        """Location in the source -> path below the location of the clone."""

    def link(self, files: list[DataFile]) -> None:
        """Give all files a name in the folder of the clone, durably."""
        make_directories(self._disk, self._folder)
        for index, file in enumerate(files):
            path = f"{self._folder}/{index:08d}.parquet"
            try:
                is_linked = self._disk.link(_path(file.file_path), path)
            except FileNotFoundError:
                raise Conflict(
                    f"snapshot {self._snapshot.snapshot_id} expired meanwhile; choose a newer one"
                ) from None
            if not is_linked:
                raise Unavailable(
                    f"{file.file_path} cannot have a second name in {self._disk.root}: both "
                    "tables must be on one file system that has hard links"
                )
            self._paths[file.file_path] = path
        self._disk.sync_directory(self._folder)
        self._disk.sync_directory(DATA_FOLDER)

    def commit(self, files: list[DataFile], clock: Clock) -> None:
        """Create the table."""
        from pyiceberg.table.snapshots import Operation

        from frazil.lake.catalog.own_files import OwnAppend

        creation, location = self._creation, self._creation.table_metadata.location
        if LEDGER in self._source.properties:
            ledger = f"{location}/{METADATA_FOLDER}/ledger-{self._unique}-1.parquet"
            write_ledger(
                _ledger_at(self._source, self._snapshot),
                (),
                location=ledger,
                io=self._source.io,
                commit_id=self._unique,
                now_ms=clock.wall_ms(),
            )
            creation.set_properties({LEDGER: ledger})
        with OwnAppend(
            operation=Operation.APPEND,
            transaction=creation,
            io=self._source.io,
            snapshot_properties={COMMIT_ID: self._unique},
        ) as append:
            for file in files:
                append.append_data_file(_renamed(file, f"{location}/{self._paths[file.file_path]}"))
        creation.commit_transaction()

    def discard(self) -> None:
        """Remove the names of a table that was not created."""
        self._disk.remove_tree(self._folder)


def _creation(
    catalog: Catalog, table: Table, snapshot: Snapshot, identifier: tuple[str, str]
) -> CreateTableTransaction:
    """Return the creation of a table with the schemas, partition specs, sort orders and ids of the
    source. PyIceberg assigns new ids, which the data files do not have."""
    from pyiceberg.table import CreateTableTransaction, StagedTable
    from pyiceberg.table.update import (
        AddPartitionSpecUpdate,
        AddSchemaUpdate,
        AddSortOrderUpdate,
        AssignUUIDUpdate,
        SetCurrentSchemaUpdate,
        SetDefaultSortOrderUpdate,
        SetDefaultSpecUpdate,
        SetLocationUpdate,
        SetPropertiesUpdate,
        UpgradeFormatVersionUpdate,
    )

    class CloneTransaction(CreateTableTransaction):
        def _initial_changes(self, table_metadata: TableMetadata) -> None:
            metadata = table_metadata
            self._updates += (
                AssignUUIDUpdate(uuid=metadata.table_uuid),
                UpgradeFormatVersionUpdate.model_validate(
                    {"format-version": metadata.format_version}
                ),
                # All schemas: an id of a column that was dropped must not be used again.
                *(AddSchemaUpdate.model_validate({"schema": each}) for each in metadata.schemas),
                SetCurrentSchemaUpdate.model_validate({"schema-id": metadata.current_schema_id}),
                *(AddPartitionSpecUpdate(spec=spec) for spec in metadata.partition_specs),
                SetDefaultSpecUpdate.model_validate({"spec-id": metadata.default_spec_id}),
                *(
                    AddSortOrderUpdate.model_validate({"sort-order": order})
                    for order in metadata.sort_orders
                ),
                SetDefaultSortOrderUpdate.model_validate(
                    {"sort-order-id": metadata.default_sort_order_id}
                ),
                SetLocationUpdate(location=metadata.location),
                SetPropertiesUpdate(updates=metadata.properties),
            )

    properties = {
        key: value for key, value in table.properties.items() if not key.startswith(OWN)
    } | {
        **REQUIRED_PROPERTIES,
        LOADED: "true",
        CLONE_OF: f"{table.name()[-1]}@{snapshot.snapshot_id}",
    }
    staged = catalog.create_table_transaction(identifier, table.schema(), properties=properties)
    fresh = staged.table_metadata
    metadata = table.metadata.model_copy(
        update={
            "table_uuid": fresh.table_uuid,
            "location": fresh.location,
            "properties": properties,
            "current_schema_id": _schema_id(table.metadata, snapshot),
            "last_sequence_number": 0,
            "current_snapshot_id": None,
            "snapshots": [],
            "snapshot_log": [],
            "metadata_log": [],
            "refs": {},
            "statistics": [],
            "partition_statistics": [],
        }
    )
    return CloneTransaction(
        StagedTable(
            identifier=identifier,
            metadata=metadata,
            metadata_location=f"{fresh.location}/{METADATA_FOLDER}",  # the catalog chooses it
            io=table.io,
            catalog=catalog,
        )
    )


def clone_warnings(catalog: Catalog, config: LakeConfig, name: str) -> tuple[str, ...]:
    """Return a sentence for each clone of a table, and of its clones: they have rows that were
    removed from the table."""
    sources = {
        each: catalog.load_table((config.namespace, each)).properties.get(CLONE_OF, "")
        for *_, each in catalog.list_tables(config.namespace)
    }
    found = {name}
    while more := {
        each for each, of in sources.items() if of.rpartition("@")[0] in found and each not in found
    }:
        found |= more
    return tuple(
        f"clone {each} may still have removed rows; DROP TABLE {each} PURGE deletes it"
        for each in sorted(found - {name})
    )


def _schema_id(metadata: TableMetadata, snapshot: Snapshot) -> int:
    """Return the schema of a snapshot."""
    is_known = any(schema.schema_id == snapshot.schema_id for schema in metadata.schemas)
    if snapshot.schema_id is None or not is_known:
        return metadata.current_schema_id
    return snapshot.schema_id


def _renamed(file: DataFile, location: str) -> DataFile:
    """Return the entry of a file under another name."""
    from pyiceberg.manifest import DATA_FILE_TYPE, DataFile

    fields: dict[str, Any] = {
        field.name: file[index]
        for index, field in enumerate(DATA_FILE_TYPE[FORMAT_VERSION].fields)
        if index < len(file)
    }
    entry = DataFile.from_args(**{**fields, "file_path": location})
    entry.spec_id = file.spec_id
    return entry


def _ledger_at(table: Table, snapshot: Snapshot) -> pa.Table:
    """Return the files that a table was loaded from up to a snapshot."""
    ledger = read_ledger(table.properties[LEDGER], table.io)
    later = {
        str(each.summary.get(COMMIT_ID))
        for each in table.metadata.snapshots
        if each.summary is not None
        and (each.sequence_number or 0) > (snapshot.sequence_number or 0)
    }
    times_us = ledger.column("loaded_at").cast("int64")
    is_before = pc.less_equal(times_us, snapshot.timestamp_ms * 1000)
    is_later = pc.is_in(ledger.column("commit_id"), pa.array(sorted(later), pa.string()))
    return ledger.filter(pc.and_not(is_before, is_later))


def _is_created(catalog: Catalog, identifier: tuple[str, str], unique: str) -> bool:
    """Return whether it is this clone that exists now."""
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return find_commit(catalog.load_table(identifier), unique) is not None
    except NoSuchTableError:
        return False
