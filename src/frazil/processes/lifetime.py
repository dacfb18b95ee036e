"""A process that must not outlive the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import threading

PR_SET_PDEATHSIG = 1
CHECK_S = 1.0
"""How often a process looks for its parent, where the kernel does not watch it."""


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, also if it is stuck. Only Linux can
    do that; elsewhere a thread looks for the parent."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    threading.Thread(target=_watch, args=(os.getppid(),), name="frazil-parent", daemon=True).start()


def _watch(parent: int) -> None:
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(CHECK_S)
    os.kill(os.getpid(), signal.SIGKILL)
