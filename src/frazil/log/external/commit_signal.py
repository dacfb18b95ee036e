"""CommitSignal: tells another process that something new is durable. A counter in the kernel.

The owner of the log adds to it after every group commit, which takes a microsecond and never
waits. One thread of the observing process sleeps on it and wakes those who wait for records.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

from frazil.model import Clock

COALESCE_S = 0.001
"""Pause after a wake-up: commits in between are one."""
CHECK_S = 1.0
"""How often the waiting thread checks for the stop."""


class CommitSignal:
    """The owner's end. Never closed before the log."""

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def notify(self) -> None:
        os.eventfd_write(self.descriptor, 1)


class CommitWaiter:
    """The observer's end, with a thread of its own. Any thread may wait."""

    def __init__(self, descriptor: int, clock: Clock) -> None:
        self._descriptor = descriptor
        self._clock = clock
        self._committed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, name="frazil-commits", daemon=True)
        self._thread.start()

    def wait_for(self, is_true: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until a condition holds, checked after every commit. Returns False on timeout."""
        with self._committed:
            return self._committed.wait_for(is_true, timeout_s)

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        while not self._is_closed:
            if poll.poll(int(CHECK_S * 1000)):
                os.eventfd_read(self._descriptor)
                with self._committed:
                    self._committed.notify_all()
                self._clock.sleep(COALESCE_S)

    def close(self) -> None:
        self._is_closed = True
        os.eventfd_write(self._descriptor, 1)
        self._thread.join()
        os.close(self._descriptor)
