"""EngineLoop: one thread that awaits DataFusion for all queries and runs their timers."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import threading
import weakref
from collections.abc import Callable
from typing import Any

QUIET_WAIT_S = 0.5
"""Longest wait at exit for DataFusion's threads to leave Python."""
QUIET_STEP_S = 0.005
QUIET_STEPS = 4
"""Consecutive steps without such a thread: one may be about to enter Python again."""


class Timer:
    """A call that is due later, unless it is cancelled."""

    def __init__(self, loop: EngineLoop, delay_s: float, work: Callable[[], None]) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None
        self._is_cancelled = False
        loop.run(lambda: self._schedule(delay_s, work))

    def _schedule(self, delay_s: float, work: Callable[[], None]) -> None:
        if not self._is_cancelled:
            self._handle = asyncio.get_running_loop().call_later(delay_s, work)

    def cancel(self) -> None:
        self._is_cancelled = True
        self._loop.run(self._clear)

    def _clear(self) -> None:
        if self._handle is not None:
            self._handle.cancel()


class EngineLoop:
    """The asyncio loop whose futures DataFusion resolves, in a thread of its own. Nothing in it
    blocks: DataFusion's own threads compute the rows."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._pending: set[asyncio.Future[Any]] = set()
        self._thread = threading.Thread(target=self._serve, name="frazil-query", daemon=True)
        self._thread.start()
        _OPEN.add(self)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def run(self, work: Callable[[], Any]) -> bool:
        """Call `work` in the loop's thread. Return False, without calling it, after `close`."""
        try:
            self._loop.call_soon_threadsafe(work)
        except RuntimeError:
            return False
        return True

    def later(self, delay_s: float, work: Callable[[], None]) -> Timer:
        return Timer(self, delay_s, work)

    def track(self, pending: asyncio.Future[Any]) -> None:
        """Cancel this future at `close`. Called in the loop's thread."""
        self._pending.add(pending)
        pending.add_done_callback(self._pending.discard)

    def close(self) -> None:
        """Cancel pending futures and end the thread."""
        _OPEN.discard(self)
        self.run(self._stop)
        self._thread.join()

    def _stop(self) -> None:
        for pending in list(self._pending):
            pending.cancel()
        self._loop.call_soon(self._loop.stop)


_OPEN: weakref.WeakSet[EngineLoop] = weakref.WeakSet()


@atexit.register
def _wait_for_threads() -> None:
    """Close open loops at exit and wait until DataFusion's threads have left Python: a thread that
    enters after the interpreter has ended crashes the process."""
    for loop in list(_OPEN):
        loop.close()
    pause, quiet = threading.Event(), 0
    for _ in range(int(QUIET_WAIT_S / QUIET_STEP_S)):
        quiet = quiet + 1 if _thread_states() <= threading.active_count() else 0
        if quiet == QUIET_STEPS:
            return
        pause.wait(QUIET_STEP_S)


def _thread_states() -> int:
    """Count the threads that have a Python state, also those that Python did not start."""
    api = ctypes.pythonapi
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    api.PyInterpreterState_ThreadHead.restype = ctypes.c_void_p
    api.PyInterpreterState_ThreadHead.argtypes = [ctypes.c_void_p]
    api.PyThreadState_Next.restype = ctypes.c_void_p
    api.PyThreadState_Next.argtypes = [ctypes.c_void_p]
    count = 0
    state = api.PyInterpreterState_ThreadHead(api.PyInterpreterState_Get())
    while state:
        count += 1
        state = api.PyThreadState_Next(state)
    return count
