"""PatientTransport: a socket that is closed politely, and in bounded time."""

from __future__ import annotations

import asyncio
from typing import Any


class PatientTransport(asyncio.Transport):
    """A transport that, when closed, waits for the client to fetch his answer, but not forever.

    Closing a socket on which something is unread makes the system tell the client that it is
    broken, and he may never see the answer that says why. So what he still sends is read, and
    thrown away by whoever reads it, until he closes as well or time is up.
    """

    def __init__(
        self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop, fetch_timeout_s: float
    ) -> None:
        super().__init__()
        self._fetch_timeout_s = fetch_timeout_s
        self._inner = inner
        self._loop = loop
        self._is_closing = False
        self._deadline: asyncio.TimerHandle | None = None
        self.is_unread = False
        """May the client have sent, or be sending, what nobody will read?"""

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self.begin_deadline()
        if not self.is_unread:
            self._inner.close()
            return
        self._inner.resume_reading()
        if self._inner.can_write_eof():
            self._inner.write_eof()

    def begin_deadline(self) -> None:
        """The client has something to fetch; cut him off if he does not."""
        if self._deadline is None:
            self._deadline = self._loop.call_later(self._fetch_timeout_s, self._inner.abort)

    def end_deadline(self) -> None:
        """He has fetched enough to go on."""
        if self._deadline is not None and not self._is_closing:
            self._deadline.cancel()
            self._deadline = None

    def forget(self) -> None:
        """The connection is gone: there is nothing to wait for."""
        self._is_closing = True
        if self._deadline is not None:
            self._deadline.cancel()

    def is_closing(self) -> bool:
        return self._is_closing or self._inner.is_closing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._inner.write(data)

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def abort(self) -> None:
        self._inner.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)
