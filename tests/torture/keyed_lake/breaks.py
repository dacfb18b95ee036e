"""The named steps of a freeze, a compaction and an expiry, and the faults injected there."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any
from unittest import mock

from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from frazil.lake.keyed import commit, freezer, merge_files, table, tasks
from frazil.lake.keyed.freezer import Freezer
from frazil.lake.maintain import expire_snapshots
from tests.lake.keyed.world import NAME
from tests.torture.keyed_lake import life
from tests.torture.keyed_lake.life import Job, report
from tests.torture.lake.breaks import Strike, _half_metadata, _half_written, after, before

Hook = Callable[[Strike], None]


def install(job: Job) -> None:
    """Inject the fault of the job into this process."""
    act, hook = STEPS[job.step]
    calls = 0

    def strike() -> None:
        nonlocal calls
        calls += 1
        if calls == job.at:
            report(job.broken, job.step)
            act()

    hook(strike)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def lose_answer() -> None:
    """Fail as if the connection to the catalog was lost: the outcome of the commit is unknown."""
    raise OperationalError("the connection was lost", None, Exception())


def lose_answer_and_snapshot() -> None:
    """Lose the response, after others have committed and expired the snapshot that would show the
    outcome."""
    assert life.opened is not None
    world = life.opened
    merge_files.join_manifests(
        world.catalog, f"frazil.{NAME}", clock=world.freezer._clock, unique=world.freezer._unique
    )
    loaded = world.table()
    old = [snapshot.snapshot_id for snapshot in loaded.metadata.snapshots[:-1]]
    loaded.maintenance.expire_snapshots().by_ids(old).commit()
    lose_answer()


def compact_meanwhile() -> None:
    """Rewrite all files, as if another process did."""
    assert life.opened is not None
    maintenance = life.opened.maintenance()
    if maintenance.compact(NAME, is_all=True).is_nothing:
        merge_files.join_manifests(
            life.opened.catalog,
            f"frazil.{NAME}",
            clock=life.opened.freezer._clock,
            unique=life.opened.freezer._unique,
        )


def inside(owner: Any, name: str, hook: Hook) -> Hook:
    """Limit a hook to what happens within calls of a function."""

    def limited(strike: Strike) -> None:
        original, depth = getattr(owner, name), 0

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                return original(*args, **kwargs)
            finally:
                depth -= 1

        def strike_inside() -> None:
            if depth:
                strike()

        mock.patch.object(owner, name, wrapped).start()
        hook(strike_inside)

    return limited


def in_freeze(hook: Hook) -> Hook:
    return inside(Freezer, "_try", hook)


def in_swap(hook: Hook) -> Hook:
    """In a commit of a freeze."""
    return in_freeze(inside(commit, "_swap", hook))


def in_merge(hook: Hook) -> Hook:
    return inside(merge_files, "run_merge", hook)


def in_merge_swap(hook: Hook) -> Hook:
    return inside(merge_files, "_commit", inside(commit, "_swap", hook))


COMMIT = (SqlCatalog, "commit_table")
SWAPPED = in_swap(after(*COMMIT))

STEPS: dict[str, tuple[Callable[[], None], Hook]] = {
    "creating": (kill, after(table, "create_table")),
    "taking_over": (kill, after(freezer, "take_over")),
    "handed_over": (kill, after(freezer, "write_handoff")),
    "half_written": (kill, in_freeze(_half_written)),
    "rows_written": (kill, after(tasks, "write_rows")),
    "deletes_written": (kill, after(tasks, "delete_rows")),
    "tasks_done": (kill, before(freezer, "_check_found")),
    "half_manifest": (kill, in_swap(_half_metadata)),
    "manifests_written": (kill, in_swap(before(*COMMIT))),
    "metadata_written": (kill, in_swap(after(SqlCatalog, "_write_metadata"))),
    "in_swap": (kill, in_swap(before(Session, "commit"))),
    "swapped": (kill, SWAPPED),
    "committed": (kill, after(freezer, "commit_change")),
    "published": (kill, after(Freezer, "_publish")),
    "answer_lost": (lose_answer, SWAPPED),
    "commit_lost": (lose_answer, in_swap(before(*COMMIT))),
    "snapshot_expired": (lose_answer_and_snapshot, SWAPPED),
    "raced": (compact_meanwhile, before(freezer, "_check_found")),
    "raced_late": (compact_meanwhile, before(freezer, "commit_change")),
    "merge_half_written": (kill, in_merge(_half_written)),
    "merged": (kill, after(merge_files, "run_merge")),
    "merge_manifests_written": (kill, in_merge_swap(before(*COMMIT))),
    "merge_in_swap": (kill, in_merge_swap(before(Session, "commit"))),
    "merge_swapped": (kill, in_merge_swap(after(*COMMIT))),
    "merge_answer_lost": (lose_answer, in_merge_swap(after(*COMMIT))),
    "expired": (kill, before(expire_snapshots, "_delete")),
    "expired_half": (kill, after(expire_snapshots, "delete_files")),
}
"""Name -> (fault, hook that places it)."""
