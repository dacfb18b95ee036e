"""A backlog is sealed before it is visible; nothing is lost, doubled or shown out of order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from frazil.model import KiB
from tests.hot.build import (
    SMALL,
    TOPIC,
    Machine,
    PickyDisk,
    check_pieces,
    expected_places,
    lines,
    places,
    start,
)
from tests.sim.disk import SimDisk

CONFIG = structs.replace(
    SMALL, read_bytes=KiB, seal_bytes=2 * KiB, memory_bytes_max=16 * KiB, disk_bytes_max=1024 * KiB
)
"""Read and sealed in small portions: twenty requests are a backlog."""
COUNT = 100


def backlog(disk: SimDisk) -> Machine:
    machine = start(disk, CONFIG)
    for first in range(0, COUNT, 10):
        machine.add(*lines(first, first + 10))
    return machine


def assert_prefix(machine: Machine) -> None:
    """What is visible is all that is below the watermark, in order."""
    found = places(machine.tier.pieces("logs"))
    assert found == expected_places(machine.tier.watermark(TOPIC))
    check_pieces(machine.tier)


def test_a_backlog_is_visible_once_it_is_in_files() -> None:
    machine = backlog(SimDisk())
    machine.tier.step()
    assert machine.tier.watermark(TOPIC) == 0 and machine.tier.pieces("logs") == ()
    while not machine.tier.has_frozen:
        machine.tier.step()
    machine.tier.seal()
    assert machine.tier.watermark(TOPIC) > 0
    assert_prefix(machine)


def test_its_end_is_visible_without_a_seal() -> None:
    machine = backlog(SimDisk())
    while machine.tier.step():
        machine.tier.seal()
        assert_prefix(machine)
    assert machine.tier.watermark(TOPIC) == COUNT
    assert machine.tier.pieces("logs")[-1].name == "open"


@pytest.mark.parametrize("place", range(0, 20, 3))
def test_one_that_cannot_be_decoded_is_a_dead_letter(place: int) -> None:
    """In whichever half of a portion it is, those behind it are decoded once and in order."""
    bodies = lines(0, COUNT)
    bodies[place] = b"crash"
    machine = start(SimDisk(), CONFIG)
    machine.add(*bodies)
    machine.catch_up()
    expected = [at for at in expected_places(COUNT) if at[0] != place]
    assert places(machine.tier.pieces("logs")) == expected
    assert [offset for offset, _ in places(machine.tier.pieces("dead_letters"))] == [place]


def test_it_is_visible_if_it_cannot_be_sealed() -> None:
    """And what comes behind it is, too, as far as there is memory."""
    disk = PickyDisk()
    machine = backlog(disk)
    disk.refused = "hot/logs/0/"
    while not machine.tier.has_frozen:
        machine.tier.step()
    machine.tier.seal()
    assert machine.tier.watermark(TOPIC) > 0
    assert_prefix(machine)
    disk.refused = ""
    machine.clock.advance(CONFIG.retry_ms)
    machine.catch_up()
    assert machine.tier.watermark(TOPIC) == COUNT
    assert_prefix(machine)


def test_it_is_visible_if_the_log_cannot_be_read() -> None:
    disk = PickyDisk()
    machine = backlog(disk)
    machine.tier.step()
    disk.unreadable = "log/"
    for _ in range(COUNT):
        machine.tier.step()
    machine.tier.seal()
    assert machine.tier.trouble is not None
    assert machine.tier.pieces("logs")[-1].name == "open"
    assert_prefix(machine)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["add", "add many", "step", "seal", "freeze", "fail"])))
def test_what_is_visible_is_always_a_prefix(acts: list[str]) -> None:
    disk = PickyDisk()
    machine = start(disk, CONFIG)
    count = before = 0
    for act in acts:
        if act.startswith("add"):
            added = 25 if act == "add many" else 1
            machine.add(*lines(count, count + added))
            count += added
        elif act == "step":
            machine.tier.step()
        elif act == "freeze":
            machine.tier.freeze()
        else:
            disk.refused = "hot/logs/0/" if act == "fail" else ""
            machine.tier.seal()
            machine.clock.advance(CONFIG.retry_ms)
        assert_prefix(machine)
        assert machine.tier.watermark(TOPIC) >= before, "rows were hidden again"
        before = machine.tier.watermark(TOPIC)
    disk.refused = ""
    machine.catch_up()
    assert machine.tier.watermark(TOPIC) == count
    assert_prefix(machine)
    again = start(disk.process_kill(), CONFIG)
    again.catch_up()
    assert_prefix(again)
