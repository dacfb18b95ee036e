"""CommitSignal: tells another process that something new is durable. A counter in the kernel;
where there is none, as on macOS, a socket.

The owner of the log adds to it after every group commit, which takes a microsecond and never
waits. One thread of the observing process sleeps on it and wakes those who wait for records.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from frazil.model import Clock

COALESCE_S = 0.003
"""Pause after a wake-up: commits in between are one. A lone producer commits every half
millisecond, and waking readers each time would take the core that its client runs on."""
READ_BYTES = 4096
"""A counter takes 8; many signals through a socket are one."""
CHECK_S = 1.0
"""How often the waiting thread checks for the stop."""


class CommitSignal:
    """The owner's end. Never closed before the log."""

    def __init__(self) -> None:
        if hasattr(os, "eventfd"):
            self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            return
        self._theirs, self._ours = socket.socketpair()
        self._theirs.setblocking(False)
        self._ours.setblocking(False)
        self.descriptor = self._theirs.fileno()

    def notify(self) -> None:
        if hasattr(os, "eventfd"):
            os.eventfd_write(self.descriptor, 1)
            return
        with suppress(BlockingIOError):  # the observer has not read the signals before
            self._ours.send(b"c")


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
                with suppress(BlockingIOError):  # read by the observer before this one
                    os.read(self._descriptor, READ_BYTES)
                with self._committed:
                    self._committed.notify_all()
                self._clock.sleep(COALESCE_S)

    def close(self) -> None:
        self._is_closed = True
        if hasattr(os, "eventfd"):
            os.eventfd_write(self._descriptor, 1)
        self._thread.join()
        os.close(self._descriptor)
