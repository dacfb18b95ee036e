"""PartitionObserver: another process sees exactly what was acknowledged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.disk import Disk, RealDisk
from frazil.errors import Conflict, Corrupt
from frazil.log import Log, PartitionObserver, PartitionView, Record, partition_count, plan_ranges
from frazil.log import read_range as read
from frazil.log.transactions.aborted import AbortedTransactions
from frazil.model import SystemClock
from frazil.settings import TopicConfig
from tests.log.build import (
    FIRST,
    MARKS,
    SMALL,
    TOPIC,
    add,
    add_each,
    batch,
    batches,
    numbers,
    open_log,
    paths,
    put,
    submit,
)
from tests.log.test_compaction import KEYED, run_round, seal, store
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, PowerCut, SimDisk

RELEASED = TopicConfig(retention_ms=0)


def seen(disk: Disk, view: PartitionView) -> list[Record]:
    """Every record that a view shows."""
    begin, end = view.start_offset, view.durable_watermark
    return [
        record
        for stretch in plan_ranges(view, begin, end, 1000)
        for stored in read(disk, stretch)
        for record in stored.records()
        if begin <= record.offset < end
    ]


def test_a_missing_topic_has_no_partitions() -> None:
    disk = SimDisk()
    assert partition_count(disk, TOPIC) == 0
    assert PartitionObserver(disk, TOPIC, 0).observe() == PartitionView(
        0, 0, (), 0, AbortedTransactions()
    )
    open_log(disk, topic=TopicConfig(partitions=3))
    assert partition_count(disk, TOPIC) == 3
    assert PartitionObserver(disk, TOPIC, 2).observe() == PartitionView(
        0, 0, (), 0, AbortedTransactions()
    )


@given(st.lists(st.sampled_from(["one", "group", "trim", "roll", "kill", "look"]), max_size=40))
@settings(max_examples=60, deadline=None)
def test_an_observer_sees_what_the_owner_sees(steps: list[str]) -> None:
    """One that observed all the time, and a new one."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=RELEASED)
    observer, count = PartitionObserver(disk, TOPIC, 0), 0
    for step in [*steps, "look"]:
        if step == "one":
            add(log, *numbers(count, count + 1))
            count += 1
        elif step == "group":
            add(log, *numbers(count, count + 20))
            count += 20
        elif step == "trim":
            log.maintain()
        elif step == "roll" and log.partition(TOPIC, 0).view.segments[-1].info.size_bytes > 64:
            log.partition(TOPIC, 0).roll()
        elif step == "kill":
            disk = disk.process_kill()
            log, observer = open_log(disk, SMALL), PartitionObserver(disk, TOPIC, 0)
        own = log.partition(TOPIC, 0).view
        for view in (observer.observe(), PartitionObserver(disk, TOPIC, 0).observe()):
            assert view[:2] == own[:2]
            values = [record.value for record in seen(disk, view)]
            assert values == numbers(own.start_offset, own.durable_watermark)


def test_an_observation_at_any_moment_sees_the_acknowledged() -> None:
    """Between any two calls to the disk, while groups are written, segments rolled and trimmed:
    whatever was answered is seen, and what is seen stays when the log is opened again."""
    quiet = SimDisk()
    work(quiet, [])
    for call in range(1, quiet.calls + 1):
        disk = SimDisk()
        disk.faults = Faults(crash_at=call)
        answered: list[int] = []
        with pytest.raises(PowerCut):
            work(disk, answered)
        left = disk.process_kill()
        if partition_count(left, TOPIC) == 0:
            assert not answered
            continue
        view = PartitionObserver(left, TOPIC, 0).observe()
        assert view.durable_watermark >= len(answered)
        values = [record.value for record in seen(left, view)]
        assert values == numbers(view.start_offset, view.durable_watermark)
        log = open_log(left, SMALL)
        assert log.partition(TOPIC, 0).durable_watermark >= view.durable_watermark


def work(disk: SimDisk, answered: list[int]) -> None:
    log = open_log(disk, SMALL, topic=RELEASED)
    for number in range(0, 24, 3):
        submit(log, *(batch(value) for value in numbers(number, number + 3)))
        log.writer.step()
        answered += range(number, number + 3)
        if number % 9 == 0:
            log.maintain()
    log.close()


def test_unsynced_batches_are_not_visible() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add_each(log, *numbers(0, 2))
    partition = log.partition(TOPIC, 0)
    partition.stage(batch(b"not yet"))
    partition.write()
    assert PartitionObserver(disk, TOPIC, 0).observe().durable_watermark == 2
    partition.sync()
    assert PartitionObserver(disk, TOPIC, 0).observe().durable_watermark == 2
    partition.publish()
    assert PartitionObserver(disk, TOPIC, 0).observe().durable_watermark == 3


def test_a_segment_compacted_before_the_next_append_is_followed() -> None:
    """The watermark file still tells the size that it had as the open segment."""
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, clock=clock, topic=KEYED)
    store(log, (b"k", b"old"))
    store(log, (b"k", b"new"))
    seal(log)
    assert run_round(log, clock).removed_count == 1
    view = PartitionObserver(disk, TOPIC, 0).follow()
    assert [record.value for record in seen(disk, view)] == [b"new"]


def test_compacted_segments_are_observed() -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    observer = PartitionObserver(disk, TOPIC, 0)
    for number in range(60):
        store(log, (b"%d" % (number % 7), b"value %d" % number))
    seal(log)
    before = observer.observe()
    run_round(log, clock)
    with pytest.raises(Conflict):
        seen(disk, before)
    store(log, (b"another", b"value"))
    expected = [record for stored in batches(log) for record in stored.records()]
    assert 0 < len(expected) < 60
    assert (
        seen(disk, observer.observe())
        == seen(disk, PartitionObserver(disk, TOPIC, 0).observe())
        == expected
    )


def test_a_missing_or_wrong_index_is_not_needed() -> None:
    disk = SimDisk()
    log = open_log(disk, SMALL)
    add_each(log, *numbers(0, 60))
    wanted = seen(disk, log.partition(TOPIC, 0).view)
    first, second, *_ = paths(disk, ".index")
    put(disk, first, disk.data(second))
    put(disk, second, b"none")
    assert seen(disk, PartitionObserver(disk, TOPIC, 0).observe()) == wanted


def test_missing_or_damaged_files_are_corrupt() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add_each(log, *numbers(0, 5))
    put(disk, FIRST, disk.data(FIRST)[:-10])
    with pytest.raises(Corrupt, match="up to offset 5"):
        PartitionObserver(disk, TOPIC, 0).observe()
    disk.unlink(FIRST)
    with pytest.raises(Corrupt, match="offsets 0 to 5"):
        PartitionObserver(disk, TOPIC, 0).observe()
    put(disk, MARKS, b"")
    assert PartitionObserver(disk, TOPIC, 0).observe().durable_watermark == 0


WRITER = """
import random, sys
from frazil.disk import RealDisk
from frazil.log import Log, Record, append_of_records
from frazil.settings import LogConfig, TopicConfig
from frazil.model import SystemClock

config = LogConfig(segment_bytes_max=65536, batch_bytes_max=16384, disk_bytes_max=1 << 22)
log = Log.open(RealDisk(sys.argv[1]), config, clock=SystemClock(), rand=random.SystemRandom())
if not log.topics():
    log.create_topic("t", TopicConfig(retention_ms=0))
number = log.partition("t", 0).durable_watermark
while True:
    records = [
        Record(offset=0, timestamp_ms=1, key=None, value=b"value-%06d" % n * 20)
        for n in range(number, number + 7)
    ]
    log.append("t", append_of_records(records)).result()
    number += 7
    print(number, flush=True)
    if number % 70 == 0:
        log.maintain()
"""


def test_an_observer_beside_a_killed_writer_sees_no_gap(tmp_path: Path) -> None:
    """While it writes, trims and dies, again and again: never a hole, never a step back, and never
    anything that the next life does not have."""
    folder = tmp_path / "data"
    disk = RealDisk(folder)
    observer, last = PartitionObserver(disk, "t", 0), 0
    for life in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        answered = 0
        for _ in range(60 + 30 * life):
            answered = int(writer.stdout.readline())
            view = observer.observe()
            assert view.durable_watermark >= max(answered, last)
            last = view.durable_watermark
            check_tail(disk, view)
        os.kill(writer.pid, signal.SIGKILL)
        said = [int(line) for line in writer.stdout.read().split()]
        writer.wait()
        writer.stdout.close()
        last = observer.observe().durable_watermark
        assert last >= max([answered, *said])
    with Log.open(disk, clock=SystemClock(), rand=random.SystemRandom()) as log:
        own = log.partition("t", 0).view
        assert own.durable_watermark >= last
        assert own.start_offset > 0, "nothing was ever trimmed"
        assert observer.observe()[:2] == own[:2]


def check_tail(disk: RealDisk, view: PartitionView) -> None:
    """The last offsets, read as tasks do; they may be trimmed by now, which is said."""
    begin = max(view.start_offset, view.durable_watermark - 50)
    try:
        found = [
            record
            for stretch in plan_ranges(view, begin, view.durable_watermark, 1 << 20)
            for stored in read(disk, stretch)
            for record in stored.records()
            if stretch.begin <= record.offset < stretch.end
        ]
    except Conflict:
        return
    assert [r.offset for r in found] == list(range(begin, view.durable_watermark))
    assert [r.value for r in found] == [b"value-%06d" % r.offset * 20 for r in found]
