"""CancelToken: cancels whatever a query is doing, for a client's cancel or a timeout."""

from __future__ import annotations

import threading
from typing import Protocol

from frazil.errors import FrazilError


class Cancellable(Protocol):
    """Work that can be cancelled from another thread. A `CancelToken` is one, too."""

    def cancel(self, error: FrazilError) -> None: ...


class CancelToken:
    """Cancels the attached work, and any work attached later. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work: Cancellable | None = None
        self._error: FrazilError | None = None

    def attach(self, work: Cancellable | None) -> None:
        """Make `work` what `cancel` cancels. Cancels it and raises if the token is cancelled."""
        with self._lock:
            self._work = work
            error = self._error
        if error is not None:
            if work is not None:
                work.cancel(error)
            raise error

    def check(self) -> None:
        """Raise the error the token was cancelled with, if it was."""
        if self._error is not None:
            raise self._error

    def cancel(self, error: FrazilError) -> None:
        """Cancel the attached work with `error`. Only the first call counts."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            work = self._work
        if work is not None:
            work.cancel(error)

    def detach(self) -> None:
        """Forget the attached work, which has ended."""
        with self._lock:
            self._work = None
