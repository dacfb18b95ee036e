"""Segments of the log that nothing reads again leave the page cache, once."""

from __future__ import annotations

from frazil.hot.tier import HotTier
from tests.hot.build import SCHEMAS as TABLES
from tests.hot.build import SMALL, TOPIC, Machine, decode, lines, start
from tests.sim.disk import SimDisk


class CacheDisk(SimDisk):
    """Notes what was dropped from the page cache."""

    dropped: tuple[str, ...] = ()

    def uncache(self, path: str) -> None:
        self.dropped = (*self.dropped, path)


def filled(machine: Machine, count: int) -> list[str]:
    """Fill several segments of the log. Returns the paths of those that are sealed."""
    for first in range(0, count, 10):
        machine.add(*lines(first, first + 10))
    return [segment.path for segment in machine.log.partition(TOPIC, 0).view.segments[:-1]]


def test_what_is_in_a_hot_file_is_dropped_once() -> None:
    disk = CacheDisk()
    machine = start(disk)
    paths = filled(machine, 200)
    assert len(paths) > 2
    machine.tier.step()
    machine.tier.seal()
    assert disk.dropped == ()
    machine.catch_up()
    machine.seal()
    machine.tier.seal()
    assert list(disk.dropped) == paths


def test_what_the_lake_will_read_stays() -> None:
    disk, held = CacheDisk(), 0
    machine = start(disk)
    tier = HotTier(
        disk,
        machine.log,
        SMALL,
        decode=decode,
        schemas=TABLES,
        clock=machine.clock,
        lake_watermark=lambda *_: held,
    )
    machine = Machine(disk, machine.clock, machine.log, tier)
    paths = filled(machine, 200)
    machine.catch_up()
    machine.seal()
    assert disk.dropped == ()
    held = machine.log.partition(TOPIC, 0).view.segments[2].info.base_offset
    machine.tier.seal()
    assert list(disk.dropped) == paths[:2]
