"""The named steps of the appender, and the faults injected there.

Each step wraps a function that the appender calls, in the process under test only. The n-th call is
killed or fails.
"""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from frazil.lake.append import appender, commit, log_source
from frazil.lake.append.appender import Appender
from frazil.lake.append.log_source import LogSource
from frazil.lake.catalog import catalog, file_io
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.files import sink, writer
from frazil.lake.tables import tables
from tests.torture.lake import life
from tests.torture.lake.life import Job, report

Strike = Callable[[], None]

BUSY_S = 1
"""Lock timeout of the catalog in these tests, instead of 30 s."""
BALLAST = "ballast"
LOCKER = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(float(sys.argv[2]))
"""


def install(job: Job) -> None:
    """Inject the fault of the job into this process."""
    act, hook = STEPS[job.step]
    if job.act:
        act = ACTS[job.act]
    calls = 0

    def strike() -> None:
        nonlocal calls
        calls += 1
        if calls == job.at:
            report(job.broken, job.step)
            act(job)

    hook(strike)


def kill(_: Job) -> None:
    """Kill this process, as the kernel's OOM killer does."""
    os.kill(os.getpid(), signal.SIGKILL)


def stop(_: Job) -> None:
    """Stop this process until it gets SIGCONT."""
    os.kill(os.getpid(), signal.SIGSTOP)


def lose_answer(_: Job) -> None:
    """Fail as if the connection to the catalog was lost: the outcome of the commit is unknown."""
    raise OperationalError("the connection was lost", None, Exception())


def lose_answer_and_snapshot(job: Job) -> None:
    """Lose the response, and expire the snapshot that would show the outcome."""
    found = open_catalog(job.config, job.folder)
    for _, name in found.list_tables(job.config.namespace):
        table = found.load_table((job.config.namespace, name))
        summary = {commit.OFFSETS: table.properties.get(commit.NEXT_OFFSETS, "{}")}
        with (
            table.transaction() as transaction,
            transaction.update_snapshot(snapshot_properties=summary).fast_append(),
        ):
            pass
        old = [snapshot.snapshot_id for snapshot in table.metadata.snapshots[:-1]]
        if old:
            table.maintenance.expire_snapshots().by_ids(old).commit()
    found.close()
    lose_answer(job)


def lock_catalog(job: Job) -> None:
    """Lock the catalog from another process for longer than the lock timeout."""
    path = job.config.catalog["uri"].removeprefix("sqlite:///")
    locker = subprocess.Popen(
        [sys.executable, "-S", "-c", LOCKER, path, str(2.5 * BUSY_S)], stdout=subprocess.PIPE
    )
    assert locker.stdout is not None
    assert locker.stdout.readline() == b"locked\n"


def fill_disk(job: Job) -> None:
    """Fill the disk with a ballast file."""
    descriptor = os.open(job.mount / BALLAST, os.O_WRONLY | os.O_CREAT)
    for size in (1 << 20, 1 << 12, 1):
        with suppress(OSError):
            while os.write(descriptor, bytes(size)):
                pass
    os.close(descriptor)


def overtake(job: Job) -> None:
    """Append everything with another appender, and trim the log."""
    assert life.opened is not None
    found = open_catalog(job.config, job.folder)
    appender = life.open_appender(life.opened, found, job)
    while appender.append():
        pass
    found.close()
    life.opened.maintain()


def damage_log(job: Job) -> None:
    """Flip one bit of an acknowledged record, and note its position to flip it back."""
    assert life.opened is not None
    segments = sorted((job.folder / "log" / "otlp_logs" / "0").glob("*.log"))
    path = segments[-1]
    position = path.stat().st_size - 20
    flip(path, position)
    report(job.damage, f"{path} {position}")


def flip(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 1]))


ACTS: dict[str, Callable[[Job], None]] = {
    "stop": stop,
    "lock_catalog": lock_catalog,
    "fill_disk": fill_disk,
}


def before(owner: Any, name: str) -> Callable[[Strike], None]:
    """Return a hook that strikes before each call of a function."""

    def hook(strike: Strike) -> None:
        original = getattr(owner, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            strike()
            return original(*args, **kwargs)

        mock.patch.object(owner, name, wrapped).start()

    return hook


def after(
    owner: Any, name: str, only: Callable[[Any], bool] = lambda _: True
) -> Callable[[Strike], None]:
    """Return a hook that strikes after each call of a function whose result passes `only`."""

    def hook(strike: Strike) -> None:
        original = getattr(owner, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if only(result):
                strike()
            return result

        is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
        mock.patch.object(owner, name, staticmethod(wrapped) if is_static else wrapped).start()

    return hook


def _reading(strike: Strike) -> None:
    """Strike when a task has read a part of its slice."""
    original = log_source.read_files

    def read(*args: Any) -> Any:
        for batch in original(*args):
            yield batch
            strike()

    mock.patch.object(log_source, "read_files", read).start()


def _half_written(strike: Strike) -> None:
    """Strike when half of a data file is written."""
    original = sink.ArrowSink.drain

    def drain(self: sink.ArrowSink) -> None:
        whole = b"".join(self._buffer)
        self._buffer = [whole[: len(whole) // 2], whole[len(whole) // 2 :]]
        if whole:
            self._file.append(self._buffer[:1])
            self._buffer = self._buffer[1:]
            strike()
        original(self)

    mock.patch.object(sink.ArrowSink, "drain", drain).start()


def _half_metadata(strike: Strike) -> None:
    """Strike when half of a manifest, a manifest list or a metadata file is written."""
    original = file_io._SyncedStream.write

    def write(self: Any, data: bytes) -> int:
        original(self, data[: len(data) // 2])
        strike()
        original(self, data[len(data) // 2 :])
        return len(data)

    mock.patch.object(file_io._SyncedStream, "write", write).start()


def _in_commit(hook: Callable[[Strike], None]) -> Callable[[Strike], None]:
    """Limit a hook to commits of rows: not while tables are created or taken over."""

    def limited(strike: Strike) -> None:
        swap, inside = commit._swap, False

        def swapping(*args: Any) -> int:
            nonlocal inside
            inside = True
            try:
                return swap(*args)
            finally:
                inside = False

        def strike_inside() -> None:
            if inside:
                strike()

        mock.patch.object(commit, "_swap", swapping).start()
        hook(strike_inside)

    return limited


def _with_short_timeout(hook: Callable[[Strike], None]) -> Callable[[Strike], None]:
    def hurried(strike: Strike) -> None:
        mock.patch.object(catalog, "BUSY_TIMEOUT_S", BUSY_S).start()
        hook(strike)

    return hurried


IN_COMMIT = _in_commit(before(SqlCatalog, "commit_table"))
METADATA_WRITTEN = _in_commit(after(SqlCatalog, "_write_metadata"))
SWAPPED = _in_commit(after(SqlCatalog, "commit_table"))
BETWEEN_TASKS = after(life, "run_slice")

STEPS: dict[str, tuple[Callable[[Job], None], Callable[[Strike], None]]] = {
    "making_tables": (kill, before(tables, "create_table")),
    "taking_over": (kill, after(appender, "take_over")),
    "planning": (kill, before(LogSource, "plan")),
    "reading": (kill, _reading),
    "half_written": (kill, _half_written),
    "file_synced": (kill, before(writer.TableWriter, "sync")),
    "between_tasks": (kill, BETWEEN_TASKS),
    "tasks_done": (kill, before(appender, "_check_complete")),
    "dead_committed": (kill, after(Appender, "_commit_dead", bool)),
    "half_manifest": (kill, _in_commit(_half_metadata)),
    "manifests_written": (kill, IN_COMMIT),
    "metadata_written": (kill, METADATA_WRITTEN),
    "in_swap": (kill, _in_commit(before(Session, "commit"))),
    "swapped": (kill, SWAPPED),
    "committed": (kill, after(appender, "commit")),
    "published": (kill, after(Appender, "_publish")),
    "answer_lost": (lose_answer, SWAPPED),
    "commit_lost": (lose_answer, IN_COMMIT),
    "snapshot_expired": (lose_answer_and_snapshot, SWAPPED),
    "catalog_locked": (lock_catalog, _with_short_timeout(IN_COMMIT)),
    "catalog_locked_early": (lock_catalog, _with_short_timeout(before(life, "open_appender"))),
    "log_trimmed": (overtake, before(life, "run_inline")),
    "log_damaged": (damage_log, before(life, "run_inline")),
    "zombie_before_check": (stop, before(appender, "commit")),
    "zombie_before_commit": (stop, IN_COMMIT),
    "zombie_before_swap": (stop, METADATA_WRITTEN),
    "warehouse_full_in_task": (fill_disk, BETWEEN_TASKS),
    "warehouse_full_in_commit": (fill_disk, IN_COMMIT),
    "catalog_full": (fill_disk, METADATA_WRITTEN),
}
"""Name -> (fault, hook that places it)."""
