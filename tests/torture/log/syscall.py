"""A fault at every storage call in turn: SIGKILL before, in and after it, EIO, and a full disk.

A short, fixed workload covers appending, rolling, checkpoints, progress, trimming, compaction,
closing and reopening. It runs once to count its storage calls, and then once per call and fault,
each in a separate process on a real disk.
"""

from __future__ import annotations

import errno
import itertools
import json
import logging
import multiprocessing
import os
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from frazil.disk import Buffer, File, Lock, Mapped, Mode, RealDisk
from frazil.errors import FrazilError, Overloaded
from frazil.log import EXIT_CODE, AppendResult, Log, Record, append_of_records, exit_process
from frazil.model import Rand
from frazil.settings import LogConfig, TopicConfig
from tests.sim.clock import SimClock
from tests.torture.checker import Verdict, check
from tests.torture.history import Events, history_of
from tests.torture.log.actors import TOPIC, Actor
from tests.torture.log.sim import observe
from tests.torture.report import ANSWER_S_MAX, Report

COMPACTED = "compacted"
CONFIG = LogConfig(segment_bytes_max=2_000, batch_bytes_max=4_000, disk_bytes_max=200_000)
FAULTS = ("kill_before", "kill_within", "kill_after", "eio", "full")
WRITES = frozenset({"append", "create", "make_directory", "lock"})
"""Calls that can fail with ENOSPC."""


class FaultyDisk:
    """A real disk that injects a fault at its n-th call."""

    def __init__(self, disk: RealDisk, fault: str, at: int) -> None:
        self._disk = disk
        self._fault = fault
        self._at = at
        self.calls = 0
        self.has_struck = False

    def strike(self, name: str, buffers: Sequence[Buffer] = (), file: File | None = None) -> bool:
        """Count a call and inject the fault. Return True to kill the process after the call."""
        self.calls += 1
        if self.calls != self._at:
            return False
        self.has_struck = True
        if self._fault == "eio":
            raise OSError(errno.EIO, "injected")
        if self._fault == "full" and name in WRITES:
            if file is not None:
                whole = b"".join(buffers)
                file.append([whole[: len(whole) // 2]])
            raise OSError(errno.ENOSPC, "injected")
        if self._fault == "kill_within" and file is not None:
            whole = b"".join(buffers)
            file.append([whole[: len(whole) // 2]])
        if self._fault in ("kill_before", "kill_within"):
            os.kill(os.getpid(), signal.SIGKILL)
        return self._fault == "kill_after"

    def open(self, path: str, mode: Mode = "read") -> FaultyFile:
        with self.around(mode):
            return FaultyFile(self, self._disk.open(path, mode))

    def rename(self, old: str, new: str) -> None:
        with self.around("rename"):
            self._disk.rename(old, new)

    def unlink(self, path: str) -> None:
        with self.around("unlink"):
            self._disk.unlink(path)

    def list(self, path: str) -> list[str]:
        with self.around("list"):
            return self._disk.list(path)

    def make_directory(self, path: str) -> None:
        with self.around("make_directory"):
            self._disk.make_directory(path)

    def remove_directory(self, path: str) -> None:
        with self.around("remove_directory"):
            self._disk.remove_directory(path)

    def sync_directory(self, path: str) -> None:
        with self.around("sync_directory"):
            self._disk.sync_directory(path)

    def uncache(self, path: str) -> None:
        self._disk.uncache(path)

    def space(self) -> int:
        return self._disk.space()

    def lock(self, path: str, holder: str) -> Lock:
        with self.around("lock"):
            return self._disk.lock(path, holder)

    def around(
        self, name: str, buffers: Sequence[Buffer] = (), file: File | None = None
    ) -> _Around:
        return _Around(self.strike(name, buffers, file))


class _Around:
    def __init__(self, kills: bool) -> None:
        self._kills = kills

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        if self._kills:
            os.kill(os.getpid(), signal.SIGKILL)


class FaultyFile:
    """A file of a `FaultyDisk`."""

    def __init__(self, disk: FaultyDisk, file: File) -> None:
        self._disk = disk
        self._file = file

    def append(self, buffers: Sequence[Buffer]) -> None:
        with self._disk.around("append", buffers, self._file):
            self._file.append(buffers)

    def append_synced(self, data: memoryview, *, is_cached: bool) -> None:
        self.append([data])

    def append_from(self, position: int) -> None:
        self._file.append_from(position)

    def write_at(self, position: int, data: bytes) -> None:
        with self._disk.around("write_at"):
            self._file.write_at(position, data)

    def read(self, position: int, length: int) -> bytes:
        with self._disk.around("read"):
            return self._file.read(position, length)

    def size(self) -> int:
        return self._file.size()

    def truncate(self, size: int) -> None:
        with self._disk.around("truncate"):
            self._file.truncate(size)

    def sync(self) -> None:
        with self._disk.around("sync"):
            self._file.sync()

    def settle(self) -> None:
        with self._disk.around("settle"):
            self._file.settle()

    def map(self) -> Mapped:
        with self._disk.around("map"):
            return self._file.map()

    def close(self) -> None:
        self._file.close()


def run(cycles: int, seed: int) -> Report:
    """Run all pairs of call and fault, or an even sample of `cycles` of them."""
    report = Report("syscall", seed, must_fire=(*FAULTS, "acknowledged"))
    with tempfile.TemporaryDirectory() as scratch:
        calls = count_calls(Path(scratch) / "data")
    report.faults["calls"] = calls
    cases = list(itertools.product(range(1, calls + 1), FAULTS))
    step = max(1, len(cases) // cycles) if cycles else 1
    if step % len(FAULTS) == 0:
        step += 1
    chosen = cases[seed % step :: step]
    context = multiprocessing.get_context("fork")
    with context.Pool(os.cpu_count(), logging.disable, (logging.CRITICAL,)) as pool:
        results = pool.imap(run_case_in_new_folder, chosen)
        for at, fault in chosen:
            report.take(*results.next(ANSWER_S_MAX), f"{fault} at call {at}:")
    return report


def run_case_in_new_folder(case: tuple[int, str]) -> tuple[Verdict, Counter[str]]:
    """Run one case in a new folder."""
    at, fault = case
    with tempfile.TemporaryDirectory() as scratch:
        return run_case(Path(scratch) / "data", fault, at)


def count_calls(folder: Path) -> int:
    disk = FaultyDisk(RealDisk(folder), "none", 0)
    reading, writing = os.pipe()
    run_workload(disk, Events(writing))
    os.close(reading)
    os.close(writing)
    return disk.calls


def run_case(folder: Path, fault: str, at: int) -> tuple[Verdict, Counter[str]]:
    """Run the workload with one fault, then check the log."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            disk = FaultyDisk(RealDisk(folder), fault, at)
            run_workload(disk, Events(writing))
            code = 0 if disk.has_struck else 3
        except (OSError, Overloaded):
            code = 2  # opening the log or creating a topic failed with an error to retry
        except BaseException:  # noqa: BLE001 - the forked process must end here
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    events = [json.loads(line) for line in lines]
    fired = Counter[str]({fault: 1})
    verdict = judge(folder, events)
    code = os.waitstatus_to_exitcode(status)
    allowed = {"eio": (2, EXIT_CODE), "full": (0, 2)}.get(fault, (-signal.SIGKILL,))
    if code not in (*allowed, 0 if fault != "eio" else code):
        verdict.add("untrue", f"the process ended with {code}")
    history = history_of(events)
    fired["acknowledged"] += sum(s.outcome == "ok" for s in history)
    fired[f"exit_{code}"] += 1
    return verdict, fired


def run_workload(disk: FaultyDisk, events: Events) -> None:
    """Run the fixed workload. It makes every kind of storage call of the log."""
    clock, rand, verdict = SimClock(), Rand(1), Verdict()
    actors = make_actors()
    for life in range(2):
        log = Log.open(disk, CONFIG, clock=clock, rand=rand, fatal=exit_process, threaded=False)
        log.create_topic(TOPIC, TopicConfig(retention_ms=0, awaits_lake=True))
        log.create_topic(
            COMPACTED, TopicConfig(cleanup="compact", retention_ms=10**12, tombstone_grace_ms=0)
        )
        subscriber = log.subscribe("reader", TOPIC, "earliest")
        for number in range(8):
            for actor in actors:
                actor.send(log, events)
            append_keyed(log, life * 8 + number, events)
            while log.writer.step():
                pass
            for actor in actors:
                actor.collect(verdict, events)
            for claim in subscriber.claim(5):
                if claim.batch.base_offset % 7 == 3:
                    claim.nack("bad", is_permanent=True)
                else:
                    claim.ack()
            while log.writer.step():
                pass
            subscriber.step()
            clock.advance(1000)
            if number % 3 == 2:
                log.publish(TOPIC, 0, log.partition(TOPIC, 0).durable_watermark)
                log.maintain()
        log.close()
    if not verdict.is_valid:
        events.write("untrue", 0)


def make_actors() -> list[Actor]:
    return [
        Actor(1, "plain", 0, Rand(1), 300),
        Actor(2, "numbered", 0, Rand(2), 300),
        Actor(3, "digested", 0, Rand(3), 300),
    ]


def append_keyed(log: Log, number: int, events: Events) -> None:
    """Append a keyed record for compaction; its value is its number."""

    def answered(answer: Future[AppendResult]) -> None:
        if answer.exception() is None:
            events.write("keyed", number)

    value = b"%04d" % number + bytes(600)
    record = Record(offset=0, timestamp_ms=number, key=key_of(number), value=value)
    with suppress(Overloaded):
        log.append(COMPACTED, append_of_records([record])).add_done_callback(answered)


def key_of(number: int) -> bytes:
    return b"key %d" % (number % 3)


def judge(folder: Path, events: list[list[str | int]]) -> Verdict:
    """Open the log without faults and check records and keys against the events."""
    verdict = Verdict()
    if any(event[0] == "untrue" for event in events):
        verdict.add("untrue", "a response was wrong")
    try:
        log = Log.open(RealDisk(folder), CONFIG, clock=SimClock(), rand=Rand(2), threaded=False)
        if TOPIC in [topic.name for topic in log.topics()]:
            history = history_of(events)
            verdict.merge(check(history, {0: observe(log, TOPIC, 0)}), "")
            check_keys(log, [int(e[1]) for e in events if e[0] == "keyed"], verdict)
        log.close()
    except FrazilError as error:
        verdict.add("untrue", repr(error))
    return verdict


def check_keys(log: Log, acknowledged: list[int], verdict: Verdict) -> None:
    """Check that each key has its newest acknowledged value, or a newer one."""
    if COMPACTED not in [topic.name for topic in log.topics()]:
        return
    newest = {record.key: (record.value or b"")[:4] for record in keyed_records(log)}
    for number in {key_of(n): n for n in acknowledged}.values():
        if newest.get(key_of(number), b"") < b"%04d" % number:
            verdict.add("lost", f"value {number} of {key_of(number)!r}")


def keyed_records(log: Log) -> Iterator[Record]:
    reader = log.reader(COMPACTED, "earliest")
    while batches := reader.read():
        for batch in batches:
            yield from batch.records()
    reader.close()
