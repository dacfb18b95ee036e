"""Trimmed segments are reused without a trace of their old frames."""

from __future__ import annotations

import pytest

from frazil.errors import OutOfRange
from frazil.log import Log
from frazil.log.removed_segments import SPARES_MAX
from frazil.model import Rand
from frazil.settings import TopicConfig
from tests.log.build import FOLDER, SMALL, TOPIC, add, add_each, open_log, values
from tests.sim.disk import Faults, PowerCut, SimDisk

RELEASED = TopicConfig(retention_ms=0)


def names(disk: SimDisk, suffix: str) -> list[str]:
    return [name for name in disk.list(FOLDER) if name.endswith(suffix)]


def numbers(begin: int, end: int) -> list[bytes]:
    return [b"value-%06d" % number for number in range(begin, end)]


def with_spares(disk: SimDisk) -> Log:
    """A log that has trimmed some of its segments."""
    log = open_log(disk, SMALL, topic=RELEASED)
    add_each(log, *numbers(0, 60))
    log.maintain()
    assert len(names(disk, ".spare")) == SPARES_MAX
    return log


def test_a_spare_becomes_the_next_segment() -> None:
    """Its old frames are not visible."""
    disk = SimDisk()
    log = with_spares(disk)
    begin = log.partition(TOPIC, 0).view.start_offset
    add_each(log, *numbers(60, 75))
    assert len(names(disk, ".spare")) < SPARES_MAX
    assert values(log) == numbers(begin, 75)
    assert values(open_log(disk.process_kill(), SMALL)) == numbers(begin, 75)


def test_no_stale_frame_reappears_after_a_crash() -> None:
    """Wherever the power goes while segments are written over: what was acknowledged is there,
    and of the old frames nothing."""
    quiet = SimDisk()
    log = with_spares(quiet)
    first = quiet.calls
    begin = log.partition(TOPIC, 0).view.start_offset
    add_each(log, *numbers(60, 80))
    for call in range(first + 1, quiet.calls + 1):
        disk = SimDisk(model="weak")
        log = with_spares(disk)
        disk.faults = Faults(crash_at=call)
        acknowledged = 60
        try:
            for number in range(60, 80):
                add(log, *numbers(number, number + 1))
                acknowledged += 1
        except PowerCut:
            pass
        after = values(open_log(disk.crash(Rand(call)), SMALL))
        assert after in (numbers(begin, acknowledged), numbers(begin, acknowledged + 1))


def test_sealed_segments_end_where_their_frames_end() -> None:
    """Stale frames are cut at seal and at a clean close."""
    disk = SimDisk()
    log = with_spares(disk)
    add_each(log, *numbers(60, 90))
    for segment in log.partition(TOPIC, 0).view.segments[:-1]:
        assert len(disk.data(segment.path)) == segment.info.size_bytes
    log.close()
    assert names(disk, ".spare") == []
    again = open_log(disk, SMALL)
    assert again.partition(TOPIC, 0).recovered_cut_bytes == 0
    assert again.partition(TOPIC, 0).recovered_rebuilt == ()


def test_spares_count_against_the_budget_and_are_removed_first() -> None:
    disk = SimDisk()
    log = with_spares(disk)
    on_disk = sum(
        len(disk.data(f"{FOLDER}/{n}")) for n in names(disk, ".spare") + names(disk, ".log")
    )
    assert log.budget.used_bytes == on_disk
    log.budget.note_full()
    log.maintain()
    assert names(disk, ".spare") == []


def test_a_reader_overtaken_by_a_trim_raises_out_of_range() -> None:
    """Its file may have been reused; that is not damage."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=RELEASED)
    add_each(log, *numbers(0, 60))
    reader = log.reader(TOPIC, "earliest")
    reader.read(1)
    log.maintain()
    add_each(log, *numbers(60, 90))
    with pytest.raises(OutOfRange):
        reader.read(1)
    reader.close()


def test_a_reader_overtaken_during_a_read_raises_out_of_range(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=RELEASED)
    add_each(log, *numbers(0, 60))
    reader = log.reader(TOPIC, "earliest")
    original = type(reader)._read_from

    def overtaken(self: object, *arguments: object) -> object:
        monkeypatch.undo()
        log.maintain()
        add_each(log, *numbers(60, 120))
        return original(reader, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(type(reader), "_read_from", overtaken)
    with pytest.raises(OutOfRange):
        reader.read()
    reader.close()
