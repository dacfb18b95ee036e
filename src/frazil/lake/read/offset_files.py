"""Which files hold which offsets: those that snapshots have added, or all that a table has now.

Every commit of ours adds files, and says which offsets they hold. Compaction replaces files by
others with the same rows; expiry forgets snapshots, and with them files that were replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from frazil.errors import OutOfRange, Unavailable
from frazil.lake.append.commit import COMMIT_ID
from frazil.lake.scan.data_file import OFFSET_MAX, TableFile, root_of
from frazil.lake.tables.properties import TOPIC, kind_of

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

US_PER_MS = 1000


def added_files(table: Table, after: int | None, up_to: int) -> list[TableFile]:
    """The files that commits of ours added behind snapshot `after`, up to and with `up_to`, oldest
    first; None is before the first. What compaction wrote is left out: these rows were there.

    `OutOfRange` when the snapshots between are not all there, or when one of them has changed rows
    otherwise. Then begin at a snapshot that is there, or go by offsets, which outlive snapshots.
    """
    found: list[TableFile] = []
    snapshots = list(_between(table, after, up_to))
    if after is None:
        _check_first(table, snapshots[-1])
    for snapshot in reversed(snapshots):
        if _is_ours(snapshot, table):
            for manifest in snapshot.manifests(table.io):
                if manifest.added_snapshot_id == snapshot.snapshot_id:
                    found += _added(table, manifest, snapshot.snapshot_id)
    return found


def files_now(table: Table) -> list[TableFile]:
    """All data files of the current snapshot."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return []
    return [
        _cold_file(table, entry.data_file)
        for manifest in snapshot.manifests(table.io)
        if _has_rows(table, manifest)
        for entry in manifest.fetch_manifest_entry(table.io)
    ]


def _between(table: Table, after: int | None, up_to: int) -> Iterator[Snapshot]:
    """The snapshots from `up_to` back to that behind `after`."""
    wanted: int | None = up_to
    while wanted != after:
        snapshot = None if wanted is None else table.snapshot_by_id(wanted)
        if snapshot is None:
            there = ", ".join(str(each.snapshot_id) for each in table.metadata.snapshots)
            raise OutOfRange(
                f"{_name(table)} has no snapshots that lead from {after} to {up_to}: "
                f"{'none of them follows it' if wanted is None else f'{wanted} is gone'}. "
                f"Begin at one that is there ({there or 'none'}), or go by offsets"
            )
        yield snapshot
        wanted = snapshot.parent_snapshot_id


def _check_first(table: Table, snapshot: Snapshot) -> None:
    """PyIceberg's expiry makes the oldest that is left look like the first one."""
    if not _is_ours(snapshot, table) or any(
        manifest.added_snapshot_id != snapshot.snapshot_id
        for manifest in snapshot.manifests(table.io)
    ):
        raise OutOfRange(
            f"the first snapshots of {_name(table)} are gone; {snapshot.snapshot_id} is the oldest "
            "that is there. Begin at that, or go by offsets"
        )


def _is_ours(snapshot: Snapshot, table: Table) -> bool:
    """A commit of ours, or nothing but other files for the same rows."""
    from pyiceberg.table.snapshots import Operation

    summary = snapshot.summary
    if summary is not None and summary.operation == Operation.APPEND and COMMIT_ID in summary:
        return True
    if summary is not None and summary.operation == Operation.REPLACE:
        return False
    raise OutOfRange(
        f"snapshot {snapshot.snapshot_id} of {_name(table)} has changed rows "
        f"({summary.operation.value if summary else 'nobody knows how'}), and is none of ours; go "
        "by offsets"
    )


def _added(table: Table, manifest: ManifestFile, snapshot_id: int) -> Iterator[TableFile]:
    from pyiceberg.manifest import ManifestEntryStatus

    for entry in manifest.fetch_manifest_entry(table.io):
        if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id == snapshot_id:
            yield _cold_file(table, entry.data_file)


def _has_rows(table: Table, manifest: ManifestFile) -> bool:
    from pyiceberg.manifest import ManifestContent

    if manifest.content == ManifestContent.DATA:
        return True
    if manifest.has_added_files() or manifest.has_existing_files():
        raise Unavailable(
            f"{_name(table)} has rows that were removed by delete files, which are not read here; "
            "rewrite its data files on Spark, so that they are gone, and read it then"
        )
    return False


def _cold_file(table: Table, file: DataFile) -> TableFile:
    from frazil.lake.scan.manifests import table_file_of

    return table_file_of(file, table.schema(), root_of(table))


def arrived_ms_max(file: TableFile, name: str) -> int:
    """When the last of a file's records came into the log; `name` is that of the table."""
    column, units_per_ms = arrival_of(name)
    return file.upper_bound(column, OFFSET_MAX) // units_per_ms


def arrival_of(name: str) -> tuple[str, int]:
    """The column of a table that says when a record came into the log, and its units in a
    millisecond."""
    return ("timestamp_ms", 1) if kind_of(name) == TOPIC else ("ingest_time", US_PER_MS)


def _name(table: Table) -> str:
    return ".".join(table.name())
