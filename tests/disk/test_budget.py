"""The budget: space is counted, old data is removed before new data is refused."""

from __future__ import annotations

import pytest

from frazil.disk import Budget, DiskReserve
from frazil.disk.budget import REFUSED, USED
from frazil.errors import Overloaded
from tests.sim.disk import Faults, SimDisk


def budget() -> Budget:
    return Budget(hard_bytes_max=1000, segment_bytes_max=300)


def test_appends_are_admitted_up_to_the_hard_cap() -> None:
    """`admit` reserves nothing."""
    room = budget()
    room.take(900)
    for _ in range(3):
        room.admit(100)
    refused_before = REFUSED.value()
    with pytest.raises(Overloaded, match=r"900 of 1000 bytes.*raise log\.disk_bytes_max") as caught:
        room.admit(101)
    assert caught.value.retry_after_ms > 0
    assert REFUSED.value() == refused_before + 1
    assert room.used_bytes == 900


def test_it_is_tight_one_segment_below_the_hard_cap() -> None:
    room = budget()
    room.take(700)
    assert not room.is_tight
    room.take(1)
    assert room.is_tight
    room.admit(299)


def test_appends_are_admitted_again_once_bytes_are_freed() -> None:
    room = budget()
    room.take(1000)
    with pytest.raises(Overloaded):
        room.admit(1)
    room.take(-400)
    assert USED.value() == 600
    assert not room.is_tight
    room.admit(400)


def test_it_is_tight_after_a_refused_append() -> None:
    """A large batch below the soft cap that fits only if something is removed."""
    room = budget()
    room.take(600)
    with pytest.raises(Overloaded):
        room.admit(500)
    assert room.is_tight
    room.take(-100)
    assert not room.is_tight
    room.admit(500)


def test_a_full_disk_is_tight_until_something_changes() -> None:
    """Whatever the caps say. Once bytes have gone, or fitted, it must be told anew: otherwise one
    full disk would drive out everything there is."""
    for change in (-1, 1):
        room = budget()
        room.take(10)
        room.note_full()
        assert room.is_tight
        room.take(0)
        assert room.is_tight
        room.take(change)
        assert not room.is_tight


def test_a_log_above_its_cap_at_open_refuses_appends() -> None:
    """The cap may have been lowered between two starts."""
    room = budget()
    room.take(5000)
    assert room.is_tight
    with pytest.raises(Overloaded):
        room.admit(0)


def test_freeing_more_than_used_is_an_assertion_error() -> None:
    room = budget()
    room.take(10)
    with pytest.raises(AssertionError):
        room.take(-11)


def test_the_hard_cap_must_exceed_a_segment() -> None:
    with pytest.raises(AssertionError):
        Budget(hard_bytes_max=300, segment_bytes_max=300)


def test_a_small_append_keeps_the_claim_of_a_larger_one() -> None:
    """A refused append finds space at its retry, even if smaller ones fit meanwhile."""
    budget = Budget(hard_bytes_max=1000, segment_bytes_max=100)
    budget.take(800)
    with pytest.raises(Overloaded):
        budget.admit(300)
    budget.admit(10)
    assert budget.is_tight
    budget.take(-200)
    assert not budget.is_tight
    budget.admit(300)


def test_the_disk_gives_way_in_two_steps() -> None:
    """First what need not be kept is removed, then appends are refused; both end by themselves."""
    disk = SimDisk(faults=Faults(capacity_bytes=1000))
    reserve = DiskReserve(disk, 100)
    room = Budget(hard_bytes_max=1000, segment_bytes_max=300, reserve=reserve)
    for free, missing, is_short, is_used in (
        (200, 0, False, False),
        (199, 1, True, False),
        (100, 100, True, False),
        (99, 101, True, True),
        (0, 200, True, True),
        (150, 50, True, False),
        (1000, 0, False, False),
    ):
        disk.faults.capacity_bytes = free
        assert reserve.missing_bytes() == missing
        room.check_space()
        assert (room.is_disk_short, room.should_release) == (is_short, is_short)
        assert (room.is_reserve_used, room.is_full, room.has_room) == (
            is_used,
            is_used,
            not is_used,
        )
        assert not room.is_tight, "nothing that is needed is dropped"
        if is_used:
            with pytest.raises(Overloaded, match="the disk is full"):
                room.admit(1)
        else:
            room.admit(1)


def test_without_a_reserve_the_disk_is_not_looked_at() -> None:
    disk = SimDisk(faults=Faults(capacity_bytes=0))
    room = Budget(hard_bytes_max=1000, segment_bytes_max=300, reserve=DiskReserve(disk, 0))
    room.check_space()
    assert not room.is_disk_short
    room.admit(1)
