"""The named steps of the appender, and what happens at them.

Each step wraps a function that the appender calls there, in the process that is to be broken and
nowhere else. The so-manieth call is the one that meets its end, or an error.
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
from tests.torture.lake.life import Job, say

Strike = Callable[[], None]

BUSY_S = 1
"""What a life that finds the catalog locked waits for it, instead of half a minute."""
BALLAST = "ballast"
LOCKER = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(float(sys.argv[2]))
"""


def install(job: Job) -> None:
    """Break this process at the step of its job."""
    act, place = STEPS[job.step]
    if job.act:
        act = ACTS[job.act]
    calls = 0

    def strike() -> None:
        nonlocal calls
        calls += 1
        if calls == job.at:
            say(job.broken, job.step)
            act(job)

    place(strike)


def kill(_: Job) -> None:
    """As the kernel does when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


def stop(_: Job) -> None:
    """Until somebody lets it go on."""
    os.kill(os.getpid(), signal.SIGSTOP)


def lose_answer(_: Job) -> None:
    """The catalog has done it, and could not say so; or it has not, and nobody knows."""
    raise OperationalError("the connection was lost", None, Exception())


def lose_answer_and_snapshot(job: Job) -> None:
    """Nobody knows, and maintenance has removed the snapshot by which one could."""
    found = open_catalog(job.config, job.folder)
    for _, name in found.list_tables(job.config.namespace):
        table = found.load_table((job.config.namespace, name))
        said = {commit.OFFSETS: table.properties.get(commit.NEXT_OFFSETS, "{}")}
        with (
            table.transaction() as transaction,
            transaction.update_snapshot(snapshot_properties=said).fast_append(),
        ):
            pass
        old = [each.snapshot_id for each in table.metadata.snapshots[:-1]]
        if old:
            table.maintenance.expire_snapshots().by_ids(old).commit()
    found.close()
    lose_answer(job)


def lock_catalog(job: Job) -> None:
    """Another process writes to the catalog, longer than anybody waits for it."""
    path = job.config.catalog["uri"].removeprefix("sqlite:///")
    locker = subprocess.Popen(
        [sys.executable, "-S", "-c", LOCKER, path, str(2.5 * BUSY_S)], stdout=subprocess.PIPE
    )
    assert locker.stdout is not None
    assert locker.stdout.readline() == b"locked\n"


def fill_disk(job: Job) -> None:
    """Somebody else takes all room that there is."""
    descriptor = os.open(job.mount / BALLAST, os.O_WRONLY | os.O_CREAT)
    for size in (1 << 20, 1 << 12, 1):
        with suppress(OSError):
            while os.write(descriptor, bytes(size)):
                pass
    os.close(descriptor)


def overtake(job: Job) -> None:
    """Another appender does all of it, and the log lets go of what the tables hold."""
    assert life.opened is not None
    found = open_catalog(job.config, job.folder)
    appender = life.open_appender(life.opened, found, job)
    while appender.append():
        pass
    found.close()
    life.opened.maintain()


def damage_log(job: Job) -> None:
    """A bit of the log flips, below what was promised. It can be flipped back."""
    assert life.opened is not None
    segments = sorted((job.folder / "log" / "otlp_logs" / "0").glob("*.log"))
    path = segments[-1]
    position = path.stat().st_size - 20
    flip(path, position)
    say(job.damage, f"{path} {position}")


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
    """Strike before a function does anything."""

    def place(strike: Strike) -> None:
        original = getattr(owner, name)

        def wrapped(*given: Any, **more: Any) -> Any:
            strike()
            return original(*given, **more)

        mock.patch.object(owner, name, wrapped).start()

    return place


def after(
    owner: Any, name: str, only: Callable[[Any], bool] = lambda _: True
) -> Callable[[Strike], None]:
    """Strike when a function has done it all, and its answer is one of those."""

    def place(strike: Strike) -> None:
        original = getattr(owner, name)

        def wrapped(*given: Any, **more: Any) -> Any:
            answer = original(*given, **more)
            if only(answer):
                strike()
            return answer

        is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
        mock.patch.object(owner, name, staticmethod(wrapped) if is_static else wrapped).start()

    return place


def _reading(strike: Strike) -> None:
    """A task has read some of its slice, and not all of it."""
    original = log_source.read_files

    def read(*given: Any) -> Any:
        for batch in original(*given):
            yield batch
            strike()

    mock.patch.object(log_source, "read_files", read).start()


def _half_written(strike: Strike) -> None:
    """Half of a data file is in the hands of the disk."""
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
    """Half of a manifest, of a list of them, or of the metadata."""
    original = file_io._SyncedStream.write

    def write(self: Any, data: bytes) -> int:
        original(self, data[: len(data) // 2])
        strike()
        original(self, data[len(data) // 2 :])
        return len(data)

    mock.patch.object(file_io._SyncedStream, "write", write).start()


def _in_commit(place: Callable[[Strike], None]) -> Callable[[Strike], None]:
    """Only while rows are committed, and not while tables are made or taken over."""

    def placed(strike: Strike) -> None:
        swap, inside = commit._swap, False

        def swapping(*given: Any) -> int:
            nonlocal inside
            inside = True
            try:
                return swap(*given)
            finally:
                inside = False

        def strike_inside() -> None:
            if inside:
                strike()

        mock.patch.object(commit, "_swap", swapping).start()
        place(strike_inside)

    return placed


def _with_short_patience(place: Callable[[Strike], None]) -> Callable[[Strike], None]:
    def placed(strike: Strike) -> None:
        mock.patch.object(catalog, "BUSY_TIMEOUT_S", BUSY_S).start()
        place(strike)

    return placed


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
    "tasks_done": (kill, before(appender, "_check_whole")),
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
    "catalog_locked": (lock_catalog, _with_short_patience(IN_COMMIT)),
    "catalog_locked_early": (lock_catalog, _with_short_patience(before(life, "open_appender"))),
    "log_trimmed": (overtake, before(life, "run_here")),
    "log_damaged": (damage_log, before(life, "run_here")),
    "zombie_before_check": (stop, before(appender, "commit")),
    "zombie_before_commit": (stop, IN_COMMIT),
    "zombie_before_swap": (stop, METADATA_WRITTEN),
    "warehouse_full_in_task": (fill_disk, BETWEEN_TASKS),
    "warehouse_full_in_commit": (fill_disk, IN_COMMIT),
    "catalog_full": (fill_disk, METADATA_WRITTEN),
}
"""Name -> what happens there, and where it is."""
