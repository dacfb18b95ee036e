"""What is known of the snapshots that a table still has.

The first offset of each partition that a snapshot does not hold stands in its summary, or, when it
only writes rows anew, in that of the nearest ancestor that has one. When expiry has taken those,
the table's property has it: it is changed by commits of ours only, in the same step as the
snapshot, and tells of the current one. A snapshot of the past whose ancestors are gone has none,
and is good for itself only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from frazil.lake.append.commit import NEXT_OFFSETS, OFFSETS, offsets_of_text
from frazil.lake.scan.data_file import SnapshotInfo

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot


def facts_of(metadata: TableMetadata) -> Iterator[SnapshotInfo]:
    """All snapshots that a table has, in the order of their commits."""
    line = set(_line(metadata))
    for snapshot in metadata.snapshots:
        summary = snapshot.summary
        yield SnapshotInfo(
            snapshot_id=snapshot.snapshot_id,
            parent_id=snapshot.parent_snapshot_id,
            committed_ms=snapshot.timestamp_ms,
            operation="" if summary is None else summary.operation.value,
            added_rows=_number(snapshot, "added-records"),
            total_rows=_number(snapshot, "total-records"),
            total_files=_number(snapshot, "total-data-files"),
            offsets=offsets_of_snapshot(metadata, snapshot),
            is_first=_is_first(snapshot),
            is_current_line=snapshot.snapshot_id in line,
        )


def _number(snapshot: Snapshot, key: str) -> int | None:
    text = None if snapshot.summary is None else snapshot.summary.get(key)
    return int(text) if text else None


def _line(metadata: TableMetadata) -> Iterator[int]:
    """The current snapshot, and those that it came from."""
    at = metadata.current_snapshot_id
    while at is not None:
        yield at
        found = metadata.snapshot_by_id(at)
        at = None if found is None else found.parent_snapshot_id


def offsets_of_snapshot(
    metadata: TableMetadata, snapshot: Snapshot
) -> Mapping[tuple[str, int], int] | None:
    """The first offset of each partition that a snapshot does not hold; None when it is not known
    any more."""
    at: Snapshot | None = snapshot
    while at is not None:
        text = None if at.summary is None else at.summary.get(OFFSETS)
        if text:
            return offsets_of_text(text)
        if _is_first(at):
            return {}
        parent = at.parent_snapshot_id
        at = None if parent is None else metadata.snapshot_by_id(parent)
    if snapshot.snapshot_id == metadata.current_snapshot_id:
        return offsets_of_text(metadata.properties.get(NEXT_OFFSETS, "{}"))
    return None


def _is_first(snapshot: Snapshot) -> bool:
    """By its number: that it has no parent may also mean that the parent has expired."""
    return snapshot.sequence_number == 1
