"""Committing what compaction wrote: files for files, in one step, or not at all.

1. load     the table as the catalog has it now
2. check    is this change there already? are all files still there that it takes away?
3. swap     one `replace` snapshot: new files for old ones, and few manifests for many. It carries
            the offsets of the one before it, because it holds the same rows
4. again    from 1, when somebody was quicker, or when nobody knows whether 3 was done

An appender that commits meanwhile keeps what it has committed. Whoever removes one of the files
meanwhile, or rows of it, wins: the change is given up, and its new files become orphans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from frazil.lake.append.commit import COMMIT_ID, OFFSETS, find_commit, next_offsets, repeat, text_of
from frazil.lake.maintain.compaction import CompactionFile
from frazil.lake.maintain.reachable_files import days_with_deletes

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from frazil.model import Clock

MANIFESTS_MAX = 32
"""Small ones. More are written anew as few: whoever reads a table opens each of them."""
MANIFEST_FILES = 2_000
"""Data files in a manifest: some megabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The files `new` hold the same rows as the files `old`."""

    old: Sequence[CompactionFile]
    new: Sequence[DataFile]
    commit_id: str


def replace_files(catalog: Catalog, name: str, change: Replacement, *, clock: Clock) -> int:
    """Commit a replacement once, and return the id of its snapshot.

    `Conflict` when a file is not there any more as it was; `Unresolved` when the catalog could not
    be asked for too long: no file is removed then.
    """

    def attempt(table: Table) -> int:
        snapshot = find_commit(table, change.commit_id)
        return _swap(table, change) if snapshot is None else snapshot.snapshot_id

    try:
        return repeat(catalog, name, attempt, clock)
    except ValidationException as error:
        raise Conflict(f"{name} was changed while its files were joined: {error}") from error


def count_scattered(table: Table) -> int:
    """How many small manifests there are, if these should be written anew; else none."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return 0
    count = sum(_is_small(manifest) for manifest in snapshot.manifests(table.io))
    return count if count > MANIFESTS_MAX else 0


def _swap(table: Table, change: Replacement) -> int:
    summary = {COMMIT_ID: change.commit_id, OFFSETS: text_of(next_offsets(table))}
    with table.transaction() as transaction:
        with _Replace(
            operation=Operation.OVERWRITE,
            transaction=transaction,
            io=table.io,
            snapshot_properties=summary,
        ) as replace:
            for part in change.old:
                replace.delete_data_file(_data_file_of(part))
            for file in change.new:
                replace.append_data_file(file)
        snapshot_id = replace.snapshot_id
    return snapshot_id


class _Replace(_OverwriteFiles):
    """PyIceberg's overwrite, which checks that what is taken away is there. It has no `replace`,
    which tells readers that no row has changed."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        # The totals are those of an overwrite.
        totals = super()._summary(snapshot_properties).additional_properties
        return Summary(Operation.REPLACE, **totals)

    def _deleted_entries(self) -> list[ManifestEntry]:
        found = super()._deleted_entries()
        snapshot = self._transaction.table_metadata.snapshot_by_name(self._target_branch)
        manifests = [] if snapshot is None else snapshot.manifests(self._io)
        days = {part.partition[0] for part in self._deleted_data_files}
        if not days.isdisjoint(days_with_deletes(manifests, self._io)):
            raise ValidationException("rows of the same day were deleted meanwhile")
        return found

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        """Few large manifests for many small ones, neighbours in time together."""
        alive = [
            each
            for each in manifests
            if each.has_added_files()
            or each.has_existing_files()
            or each.added_snapshot_id == self._snapshot_id
        ]
        specs = {each.partition_spec_id for each in alive if _is_small(each)}
        for spec_id in sorted(specs):
            small = [each for each in alive if _is_small(each, spec_id)]
            if len(small) > MANIFESTS_MAX:
                alive = [each for each in alive if each not in small]
                alive += self._joined(small, spec_id)
        return alive

    def _joined(self, manifests: list[ManifestFile], spec_id: int) -> list[ManifestFile]:
        entries = [
            entry
            for manifest in manifests
            for entry in self.fetch_manifest_entry(manifest, discard_deleted=False)
            if entry.status != ManifestEntryStatus.DELETED or entry.snapshot_id == self._snapshot_id
        ]
        entries.sort(key=lambda entry: (repr(entry.data_file.partition), entry.data_file.file_path))
        joined = []
        for begin in range(0, len(entries), MANIFEST_FILES):
            with self.new_manifest_writer(self.spec(spec_id)) as writer:
                for entry in entries[begin : begin + MANIFEST_FILES]:
                    if entry.snapshot_id != self._snapshot_id:
                        writer.existing(entry)
                    elif entry.status == ManifestEntryStatus.DELETED:
                        writer.delete(entry)
                    else:
                        writer.add(entry)
            joined.append(writer.to_manifest_file())
        return joined


def _is_small(manifest: ManifestFile, spec_id: int | None = None) -> bool:
    """Is it worth to be written anew? Manifests of deleted rows are left to whoever made them."""
    count = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    return (
        manifest.content == ManifestContent.DATA
        and 2 * count < MANIFEST_FILES
        and spec_id in (None, manifest.partition_spec_id)
    )


def _data_file_of(part: CompactionFile) -> DataFile:
    """As much of a data file as it takes to take it away."""
    made = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=part.path,
        file_format=FileFormat.PARQUET,
        partition=Record(part.day),
        record_count=part.row_count,
        file_size_in_bytes=part.size_bytes,
    )
    made.spec_id = part.spec_id
    return made
