"""LogCopy: a copy taken while the log is written, trimmed and compacted opens with every record."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.disk import Disk, File, FileCopier, Mode, RealDisk
from frazil.errors import Conflict, Corrupt
from frazil.log import LOCK_NAME, CopiedPartition, Log, LogCopy
from frazil.model import Rand
from frazil.settings import TopicConfig
from tests.log.build import (
    FIRST,
    FOLDER,
    MARKS,
    SMALL,
    TOPIC,
    WIDE,
    add,
    add_each,
    batch,
    batches,
    flipped,
    numbered,
    numbers,
    open_log,
    paths,
    put,
    segments,
    submit,
    values,
)
from tests.log.external.test_observer import WRITER
from tests.log.test_compaction import KEYED, fold, run_round, seal, store
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk

RELEASED = TopicConfig(retention_ms=0)
"""Sealed segments are trimmed at once."""


class BusyDisk:
    """A disk whose owner does something during one of the calls of its observer."""

    def __init__(self, disk: SimDisk, call: int, happens: Callable[[], None]) -> None:
        self._disk = disk
        self._call = call
        self._happens = happens
        self.calls = 0

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self._call:
            self._happens()

    def open(self, path: str, mode: Mode = "read") -> File:
        self._count()
        file = self._disk.open(path, mode)
        self._count()
        return file

    def list(self, path: str) -> list[str]:
        self._count()
        return self._disk.list(path)

    def __getattr__(self, name: str) -> object:
        return getattr(self._disk, name)


def copy_of(source: Disk, target: SimDisk, *, is_owned: bool = True) -> LogCopy:
    return LogCopy(
        FileCopier(source, target), is_owned=lambda: is_owned, rand=Rand(7), now_ms=1_000
    )


def finished(copy: LogCopy) -> CopiedPartition:
    (partition,) = (each for each in copy.finish() if each.topic == TOPIC)
    copy._copier.sync()
    return partition


def restarted(target: SimDisk) -> Log:
    """Open the copy after a power cut: all of it is durable."""
    return open_log(target.crash(Rand(3)), SMALL)


@given(st.lists(st.sampled_from(["one", "group", "trim", "roll", "begin"]), max_size=40))
@settings(max_examples=60, deadline=None)
def test_a_copy_has_what_was_acknowledged(steps: list[str]) -> None:
    """From a start that was the log's when the copy began, to an end that is the log's now."""
    disk, target = SimDisk(), SimDisk()
    log = open_log(disk, SMALL, topic=RELEASED)
    copy, count = copy_of(disk, target), 0
    for step in [*steps, "begin", *steps]:
        if step == "one":
            add(log, *numbers(count, count + 1))
            count += 1
        elif step == "group":
            add(log, *numbers(count, count + 20))
            count += 20
        elif step == "trim":
            log.maintain()
        elif step == "roll":
            seal(log)
        elif step == "begin":
            copy.begin()
            lake_watermark = log.partition(TOPIC, 0).view.start_offset
    try:
        done = finished(copy)
    except Conflict:
        copy.begin()
        done = finished(copy)
        lake_watermark = log.partition(TOPIC, 0).view.start_offset
    assert done.start_offset <= lake_watermark <= done.end_offset == count
    log = restarted(target)
    assert values(log) == numbers(done.start_offset, count)
    add(log, b"value-later")
    assert values(log)[-1] == b"value-later"


def test_the_owner_may_do_anything_between_two_calls() -> None:
    """Segments that are being copied are trimmed, reused and grow."""

    def work(call: int) -> int:
        disk, target = SimDisk(), SimDisk()
        log = open_log(disk, SMALL, topic=RELEASED)
        add_each(log, *numbers(0, 40))

        def happens() -> None:
            log.maintain()
            add_each(log, *numbers(40, 80))
            log.maintain()
            add_each(log, *numbers(80, 110))

        busy = BusyDisk(disk, call, happens)
        copy = copy_of(busy, target)  # type: ignore[arg-type]
        partition = log.partition(TOPIC, 0)
        acknowledged = partition.durable_watermark
        for _ in range(2):
            copy.begin()
            lake_watermark = (
                partition.durable_watermark if call % 2 else partition.view.start_offset
            )
            try:
                done = finished(copy)
            except Conflict:
                continue
            break
        assert done.start_offset <= lake_watermark <= done.end_offset >= acknowledged
        assert values(restarted(target)) == numbers(done.start_offset, done.end_offset)
        return busy.calls

    calls = work(0)
    assert calls > 20
    for call in range(1, calls + 1):
        work(call)


def test_copies_beside_a_killed_writer_have_no_gap(tmp_path: Path) -> None:
    """A real process appends, trims and reuses segments as fast as it can, then it is killed."""
    source = RealDisk(tmp_path / "data")
    starts = []
    for life in range(2):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(source.root)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        for number in range(20):
            answered = int(writer.stdout.readline())
            starts.append(copied_beside(source, tmp_path / f"{life} {number}", answered))
        os.kill(writer.pid, signal.SIGKILL)
        answered = max([answered, *map(int, writer.stdout.read().split())])
        writer.wait()
        writer.stdout.close()
        copied_beside(source, tmp_path / f"{life} dead", answered)
    assert starts[-1] > 0, "nothing was ever trimmed"


def copied_beside(source: RealDisk, folder: Path, answered: int) -> int:
    """Copy a log, open the copy and check it. Returns its start."""
    copier = FileCopier(source, RealDisk(folder))
    copy = LogCopy(copier, is_owned=lambda: source.is_locked(LOCK_NAME), rand=Rand(7), now_ms=1_000)
    for _ in range(20):
        copy.begin()
        try:
            done = finished(copy)
        except Conflict:
            continue
        break
    assert done.end_offset >= answered
    with open_log(RealDisk(folder), SMALL) as log:
        found = [record.value for each in batches(log) for record in each.records()]
    assert found == [b"value-%06d" % n * 20 for n in range(done.start_offset, done.end_offset)]
    return done.start_offset


def test_a_gap_is_a_conflict() -> None:
    """The log has trimmed what follows the copy; the next `begin` starts where the log does."""
    disk, target = SimDisk(), SimDisk()
    log = open_log(disk, SMALL, topic=RELEASED)
    add_each(log, *numbers(0, 3))
    copy = copy_of(disk, target)
    copy.begin()
    add_each(log, *numbers(3, 60))
    log.maintain()
    with pytest.raises(Conflict, match="copy again"):
        copy.finish()
    copy.begin()
    done = finished(copy)
    assert done.start_offset == log.partition(TOPIC, 0).view.start_offset > 3
    assert values(restarted(target)) == numbers(done.start_offset, 60)


def test_a_new_topic_is_a_conflict() -> None:
    disk, target = SimDisk(), SimDisk()
    log = open_log(disk, SMALL)
    copy = copy_of(disk, target)
    copy.begin()
    log.create_topic("another")
    with pytest.raises(Conflict, match="topic was created"):
        copy.finish()
    copy.begin()
    assert [each.topic for each in copy.finish()] == ["another", TOPIC]
    copy._copier.sync()
    assert [topic.name for topic in restarted(target).topics()] == ["another", TOPIC]


@pytest.mark.parametrize("count", [0, 60])
def test_an_empty_or_trimmed_partition_keeps_its_offsets(count: int) -> None:
    disk, target = SimDisk(), SimDisk()
    log = open_log(disk, SMALL, topic=RELEASED)
    add_each(log, *numbers(0, count))
    seal(log)
    log.maintain()
    copy = copy_of(disk, target)
    copy.begin()
    done = finished(copy)
    assert done.start_offset == done.end_offset == count
    opened = restarted(target)
    assert add(opened, b"next")[0].base_offset == count


def test_retries_are_recognized_in_the_copy() -> None:
    """Producers and digests, also of trimmed segments; progress of subscribers."""
    disk, target = SimDisk(), SimDisk()
    log = open_log(disk, SMALL, topic=RELEASED)
    log.subscribe("reader", TOPIC, "latest")
    once = batch(b"once", digest=bytes(16))
    submit(log, numbered(b"first", 0), once)
    log.writer.step()
    add_each(log, *numbers(2, 40))
    log.unsubscribe("reader")
    log.subscribe("other", TOPIC, "latest")
    log.maintain()
    copy = copy_of(disk, target)
    copy.begin()
    assert finished(copy).start_offset > 2
    opened = restarted(target)
    retries = submit(opened, numbered(b"first", 0), batch(b"once", digest=bytes(16)))
    opened.writer.step()
    assert [retry.result(0).is_duplicate for retry in retries] == [True, True]
    assert [subscriber.name for subscriber in opened.subscribers()] == ["other"]


def test_a_compaction_in_between_is_copied_as_a_whole() -> None:
    disk, target, clock = SimDisk(), SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    for number in range(60):
        store(log, (b"%d" % (number % 7), b"value %d" % number))
    copy = copy_of(disk, target)
    copy.begin()
    store(log, (b"0", None))
    seal(log)
    run_round(log, clock)
    done = finished(copy)
    assert done.end_offset == 61
    opened = restarted(target)
    assert fold(opened) == fold(log)
    assert store(opened, (b"next", b"value")) == 61


def test_old_watermarks_do_not_cut_a_log_that_nobody_has_open() -> None:
    """As after a power cut: the watermark file is synced by trims only."""
    disk, target = SimDisk(), SimDisk()
    log = open_log(disk, SMALL)
    old = disk.data(MARKS)
    add_each(log, *numbers(0, 40))
    dead = disk.process_kill()
    put(dead, MARKS, old)
    copy = copy_of(dead, target, is_owned=False)
    copy.begin()
    assert finished(copy).end_offset == 40
    assert values(restarted(target)) == numbers(0, 40)
    assert dead.data(MARKS) == old


def test_a_log_that_gets_an_owner_is_copied_again() -> None:
    """The owner may undo batches that a scan has seen."""
    disk, target = SimDisk(), SimDisk()
    log = open_log(disk)
    add_each(log, *numbers(0, 5))
    partition = log.partition(TOPIC, 0)
    partition.stage(batch(b"undone"))
    partition.write()
    owned = iter([False, True, True, True])
    copy = LogCopy(
        FileCopier(disk, target), is_owned=lambda: next(owned), rand=Rand(7), now_ms=1_000
    )
    copy.begin()
    partition.abort()
    with pytest.raises(Conflict, match="a process opened the log"):
        copy.finish()
    copy.begin()
    assert finished(copy).end_offset == 5
    assert values(restarted(target)) == numbers(0, 5)


def test_damage_is_not_copied() -> None:
    disk, target = SimDisk(), SimDisk()
    log = open_log(disk, SMALL)
    add_each(log, *numbers(0, 40))
    put(disk, FIRST, flipped(disk.data(FIRST), 8 * 300))
    with pytest.raises(Corrupt, match=FIRST):
        copy_of(disk, target).begin()
    assert FIRST not in segments(target)


def test_a_log_with_lost_acknowledged_bytes_is_corrupt() -> None:
    """Not a torn tail: a later frame says that these bytes were acknowledged."""
    disk = SimDisk()
    log = open_log(disk, WIDE)
    add_each(log, *numbers(0, 40))
    dead = disk.process_kill()
    put(dead, MARKS, b"")
    put(dead, FIRST, flipped(dead.data(FIRST), 8 * 300))
    with pytest.raises(Corrupt):
        copy_of(dead, SimDisk(), is_owned=False).begin()


def test_scratch_files_are_left_out() -> None:
    disk, target = SimDisk(), SimDisk()
    log = open_log(disk, SMALL, topic=RELEASED)
    add_each(log, *numbers(0, 60))
    log.maintain()
    put(disk, f"{FOLDER}/00000000000000000000.log.damaged", b"set aside")
    assert paths(disk, ".spare")
    copy = copy_of(disk, target)
    copy.begin()
    copy.finish()
    assert not paths(target, ".spare")
    assert target.data(f"{FOLDER}/00000000000000000000.log.damaged") == b"set aside"
