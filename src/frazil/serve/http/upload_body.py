"""UploadBody: carries the body of a request to the thread that writes it, a few chunks ahead."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from frazil.errors import Unavailable
from frazil.httpd import ClientGone, HttpError
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest

CHUNKS_AHEAD = 16
"""Chunks that wait for the thread. The connection decides how large one is."""

T = TypeVar("T")


async def write_body(
    handler: Handler, request: ApiRequest, write: Callable[[Iterator[bytes]], T]
) -> T:
    """Run `write` in a thread with the chunks of a body, and return its result. If the client or
    the node stops, `write` gets `Unavailable` instead of a chunk."""
    body = UploadBody(asyncio.get_running_loop())
    pump = asyncio.create_task(body.pump(request))
    writing = asyncio.ensure_future(handler.run(lambda: write(body.chunks())))
    try:
        await asyncio.wait({pump, writing}, return_when=asyncio.FIRST_COMPLETED)
        if pump.done() and (error := pump.exception()) is not None:
            with suppress(Unavailable):
                await writing
            raise error
        return await writing
    finally:
        pump.cancel()
        with suppress(asyncio.CancelledError, ClientGone, HttpError):
            await pump


class UploadBody:
    """One body. The event loop owns `pump`, a thread owns `chunks`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._room = asyncio.Semaphore(CHUNKS_AHEAD)
        self._chunks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    async def pump(self, request: ApiRequest) -> None:
        """Read the body to its end."""
        is_over = False
        try:
            while not is_over:
                await self._room.acquire()
                chunk, is_over = await request.next_bytes()
                if chunk:
                    self._chunks.put(chunk)
        finally:
            self._chunks.put(b"" if is_over else None)

    def chunks(self) -> Iterator[bytes]:
        """Yield the body. `Unavailable` if it does not arrive as a whole."""
        while True:
            chunk = self._chunks.get()
            if chunk is None:
                raise Unavailable("the upload was cut off: nothing was written")
            if not chunk:
                return
            self._loop.call_soon_threadsafe(self._room.release)
            yield chunk
