"""Alarm: runs timers on the event loop when they are due."""

from __future__ import annotations

import asyncio

from frazil.kafka.groups.timers import GroupTimers

MS_PER_S = 1000


class Alarm:
    """Owned by the event loop, which owns the timers from now on."""

    def __init__(self, timers: GroupTimers) -> None:
        self._timers = timers
        self._handle: asyncio.TimerHandle | None = None
        self._at_ms = 0
        timers.on_earlier = self._wind
        self._wind()

    def _wind(self) -> None:
        """Wake up when the next timer is due."""
        next_ms = self._timers.next_ms
        if next_ms is None or (self._handle is not None and self._at_ms <= next_ms):
            return
        if self._handle is not None:
            self._handle.cancel()
        self._at_ms = next_ms
        delay_ms = max(0, next_ms - self._timers.now_ms())
        self._handle = asyncio.get_running_loop().call_later(delay_ms / MS_PER_S, self._ring)

    def _ring(self) -> None:
        self._handle = None
        self._timers.run_due()
        self._wind()

    def close(self) -> None:
        """Run no more timers."""
        self._timers.on_earlier = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
