"""Timers: one thread that makes calls at their time: timeouts, checks of memory, idle workers."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable

from frazil.model import Clock

logger = logging.getLogger(__name__)

NS_PER_S = 1_000_000_000
SWEEP_COUNT_MIN = 256
"""From this many timers on, cancelled ones are removed before they are due."""


class Timer:
    """A call that is due later, unless it is cancelled."""

    __slots__ = ("is_cancelled", "work")

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Timers:
    """Any thread may add a call. Calls are short and do not wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._due: list[tuple[int, int, Timer]] = []
        self._sweep_count = SWEEP_COUNT_MIN
        self._numbers = itertools.count()
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, name="frazil-query", daemon=True)
        self._thread.start()

    def later(self, delay_s: float, work: Callable[[], None]) -> Timer:
        """Call `work` after a time. After `close` it is never called."""
        timer = Timer(work)
        due_ns = self._clock.monotonic_ns() + int(delay_s * NS_PER_S)
        with self._changed:
            heapq.heappush(self._due, (due_ns, next(self._numbers), timer))
            if len(self._due) > self._sweep_count:
                self._sweep()
            self._changed.notify()
        return timer

    def _sweep(self) -> None:
        """Remove cancelled timers, which keep what they would have called. Most are cancelled, and
        would be due in a minute."""
        self._due = [entry for entry in self._due if not entry[2].is_cancelled]
        heapq.heapify(self._due)
        self._sweep_count = max(SWEEP_COUNT_MIN, 2 * len(self._due))

    def _serve(self) -> None:
        while (timer := self._next()) is not None:
            try:
                timer.work()
            except Exception:  # top of loop: one call must not end the others
                logger.exception("timer failed")

    def _next(self) -> Timer | None:
        """Wait for the next call; None after `close`."""
        with self._changed:
            while not self._is_closed:
                wait_s = None
                if self._due:
                    due_ns, _, timer = self._due[0]
                    wait_s = (due_ns - self._clock.monotonic_ns()) / NS_PER_S
                    if timer.is_cancelled or wait_s <= 0:
                        heapq.heappop(self._due)
                        if not timer.is_cancelled:
                            return timer
                        continue
                self._changed.wait(wait_s)
        return None

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()
