"""ByteAllowance: how many bytes all connections together may hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from frazil.metrics import Gauge


class ByteAllowance:
    """Owned by the event loop. Those that wait are served in order."""

    def __init__(self, bytes_max: int, gauge: Gauge) -> None:
        self._bytes_max = bytes_max
        self._gauge = gauge
        self._used = 0
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def used(self) -> int:
        return self._used

    @property
    def has_room(self) -> bool:
        return self._used < self._bytes_max

    def try_take(self, count: int) -> bool:
        """Take bytes if there is room for them."""
        if self._used + count > self._bytes_max:
            return False
        self.take(count)
        return True

    def take(self, count: int) -> None:
        """Take bytes that exist already, room or not."""
        self._used += count
        self._gauge.set(self._used)

    def give(self, count: int) -> None:
        """Give bytes back. Those that wait try again."""
        self._used -= count
        assert self._used >= 0
        self._gauge.set(self._used)
        for _ in range(len(self._waiting)):
            if not self.has_room or not self._waiting:
                break
            self._waiting.popleft()()

    def wait(self, wake: Callable[[], None]) -> None:
        """Call `wake` once when bytes were given back. It may call `wait` again."""
        self._waiting.append(wake)

    def forget(self, wake: Callable[[], None]) -> None:
        """Stop waiting."""
        if wake in self._waiting:
            self._waiting.remove(wake)
