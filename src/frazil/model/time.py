"""Clocks and randomness. Both are passed in, so that a seed replays a run."""

from __future__ import annotations

import random
import time
from typing import Protocol

NS_PER_MS = 1_000_000

Rand = random.Random
"""Source of randomness; tests pass a seeded one."""

SystemRand = random.SystemRandom
"""The operating system's randomness, for production."""


class Clock(Protocol):
    """Two clocks and a sleep. Implemented by `SystemClock` and by the tests' `SimClock`."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970. May jump in either direction."""

    def monotonic_ns(self) -> int:
        """Return nanoseconds since an arbitrary moment. Never goes back."""

    def sleep(self, seconds: float) -> None:
        """Wait at least this long."""


class SystemClock:
    """The operating system's clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // NS_PER_MS

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class SteadyTime:
    """Wall time that does not jump with the wall clock.

    Reads the wall clock once and then adds monotonic time, so that a wrong date set while running
    never makes data look old enough to expire.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall_ms = clock.wall_ms()
        self._monotonic_ns = clock.monotonic_ns()

    def now_ms(self) -> int:
        elapsed_ns = self._clock.monotonic_ns() - self._monotonic_ns
        return self._wall_ms + elapsed_ns // NS_PER_MS
