"""GroupTimers: what is to be done later. Driven by a clock, so that tests decide when that is."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from frazil.model import NS_PER_MS, Clock

CANCELLED_MAX = 1024
"""Cancelled timers that may be more than the others, before they are swept out."""


class GroupTimer:
    """One action at one time. Cancel it to have nothing done."""

    __slots__ = ("_timers", "action", "at_ms")

    def __init__(self, timers: GroupTimers, at_ms: int, action: Callable[[], None]) -> None:
        self._timers = timers
        self.at_ms = at_ms
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Do nothing when the time comes. May be called twice."""
        if self.action is not None:
            self.action = None
            self._timers.note_cancelled()


class GroupTimers:
    """Owned by one thread, which calls `run_due` at `next_ms` or later."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, GroupTimer]] = []
        self._numbers = count()
        self._cancelled = 0
        self.on_earlier: Callable[[], None] | None = None
        """Called when `next_ms` is earlier than before."""

    def now_ms(self) -> int:
        """Return milliseconds since an arbitrary moment."""
        return self._clock.monotonic_ns() // NS_PER_MS

    def after(self, delay_ms: int, action: Callable[[], None]) -> GroupTimer:
        """Run an action once, `delay_ms` from now."""
        timer = GroupTimer(self, self.now_ms() + delay_ms, action)
        heapq.heappush(self._heap, (timer.at_ms, next(self._numbers), timer))
        if self.on_earlier is not None and self._heap[0][2] is timer:
            self.on_earlier()
        return timer

    def note_cancelled(self) -> None:
        """Sweep when most timers are cancelled: clients could pile up long ones."""
        self._cancelled += 1
        if self._cancelled > max(CANCELLED_MAX, len(self._heap) // 2):
            self._heap = [entry for entry in self._heap if entry[2].action is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    @property
    def next_ms(self) -> int | None:
        """When the next timer is due; None if there is none."""
        while self._heap and self._heap[0][2].action is None:
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def run_due(self) -> None:
        """Run all timers that are due, in order of their times."""
        while (at_ms := self.next_ms) is not None and at_ms <= self.now_ms():
            _, _, timer = heapq.heappop(self._heap)
            action, timer.action = timer.action, None
            assert action is not None
            action()
