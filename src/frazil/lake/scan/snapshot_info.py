"""The snapshots of a table, and the offsets that each holds.

The offsets of a snapshot (the first of each partition that it does not hold) are in its summary. A
snapshot that only rewrites files has none; its nearest ancestor's apply. If those ancestors have
expired, the offsets of the current snapshot are in a table property, which only our commits change,
atomically with the snapshot. Those of an older snapshot are then unknown: it can be read, but not
combined with newer rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from frazil.lake.append.commit import NEXT_OFFSETS, OFFSETS, offsets_of_text
from frazil.lake.scan.data_file import SnapshotInfo
from frazil.model import TopicPartition

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot


def snapshots_of(metadata: TableMetadata) -> Iterator[SnapshotInfo]:
    """Yield all snapshots of a table in commit order."""
    ancestors = set(_ancestors(metadata))
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
            is_current_line=snapshot.snapshot_id in ancestors,
        )


def _number(snapshot: Snapshot, key: str) -> int | None:
    text = None if snapshot.summary is None else snapshot.summary.get(key)
    return int(text) if text else None


def _ancestors(metadata: TableMetadata) -> Iterator[int]:
    """Yield the ids of the current snapshot and its ancestors."""
    at = metadata.current_snapshot_id
    while at is not None:
        yield at
        snapshot = metadata.snapshot_by_id(at)
        at = None if snapshot is None else snapshot.parent_snapshot_id


def offsets_of_snapshot(
    metadata: TableMetadata, snapshot: Snapshot
) -> Mapping[TopicPartition, int] | None:
    """Return the first offset of each partition that a snapshot does not hold, or None if that is
    no longer known."""
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
    """Check the sequence number: a missing parent may also have expired."""
    return snapshot.sequence_number == 1
