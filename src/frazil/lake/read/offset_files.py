"""Which data files hold which offsets: the files that snapshots have added, or all current ones.

Each of our commits adds files and records their offsets. Compaction replaces files by others with
the same rows; expiry removes snapshots and the files that only they use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from frazil.errors import OutOfRange, Unavailable
from frazil.lake.append.commit import COMMIT_ID, REMOVED_ROWS
from frazil.lake.scan.data_file import OFFSET_MAX, TableFile, root_of
from frazil.lake.tables.properties import TOPIC, kind_of

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

US_PER_MS = 1000


def added_files(table: Table, after: int | None, up_to: int) -> list[TableFile]:
    """Return the files that our commits added after snapshot `after` (None: from the first) up to
    and including `up_to`, oldest first. Files of compaction are excluded: their rows are not new.

    Raise `OutOfRange` if a snapshot between has expired or is not ours. Then start at an existing
    snapshot, or read by offsets, which do not depend on snapshots.
    """
    files: list[TableFile] = []
    snapshots = list(_between(table, after, up_to))
    if after is None:
        _check_first(table, snapshots[-1])
    for snapshot in reversed(snapshots):
        if _is_ours(snapshot, table):
            for manifest in snapshot.manifests(table.io):
                if manifest.added_snapshot_id == snapshot.snapshot_id:
                    files += _added(table, manifest, snapshot.snapshot_id)
    return files


def files_now(table: Table) -> list[TableFile]:
    """Return all data files of the current snapshot."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return []
    return [
        _table_file(table, entry.data_file)
        for manifest in snapshot.manifests(table.io)
        if _has_rows(table, manifest)
        for entry in manifest.fetch_manifest_entry(table.io)
    ]


def _between(table: Table, after: int | None, up_to: int) -> Iterator[Snapshot]:
    """Yield the snapshots from `up_to` back to the one after `after`."""
    expected: int | None = up_to
    while expected != after:
        snapshot = None if expected is None else table.snapshot_by_id(expected)
        if snapshot is None:
            known = ", ".join(str(s.snapshot_id) for s in table.metadata.snapshots)
            raise OutOfRange(
                f"{_name(table)} has no history from snapshot {after} to {up_to}: "
                f"{'it is not an ancestor' if expected is None else f'{expected} has expired'}. "
                f"Start at an existing snapshot ({known or 'none'}), or read by offsets"
            )
        yield snapshot
        expected = snapshot.parent_snapshot_id


def _check_first(table: Table, snapshot: Snapshot) -> None:
    """Check that no older snapshot has expired: PyIceberg then drops the parent id."""
    if not _is_ours(snapshot, table) or any(
        manifest.added_snapshot_id != snapshot.snapshot_id
        for manifest in snapshot.manifests(table.io)
    ):
        raise OutOfRange(
            f"the first snapshots of {_name(table)} have expired; the oldest is "
            f"{snapshot.snapshot_id}. Start there, or read by offsets"
        )


def _is_ours(snapshot: Snapshot, table: Table) -> bool:
    """Return True for our commits, False for compaction and removals; raise for any other
    change."""
    from pyiceberg.table.snapshots import Operation

    summary = snapshot.summary
    if summary is not None and summary.operation == Operation.APPEND and COMMIT_ID in summary:
        return True
    if summary is not None and (
        summary.operation == Operation.REPLACE or summary.get(REMOVED_ROWS) is not None
    ):
        return False
    raise OutOfRange(
        f"snapshot {snapshot.snapshot_id} of {_name(table)} was committed by another program "
        f"(operation {summary.operation.value if summary else 'unknown'}); read by offsets"
    )


def _added(table: Table, manifest: ManifestFile, snapshot_id: int) -> Iterator[TableFile]:
    from pyiceberg.manifest import ManifestEntryStatus

    for entry in manifest.fetch_manifest_entry(table.io):
        if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id == snapshot_id:
            yield _table_file(table, entry.data_file)


def _has_rows(table: Table, manifest: ManifestFile) -> bool:
    from pyiceberg.manifest import ManifestContent

    if manifest.content == ManifestContent.DATA:
        return True
    if manifest.has_added_files() or manifest.has_existing_files():
        raise Unavailable(
            f"{_name(table)} has delete files, which are not supported here; rewrite its data "
            "files with Spark first"
        )
    return False


def _table_file(table: Table, file: DataFile) -> TableFile:
    from frazil.lake.scan.manifests import table_file_of

    return table_file_of(file, table.schema(), root_of(table))


def arrived_ms_max(file: TableFile, name: str) -> int:
    """Return when the last record of a file of table `name` arrived in the log."""
    column, units_per_ms = arrival_of(name)
    return file.upper_bound(column, OFFSET_MAX) // units_per_ms


def arrival_of(name: str) -> tuple[str, int]:
    """Return a table's column of arrival times and its units per millisecond."""
    return ("timestamp_ms", 1) if kind_of(name) == TOPIC else ("ingest_time", US_PER_MS)


def _name(table: Table) -> str:
    return ".".join(table.name())
