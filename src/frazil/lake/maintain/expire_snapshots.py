"""Expires old snapshots of a table, and deletes the files that only they reference.

1. tag      the last snapshot of each past day: `daily-2026-11-16`
2. choose   keep young snapshots, the last few, those with a tag or at the head of a branch, and
            those that hold the offsets of another one
            Snapshots older than a removal of rows may still have these rows: they expire once they
            are no longer young, whatever their tags
3. commit   tags and expiry in one step
4. delete   files that no snapshot references, once the commit is durable

A crash between 3 and 4 leaves orphan files.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from frazil.lake.append.commit import OFFSETS, REMOVED_ROWS, removed_offsets, repeat
from frazil.lake.maintain.delete_files import delete_files
from frazil.lake.maintain.reachable_files import has_deleted_entries, manifests_of, paths_in

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from frazil.lake.spark.jobs import TaskRunner
    from frazil.model import Clock

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SNAPSHOTS_MIN = 10
"""Snapshots kept, however old."""
TAG = re.compile(r"daily-(\d{4,}-\d\d-\d\d)")
"""Names of our tags."""
MAIN = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRetention:
    """Which snapshots to keep."""

    now_ms: int
    age_ms: int
    tag_days: int
    is_purge: bool = False
    """Keep only the current snapshot and heads of branches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryPlan:
    """Changes to the snapshots of a table."""

    tags: dict[str, int]
    """New tags, by name."""
    old_tags: tuple[str, ...]
    expired: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.tags or self.old_tags or self.expired)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryResult:
    """What was tagged, expired and deleted."""

    tags: tuple[str, ...] = ()
    old_tags: tuple[str, ...] = ()
    snapshot_count: int = 0
    file_count: int = 0


def expire(
    catalog: Catalog, name: str, keep: SnapshotRetention, do: TaskRunner, *, clock: Clock
) -> ExpiryResult:
    """Expire old snapshots of a table, and delete the files that only they reference."""

    def attempt(table: Table) -> tuple[Table, ExpiryPlan]:
        plan = plan_expiry(table.metadata, keep)
        if not plan.is_empty:
            catalog.commit_table(table, _requirements(table), _updates(plan, keep))
        return table, plan

    before, plan = repeat(catalog, name, attempt, clock)
    if plan.is_empty:
        return ExpiryResult()
    deleted = _delete(before, catalog.load_table(name), plan, do) if plan.expired else 0
    return ExpiryResult(
        tags=tuple(plan.tags),
        old_tags=plan.old_tags,
        snapshot_count=len(plan.expired),
        file_count=deleted,
    )


def plan_expiry(metadata: TableMetadata, keep: SnapshotRetention) -> ExpiryPlan:
    """Decide which snapshots to tag and which to expire."""
    outdated = outdated_snapshots(metadata, keep)
    tags = {
        tag: each for tag, each in _missing_tags(metadata, keep).items() if each not in outdated
    }
    old_tags = tuple(
        sorted(
            name
            for name, ref in metadata.refs.items()
            if ref.snapshot_ref_type == SnapshotRefType.TAG
            and (_is_over(name, keep) or ref.snapshot_id in outdated)
        )
    )
    kept = {ref.snapshot_id for name, ref in metadata.refs.items() if name not in old_tags}
    kept |= set(tags.values())
    ancestors = list(_ancestors(metadata, metadata.current_snapshot_id))
    kept |= {snapshot.snapshot_id for snapshot in ancestors[:SNAPSHOTS_MIN]} - outdated
    kept |= {
        snapshot.snapshot_id
        for snapshot in metadata.snapshots
        if snapshot.timestamp_ms >= keep.now_ms - keep.age_ms
    } - outdated
    for snapshot_id in tuple(kept):
        kept |= _needed(metadata, snapshot_id)
    known = [snapshot.snapshot_id for snapshot in metadata.snapshots]
    return ExpiryPlan(
        tags=tags,
        old_tags=old_tags,
        expired=tuple(each for each in known if each not in kept),
    )


def outdated_snapshots(metadata: TableMetadata, keep: SnapshotRetention) -> set[int]:
    """Return the snapshots that may have removed rows and are due to expire. Heads of branches are
    not: another program works there."""
    removals = [each.sequence_number or 0 for each in metadata.snapshots if removed_rows(each)]
    if not removals and not keep.is_purge:
        return set()
    heads = {
        ref.snapshot_id
        for ref in metadata.refs.values()
        if ref.snapshot_ref_type == SnapshotRefType.BRANCH
    }
    last, young_ms = max(removals, default=0), keep.now_ms - keep.age_ms
    return {
        each.snapshot_id
        for each in metadata.snapshots
        if each.snapshot_id not in heads
        and (keep.is_purge or ((each.sequence_number or 0) < last and each.timestamp_ms < young_ms))
    }


def branch_warnings(metadata: TableMetadata) -> tuple[str, ...]:
    """Return a sentence for each branch besides `main`: rows removed from it may still be there."""
    branches = sorted(
        name
        for name, ref in metadata.refs.items()
        if name != MAIN and ref.snapshot_ref_type == SnapshotRefType.BRANCH
    )
    return tuple(
        f"branch {branch} is not ours and may still have removed rows; drop it, or remove them "
        "there"
        for branch in branches
    )


def may_have_removed_rows(table: Table, do: TaskRunner) -> bool:
    """Return whether files of the table may have values of removed rows: those of snapshots before
    a removal, and manifests with entries of deleted files, which have their column bounds."""
    snapshots = table.metadata.snapshots
    if not removed_offsets(table):
        return False
    return any(map(removed_rows, snapshots)) or has_deleted_entries(snapshots, table.io, do)


def removed_rows(snapshot: Snapshot) -> int:
    """Return how many rows a snapshot removed from its parent."""
    return int((snapshot.summary and snapshot.summary.get(REMOVED_ROWS)) or 0)


def _missing_tags(metadata: TableMetadata, keep: SnapshotRetention) -> dict[str, int]:
    """Return the last snapshot of each past day that has no tag."""
    days: dict[str, int] = {}
    for snapshot in _ancestors(metadata, metadata.current_snapshot_id):
        day = snapshot.timestamp_ms // DAY_MS
        if keep.now_ms // DAY_MS - keep.tag_days <= day < keep.now_ms // DAY_MS:
            days.setdefault(f"daily-{_date(day)}", snapshot.snapshot_id)
    return {tag: days[tag] for tag in sorted(days) if tag not in metadata.refs}


def _is_over(ref: str, keep: SnapshotRetention) -> bool:
    """Return whether this is a tag of ours and too old."""
    match = TAG.fullmatch(ref)
    return match is not None and match[1] < _date(keep.now_ms // DAY_MS - keep.tag_days)


def _date(day: int) -> str:
    return (datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).isoformat()


def _ancestors(metadata: TableMetadata, snapshot_id: int | None) -> Iterator[Snapshot]:
    """Yield a snapshot and its ancestors, as far as they exist."""
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    while snapshot_id is not None and (snapshot := known.get(snapshot_id)) is not None:
        yield snapshot
        snapshot_id = snapshot.parent_snapshot_id


def _needed(metadata: TableMetadata, snapshot_id: int) -> set[int]:
    """Return the ancestors up to the first with offsets. Snapshots by other writers have none."""
    needed: set[int] = set()
    for snapshot in _ancestors(metadata, snapshot_id):
        needed.add(snapshot.snapshot_id)
        if snapshot.summary is not None and snapshot.summary.get(OFFSETS) is not None:
            break
    return needed


def _updates(plan: ExpiryPlan, keep: SnapshotRetention) -> tuple[TableUpdate, ...]:
    added = [
        SetSnapshotRefUpdate.model_validate(
            {
                "ref-name": tag,
                "type": SnapshotRefType.TAG,
                "snapshot-id": snapshot_id,
                # For other tools that expire snapshots.
                "max-ref-age-ms": keep.tag_days * DAY_MS,
            }
        )
        for tag, snapshot_id in plan.tags.items()
    ]
    dropped = [RemoveSnapshotRefUpdate.model_validate({"ref-name": tag}) for tag in plan.old_tags]
    expired = [RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(plan.expired)})]
    return (*added, *dropped, *(expired if plan.expired else []))


def _requirements(table: Table) -> tuple[TableRequirement, ...]:
    """Require that no branch or tag has moved."""
    refs = [
        AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": ref.snapshot_id})
        for name, ref in table.metadata.refs.items()
    ]
    return (AssertTableUUID(uuid=table.metadata.table_uuid), *refs)


def _delete(before: Table, after: Table, plan: ExpiryPlan, do: TaskRunner) -> int:
    """Delete the files that only the expired snapshots reference."""
    io = before.io
    expired = [each for each in before.metadata.snapshots if each.snapshot_id in plan.expired]
    kept = manifests_of(after.metadata.snapshots, io, do)
    unreferenced = {
        path: manifest
        for path, manifest in manifests_of(expired, io, do).items()
        if path not in kept
    }
    files = paths_in(unreferenced.values(), io, do, is_alive=False)
    if files:
        files -= paths_in(kept.values(), io, do, is_alive=True)
    lists = {snapshot.manifest_list for snapshot in expired}
    statistics = _statistics(before.metadata) - _statistics(after.metadata)
    paths = [*sorted(files), *sorted(unreferenced), *sorted(lists), *sorted(statistics)]
    return delete_files(paths, io, do)


def _statistics(metadata: TableMetadata) -> set[str]:
    return {file.statistics_path for file in (*metadata.statistics, *metadata.partition_statistics)}
