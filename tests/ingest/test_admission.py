"""The gate: full means a polite no, and no fluttering."""

from __future__ import annotations

import random

import pytest

from frazil.disk import Budget
from frazil.errors import Overloaded, TooLarge, Unavailable
from frazil.ingest.admission import CLOSINGS, IN_FLIGHT, IS_OPEN, RETRY_AFTER_MS, Gate
from frazil.ingest.config import IngestConfig
from tests.sim.clock import SimClock

CONFIG = IngestConfig(body_bytes_max=500, in_flight_bytes_max=1000, requests_max=4)


class Situation:
    """A gate with its clock and its budget in hand."""

    def __init__(self) -> None:
        self.clock = SimClock()
        self.budget = Budget(hard_bytes_max=300, segment_bytes_max=100)
        self.gate = Gate(CONFIG, self.budget, self.clock, random.Random(7))

    def is_refused(self) -> bool:
        try:
            with self.gate.enter():
                return False
        except Overloaded:
            return True


def test_bytes_in_hand_are_counted_and_given_back() -> None:
    """Whatever a request holds is free again once it is answered, also after an error."""
    gate = Situation().gate
    with gate.enter() as reservation:
        reservation.take(300)
        reservation.take(200)
        assert IN_FLIGHT.value() == 500
    with pytest.raises(ZeroDivisionError), gate.enter() as reservation:
        reservation.take(400)
        raise ZeroDivisionError
    assert IN_FLIGHT.value() == 0
    assert gate.status().request_count == 0


def test_the_gate_closes_at_the_limit_and_opens_at_half() -> None:
    """High and low watermark: nothing above the limit is ever held, and nothing flutters."""
    situation = Situation()
    gate, closings = situation.gate, CLOSINGS.value(reason="in_flight")
    held = [gate.enter() for _ in range(3)]
    for reservation in held[:2]:
        reservation.take(480)
    with pytest.raises(Overloaded, match="960 of 1000 bytes are in flight"):
        held[2].take(41)
    assert IN_FLIGHT.value() == 960
    assert situation.is_refused()
    held[2].__exit__()
    assert situation.is_refused()  # 960 is still above half
    assert (IS_OPEN.value(), CLOSINGS.value(reason="in_flight")) == (0, closings + 1)
    held[1].__exit__()
    assert not situation.is_refused()  # 480 is not
    assert IS_OPEN.value() == 1
    held[0].__exit__()


def test_what_could_never_fit_is_too_large() -> None:
    """A body above the limit is not told to come back."""
    with Situation().gate.enter() as reservation, pytest.raises(TooLarge):
        reservation.take(1001)


def test_requests_are_bounded() -> None:
    """One more than requests_max waits outside, and enters when somebody has left."""
    situation = Situation()
    held = [situation.gate.enter() for _ in range(4)]
    assert situation.is_refused()
    held.pop().__exit__()
    assert not situation.is_refused()


def test_a_full_log_closes_the_gate_until_there_is_room() -> None:
    """The log refuses at its hard cap; nobody enters until it is down at its soft cap."""
    situation = Situation()
    situation.budget.take(290)
    situation.gate.note_full(Overloaded("full", retry_after_ms=1000))
    situation.clock.sleep(5)
    assert situation.is_refused()
    situation.budget.take(-50)
    assert situation.is_refused()  # 240 is below the hard cap and above the soft one
    situation.budget.take(-40)
    assert not situation.is_refused()


def test_a_full_disk_is_tried_again_after_the_hint() -> None:
    """A disk that others filled gives no sign when it has room: one request finds out."""
    situation = Situation()
    situation.gate.note_full(Overloaded("the disk is full", retry_after_ms=1000))
    situation.clock.sleep(0.9)
    assert situation.is_refused()
    situation.clock.sleep(0.2)
    assert not situation.is_refused()


def test_two_reasons_must_both_be_over() -> None:
    """Bytes that are given back do not open a gate that the log keeps closed."""
    situation = Situation()
    situation.budget.take(290)
    with situation.gate.enter() as reservation, situation.gate.enter() as other:
        reservation.take(900)
        situation.gate.note_full(Overloaded("full", retry_after_ms=1))
        with pytest.raises(Overloaded):
            other.take(200)
    assert situation.is_refused()
    situation.budget.take(-290)
    situation.clock.sleep(1)
    assert not situation.is_refused()


def test_refusals_say_when_to_come_back_and_not_all_the_same() -> None:
    """Senders that were refused together do not come back together."""
    situation = Situation()
    situation.budget.take(290)
    situation.gate.note_full(Overloaded("full"))
    hints = set()
    for _ in range(20):
        with pytest.raises(Overloaded, match="accepts no requests at the moment: full") as refused:
            situation.gate.enter()
        hints.add(refused.value.retry_after_ms)
    assert len(hints) > 10
    assert all(RETRY_AFTER_MS <= hint <= 2 * RETRY_AFTER_MS for hint in hints)


def test_a_draining_gate_never_opens() -> None:
    """A node that stops says so, whatever else it could say."""
    situation = Situation()
    with situation.gate.enter():
        situation.gate.drain()
        with pytest.raises(Unavailable, match="stopping"):
            situation.gate.enter()
    situation.gate.note_full(Overloaded("full", retry_after_ms=1))
    situation.clock.sleep(1)
    with pytest.raises(Unavailable):
        situation.gate.enter()
    assert IS_OPEN.value() == 0
