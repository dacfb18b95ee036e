"""WatermarkFile: what it stores survives, and never runs ahead."""

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
    file, stored = WatermarkFile.open(disk, "p")
    assert stored == NOTHING
    file.durable(0)
    return disk, file


def stored_on(disk: SimDisk) -> StoredWatermarks:
    file, stored = WatermarkFile.open(disk, "p")
    file.close()
    return stored


def stored_watermarks(start: int, dropped: int, watermark: int) -> StoredWatermarks:
    return StoredWatermarks(
        is_known=True, start_offset=start, dropped_count=dropped, durable_watermark=watermark
    )


NUMBERS = st.integers(0, 2**64 - 1)
WORDS = st.one_of(
    st.tuples(st.just("trim"), NUMBERS, NUMBERS), st.tuples(st.just("durable"), NUMBERS)
)


@given(st.lists(WORDS, max_size=12), st.booleans())
def test_the_newest_slot_of_each_kind_is_read(words: list[tuple[str, int]], reopens: bool) -> None:
    """Also over reopens, and the file never grows."""
    disk, file = fresh()
    expected = NOTHING
    for kind, *values in words:
        if reopens:
            file.close()
            file, _ = WatermarkFile.open(disk, "p")
        if kind == "trim":
            file.trim(*values)
            expected = stored_watermarks(values[0], values[1], expected.durable_watermark)
        else:
            file.durable(values[0])
            expected = StoredWatermarks(
                is_known=expected.is_known,
                start_offset=expected.start_offset,
                dropped_count=expected.dropped_count,
                durable_watermark=values[0],
            )
    assert stored_on(disk) == expected
    assert len(disk.data(PATH)) == FILE_BYTES


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_trim_is_durable_and_a_watermark_never_ahead(model: Model) -> None:
    """After a power cut."""
    for seed in range(50):
        disk, file = fresh(model)
        file.durable(3)
        file.trim(2, 1)
        for watermark in (4, 5, 6):
            file.durable(watermark)
        found = stored_on(disk.crash(Rand(seed)))
        assert (found.start_offset, found.dropped_count) == (2, 1)
        assert found.durable_watermark in (0, 3, 4, 5, 6)
    assert stored_on(disk.process_kill()) == stored_watermarks(2, 1, 6), "after kill -9 it is exact"


@pytest.mark.parametrize("model", ["ext4", "weak"])
@pytest.mark.parametrize("call", [1, 2])
def test_an_interrupted_trim_leaves_the_old_or_the_new_value(model: Model, call: int) -> None:
    """The two slots are written alternately."""
    found = set()
    for seed in range(60):
        disk, file = fresh(model)
        for start in range(seed % 3 + 1):
            file.trim(start, 0)
        disk.faults, disk.rand = Faults(crash_at=disk.calls + call), Rand(seed)
        with pytest.raises(PowerCut):
            file.trim(100, 7)
        after = stored_on(disk.crash(Rand(seed)))
        assert after in (stored_watermarks(seed % 3, 0, 0), stored_watermarks(100, 7, 0))
        found.add(after.start_offset == 100)
    assert call == 1 or found == {True, False}


def test_every_flipped_bit_invalidates_at_most_one_slot() -> None:
    """The older slot of its kind is read instead."""
    disk, file = fresh()
    file.trim(10, 1)
    file.trim(20, 2)
    file.durable(30)
    file.durable(40)
    whole = disk.data(PATH)
    for bit in range(8 * FILE_BYTES):
        if bit // 8 % SLOT_BYTES > 40:
            continue
        put(disk, PATH, flipped(whole, bit))
        found = stored_on(disk)
        assert (found.start_offset, found.dropped_count) in ((10, 1), (20, 2))
        assert found.durable_watermark in (30, 40)


@pytest.mark.parametrize("size", [0, 1, SLOT_BYTES - 1, SLOT_BYTES, FILE_BYTES - 1])
def test_a_short_file_is_filled_up(size: int) -> None:
    """Torn at creation: valid slots count."""
    disk, file = fresh()
    file.trim(5, 0)
    put(disk, PATH, disk.data(PATH)[:size])
    file, found = WatermarkFile.open(disk, "p")
    assert found == (stored_watermarks(5, 0, 0) if size > SLOT_BYTES + 40 else NOTHING)
    file.trim(6, 0)
    file.durable(9)
    assert stored_on(disk) == stored_watermarks(6, 0, 9)
    assert len(disk.data(PATH)) == FILE_BYTES


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_creation_may_be_interrupted(model: Model) -> None:
    """A power cut at any call: the next start creates it."""
    for call in range(1, 6):
        for seed in range(10):
            disk = SimDisk(model=model)
            disk.make_directory("p")
            disk.sync_directory("")
            disk.faults, disk.rand = Faults(crash_at=disk.calls + call), Rand(seed)
            with suppress(PowerCut):
                WatermarkFile.open(disk, "p")
            after = disk.crash(Rand(seed))
            file, found = WatermarkFile.open(after, "p")
            assert found == NOTHING
            file.trim(1, 2)
            assert stored_on(after.crash(Rand(seed))).start_offset == 1


def test_a_trim_whose_sync_failed_raises_and_is_not_read_back() -> None:
    """The page cache shows it, the disk does not have it."""
    disk, file = fresh()
    file.trim(10, 0)
    disk.faults = Faults(fail_sync_at=disk.syncs + 1)
    with pytest.raises(OSError) as caught:
        file.trim(20, 0)
    assert caught.value.errno == errno.EIO
    assert stored_on(disk.process_kill()).start_offset == 10


def test_the_file_works_on_a_full_disk() -> None:
    """It is overwritten in place, so a trim needs no space."""
    disk, file = fresh()
    disk.faults = Faults(capacity_bytes=FILE_BYTES)
    for start in range(5):
        file.trim(start, 0)
        file.durable(start + 10)
    assert stored_on(disk) == stored_watermarks(4, 0, 14)
