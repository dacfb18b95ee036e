"""SimClock: a clock that moves only when a test moves it."""

from __future__ import annotations

import math

from frazil.model import NS_PER_MS

NS_PER_SECOND = 1_000_000_000


class SimClock:
    """Implements `Clock`. Sleeping moves the time and returns at once."""

    def __init__(self, *, wall_ms: int = 1_700_000_000_000) -> None:
        self._monotonic_ns = 0
        self._wall_ns_at_zero = wall_ms * NS_PER_MS

    def wall_ms(self) -> int:
        return (self._wall_ns_at_zero + self._monotonic_ns) // NS_PER_MS

    def monotonic_ns(self) -> int:
        return self._monotonic_ns

    def sleep(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"cannot sleep {seconds} seconds")
        self._monotonic_ns += math.ceil(seconds * NS_PER_SECOND)

    def advance(self, ms: int) -> None:
        """Advance the wall clock and the monotonic clock."""
        assert ms >= 0, f"cannot advance by {ms} ms; use `jump_wall` to set the wall clock back"
        self._monotonic_ns += ms * NS_PER_MS

    def jump_wall(self, ms: int) -> None:
        """Move only the wall clock, forward or back, as an operator or a time server does."""
        self._wall_ns_at_zero += ms * NS_PER_MS
