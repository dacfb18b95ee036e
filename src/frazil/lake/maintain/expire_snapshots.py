"""Which snapshots of a table stay, and taking away what only the others need.

1. tag      the last snapshot of each day that is over: `daily-2026-11-16`
2. choose   young snapshots stay, the last few, those with a tag or at the head of a branch, and
            those without which nobody could tell the offsets of another one
3. commit   tags and choice in one step
4. remove   the files that no snapshot names any more, after that is durable

Killed between 3 and 4 leaves files that nobody names. They are removed as orphans.
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

from frazil.lake.append.commit import OFFSETS, repeat
from frazil.lake.maintain.delete_files import remove
from frazil.lake.maintain.reachable_files import manifests_of, paths_in

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
"""The last ones stay, however old."""
TAG = re.compile(r"daily-(\d{4,}-\d\d-\d\d)")
"""Tags of this name are ours."""
MAIN = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRetention:
    """What stays."""

    now_ms: int
    age_ms: int
    tag_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryPlan:
    """What is to be done to the snapshots of a table."""

    tags: dict[str, int]
    """New ones, by name."""
    old_tags: tuple[str, ...]
    expired: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.tags or self.old_tags or self.expired)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryResult:
    """What was done."""

    tags: tuple[str, ...] = ()
    old_tags: tuple[str, ...] = ()
    snapshot_count: int = 0
    file_count: int = 0


def expire(
    catalog: Catalog, name: str, keep: SnapshotRetention, do: TaskRunner, *, clock: Clock
) -> ExpiryResult:
    """Let old snapshots of a table go, with all that only they name."""

    def attempt(table: Table) -> tuple[Table, ExpiryPlan]:
        choice = choose(table.metadata, keep)
        if not choice.is_empty:
            catalog.commit_table(table, _requirements(table), _updates(choice, keep))
        return table, choice

    before, choice = repeat(catalog, name, attempt, clock)
    if choice.is_empty:
        return ExpiryResult()
    removed = _remove(before, catalog.load_table(name), choice, do) if choice.expired else 0
    return ExpiryResult(
        tags=tuple(choice.tags),
        old_tags=choice.old_tags,
        snapshot_count=len(choice.expired),
        file_count=removed,
    )


def choose(metadata: TableMetadata, keep: SnapshotRetention) -> ExpiryPlan:
    """What to tag, and what may go."""
    tags = _missing_tags(metadata, keep)
    old_tags = tuple(sorted(ref for ref in metadata.refs if _is_over(ref, keep)))
    kept = {ref.snapshot_id for name, ref in metadata.refs.items() if name not in old_tags}
    kept |= set(tags.values())
    line = list(_line(metadata, metadata.current_snapshot_id))
    kept |= {snapshot.snapshot_id for snapshot in line[:SNAPSHOTS_MIN]}
    kept |= {
        snapshot.snapshot_id
        for snapshot in metadata.snapshots
        if snapshot.timestamp_ms >= keep.now_ms - keep.age_ms
    }
    for snapshot_id in tuple(kept):
        kept |= _needed(metadata, snapshot_id)
    known = [snapshot.snapshot_id for snapshot in metadata.snapshots]
    return ExpiryPlan(
        tags=tags,
        old_tags=old_tags,
        expired=tuple(each for each in known if each not in kept),
    )


def _missing_tags(metadata: TableMetadata, keep: SnapshotRetention) -> dict[str, int]:
    """The last snapshot of each day that is over and has no tag."""
    days: dict[str, int] = {}
    for snapshot in _line(metadata, metadata.current_snapshot_id):
        day = snapshot.timestamp_ms // DAY_MS
        if keep.now_ms // DAY_MS - keep.tag_days <= day < keep.now_ms // DAY_MS:
            days.setdefault(f"daily-{_date(day)}", snapshot.snapshot_id)
    return {tag: days[tag] for tag in sorted(days) if tag not in metadata.refs}


def _is_over(ref: str, keep: SnapshotRetention) -> bool:
    """Is this a tag of ours, and too old?"""
    found = TAG.fullmatch(ref)
    return found is not None and found[1] < _date(keep.now_ms // DAY_MS - keep.tag_days)


def _date(day: int) -> str:
    return (datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).isoformat()


def _line(metadata: TableMetadata, snapshot_id: int | None) -> Iterator[Snapshot]:
    """A snapshot and those before it, as far as they are there."""
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    while snapshot_id is not None and (snapshot := known.get(snapshot_id)) is not None:
        yield snapshot
        snapshot_id = snapshot.parent_snapshot_id


def _needed(metadata: TableMetadata, snapshot_id: int) -> set[int]:
    """The snapshots up to the first that tells the offsets: ours do, those of others do not."""
    found: set[int] = set()
    for snapshot in _line(metadata, snapshot_id):
        found.add(snapshot.snapshot_id)
        if snapshot.summary is not None and snapshot.summary.get(OFFSETS) is not None:
            break
    return found


def _updates(choice: ExpiryPlan, keep: SnapshotRetention) -> tuple[TableUpdate, ...]:
    made = [
        SetSnapshotRefUpdate.model_validate(
            {
                "ref-name": tag,
                "type": SnapshotRefType.TAG,
                "snapshot-id": snapshot_id,
                # For those who expire snapshots by other means.
                "max-ref-age-ms": keep.tag_days * DAY_MS,
            }
        )
        for tag, snapshot_id in choice.tags.items()
    ]
    dropped = [RemoveSnapshotRefUpdate.model_validate({"ref-name": tag}) for tag in choice.old_tags]
    expired = [RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(choice.expired)})]
    return (*made, *dropped, *(expired if choice.expired else []))


def _requirements(table: Table) -> tuple[TableRequirement, ...]:
    """Every branch and tag is where we saw it."""
    refs = [
        AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": ref.snapshot_id})
        for name, ref in table.metadata.refs.items()
    ]
    return (AssertTableUUID(uuid=table.metadata.table_uuid), *refs)


def _remove(before: Table, after: Table, choice: ExpiryPlan, do: TaskRunner) -> int:
    """Take away the files that only the expired snapshots name."""
    io = before.io
    expired = [each for each in before.metadata.snapshots if each.snapshot_id in choice.expired]
    kept = manifests_of(after.metadata.snapshots, io, do)
    gone = {
        path: manifest
        for path, manifest in manifests_of(expired, io, do).items()
        if path not in kept
    }
    files = paths_in(gone.values(), io, do, is_alive=False)
    if files:
        files -= paths_in(kept.values(), io, do, is_alive=True)
    lists = {snapshot.manifest_list for snapshot in expired}
    return remove([*sorted(files), *sorted(gone), *sorted(lists)], io, do)
