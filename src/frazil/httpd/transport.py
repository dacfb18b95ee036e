"""PatientTransport: a socket with flow control that is closed gracefully, in bounded time."""

from __future__ import annotations

import asyncio


class PatientTransport:
    """A client's socket. On close it lets the client fetch its response, within a time limit.

    Closing a socket with unread input sends a reset, and the client may lose the response that
    says why. So when input is unread, `close` only ends our side; the client's further bytes are
    received and dropped until it closes too, or the time limit is over.
    """

    def __init__(
        self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop, fetch_timeout_s: float
    ) -> None:
        self._fetch_timeout_s = fetch_timeout_s
        self._inner = inner
        self._loop = loop
        self._is_closing = False
        self._is_reading = True
        self._writable = asyncio.Event()
        self._deadline: asyncio.TimerHandle | None = None
        self.is_write_paused = False
        self.write = inner.write
        self.abort = inner.abort
        self.is_unread = False
        """Is the client's further input dropped?"""

    @property
    def client(self) -> object:
        """The client's address."""
        return self._inner.get_extra_info("peername")

    def is_closing(self) -> bool:
        return self._is_closing or self._inner.is_closing()

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self._begin_deadline()
        if not self.is_unread:
            self._inner.close()
            return
        self.resume_reading()
        if self._inner.can_write_eof():
            self._inner.write_eof()

    def on_lost(self) -> None:
        """The connection is gone: stop the timer and wake writers."""
        self._is_closing = True
        self.resume_writing()
        if self._deadline is not None:
            self._deadline.cancel()

    def pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._inner.pause_reading()

    def resume_reading(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self._inner.resume_reading()

    def pause_writing(self) -> None:
        """The write buffer is full: cut the client off if it does not read."""
        self.is_write_paused = True
        self._writable.clear()
        self._begin_deadline()

    def resume_writing(self) -> None:
        self.is_write_paused = False
        self._writable.set()
        if self._deadline is not None and not self._is_closing:
            self._deadline.cancel()
            self._deadline = None

    async def drain(self) -> None:
        """Wait until the write buffer has room. To be called while `is_write_paused`."""
        await self._writable.wait()

    def _begin_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self._loop.call_later(self._fetch_timeout_s, self._inner.abort)
