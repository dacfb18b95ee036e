"""Retention: released segments are removed by age, by size, and for space; others stay."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed, Overloaded
from frazil.log import Log, PartitionView, SubscriberConfig
from frazil.log.index import SegmentInfo, SparseIndex
from frazil.log.retention import LOST, expired_offset, oldest_sealed, released_offset
from frazil.log.segment import SegmentHeader
from frazil.log.transactions.aborted import AbortedTransactions
from frazil.log.view import SegmentView
from frazil.model import Rand
from frazil.settings import LogConfig, TopicConfig
from tests.log.build import SMALL, TOPIC, add, batch, batches, numbers, open_log, submit, values
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk

Segment = tuple[int, int]
"""(bytes, sealed at)"""


def view_of(*sealed: Segment, open_bytes: int = 100) -> PartitionView:
    """Segments of ten offsets each, the last one open."""
    segments = tuple(
        SegmentView(
            path="",
            header=SegmentHeader(identity=0, salt=b"", base_offset=10 * number, created_ms=0),
            info=SegmentInfo(
                base_offset=10 * number,
                end_offset=10 * number + 10,
                size_bytes=size_bytes,
                max_timestamp_ms=0,
                sealed_ms=sealed_ms,
                digest_count=0,
            ),
            sparse=SparseIndex(1),
        )
        for number, (size_bytes, sealed_ms) in enumerate([*sealed, (open_bytes, 0)])
    )
    return PartitionView(
        start_offset=0,
        durable_watermark=len(segments) * 10,
        segments=segments,
        last_stable_offset=len(segments) * 10,
        aborted=AbortedTransactions(),
    )


THREE = view_of((100, 1000), (100, 2000), (100, 3000))


@pytest.mark.parametrize(
    ("config", "published", "read", "expected"),
    [
        (TopicConfig(), 0, [], 40),
        (TopicConfig(), 0, [25], 25),
        (TopicConfig(), 0, [25, 7, 39], 7),
        (TopicConfig(), 99, [25], 25),
        (TopicConfig(awaits_lake=True), 0, [], 0),
        (TopicConfig(awaits_lake=True), 12, [], 12),
        (TopicConfig(awaits_lake=True), 12, [5], 5),
        (TopicConfig(awaits_lake=True), 12, [20], 12),
        (TopicConfig(cleanup="compact"), 40, [40], 0),
    ],
)
def test_the_released_offset_is_the_lowest_of_all_readers(
    config: TopicConfig, published: int, read: list[int], expected: int
) -> None:
    assert released_offset(THREE, config, published, read) == expected


@pytest.mark.parametrize(
    ("config", "released", "now_ms", "is_tight", "expected"),
    [
        (TopicConfig(retention_ms=1000), 40, 1999, False, 0),
        (TopicConfig(retention_ms=1000), 40, 2000, False, 10),
        (TopicConfig(retention_ms=1000), 40, 3500, False, 20),
        (TopicConfig(retention_ms=1000), 40, 9000, False, 30),  # the open segment never goes
        (TopicConfig(retention_ms=1000), 20, 9000, False, 20),
        (TopicConfig(retention_ms=1000), 19, 9000, False, 10),
        (TopicConfig(retention_ms=1000), 0, 9000, False, 0),
        (TopicConfig(retention_bytes_max=400), 40, 0, False, 0),
        (TopicConfig(retention_bytes_max=399), 40, 0, False, 10),
        (TopicConfig(retention_bytes_max=200), 40, 0, False, 20),
        (TopicConfig(retention_bytes_max=0), 40, 0, False, 30),
        (TopicConfig(retention_bytes_max=0), 15, 0, False, 10),
        (TopicConfig(), 40, 0, True, 30),
        (TopicConfig(), 29, 0, True, 20),
        (TopicConfig(), 9, 0, True, 0),
        (TopicConfig(may_expire_early=False), 40, 0, True, 0),
        (TopicConfig(may_expire_early=False), 40, TopicConfig().retention_ms + 9000, True, 30),
    ],
)
def test_the_oldest_released_segments_expire(
    config: TopicConfig, released: int, now_ms: int, is_tight: bool, expected: int
) -> None:
    assert expired_offset(THREE, config, released, now_ms, is_tight=is_tight) == expected


def test_a_young_segment_keeps_the_segments_after_it() -> None:
    """Segments are removed from the front."""
    view = view_of((100, 5000), (100, 1000))
    config = TopicConfig(retention_ms=1000)
    assert expired_offset(view, config, 30, 3000, is_tight=False) == 0
    assert expired_offset(view, config, 30, 6000, is_tight=False) == 20


@given(
    st.lists(st.tuples(st.integers(64, 500), st.integers(0, 100)), max_size=6),
    st.integers(0, 70),
    st.integers(0, 200),
    st.none() | st.integers(0, 2000),
    st.booleans(),
)
def test_unreleased_segments_stay(
    sealed: list[Segment], released: int, now_ms: int, size_max: int | None, is_tight: bool
) -> None:
    view = view_of(*sealed)
    config = TopicConfig(retention_ms=50, retention_bytes_max=size_max)
    start = expired_offset(view, config, released, now_ms, is_tight=is_tight)
    assert start == 0 or start <= released
    assert start in {segment.info.base_offset for segment in view.segments}


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        ([], None),
        ([view_of(), view_of()], None),
        ([view_of(), view_of((1, 9))], 1),
        ([view_of((1, 9), (1, 1)), view_of((1, 5))], 1),
        ([view_of((1, 5)), view_of((1, 5))], 0),
    ],
)
def test_the_segment_sealed_longest_ago_is_dropped_first(
    views: list[PartitionView], expected: int | None
) -> None:
    assert oldest_sealed(enumerate(views)) == expected


# The same, in a log.


def filled(
    disk: SimDisk, clock: SimClock, topic: TopicConfig, config: LogConfig = SMALL, count: int = 40
) -> Log:
    log = open_log(disk, config, clock=clock, topic=topic)
    for value in numbers(0, count):
        add(log, value)
    return log


def start_of(log: Log) -> int:
    return log.partition(TOPIC, 0).view.start_offset


def test_released_segments_stay_for_retention_ms_despite_clock_jumps() -> None:
    clock = SimClock()
    log = filled(SimDisk(), clock, TopicConfig(retention_ms=60_000))
    for jump_ms in (10**10, -(10**11), 10**12):
        clock.jump_wall(jump_ms)
        log.maintain()
        assert start_of(log) == 0
    clock.advance(59_999)
    log.maintain()
    assert start_of(log) == 0
    clock.advance(1)
    log.maintain()
    assert start_of(log) == log.partition(TOPIC, 0).view.segments[-1].info.base_offset > 30


@pytest.mark.parametrize("jump_ms", [10**10, -(10**10)])
def test_a_clock_jump_between_two_runs_loses_nothing_needed(jump_ms: int) -> None:
    disk, clock = SimDisk(), SimClock()
    log = filled(disk, clock, TopicConfig(retention_ms=60_000, awaits_lake=True))
    log.close()
    clock.jump_wall(jump_ms)
    log = open_log(disk, SMALL, clock=clock)
    log.maintain()
    assert values(log) == numbers(0, 40)


def test_what_was_discarded_goes_at_once_but_not_before_it_is_released() -> None:
    """The open segment, too, and files that would be reused. What is above stays, and so do
    offsets: the log continues where it was."""
    disk = SimDisk()
    log = filled(disk, SimClock(), TopicConfig(awaits_lake=True, retention_ms=10**9))
    partition = log.partition(TOPIC, 0)
    log.discard(TOPIC, 0, 39)
    log.maintain()
    assert start_of(log) == 0
    log.publish(TOPIC, 0, 40)
    log.maintain()
    assert start_of(log) == partition.durable_watermark == 40
    assert not [name for name in disk.list(partition.files.folder) if name.endswith(".spare")]
    add(log, b"next")
    log.maintain()
    assert start_of(log) == 40
    assert values(log, 40) == [b"next"]


def test_segments_not_in_the_lake_stay() -> None:
    disk, clock = SimDisk(), SimClock()
    log = filled(disk, clock, TopicConfig(retention_ms=0, awaits_lake=True))
    log.maintain()
    assert start_of(log) == 0
    log.publish(TOPIC, 0, 20)
    log.publish(TOPIC, 0, 3)  # never goes down
    log.maintain()
    assert 0 < start_of(log) <= 20
    kept = start_of(log)
    assert values(log, kept) == numbers(kept, 40)
    log = open_log(disk.process_kill(), SMALL, clock=clock)
    log.maintain()
    assert start_of(log) == kept, "until the lake speaks again nothing more goes"
    with pytest.raises(Malformed):
        log.publish(TOPIC, 0, 41)


def test_a_size_cap_removes_the_oldest_released_segments() -> None:
    log = filled(SimDisk(), SimClock(), TopicConfig(retention_bytes_max=3000))
    log.maintain()
    view = log.partition(TOPIC, 0).view
    assert view.size_bytes <= 3000 < view.size_bytes + SMALL.segment_bytes_max + 200
    assert values(log, view.start_offset) == numbers(view.start_offset, 40)


def test_a_compacted_topic_keeps_everything() -> None:
    """Only compaction removes its records."""
    clock = SimClock()
    topic = TopicConfig(cleanup="compact", retention_ms=0, retention_bytes_max=0)
    log = open_log(SimDisk(), SMALL, clock=clock, topic=topic)
    for number in range(40):
        submit(log, batch(b"value", key=b"%d" % number))
        log.writer.step()
    clock.advance(10**10)
    log.maintain()
    assert start_of(log) == 0
    assert len(batches(log)) == 40


TIGHT = msgspec.structs.replace(
    SMALL, disk_bytes_max=16 * 1024, batch_bytes_max=4 * 1024, queue_bytes_max=8 * 1024
)


def test_a_full_log_refuses_until_its_readers_catch_up() -> None:
    clock = SimClock()
    log = open_log(SimDisk(), TIGHT, clock=clock, topic=TopicConfig(retention_ms=10**9))
    subscriber = log.subscribe("slow", TOPIC, "earliest", SubscriberConfig(in_flight_max=10_000))
    count = 0
    with pytest.raises(Overloaded) as refused:
        while True:
            add(log, b"x" * 100)
            count += 1
    assert refused.value.retry_after_ms > 0
    assert log.budget.used_bytes <= TIGHT.disk_bytes_max
    assert log.partition(TOPIC, 0).durable_watermark == count, "refused is not stored"
    log.maintain()
    with pytest.raises(Overloaded):
        add(log, b"x" * 100)
    for claim in subscriber.claim(count // 2):
        claim.ack()
    subscriber.step()
    log.maintain()
    assert 0 < start_of(log) <= count // 2
    add(log, b"x" * 100)
    assert len(values(log, start_of(log))) == count + 1 - start_of(log)


def test_a_tight_budget_removes_released_segments_early() -> None:
    clock = SimClock()
    log = open_log(SimDisk(), TIGHT, clock=clock, topic=TopicConfig(retention_ms=10**9))
    for _ in range(500):
        add(log, b"x" * 100)
    assert start_of(log) > 300
    assert log.budget.used_bytes <= TIGHT.disk_bytes_max


@pytest.mark.parametrize("when_full", ["backpressure", "drop_oldest"])
def test_a_short_disk_gets_back_released_segments_and_no_others(when_full: str) -> None:
    """Whoever fills it: what the lake does not have yet is not dropped for another program."""
    disk = SimDisk()
    config = msgspec.structs.replace(SMALL, when_full=when_full)
    topic = TopicConfig(awaits_lake=True, retention_ms=10**9)
    log = open_log(disk, config, topic=topic, reserve_bytes=10_000)
    for _ in range(100):
        add(log, b"x" * 100)
    log.publish(TOPIC, 0, 50)
    log.maintain()
    assert start_of(log) == 0
    disk.faults.capacity_bytes = 10_000
    log.maintain()
    assert 40 < start_of(log) <= 50
    with pytest.raises(Overloaded, match="the disk is full"):
        submit(log, batch(b"x"))
    disk.faults.capacity_bytes = None
    log.maintain()
    add(log, b"x")
    assert 40 < start_of(log) <= 50


def test_drop_oldest_never_refuses_and_counts_unread_offsets() -> None:
    clock = SimClock()
    config = msgspec.structs.replace(TIGHT, when_full="drop_oldest")
    disk = SimDisk()
    log = open_log(disk, config, clock=clock, topic=TopicConfig(awaits_lake=True))
    before = LOST.value(reason="drop_oldest", topic=TOPIC)
    for number in range(200):
        add(log, b"x" * 100)
        if number == 100:
            log.publish(TOPIC, 0, 100)
    start = start_of(log)
    assert start > 100
    dropped = LOST.value(reason="drop_oldest", topic=TOPIC) - before
    assert dropped == log.partition(TOPIC, 0).dropped_count
    for after in (disk.process_kill(), disk.crash(Rand(3))):
        again = open_log(after, config, clock=clock)
        assert again.partition(TOPIC, 0).dropped_count == dropped
        assert start_of(again) == start


def test_dropping_from_a_compacted_topic_counts_all_offsets() -> None:
    config = msgspec.structs.replace(TIGHT, when_full="drop_oldest")
    topic = TopicConfig(cleanup="compact", compact_age_ms_min=10**9)
    log = open_log(SimDisk(), config, topic=topic)
    for number in range(200):
        submit(log, batch(b"x" * 100, key=b"%d" % number))
        log.writer.step()
    assert log.partition(TOPIC, 0).dropped_count == start_of(log) > 0


def test_accounting_is_the_same_after_a_restart() -> None:
    disk, clock = SimDisk(), SimClock()
    log = filled(disk, clock, TopicConfig(retention_ms=0))
    log.maintain()

    def bytes_of(*suffixes: str) -> int:
        return sum(len(disk.data(p)) for p in disk.files() if p.endswith(suffixes))

    assert log.budget.used_bytes == bytes_of(".log", ".spare")
    used = bytes_of(".log")
    assert open_log(disk.process_kill(), SMALL, clock=clock).budget.used_bytes == used
