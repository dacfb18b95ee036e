"""Reading planned ranges without owning the log."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Conflict, Corrupt, OutOfRange
from frazil.log import Log, Record, SegmentRange, plan_ranges, read_range
from frazil.settings import TopicConfig
from tests.log.build import (
    SMALL,
    TOPIC,
    WIDE,
    add_each,
    batch,
    batches,
    flipped,
    numbers,
    open_log,
    put,
    submit,
)
from tests.log.test_compaction import KEYED, run_round, seal, store
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk

RECORDS = 3
"""Of each batch in `filled`."""
COUNT = 40 * RECORDS
LARGE = msgspec.structs.replace(WIDE, segment_bytes_max=3 << 20, disk_bytes_max=32 << 20)
"""Segments that are not read at once."""


def filled(disk: SimDisk) -> Log:
    """Several segments of batches of three records."""
    log = open_log(disk, SMALL)
    for number in range(COUNT // RECORDS):
        submit(log, batch(*numbers(number * RECORDS, number * RECORDS + RECORDS)))
        log.writer.step()
    assert len(log.partition(TOPIC, 0).view.segments) > 2
    return log


def planned(log: Log, begin: int, end: int, bytes_max: int = 1 << 30) -> list[SegmentRange]:
    return plan_ranges(log.partition(TOPIC, 0).view, begin, end, bytes_max)


def wanted(disk: SimDisk, stretch: SegmentRange) -> list[Record]:
    return [
        record
        for stored in read_range(disk, stretch)
        for record in stored.records()
        if stretch.begin <= record.offset < stretch.end
    ]


DISK = SimDisk()
LOG = filled(DISK)


@given(st.integers(0, COUNT), st.integers(0, COUNT), st.integers(1, 4000))
@settings(max_examples=150, deadline=None)
def test_every_offset_is_in_one_range(one: int, other: int, bytes_max: int) -> None:
    """However they are split."""
    begin, end = min(one, other), max(one, other)
    stretches = planned(LOG, begin, end, bytes_max)
    assert all(before.end == after.begin for before, after in pairwise(stretches))
    found = [record for stretch in stretches for record in wanted(DISK, stretch)]
    assert [record.offset for record in found] == list(range(begin, end))
    assert [record.value for record in found] == numbers(begin, end)


def test_ranges_are_as_large_as_allowed() -> None:
    """None exceeds the limit by more than an index interval, and no two fit together."""
    steps = [stretch.size_bytes for stretch in planned(LOG, 0, COUNT, 1)]
    sizes = [stretch.size_bytes for stretch in planned(LOG, 0, COUNT, 1000)]
    assert sum(steps) == sum(sizes)
    assert max(sizes) <= 1000 < sum(sizes)
    assert all(one + other > 1000 - max(steps) for one, other in pairwise(sizes))
    (whole,) = planned(LOG, 0, COUNT)
    assert len(whole.extents) == len(LOG.partition(TOPIC, 0).view.segments)


@pytest.mark.parametrize(("begin", "end"), [(-1, 3), (0, COUNT + 1), (5, 4)])
def test_offsets_outside_the_log_are_refused(begin: int, end: int) -> None:
    with pytest.raises(OutOfRange, match=f"holds 0 up to {COUNT}"):
        planned(LOG, begin, end)


def test_batches_after_the_view_are_not_read() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add_each(log, *numbers(0, 5))
    view = log.partition(TOPIC, 0).view
    add_each(log, *numbers(5, 50))
    (stretch,) = plan_ranges(view, 0, 5, 1 << 30)
    assert [record.value for record in wanted(disk, stretch)] == numbers(0, 5)
    with pytest.raises(OutOfRange):
        plan_ranges(view, 0, 6, 1 << 30)


def test_gaps_of_compaction_are_no_damage() -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    for number in range(60):
        store(log, (b"%d" % (number % 7), b"value %d" % number))
    seal(log)
    run_round(log, clock)
    end = log.partition(TOPIC, 0).durable_watermark
    expected = [record for stored in batches(log) for record in stored.records()]
    assert 0 < len(expected) < 60
    for bytes_max in (1, 300, 1 << 30):
        stretches = planned(log, 0, end, bytes_max)
        assert (stretches[0].begin, stretches[-1].end) == (0, end)
        assert [r for stretch in stretches for r in wanted(disk, stretch)] == expected


def test_a_rewritten_file_is_a_conflict() -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    for number in range(60):
        store(log, (b"%d" % (number % 7), b"value %d" % number))
    seal(log)
    (stretch,) = planned(log, 0, 60)
    run_round(log, clock)
    with pytest.raises(Conflict, match="plan again"):
        wanted(disk, stretch)


def test_a_trimmed_file_is_a_conflict() -> None:
    """Whether the file is gone or reused."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=TopicConfig(retention_ms=0))
    add_each(log, *numbers(0, 60))
    (stretch,) = planned(log, 0, 60)
    log.maintain()
    assert log.partition(TOPIC, 0).view.start_offset > 0
    with pytest.raises(Conflict, match="offsets 0 up to"):
        wanted(disk, stretch)
    with pytest.raises(OutOfRange):
        planned(log, 0, 60)


def test_a_file_reused_during_the_read_is_a_conflict() -> None:
    """Batches read before are valid."""
    disk = SimDisk()
    log = open_log(disk, LARGE)
    values = [b"%06d" % number * 2000 for number in range(400)]
    add_each(log, *values)
    (stretch,) = planned(log, 0, len(values))
    first, second = stretch.extents
    reading = read_range(disk, stretch)
    assert next(reading).base_offset == 0
    # The handle stays, and the same file begins another life under it.
    disk.open(first.path, "edit").write_at(0, disk.data(second.path))
    found = values[:1]
    with pytest.raises(Conflict):
        for stored in reading:
            found += [record.value or b"" for record in stored.records()]
    assert found == values[: len(found)]
    assert len(found) < first.end_offset


def test_every_flipped_bit_is_detected() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add_each(log, *numbers(0, 3))
    (stretch,) = planned(log, 0, 3)
    (extent,) = stretch.extents
    data = disk.data(extent.path)
    for bit in range(0, len(data) * 8, 5):
        put(disk, extent.path, flipped(data, bit))
        with pytest.raises(Corrupt):
            wanted(disk, stretch)


def test_a_truncated_file_is_damage() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add_each(log, *numbers(0, 3))
    (stretch,) = planned(log, 0, 3)
    path = stretch.extents[0].path
    put(disk, path, disk.data(path)[:-1])
    with pytest.raises(Corrupt, match="up to offset 3"):
        wanted(disk, stretch)
