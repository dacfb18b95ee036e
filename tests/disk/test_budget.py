"""The budget: room is counted, old data goes before new data is refused."""

from __future__ import annotations

import pytest

from frazil.disk import Budget
from frazil.disk.budget import REFUSED, USED
from frazil.errors import Overloaded


def budget() -> Budget:
    return Budget(hard_bytes_max=1000, segment_bytes_max=300)


def test_admits_up_to_the_hard_cap_and_not_a_byte_more() -> None:
    """The last byte of room may be used; asking takes nothing."""
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


def test_is_tight_one_segment_before_it_is_full() -> None:
    """Releasing starts before refusing does."""
    room = budget()
    room.take(700)
    assert not room.is_tight
    room.take(1)
    assert room.is_tight
    room.admit(299)


def test_heals_when_bytes_are_given_back() -> None:
    """Refused at one moment, admitted after a release."""
    room = budget()
    room.take(1000)
    with pytest.raises(Overloaded):
        room.admit(1)
    room.take(-400)
    assert USED.value() == 600
    assert not room.is_tight
    room.admit(400)


def test_is_tight_for_whoever_was_refused() -> None:
    """A large batch below the soft cap, which fits only when something goes."""
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


def test_a_log_that_is_found_over_its_cap_only_refuses() -> None:
    """The cap may have been lowered between two starts: counting goes on, nothing breaks."""
    room = budget()
    room.take(5000)
    assert room.is_tight
    with pytest.raises(Overloaded):
        room.admit(0)


def test_never_counts_below_nothing() -> None:
    """More given back than taken is a broken invariant, not a free lunch."""
    room = budget()
    room.take(10)
    with pytest.raises(AssertionError):
        room.take(-11)


def test_the_hard_cap_leaves_room_for_a_segment() -> None:
    """A budget without a soft cap above zero is refused."""
    with pytest.raises(AssertionError):
        Budget(hard_bytes_max=300, segment_bytes_max=300)


def test_a_small_append_does_not_forget_the_room_a_larger_one_wants() -> None:
    """Whoever was refused finds room when it comes back, even if smaller ones get in meanwhile."""
    budget = Budget(hard_bytes_max=1000, segment_bytes_max=100)
    budget.take(800)
    with pytest.raises(Overloaded):
        budget.admit(300)
    budget.admit(10)
    assert budget.is_tight
    budget.take(-200)
    assert not budget.is_tight
    budget.admit(300)
