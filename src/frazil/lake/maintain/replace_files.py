"""Commits the result of compaction or of a removal: replaces files by files, atomically.

1. load     the table from the catalog
2. check    is this commit id there already? are all replaced files still in the table?
3. swap     one `replace` snapshot: new files for old ones, and few manifests for many. It carries
            the offsets of its parent, because no row was added. A removal is a `delete` or
            `overwrite` snapshot, and states how many rows it removed and up to which offset
4. retry    from 1, after a conflict or an unknown outcome

Concurrent appends are kept. If another writer removes one of the replaced files, or rows of it,
that writer wins: the change is abandoned, and its new files become orphans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pyiceberg.exceptions import ValidationException
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT, Record

from frazil.errors import Conflict
from frazil.lake.append.commit import (
    APPENDER,
    COMMIT_ID,
    OFFSETS,
    REMOVED_OFFSETS,
    REMOVED_ROWS,
    find_commit,
    next_offsets,
    removed_offsets,
    repeat,
    text_of,
)
from frazil.lake.catalog.own_files import OwnNames
from frazil.lake.maintain.reachable_files import partition_of, partitions_with_deletes
from frazil.model import TopicPartition

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from frazil.model import Clock

MANIFESTS_MAX = 32
"""More small manifests are rewritten as few, because every reader of the table opens each."""
MANIFEST_FILES = 2_000
"""Data files per manifest: some megabytes."""


class ReplacedFile(Protocol):
    """A data file of a table."""

    @property
    def path(self) -> str: ...

    @property
    def spec_id(self) -> int: ...

    @property
    def partition(self) -> tuple[Any, ...]: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def row_count(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """New files with the same rows as the old ones, or without some of them."""

    old: Sequence[ReplacedFile]
    new: Sequence[DataFile]
    commit_id: str
    removed_rows: int = 0
    removed_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The offset after the last removed row, by partition."""


def replace_files(catalog: Catalog, name: str, change: Replacement, *, clock: Clock) -> int:
    """Commit a replacement exactly once. Returns its snapshot id.

    Raises `Conflict` if an old file was changed, and `Unresolved` if the outcome is unknown; no
    file is deleted then.
    """

    def attempt(table: Table) -> int:
        snapshot = find_commit(table, change.commit_id)
        return _swap(table, change) if snapshot is None else snapshot.snapshot_id

    try:
        return repeat(catalog, name, attempt, clock)
    except ValidationException as error:
        raise Conflict(f"{name} was changed while its files were being merged: {error}") from error


def count_scattered(table: Table) -> int:
    """Return the number of small manifests if they should be rewritten, else 0."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return 0
    count = sum(_is_small(manifest) for manifest in snapshot.manifests(table.io))
    return count if count > MANIFESTS_MAX else 0


def _swap(table: Table, change: Replacement) -> int:
    summary = {COMMIT_ID: change.commit_id}
    if APPENDER in table.properties:
        summary[OFFSETS] = text_of(next_offsets(table))
    if change.removed_rows:
        summary[REMOVED_ROWS] = str(change.removed_rows)
    with table.transaction() as transaction:
        if change.removed_rows:
            ends = removed_offsets(table)
            for partition, end in change.removed_ends.items():
                ends[partition] = max(ends.get(partition, 0), end)
            transaction.set_properties({REMOVED_OFFSETS: text_of(ends)})
        with (_Remove if change.removed_rows else _Replace)(
            operation=Operation.OVERWRITE,
            transaction=transaction,
            io=table.io,
            snapshot_properties=summary,
        ) as replace:
            for part in change.old:
                replace.delete_data_file(_data_file_of(part))
            for file in change.new:
                replace.append_data_file(file)
        snapshot_id: int = replace.snapshot_id
    return snapshot_id


class _Replace(OwnNames, _OverwriteFiles):
    """PyIceberg's overwrite, which checks that the old files exist, as the operation `replace`,
    which PyIceberg lacks and which tells readers that no row has changed."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        # Same totals as an overwrite.
        totals = super()._summary(snapshot_properties).additional_properties
        return Summary(Operation.REPLACE, **totals)

    def _deleted_entries(self) -> list[ManifestEntry]:
        entries = super()._deleted_entries()
        snapshot = self._transaction.table_metadata.snapshot_by_name(self._target_branch)
        manifests = [] if snapshot is None else snapshot.manifests(self._io)
        partitions = {partition_of(part) for part in self._deleted_data_files}
        if not partitions.isdisjoint(partitions_with_deletes(manifests, self._io)):
            raise ValidationException("rows of the same partition were deleted")
        return entries

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        """Rewrite many small manifests as few, sorted by day."""
        alive = [
            each
            for each in manifests
            if each.has_added_files()
            or each.has_existing_files()
            or each.added_snapshot_id == self._snapshot_id
        ]
        # Entries of files that are gone still have their column bounds.
        stale = [
            each
            for each in alive
            if each.deleted_files_count and each.added_snapshot_id != self._snapshot_id
        ]
        for each in stale:
            if each.content == ManifestContent.DATA:
                alive.remove(each)
                alive += self._merged([each], each.partition_spec_id)
        specs = {each.partition_spec_id for each in alive if _is_small(each)}
        for spec_id in sorted(specs):
            small = [each for each in alive if _is_small(each, spec_id)]
            if len(small) > MANIFESTS_MAX:
                alive = [each for each in alive if each not in small]
                alive += self._merged(small, spec_id)
        return alive

    def _merged(self, manifests: list[ManifestFile], spec_id: int) -> list[ManifestFile]:
        entries = [
            entry
            for manifest in manifests
            for entry in self.fetch_manifest_entry(manifest, discard_deleted=False)
            if entry.status != ManifestEntryStatus.DELETED or entry.snapshot_id == self._snapshot_id
        ]
        entries.sort(key=lambda entry: (repr(entry.data_file.partition), entry.data_file.file_path))
        merged = []
        for begin in range(0, len(entries), MANIFEST_FILES):
            with self.new_manifest_writer(self.spec(spec_id)) as writer:
                for entry in entries[begin : begin + MANIFEST_FILES]:
                    if entry.snapshot_id != self._snapshot_id:
                        writer.existing(entry)
                    elif entry.status == ManifestEntryStatus.DELETED:
                        writer.delete(entry)
                    else:
                        writer.add(entry)
            merged.append(writer.to_manifest_file())
        self._discard(manifests)
        return merged

    def _discard(self, manifests: list[ManifestFile]) -> None:
        """Have those of them that this commit has written deleted once it has succeeded."""
        for manifest in manifests:
            if manifest.manifest_path in self._written_manifests:
                self._written_manifests.remove(manifest.manifest_path)
                self._uncommitted_manifests.append(manifest.manifest_path)


class _Remove(_Replace):
    """A replacement that removes rows: a `delete` snapshot if it only removes files, else an
    `overwrite`."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        totals = super()._summary(snapshot_properties).additional_properties
        operation = Operation.OVERWRITE if self._added_data_files else Operation.DELETE
        return Summary(operation, **totals)


def _is_small(manifest: ManifestFile, spec_id: int | None = None) -> bool:
    """Return whether a manifest is worth rewriting. Delete manifests are left alone."""
    count = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    return (
        manifest.content == ManifestContent.DATA
        and 2 * count < MANIFEST_FILES
        and spec_id in (None, manifest.partition_spec_id)
    )


def _data_file_of(part: ReplacedFile) -> DataFile:
    """Return the fields of a data file that removing it requires."""
    entry = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=part.path,
        file_format=FileFormat.PARQUET,
        partition=Record(*part.partition),
        record_count=part.row_count,
        file_size_in_bytes=part.size_bytes,
    )
    entry.spec_id = part.spec_id
    return entry
