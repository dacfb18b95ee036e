"""Clocks: wall time may jump, durations may not."""

from __future__ import annotations

import time

import pytest

from frazil.model import NS_PER_MS, SteadyTime, SystemClock
from tests.sim.clock import SimClock


def test_system_clock_returns_system_time() -> None:
    clock = SystemClock()
    before, wall_ms, after = time.time_ns(), clock.wall_ms(), time.time_ns()
    assert before // NS_PER_MS <= wall_ms <= after // NS_PER_MS
    readings = [clock.monotonic_ns() for _ in range(100)]
    assert readings == sorted(readings)


def test_system_clock_sleeps_at_least_as_long_as_asked() -> None:
    clock = SystemClock()
    begin_ns = clock.monotonic_ns()
    clock.sleep(0.002)
    assert clock.monotonic_ns() - begin_ns >= 2 * NS_PER_MS


def test_steady_time_starts_at_wall_time_and_advances() -> None:
    clock = SimClock(wall_ms=5_000)
    steady = SteadyTime(clock)
    assert steady.now_ms() == 5_000
    clock.advance(250)
    assert steady.now_ms() == 5_250
    clock.sleep(0.0009)
    assert steady.now_ms() == 5_250
    clock.sleep(0.0001)
    assert steady.now_ms() == 5_251


@pytest.mark.parametrize("jump_ms", [3_600_000, -3_600_000, -1_700_000_000_000, 2**45])
def test_steady_time_ignores_clock_jumps(jump_ms: int) -> None:
    """An hour either way, 1970 or the far future."""
    clock = SimClock()
    steady = SteadyTime(clock)
    before_ms = steady.now_ms()
    clock.jump_wall(jump_ms)
    assert steady.now_ms() == before_ms
    clock.advance(10)
    assert steady.now_ms() == before_ms + 10
    assert clock.wall_ms() == before_ms + jump_ms + 10
