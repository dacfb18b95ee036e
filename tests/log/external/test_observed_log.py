"""ObservedLog: another process reads, waits and keeps progress as the owner itself would."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.disk import RealDisk
from frazil.errors import Corrupt, Malformed, OutOfRange, Unavailable, Unknown
from frazil.log import (
    CommitSignal,
    CommitWaiter,
    Log,
    LogOwner,
    ObservedLog,
    Reader,
    serve_observer,
)
from frazil.log.external.observed_log import ObservedPartition
from frazil.log.readable import ReadablePartition
from frazil.model import SystemClock, SystemRand
from frazil.settings import TopicConfig
from tests.log.build import SMALL, TOPIC, add, add_each, batch, numbers, open_log, paths
from tests.log.test_compaction import KEYED, run_round, seal, store
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk

RELEASED = TopicConfig(retention_ms=0)
WAIT_S = 20


def read_all(partition: ReadablePartition) -> list[bytes | None]:
    """Every value from the start of the log on, in order."""
    reader = Reader.open(partition, "earliest")
    values: list[bytes | None] = []
    while batches := reader.read(500):
        values += [record.value for stored in batches for record in stored.records()]
    reader.close()
    return values


@given(st.lists(st.sampled_from(["one", "group", "trim", "roll", "kill", "look"]), max_size=40))
@settings(max_examples=60, deadline=None)
def test_an_observed_partition_has_the_records_of_the_owner(steps: list[str]) -> None:
    """Observed all the time, only now, and with complete indexes."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=RELEASED)
    observed, count = ObservedPartition(disk, TOPIC, 0), 0
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
            log, observed = open_log(disk, SMALL), ObservedPartition(disk, TOPIC, 0)
        own = log.partition(TOPIC, 0).view
        for partition in (observed, ObservedPartition(disk, TOPIC, 0)):
            assert partition.view[:2] == own[:2]
            assert read_all(partition) == numbers(own.start_offset, own.durable_watermark)
            indexed = partition.current_view(is_indexed=True)
            assert indexed[:2] == own[:2]
            ends = [(s.info.end_offset, s.info.size_bytes) for s in partition.view.segments]
            assert ends == [(s.info.end_offset, s.info.size_bytes) for s in indexed.segments]


def test_following_reads_no_segment() -> None:
    """The owner tells where the open segment ends: new batches cost an observer nothing."""
    disk = SimDisk()
    log = open_log(disk)
    add_each(log, *numbers(0, 3))
    observed = ObservedPartition(disk, TOPIC, 0)
    assert observed.view.durable_watermark == 3
    calls = disk.calls
    add_each(log, *numbers(3, 5))
    own = disk.calls - calls
    assert observed.view.durable_watermark == 5
    assert disk.calls - calls - own <= 1, "one read of the watermarks"
    last = log.partition(TOPIC, 0).view.segments[-1]
    assert observed.view.segments[-1].info[:4] == last.info[:4]


def test_a_reader_continues_in_a_segment_that_was_compacted_meanwhile() -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    for number in range(60):
        store(log, (b"%d" % (number % 7), b"value %d" % number))
    seal(log)
    observed = ObservedPartition(disk, TOPIC, 0)
    assert len(read_all(observed)) == 60
    run_round(log, clock)
    kept = read_all(log.partition(TOPIC, 0))
    assert 0 < len(kept) < 60
    assert read_all(observed) == kept


def test_trimmed_offsets_are_out_of_range() -> None:
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=RELEASED)
    add_each(log, *numbers(0, 40))
    observed = ObservedPartition(disk, TOPIC, 0)
    reader = Reader(observed, 0)
    assert reader.read(1)
    log.maintain()
    assert log.partition(TOPIC, 0).view.start_offset > 1
    with pytest.raises(OutOfRange, match="has been removed"):
        while reader.read(1):
            pass


def test_a_folder_of_an_earlier_release_is_followed() -> None:
    """Its watermark file does not tell where the open segment ends."""
    disk = SimDisk()
    log = open_log(disk, SMALL)
    add_each(log, *numbers(0, 30))
    log.partition(TOPIC, 0)._watermarks.durable(30)
    observed = ObservedPartition(disk, TOPIC, 0)
    assert read_all(observed) == numbers(0, 30)
    add_each(log, *numbers(30, 33))
    assert read_all(observed) == numbers(0, 33)


def test_files_that_cannot_be_read_keep_the_last_view() -> None:
    """`view` is for lags and status; readers use `current_view`, which raises."""
    disk = SimDisk()
    log = open_log(disk, SMALL)
    add_each(log, *numbers(0, 30))
    observed = ObservedPartition(disk, TOPIC, 0)
    before = observed.view
    for path in paths(disk, ".log"):
        disk.unlink(path)
    add_each(log, *numbers(30, 60))
    assert observed.view == before
    with pytest.raises(Corrupt, match="no file that holds them"):
        Reader(observed, 0).read()


@contextmanager
def both(folder: Path) -> Iterator[tuple[Log, ObservedLog]]:
    """An owner and an observer, over real files and sockets."""
    disk, clock = RealDisk(folder), SystemClock()
    ours, theirs = socket.socketpair()
    with Log.open(disk, clock=clock, rand=SystemRand()) as log:
        signal = CommitSignal()
        log.writer.listen(signal.notify)
        serving = threading.Thread(target=serve_observer, args=(log, ours))
        serving.start()
        waiter = CommitWaiter(os.dup(signal.descriptor), clock)
        observed = ObservedLog(disk, LogOwner(theirs), waiter)
        try:
            yield log, observed
        finally:
            observed.close()
            serving.join(WAIT_S)
            assert not serving.is_alive()
            log.writer.unlisten(signal.notify)
            os.close(signal.descriptor)


def test_progress_is_kept_by_the_owner(tmp_path: Path) -> None:
    with both(tmp_path) as (log, observed):
        log.create_topic("t")
        assert not observed.has_subscriber("hot")
        progress = observed.keep_progress("hot", "t")
        assert observed.has_subscriber("hot")
        log.append_durably("t", batch(*numbers(0, 1)))
        progress.finish(0, 0, 1)
        progress.step()
        assert log.subscriber("hot").saved_watermark(0) == 1
        progress.reopen(0, 0, 1)
        assert log.subscriber("hot").saved_watermark(0) == 0
        with pytest.raises(Unknown, match="no topic x"):
            observed.keep_progress("other", "x")
        observed.publish("t", 0, 1)
        assert observed.lake_watermark("t") == log.lake_watermark("t") == 1
        with pytest.raises(Malformed, match="hold it up to 9"):
            observed.publish("t", 0, 9)


def test_a_failing_disk_is_an_error_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner goes on serving."""
    with both(tmp_path) as (log, observed):
        log.create_topic("t")
        progress = observed.keep_progress("hot", "t")

        def fail() -> int:
            raise OSError(errno.EIO, "no disk")

        with monkeypatch.context() as broken:
            broken.setattr(log.subscriber("hot"), "step", fail)
            with pytest.raises(Unavailable, match="no disk"):
                progress.step()
        assert observed.has_subscriber("hot")


def test_topics_appear_when_they_are_created(tmp_path: Path) -> None:
    with both(tmp_path) as (log, observed):
        assert observed.topics() == []
        with pytest.raises(Unknown):
            observed.topic("t")
        log.create_topic("t", TopicConfig(partitions=3))
        (topic,) = observed.topics()
        assert (topic.name, len(topic.partitions)) == ("t", 3)
        assert observed.topic("t") is topic
        with pytest.raises(Unknown, match="no partition 3"):
            observed.partition("t", 3)


def test_a_commit_wakes_those_who_wait(tmp_path: Path) -> None:
    with both(tmp_path) as (log, observed):
        log.create_topic("t")
        partition = observed.partition("t", 0)
        assert not observed.wait_for_any([(partition, 0)], 0.01)
        woken = threading.Event()

        def wait() -> None:
            if observed.wait_for_any([(partition, 0)], WAIT_S):
                woken.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        log.append_durably("t", batch(*numbers(0, 1)))
        waiting.join(WAIT_S)
        assert woken.is_set()
        assert read_all(partition) == numbers(0, 1)


def test_calls_after_the_end_of_the_owner_fail(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    owner = LogOwner(theirs)
    ours.close()
    observed = ObservedLog(RealDisk(tmp_path), owner, CommitWaiter(os.eventfd(0), SystemClock()))
    with pytest.raises(Unavailable, match="owns the log has ended"):
        observed.has_subscriber("hot")
    observed.close()
