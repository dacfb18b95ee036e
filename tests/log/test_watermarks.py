"""WatermarkFile: what was promised, told apart from what only seems so."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.log.watermarks import FILE_BYTES, SLOT_BYTES, StoredWatermarks, WatermarkFile
from frazil.model import Rand
from tests.log.build import flipped, put
from tests.sim.disk import Faults, Model, PowerCut, SimDisk

PATH = "p/marks"
NOTHING = StoredWatermarks(is_known=False, start_offset=0, dropped_count=0, durable_watermark=0)


def fresh(model: Model = "ext4") -> tuple[SimDisk, WatermarkFile]:
    disk = SimDisk(model=model)
    disk.make_directory("p")
    disk.sync_directory("")
    marks, promise = WatermarkFile.open(disk, "p")
    assert promise == NOTHING
    return disk, marks


def promise_on(disk: SimDisk) -> StoredWatermarks:
    marks, promise = WatermarkFile.open(disk, "p")
    marks.close()
    return promise


def promised(start: int, dropped: int, watermark: int) -> StoredWatermarks:
    return StoredWatermarks(
        is_known=True, start_offset=start, dropped_count=dropped, durable_watermark=watermark
    )


NUMBERS = st.integers(0, 2**64 - 1)
WORDS = st.one_of(
    st.tuples(st.just("trim"), NUMBERS, NUMBERS), st.tuples(st.just("durable"), NUMBERS)
)


@given(st.lists(WORDS, max_size=12), st.booleans())
def test_the_newest_word_of_each_kind_is_read(words: list[tuple[str, int]], reopens: bool) -> None:
    """Whatever came in between, also over openings, and in a file that never grows."""
    disk, marks = fresh()
    expected = NOTHING
    for kind, *values in words:
        if reopens:
            marks.close()
            marks, _ = WatermarkFile.open(disk, "p")
        if kind == "trim":
            marks.trim(*values)
            expected = promised(values[0], values[1], expected.durable_watermark)
        else:
            marks.durable(*values)
            expected = StoredWatermarks(
                is_known=expected.is_known,
                start_offset=expected.start_offset,
                dropped_count=expected.dropped_count,
                durable_watermark=values[0],
            )
    assert promise_on(disk) == expected
    assert len(disk.data(PATH)) == FILE_BYTES


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_trim_is_durable_and_a_watermark_never_ahead(model: Model) -> None:
    """After a power cut: the trim that returned, and a watermark that was said at some time."""
    for seed in range(50):
        disk, marks = fresh(model)
        marks.durable(3)
        marks.trim(2, 1)
        for watermark in (4, 5, 6):
            marks.durable(watermark)
        found = promise_on(disk.crash(Rand(seed)))
        assert (found.start_offset, found.dropped_count) == (2, 1)
        assert found.durable_watermark in (0, 3, 4, 5, 6)
    assert promise_on(disk.process_kill()) == promised(2, 1, 6), "after kill -9 it is exact"


@pytest.mark.parametrize("model", ["ext4", "weak"])
@pytest.mark.parametrize("call", [1, 2])
def test_an_interrupted_trim_leaves_the_old_word_or_the_new(model: Model, call: int) -> None:
    """Never neither: the two slots are written in turn."""
    found = set()
    for seed in range(60):
        disk, marks = fresh(model)
        for start in range(seed % 3 + 1):
            marks.trim(start, 0)
        disk.faults, disk.rand = Faults(crash_at=disk.calls + call), Rand(seed)
        with pytest.raises(PowerCut):
            marks.trim(100, 7)
        after = promise_on(disk.crash(Rand(seed)))
        assert after in (promised(seed % 3, 0, 0), promised(100, 7, 0))
        found.add(after.start_offset == 100)
    assert call == 1 or found == {True, False}


def test_every_flipped_bit_loses_at_most_one_word() -> None:
    """A damaged slot is silent; the older word of its kind is heard instead."""
    disk, marks = fresh()
    marks.trim(10, 1)
    marks.trim(20, 2)
    marks.durable(30)
    marks.durable(40)
    whole = disk.data(PATH)
    for bit in range(8 * FILE_BYTES):
        if bit // 8 % SLOT_BYTES > 40:
            continue
        put(disk, PATH, flipped(whole, bit))
        found = promise_on(disk)
        assert (found.start_offset, found.dropped_count) in ((10, 1), (20, 2))
        assert found.durable_watermark in (30, 40)


@pytest.mark.parametrize("size", [0, 1, SLOT_BYTES - 1, SLOT_BYTES, FILE_BYTES - 1])
def test_a_short_file_is_filled_up(size: int) -> None:
    """Torn while it was made: what is whole in it counts, and it works from then on."""
    disk, marks = fresh()
    marks.trim(5, 0)
    put(disk, PATH, disk.data(PATH)[:size])
    marks, found = WatermarkFile.open(disk, "p")
    assert found == (promised(5, 0, 0) if size > SLOT_BYTES + 40 else NOTHING)
    marks.trim(6, 0)
    marks.durable(9)
    assert promise_on(disk) == promised(6, 0, 9)
    assert len(disk.data(PATH)) == FILE_BYTES


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_making_them_may_be_interrupted(model: Model) -> None:
    """A power cut at any call that makes the file: the next start makes it, and it holds."""
    for call in range(1, 6):
        for seed in range(10):
            disk = SimDisk(model=model)
            disk.make_directory("p")
            disk.sync_directory("")
            disk.faults, disk.rand = Faults(crash_at=disk.calls + call), Rand(seed)
            with suppress(PowerCut):
                WatermarkFile.open(disk, "p")
            after = disk.crash(Rand(seed))
            marks, found = WatermarkFile.open(after, "p")
            assert found == NOTHING
            marks.trim(1, 2)
            assert promise_on(after.crash(Rand(seed))).start_offset == 1


def test_a_trim_whose_sync_failed_is_told_and_not_believed() -> None:
    """The kernel shows it, the disk has it not: the next start sees the older word."""
    disk, marks = fresh()
    marks.trim(10, 0)
    disk.faults = Faults(fail_sync_at=disk.syncs + 1)
    with pytest.raises(OSError) as caught:
        marks.trim(20, 0)
    assert caught.value.errno == errno.EIO
    assert promise_on(disk.process_kill()).start_offset == 10


def test_marks_work_on_a_full_disk() -> None:
    """They are overwritten in place: trimming, which makes room, needs none."""
    disk, marks = fresh()
    disk.faults = Faults(capacity_bytes=FILE_BYTES)
    for start in range(5):
        marks.trim(start, 0)
        marks.durable(start + 10)
    assert promise_on(disk) == promised(4, 0, 14)
