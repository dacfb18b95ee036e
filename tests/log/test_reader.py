"""Reading: in order, without gaps, only what is durable, from any start."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.disk import RealDisk
from frazil.errors import Corrupt, OutOfRange
from frazil.log import AtTime, Log, Reader, Record, Start, append_of_records
from frazil.log.reader import offset_at_time, start_offset
from frazil.settings import TopicConfig
from tests.log.build import (
    SMALL,
    TOPIC,
    WIDE,
    add,
    add_each,
    batch,
    flipped,
    frames_of,
    numbers,
    open_log,
    put,
    segments,
    submit,
    values,
)
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, SimDisk

MANY = 30


def filled() -> tuple[SimDisk, Log]:
    """Thirty batches over four segments."""
    disk = SimDisk()
    log = open_log(disk, SMALL)
    add_each(log, *numbers(0, MANY))
    assert len(segments(disk)) == 4
    return disk, log


def offsets(reader: Reader, bytes_max: int) -> list[int]:
    return [stored.base_offset for stored in reader.read(bytes_max)]


# Where to begin.


@pytest.mark.parametrize("start", range(MANY + 1))
def test_a_reader_starts_at_any_offset(start: int) -> None:
    """Also at the end, and across segments."""
    _, log = filled()
    reader = log.reader(TOPIC, start)
    assert values(log, start) == numbers(start, MANY)
    assert reader.offset == start
    assert log.reader(TOPIC, "earliest").offset == 0
    assert log.reader(TOPIC, "latest").offset == MANY


@pytest.mark.parametrize("start", [-1, MANY + 1, 10**18, -(10**18)])
def test_an_offset_outside_the_log_is_refused(start: int) -> None:
    """The error states the range of the log."""
    _, log = filled()
    with pytest.raises(OutOfRange, match=f"offset {start} of {TOPIC}/0.* holds 0 up to {MANY}"):
        log.reader(TOPIC, start)


def test_a_removed_offset_is_refused() -> None:
    _, log = filled()
    partition = log.partition(TOPIC, 0)
    partition.trim(20)
    start = partition.view.start_offset
    assert 0 < start <= 20
    with pytest.raises(OutOfRange):
        log.reader(TOPIC, start - 1)
    assert values(log, start) == numbers(start, MANY)
    assert log.reader(TOPIC, "earliest").offset == start


def test_a_reader_may_start_inside_a_batch() -> None:
    """The whole batch is returned."""
    log = open_log(SimDisk())
    submit(log, batch(b"a", b"b", b"c"), batch(b"d", b"e"))
    log.writer.step()
    for start, first in ((0, 0), (1, 0), (2, 0), (3, 3), (4, 3)):
        assert offsets(log.reader(TOPIC, start), 1) == [first]
    assert log.reader(TOPIC, 5).read() == []


@pytest.mark.parametrize("start", ["earliest", "latest", 0, AtTime(timestamp_ms=0)])
def test_every_start_of_an_empty_log_is_the_same(start: Start) -> None:
    log = open_log(SimDisk())
    reader = log.reader(TOPIC, start)
    assert reader.offset == 0
    assert reader.read() == []
    add(log, b"x")
    assert offsets(reader, 1) == [0]


# How much.


@pytest.mark.parametrize("bytes_max", [-1, 0, 1, 100, 300, 10**9])
def test_a_read_returns_at_least_one_batch_and_stops_at_the_limit(bytes_max: int) -> None:
    _, log = filled()
    reader = log.reader(TOPIC, "earliest")
    seen: list[int] = []
    while found := offsets(reader, bytes_max):
        assert bytes_max > 80 or len(found) == 1
        seen += found
        assert reader.offset == seen[-1] + 1
    assert seen == list(range(MANY))


def test_a_batch_larger_than_the_limit_is_read() -> None:
    log = open_log(SimDisk())
    add(log, bytes(10_000), b"small")
    reader = log.reader(TOPIC, "earliest")
    assert offsets(reader, 10) == [0]
    assert offsets(reader, 10) == [1]


# While the log moves on.


def test_a_reader_continues_across_rolls() -> None:
    log = open_log(SimDisk(), SMALL)
    reader = log.reader(TOPIC, "earliest")
    seen: list[bytes | None] = []
    for value in numbers(0, MANY):
        add(log, value)
        seen += [record.value for stored in reader.read() for record in stored.records()]
        assert reader.read() == []
    assert seen == numbers(0, MANY)


def test_a_reader_at_the_end_of_a_trimmed_segment_continues() -> None:
    log = open_log(SimDisk(), WIDE)
    add(log, b"one")
    reader = log.reader(TOPIC, "earliest")
    reader.read()
    partition = log.partition(TOPIC, 0)
    partition.roll()
    partition.trim(1)
    assert reader.read() == []
    add(log, b"two")
    assert offsets(reader, 1) == [1]


def test_a_reader_overtaken_by_retention_raises() -> None:
    """Though its file is still open."""
    _, log = filled()
    reader = log.reader(TOPIC, "earliest")
    assert offsets(reader, 1) == [0]
    log.partition(TOPIC, 0).trim(20)
    start = log.partition(TOPIC, 0).view.start_offset
    with pytest.raises(OutOfRange, match=f"offset 1 of {TOPIC}/0 has been removed; .* at {start}"):
        reader.read()
    reader.close()
    assert log.reader(TOPIC, start).read()


def overtaken(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let retention strike once in the middle of a read: the segments go, and their files are
    reused while a reader has them open."""
    partition, read_from = log.partition(TOPIC, 0), Reader._read_from

    def read_late(*arguments: Any) -> Any:
        monkeypatch.undo()
        partition.trim(20)
        for value in numbers(MANY, 2 * MANY):
            add(log, value)
        return read_from(*arguments)

    monkeypatch.setattr(Reader, "_read_from", read_late)


def test_a_reader_whose_file_is_reused_raises_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not damage, and no other records are returned."""
    _, log = filled()
    reader = log.reader(TOPIC, 3)
    overtaken(log, monkeypatch)
    with pytest.raises(OutOfRange, match=f"offset 3 of {TOPIC}/0 has been removed"):
        reader.read()
    reader.close()


def test_a_time_lookup_is_repeated_if_retention_removes_its_segment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, log = filled()
    overtaken(log, monkeypatch)
    partition = log.partition(TOPIC, 0)
    assert offset_at_time(partition, 1) == partition.view.start_offset > 0


def test_a_reader_continues_in_a_rewritten_segment() -> None:
    clock = SimClock()
    topic = TopicConfig(cleanup="compact", compact_dirty_ratio_min=0.0)
    log = open_log(SimDisk(), SMALL, clock=clock, topic=topic)
    for number in range(MANY):
        log.append(TOPIC, batch(b"%06d" % number, key=b"k%d" % (number % 3)))
        log.writer.step()
    reader = log.reader(TOPIC, "earliest")
    seen = offsets(reader, 1)
    assert log.maintain().compacted_count > 0
    while found := offsets(reader, 1):
        seen += found
    assert seen == sorted(set(seen))
    assert seen[-1] == reader.offset - 1 == MANY - 1
    assert len(seen) < MANY


def test_a_closed_reader_reopens_on_read() -> None:
    _, log = filled()
    reader = log.reader(TOPIC, "earliest")
    assert offsets(reader, 1) == [0]
    reader.close()
    reader.close()
    assert offsets(reader, 1) == [1]


def test_readers_and_writer_run_concurrently(tmp_path: Path) -> None:
    """Readers in their own threads, while batches are appended and segments rolled: each sees
    every batch once and in order."""
    log = open_log(RealDisk(tmp_path), SMALL, threaded=True)
    total = 400
    failures: list[BaseException] = []

    def follow() -> None:
        try:
            reader, wanted = log.reader(TOPIC, "earliest"), 0
            while wanted < total:
                log.wait_for(TOPIC, 0, wanted, 30)
                for stored in reader.read(1000):
                    assert stored.base_offset == wanted
                    assert [r.value for r in stored.records()] == numbers(wanted, wanted + 1)
                    wanted += 1
            reader.close()
        except BaseException as error:  # noqa: BLE001 - carried to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=follow) for _ in range(3)]
    for thread in threads:
        thread.start()
    answers = []
    for value in numbers(0, total):
        answers.append(log.append(TOPIC, batch(value)))
        if len(answers) % 50 == 0:
            answers[-1].result(30)
    for thread in threads:
        thread.join()
    assert failures == []
    log.close()


# Damage.


@pytest.mark.parametrize("bytes_max", [-1, 0, 1, 10**9])
def test_damage_is_an_error_at_any_limit(bytes_max: int) -> None:
    """Never a skip, never an endless loop, and again on the next read."""
    disk, log = filled()
    log.close()
    path = segments(disk)[0]
    second = frames_of(disk, path)[1]
    put(disk, path, flipped(disk.data(path), 8 * second.position))
    reader = open_log(disk, SMALL).reader(TOPIC, 1)
    for _ in range(2):
        with pytest.raises(Corrupt) as caught:
            reader.read(bytes_max)
        assert (caught.value.path, caught.value.position) == (path, second.position)


def test_a_read_error_skips_nothing() -> None:
    """At every storage call; the next attempt continues in place."""
    for call in range(1, 40):
        disk, log = filled()
        reader = log.reader(TOPIC, "earliest")
        disk.faults = Faults(fail_at=(disk.calls + call, errno.EIO))
        seen: list[int] = []
        while reader.offset < MANY:
            try:
                seen += offsets(reader, 200)
            except OSError as error:
                assert error.errno == errno.EIO
        assert seen == list(range(MANY))
        if "fail" not in disk.fired:
            return
    raise AssertionError("reading so little takes fewer storage calls than that")


def test_a_missing_segment_is_an_error() -> None:
    disk, log = filled()
    disk.unlink(segments(disk)[1])
    reader = log.reader(TOPIC, "earliest")
    with pytest.raises(Corrupt, match="no file"):
        while reader.read():
            pass


def test_a_truncated_segment_is_an_error() -> None:
    disk, log = filled()
    path = segments(disk)[1]
    frames = frames_of(disk, path)
    for size in (frames[2].end, frames[2].end + 5):
        put(disk, path, disk.data(path)[:size])
        reader = log.reader(TOPIC, "earliest")
        with pytest.raises(Corrupt) as caught:
            while reader.read():
                pass
        assert (caught.value.path, caught.value.position) == (path, frames[2].end)


# Times.

TIMES = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=3), max_size=40)
"""Timestamps of the records of each batch, in no order at all."""
LOOKED_UP = (-(2**63), -1, *range(0, 43, 3))


@given(TIMES, st.integers(0, 3))
def test_a_time_lookup_agrees_with_a_scan(times: list[list[int]], segments_gone: int) -> None:
    """Over segments, with times out of order, also after a trim and a restart."""
    disk = SimDisk()
    log = open_log(disk, SMALL)
    for timestamps in times:
        records = [Record(offset=0, timestamp_ms=t, key=None, value=b"v") for t in timestamps]
        submit(log, append_of_records(records))
        log.writer.step()
    partition = log.partition(TOPIC, 0)
    bases = [segment.info.base_offset for segment in partition.view.segments]
    partition.trim(bases[min(segments_gone, len(bases) - 1)])
    found = [start_offset(partition, AtTime(timestamp_ms=t)) for t in LOOKED_UP]
    log = open_log(disk.process_kill(), SMALL)
    scanned = scan(log)
    assert found == [
        next((offset for offset, t in scanned if t >= wanted), sum(map(len, times)))
        for wanted in LOOKED_UP
    ]
    assert found == [offset_at_time(log.partition(TOPIC, 0), t) for t in LOOKED_UP]


def scan(log: Log) -> list[tuple[int, int]]:
    """Every record's offset and time, the slow way."""
    reader = log.reader(TOPIC, "earliest")
    found: list[tuple[int, int]] = []
    while batches := reader.read():
        found += [(r.offset, r.timestamp_ms) for stored in batches for r in stored.records()]
    reader.close()
    return found


def test_a_time_lookup_works_after_compaction() -> None:
    """The header may have a time whose record is gone; the first remaining record counts."""
    topic = TopicConfig(cleanup="compact", compact_dirty_ratio_min=0.0)
    log = open_log(SimDisk(), SMALL, topic=topic)
    for number in range(20):
        records = [
            Record(offset=0, timestamp_ms=number, key=b"kept %d" % number, value=b"v"),
            Record(offset=0, timestamp_ms=1000 - number, key=b"again", value=b"v"),
        ]
        submit(log, append_of_records(records))
        log.writer.step()
    assert log.maintain().compacted_count > 0
    scanned = scan(log)
    for wanted_ms in range(1002):
        expected = next((o for o, t in scanned if t >= wanted_ms), 40)
        assert offset_at_time(log.partition(TOPIC, 0), wanted_ms) == expected, wanted_ms
