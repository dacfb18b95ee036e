"""Admission: the gate refuses at its limits, and slow reads are evicted."""

from __future__ import annotations

import asyncio
import random

import pytest

from frazil.disk import Budget
from frazil.errors import Overloaded, TooLarge, Unavailable
from frazil.ingest.admission import (
    CLOSINGS,
    IN_FLIGHT,
    IS_OPEN,
    RETRY_AFTER_MS,
    Gate,
    PendingReads,
)
from frazil.settings import IngestConfig
from tests.sim.clock import SimClock

CONFIG = IngestConfig(body_bytes_max=500, in_flight_bytes_max=1000, requests_max=4)


class Fixture:
    """A gate with a simulated clock and budget."""

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


def test_bytes_of_a_request_are_released_after_success_and_error() -> None:
    gate = Fixture().gate
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
    """The bytes in flight never exceed the limit, and the gate does not flap."""
    fixture = Fixture()
    gate, closings = fixture.gate, CLOSINGS.value(reason="in_flight")
    held = [gate.enter() for _ in range(3)]
    for reservation in held[:2]:
        reservation.take(480)
    with pytest.raises(Overloaded, match="960 of 1000 bytes are in flight"):
        held[2].take(41)
    assert IN_FLIGHT.value() == 960
    assert fixture.is_refused()
    held[2].__exit__()
    assert fixture.is_refused()  # 960 is still above half
    assert (IS_OPEN.value(), CLOSINGS.value(reason="in_flight")) == (0, closings + 1)
    held[1].__exit__()
    assert not fixture.is_refused()  # 480 is not
    assert IS_OPEN.value() == 1
    held[0].__exit__()


def test_a_body_above_the_limit_is_too_large() -> None:
    """It gets no retry hint."""
    with Fixture().gate.enter() as reservation, pytest.raises(TooLarge):
        reservation.take(1001)


def test_a_request_above_requests_max_is_refused() -> None:
    """It enters once another has left."""
    fixture = Fixture()
    held = [fixture.gate.enter() for _ in range(4)]
    assert fixture.is_refused()
    held.pop().__exit__()
    assert not fixture.is_refused()


def test_a_full_log_closes_the_gate_until_the_soft_limit() -> None:
    """The log refuses at its hard limit; requests enter again at its soft limit."""
    fixture = Fixture()
    fixture.budget.take(290)
    fixture.gate.note_full(Overloaded("full", retry_after_ms=1000))
    fixture.clock.sleep(5)
    assert fixture.is_refused()
    fixture.budget.take(-50)
    assert fixture.is_refused()  # 240 is between the soft and the hard limit
    fixture.budget.take(-40)
    assert not fixture.is_refused()


def test_a_full_disk_is_retried_after_the_hint() -> None:
    """A disk filled by others does not signal when it has room: a request finds out."""
    fixture = Fixture()
    fixture.gate.note_full(Overloaded("the disk is full", retry_after_ms=1000))
    fixture.clock.sleep(0.9)
    assert fixture.is_refused()
    fixture.clock.sleep(0.2)
    assert not fixture.is_refused()


def test_the_gate_opens_only_when_all_reasons_are_over() -> None:
    """Released bytes do not open a gate that the log keeps closed."""
    fixture = Fixture()
    fixture.budget.take(290)
    with fixture.gate.enter() as reservation, fixture.gate.enter() as other:
        reservation.take(900)
        fixture.gate.note_full(Overloaded("full", retry_after_ms=1))
        with pytest.raises(Overloaded):
            other.take(200)
    assert fixture.is_refused()
    fixture.budget.take(-290)
    fixture.clock.sleep(1)
    assert not fixture.is_refused()


def test_retry_hints_are_spread() -> None:
    """Clients refused together do not retry together."""
    fixture = Fixture()
    fixture.budget.take(290)
    fixture.gate.note_full(Overloaded("full"))
    hints = set()
    for _ in range(20):
        with pytest.raises(Overloaded, match="accepts no requests at the moment: full") as refused:
            fixture.gate.enter()
        hints.add(refused.value.retry_after_ms)
    assert len(hints) > 10
    assert all(RETRY_AFTER_MS <= hint <= 2 * RETRY_AFTER_MS for hint in hints)


def test_a_draining_gate_never_opens() -> None:
    """Draining wins over every other reason."""
    fixture = Fixture()
    with fixture.gate.enter():
        fixture.gate.drain()
        with pytest.raises(Unavailable, match="stopping"):
            fixture.gate.enter()
    fixture.gate.note_full(Overloaded("full", retry_after_ms=1))
    fixture.clock.sleep(1)
    with pytest.raises(Unavailable):
        fixture.gate.enter()
    assert IS_OPEN.value() == 0


class Read:
    """A `PendingRead` that remembers how it ended."""

    def __init__(self) -> None:
        self.ended = ""

    def time_out(self) -> None:
        self.ended = "timed out"

    def evict(self, reason: str) -> None:
        self.ended = reason


def test_the_oldest_slow_read_is_evicted_when_reads_are_crowded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With requests_max 5, two pending reads are crowded."""
    monkeypatch.setattr("frazil.ingest.admission.SLOW_S", 0.0)
    reads, slow = PendingReads(IngestConfig(requests_max=5)), [Read() for _ in range(3)]

    async def run() -> None:
        reads.add(slow[0])
        reads.evict_slowest()
        assert slow[0].ended == ""
        reads.add(slow[1])
        reads.evict_slowest()
        reads.add(slow[2])

    asyncio.run(run())
    assert "while 1 others are arriving" in slow[0].ended
    assert [read.ended for read in slow[1:]] == ["", ""]


def test_a_read_times_out_and_a_finished_one_does_not() -> None:
    reads, late, finished = PendingReads(IngestConfig(body_timeout_ms=20)), Read(), Read()

    async def run() -> None:
        reads.add(late)
        reads.add(finished)
        reads.remove(finished)
        await asyncio.sleep(0.1)

    asyncio.run(run())
    assert (late.ended, finished.ended) == ("timed out", "")
