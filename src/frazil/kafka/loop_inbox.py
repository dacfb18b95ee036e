"""LoopInbox: calls from other threads, run on the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class LoopInbox:
    """Any thread may call `put`. Many calls wake the loop once: a group commit completes many
    batches, and each wake-up costs a system call."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Callable[[], None]] = deque()
        self._is_awake = False

    def put(self, call: Callable[[], None]) -> None:
        self._calls.append(call)
        if not self._is_awake:
            self._is_awake = True
            self._loop.call_soon_threadsafe(self._drain)

    def call_soon(self, call: Callable[[], None]) -> None:
        """Have a function called in the next turn. Only for the thread of the loop."""
        self._loop.call_soon(call)

    def _drain(self) -> None:
        # Before the first call is taken: a call that is put now wakes the loop again.
        self._is_awake = False
        while self._calls:
            self._calls.popleft()()
