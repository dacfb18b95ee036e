"""EngineLoop: one thread that awaits the engine for all queries and enforces their time limits."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import threading
import weakref
from collections.abc import Callable
from typing import Any

QUIET_WAIT_S = 0.5
"""How long the end of the program waits for the engine's threads to leave Python."""
QUIET_STEP_S = 0.005
QUIET_STEPS = 4
"""In so many steps one after the other none of them is there: one may be about to come back."""


class Timer:
    """Something that will happen, unless it is called off."""

    def __init__(self, loop: EngineLoop, delay_s: float, work: Callable[[], None]) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None
        self._is_off = False
        loop.run(lambda: self._set(delay_s, work))

    def _set(self, delay_s: float, work: Callable[[], None]) -> None:
        if not self._is_off:
            self._handle = asyncio.get_running_loop().call_later(delay_s, work)

    def call_off(self) -> None:
        self._is_off = True
        self._loop.run(self._unset)

    def _unset(self) -> None:
        if self._handle is not None:
            self._handle.cancel()


class EngineLoop:
    """The engine hands out results as futures of an event loop: this is that loop. Nothing in it
    takes time; rows are worked out by the engine's threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._awaited: set[asyncio.Future[Any]] = set()
        self._thread = threading.Thread(target=self._serve, name="frazil-query", daemon=True)
        self._thread.start()
        _OPEN.add(self)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def run(self, work: Callable[[], Any]) -> bool:
        """Have this done in the loop's thread. False after `close`: then it is not."""
        try:
            self._loop.call_soon_threadsafe(work)
        except RuntimeError:
            return False
        return True

    def later(self, delay_s: float, work: Callable[[], None]) -> Timer:
        return Timer(self, delay_s, work)

    def await_for(self, pending: asyncio.Future[Any]) -> None:
        """Remember what the engine was asked for, in the loop's thread."""
        self._awaited.add(pending)
        pending.add_done_callback(self._awaited.discard)

    def close(self) -> None:
        """Call off what the engine was asked for, and end the thread."""
        _OPEN.discard(self)
        self.run(self._stop)
        self._thread.join()

    def _stop(self) -> None:
        for pending in list(self._awaited):
            pending.cancel()
        self._loop.call_soon(self._loop.stop)


_OPEN: weakref.WeakSet[EngineLoop] = weakref.WeakSet()


@atexit.register
def _end() -> None:
    """Before the interpreter goes: end loops that nobody has closed, and let the engine's threads
    finish what they do in Python. One that came back later would find no interpreter and crash."""
    for loop in list(_OPEN):
        loop.close()
    pause, quiet = threading.Event(), 0
    for _ in range(int(QUIET_WAIT_S / QUIET_STEP_S)):
        quiet = quiet + 1 if _thread_states() <= threading.active_count() else 0
        if quiet == QUIET_STEPS:
            return
        pause.wait(QUIET_STEP_S)


def _thread_states() -> int:
    """How many threads are in Python, those included that Python has not started."""
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
