"""Forked processes, which are killed without hitting another one of the same number."""

from __future__ import annotations

import os
import select
import signal
import socket
from contextlib import suppress


def fork_process() -> tuple[int, int]:
    """Fork. Returns the process, 0 in the child, and a descriptor that is readable once the
    process has ended; any process may have a copy of it."""
    if hasattr(os, "pidfd_open"):
        pid = os.fork()
        return pid, os.pidfd_open(pid) if pid else -1
    # As on macOS: the child holds one end for as long as it lives.
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, ours.detach()
    ours.close()
    return pid, theirs.detach()


def has_ended(descriptor: int) -> bool:
    """Return whether the process of this descriptor has ended."""
    return bool(select.select([descriptor], [], [], 0)[0])


def kill_process(pid: int, descriptor: int) -> None:
    """Kill the process of this descriptor, unless it has ended."""
    with suppress(ProcessLookupError):
        if hasattr(signal, "pidfd_send_signal"):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        elif not has_ended(descriptor):
            os.kill(pid, signal.SIGKILL)
