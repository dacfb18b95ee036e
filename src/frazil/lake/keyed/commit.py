"""Commits a change of a keyed table: data files, delete files, offsets and row numbers, atomically.

1. load    the table from the catalog
2. check   is this commit id there already? is it still our table, and its snapshot the one that the
           change was planned on?
3. swap    one snapshot: new files for old ones, new delete files for old ones; the catalog accepts
           it only if nothing was committed since 1
4. retry   from 1, after a conflict or an unknown outcome

A change is never moved to another parent: positions are of files that may be gone there. If the
parent is another one, the caller plans again. An unknown outcome is looked up, never assumed, and
no file is deleted because of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    ManifestWriterV2,
)
from pyiceberg.table import Transaction
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import (
    TableUpdate,
    _apply_table_update,
    _TableMetadataUpdateContext,
)
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.typedef import EMPTY_DICT, Record

from frazil.errors import Conflict
from frazil.lake.append.commit import (
    COMMIT_ID,
    COMMITS,
    NEXT_OFFSETS,
    OFFSETS,
    TOPIC_IDS,
    check_owner,
    find_commit,
    repeat,
    text_of,
)
from frazil.lake.catalog.own_files import OwnNames
from frazil.lake.keyed.delete_task import WrittenDeletes
from frazil.lake.keyed.snapshot_files import ManifestCache
from frazil.lake.keyed.table import text_of_rows
from frazil.lake.scan.position_deletes import PATH_ID, POSITION_ID
from frazil.lake.tables.properties import NEXT_ROWS, TABLE_ID
from frazil.model import TopicPartition

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

    from frazil.model import Clock

MANIFESTS_MAX = 32
"""More small manifests of a kind are rewritten as few: every reader of the table opens each."""
MANIFEST_FILES = 2_000
"""Files per manifest: some megabytes."""
CONTENTS = (ManifestContent.DATA, ManifestContent.DELETES)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedChange:
    """A change to commit."""

    table_id: str
    parent: int | None
    """The snapshot that it was planned on."""
    added: Sequence[DataFile] = ()
    removed: Sequence[DataFile] = ()
    """Data files and delete files."""
    offsets: Mapping[TopicPartition, int]
    next_rows: Mapping[int, int]
    """Of all partitions, after the change."""
    appender: str | None
    """The name that took the table over; None for a change that keeps all rows."""
    commit_id: str
    """Finds this change in the table after an unknown outcome."""
    is_same_rows: bool = False
    """Whether it only rewrites files."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Of a topic that is not in our log."""
    manifests: ManifestCache = field(default_factory=ManifestCache)
    """What was read of the parent."""


def commit_change(catalog: Catalog, name: str, change: KeyedChange, *, clock: Clock) -> int:
    """Commit a change exactly once. Returns its snapshot id.

    Raises `Conflict` if the table has another snapshot than the one it was planned on, `Fenced` if
    another appender has taken over, `Overloaded` if a disk is full, `Unavailable` if the catalog
    rejects the request, and `Unresolved` if it did not respond: the next round then learns from the
    table whether the change is there.
    """

    def attempt(table: Table) -> int:
        found = find_commit(table, change.commit_id)
        if found is not None:
            return found.snapshot_id
        _check(table, name, change)
        return _swap(table, change)

    snapshot_id = repeat(catalog, name, attempt, clock)
    COMMITS.add(table=name, outcome="committed")
    return snapshot_id


def _check(table: Table, name: str, change: KeyedChange) -> None:
    if change.appender is not None:
        check_owner(table, change.appender)
    current = table.metadata.current_snapshot_id
    if current != change.parent or table.properties.get(TABLE_ID) != change.table_id:
        COMMITS.add(table=name, outcome="conflict")
        raise Conflict(
            f"{name} has snapshot {current}, but the change was planned on {change.parent}; plan "
            "again"
        )


def _swap(table: Table, change: KeyedChange) -> int:
    offsets, rows = text_of(change.offsets), text_of_rows(change.next_rows)
    summary = {COMMIT_ID: change.commit_id, OFFSETS: offsets, NEXT_ROWS: rows}
    has_deletes = any(file.content is not DataFileContent.DATA for file in change.added)
    is_append = not has_deletes and not change.removed
    with _AppliedOnce(table) as transaction:
        properties = {NEXT_OFFSETS: offsets, NEXT_ROWS: rows}
        if change.topic_ids:
            properties[TOPIC_IDS] = json.dumps(dict(change.topic_ids), sort_keys=True)
        transaction.set_properties(properties)
        with (_SameRows if change.is_same_rows else _RowDelta)(
            operation=Operation.APPEND if is_append else Operation.OVERWRITE,
            transaction=transaction,
            io=table.io,
            snapshot_properties=summary,
        ) as delta:
            delta.cache = change.manifests
            for file in change.added:
                delta.append_data_file(file)
            for file in change.removed:
                delta.delete_data_file(file)
        snapshot_id: int = delta.snapshot_id
    return snapshot_id


class _AppliedOnce(Transaction):
    """A transaction of PyIceberg that applies each update once. PyIceberg applies all, and copies
    the metadata of the table with all its snapshots, at each of 17 looks per commit. Metadata is
    immutable, and the catalog checks what it is asked to commit."""

    _base: TableMetadata | None = None
    _result: TableMetadata
    _applied: tuple[TableUpdate, ...] = ()

    @property
    def table_metadata(self) -> TableMetadata:
        count = len(self._applied)
        if self._base is not self._table.metadata or self._applied != self._updates[:count]:
            self._base = self._result = self._table.metadata
            self._context = _TableMetadataUpdateContext()
            count = 0
        for update in self._updates[count:]:
            self._result = _apply_table_update(update, self._result, self._context)
        self._applied = self._updates
        return self._result


class _RowDelta(OwnNames, _FastAppendFiles):
    """PyIceberg's append, extended by removed files and by delete files, which it cannot write."""

    cache: ManifestCache

    def _existing_manifests(self) -> list[ManifestFile]:
        metadata = self._transaction.table_metadata
        parent = metadata.snapshot_by_id(self._parent_snapshot_id or 0)
        return [] if parent is None else list(self.cache.manifests(parent, self._io))

    def _manifests(self) -> list[ManifestFile]:
        parent = self._existing_manifests()
        gone = {file.file_path for file in self._deleted_data_files}
        manifests = [m for content in CONTENTS for m in self._of_content(content, parent, gone)]
        if gone:
            raise Conflict(f"the table does not have {min(gone)}, which is replaced; plan again")
        return manifests

    def _of_content(
        self, content: ManifestContent, parent: Iterable[ManifestFile], gone: set[str]
    ) -> list[ManifestFile]:
        """Return the manifests of data files or of delete files. Takes those that it has removed
        out of `gone`."""
        is_data = content is ManifestContent.DATA
        added = [
            file
            for file in self._added_data_files
            if (file.content is DataFileContent.DATA) == is_data
        ]
        before = [manifest for manifest in parent if manifest.content == content]
        may_remove = any(
            (file.content is DataFileContent.DATA) == is_data for file in self._deleted_data_files
        )
        small = [manifest for manifest in before if _is_small(manifest)]
        rewritten = small if len(small) >= MANIFESTS_MAX else []
        kept: list[ManifestFile] = []
        entries: list[ManifestEntry] = []
        for manifest in before:
            if manifest not in rewritten and not may_remove:
                kept.append(manifest)
                continue
            live = self.cache.entries(manifest, self._io)
            if manifest in rewritten or any(e.data_file.file_path in gone for e in live):
                entries += live
            else:
                kept.append(manifest)
        return [*kept, *self._written(content, added, entries, gone)]

    def _written(
        self,
        content: ManifestContent,
        added: Sequence[DataFile],
        entries: Sequence[ManifestEntry],
        gone: set[str],
    ) -> list[ManifestFile]:
        """Write entries that exist or are removed now, and those that are added."""
        new = [
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=self._snapshot_id,
                sequence_number=None,
                file_sequence_number=None,
                data_file=file,
            )
            for file in added
        ]
        everything = [*entries, *new]
        manifests = []
        for begin in range(0, len(everything), MANIFEST_FILES):
            with self._writer(content) as writer:
                for entry in everything[begin : begin + MANIFEST_FILES]:
                    if entry.status == ManifestEntryStatus.ADDED and entry.sequence_number is None:
                        writer.add(entry)
                    elif entry.data_file.file_path in gone:
                        gone.remove(entry.data_file.file_path)
                        writer.delete(entry)
                    else:
                        writer.existing(entry)
            manifests.append(writer.to_manifest_file())
        return manifests

    def _writer(self, content: ManifestContent) -> ManifestWriter:
        metadata = self._transaction.table_metadata
        kind = _DeletesWriter if content is ManifestContent.DELETES else ManifestWriterV2
        return kind(
            metadata.spec(),
            metadata.schema(),
            self.new_manifest_output(),
            self._snapshot_id,
            self._compression,
        )


class _SameRows(_RowDelta):
    """A `replace` snapshot, which tells readers that no row has changed."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        totals = super()._summary(snapshot_properties).additional_properties
        return Summary(Operation.REPLACE, **totals)


class _DeletesWriter(ManifestWriterV2):
    """Writes a manifest of delete files."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def _is_small(manifest: ManifestFile) -> bool:
    count = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    return 2 * count < MANIFEST_FILES


def count_scattered(table: Table) -> int:
    """Return the number of small manifests if they should be rewritten, else 0."""
    snapshot = table.current_snapshot()
    manifests = [] if snapshot is None else snapshot.manifests(table.io)
    counts = [
        sum(_is_small(each) for each in manifests if each.content == content)
        for content in CONTENTS
    ]
    return sum(count for count in counts if count >= MANIFESTS_MAX)


def deletes_file_of(file: WrittenDeletes, table: Table) -> DataFile:
    """Return the Iceberg metadata of a written delete file."""
    path = file.data_path.encode()
    counts = {PATH_ID: file.row_count, POSITION_ID: file.row_count}
    entry = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"{table.location()}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=file.row_count,
        file_size_in_bytes=file.size_bytes,
        column_sizes={},
        value_counts=counts,
        null_value_counts=dict.fromkeys(counts, 0),
        nan_value_counts={},
        # Equal bounds tell every reader that it is about one data file.
        lower_bounds={PATH_ID: path, POSITION_ID: file.first.to_bytes(8, "little")},
        upper_bounds={PATH_ID: path, POSITION_ID: file.last.to_bytes(8, "little")},
        split_offsets=None,
        sort_order_id=None,
        equality_ids=None,
        key_metadata=None,
    )
    entry.spec_id = table.metadata.default_spec_id
    return entry
