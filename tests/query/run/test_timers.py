"""Timers: calls at their time, and none after they were cancelled."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from frazil.model import SystemClock
from frazil.query.run.timers import SWEEP_COUNT_MIN, Timers


@pytest.fixture
def timers() -> Iterator[Timers]:
    opened = Timers(SystemClock())
    yield opened
    opened.close()


def test_cancelled_timers_are_not_kept(timers: Timers) -> None:
    """Each query adds one that would be due in a minute."""
    called = threading.Event()
    kept = timers.later(3600, called.set)
    for _ in range(100 * SWEEP_COUNT_MIN):
        timers.later(3600, called.set).cancel()
    assert len(timers._due) <= SWEEP_COUNT_MIN + 1
    assert any(timer is kept for _, _, timer in timers._due)
    timers.later(0, called.set)
    assert called.wait(60)
