"""CancelToken: what a cancel and a time limit pull at, whatever the query is doing just now."""

from __future__ import annotations

import threading
from typing import Protocol

from frazil.errors import FrazilError


class Stoppable(Protocol):
    """Something that can be ended from another thread."""

    def stop(self, error: FrazilError) -> None: ...


class CancelToken:
    """Holds one thing at a time. Pulled once, it stops that thing and all that come after."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: Stoppable | None = None
        self._error: FrazilError | None = None

    def hold(self, thing: Stoppable | None) -> None:
        """From now on a pull stops this. Raises the error if it was pulled already."""
        with self._lock:
            self._held = thing
            error = self._error
        if error is not None:
            if thing is not None:
                thing.stop(error)
            raise error

    def check(self) -> None:
        """Raises the error if it was pulled already."""
        if self._error is not None:
            raise self._error

    def pull(self, error: FrazilError) -> None:
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            held = self._held
        if held is not None:
            held.stop(error)

    def let_go(self) -> None:
        """It is over: nothing is left to stop."""
        with self._lock:
            self._held = None
