"""Time and chance, passed in everywhere so that a seed replays a run."""

from __future__ import annotations

import random
import time
from typing import Protocol

NS_PER_MS = 1_000_000

Rand = random.Random
"""The source of randomness a component is given; a test gives a seeded one."""

SystemRand = random.SystemRandom
"""The machine's own chance, for a program that runs for real."""


class Clock(Protocol):
    """Two clocks and a way to wait. Implemented by `SystemClock` and by the tests' `SimClock`."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, as a human would tell them. May jump either way."""

    def monotonic_ns(self) -> int:
        """Nanoseconds since some fixed moment. Never goes back; says nothing about the date."""

    def sleep(self, seconds: float) -> None:
        """Wait at least this long."""


class SystemClock:
    """The machine's own clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // NS_PER_MS

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class SteadyTime:
    """Wall time that keeps going when the wall clock jumps.

    Reads the wall clock once and afterwards adds monotonic time, so that a date set wrongly
    while we run never makes data look old enough to expire.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall_ms = clock.wall_ms()
        self._monotonic_ns = clock.monotonic_ns()

    def now_ms(self) -> int:
        elapsed_ns = self._clock.monotonic_ns() - self._monotonic_ns
        return self._wall_ms + elapsed_ns // NS_PER_MS
