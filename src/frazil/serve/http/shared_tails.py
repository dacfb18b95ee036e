"""SharedTails: live tails of the same rows share one poll, however many clients follow.

    first client ─> SharedTail: poll, encode ─┬─> queue ─> client
                                              └─> queue ─> client ...     until the last one leaves

A client that resumes from an earlier row first catches up by polls of its own, then joins. One that
is ahead, after a restart, waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from frazil.errors import FrazilError

logger = logging.getLogger(__name__)

QUEUE_MAX = 64
"""Polls that wait for one client. One that is further behind is cut off, and may resume."""
KEEP_ALIVE_S = 15.0
"""Send a comment after this time without rows."""
KEEP_ALIVE = b": keep-alive\n\n"

Watermarks = dict[int, int]
Queue = asyncio.Queue[bytes | None]
"""Events of one client; None after the last one."""


class Poller(Protocol):
    """Reads new rows from a position on."""

    @property
    def watermarks(self) -> Watermarks:
        """First offset of each partition that was not returned yet."""

    async def poll(self, until: Watermarks | None) -> bytes | None:
        """Return new rows as events, up to these watermarks or up to now; None if there are
        none."""

    def close(self) -> None:
        """Release what it holds. A poll may still be running in a thread."""


class SharedTail:
    """One poller and its clients. Owned by the event loop."""

    def __init__(self, poller: Poller, interval_s: float, on_end: Callable[[], None]) -> None:
        self.watermarks = poller.watermarks
        """First offsets that were not sent yet."""
        self._poller = poller
        self._interval_s = interval_s
        self._on_end = on_end
        self._user_count = 0
        self._queues: set[Queue] = set()
        self._has_ended = False
        self._polled = asyncio.Event()
        """Set for a moment after each poll, and at the end."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep it going. It ends with its last user."""
        self._user_count += 1
        try:
            yield
        finally:
            self._user_count -= 1
            if not self._user_count:
                self._task.cancel()
                self._on_end()

    async def reached(self, watermarks: Watermarks) -> None:
        """Wait until everything below has been sent, or the tail ended. After a restart the rows
        that a client has seen before become visible again, and would be sent to it again."""
        while not (_covers(self.watermarks, watermarks) or self._has_ended):
            await self._polled.wait()

    @contextmanager
    def joined(self) -> Iterator[Queue]:
        """Get everything that is sent from now on."""
        queue: Queue = asyncio.Queue(QUEUE_MAX)
        if self._has_ended:
            queue.put_nowait(None)
        self._queues.add(queue)
        try:
            yield queue
        finally:
            self._queues.discard(queue)

    async def _run(self) -> None:
        try:
            while True:
                events = await self._poller.poll(None)
                if events is not None:
                    self._send(events)
                self.watermarks = self._poller.watermarks
                self._wake()
                await asyncio.sleep(self._interval_s)
        except FrazilError as error:
            logger.info("live tail ended", extra={"reason": str(error)})
        finally:
            self._poller.close()
            self._on_end()
            self._has_ended = True
            self._wake()
            for queue in list(self._queues):
                self._cut_off(queue)

    def _wake(self) -> None:
        self._polled.set()
        self._polled.clear()

    def _send(self, events: bytes) -> None:
        for queue in list(self._queues):
            if queue.full():
                self._cut_off(queue)
            else:
                queue.put_nowait(events)

    def _cut_off(self, queue: Queue) -> None:
        """End a client's stream, in place of its last events if there is no room."""
        self._queues.discard(queue)
        if queue.full():
            queue.get_nowait()
        queue.put_nowait(None)


class SharedTails:
    """The shared tails of a node, by what they show. Owned by the event loop."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._tails: dict[object, SharedTail] = {}

    async def follow(
        self,
        key: object,
        open_poller: Callable[[Watermarks | None], Poller],
        start: Watermarks | None,
        hello: Callable[[Watermarks], bytes],
    ) -> AsyncIterator[bytes]:
        """Yield `hello` with the position, then events: from `start` on, or from now on. Clients
        with the same `key` share a poll. Ends if the poller fails or the client is too slow."""
        tail = self._tails.get(key) or self._open(key, open_poller(None))
        with tail.in_use():
            if start is not None:
                yield hello(start)
                await tail.reached(start)
                own = open_poller(start)
                try:
                    while not _covers(own.watermarks, tail.watermarks):
                        events = await own.poll(tail.watermarks)
                        if events is not None:
                            yield events
                finally:
                    own.close()
            with tail.joined() as queue:
                if start is None:
                    yield hello(tail.watermarks)
                while (events := await _next(queue)) is not None:
                    yield events

    def _open(self, key: object, poller: Poller) -> SharedTail:
        def forget() -> None:
            if self._tails.get(key) is tail:
                del self._tails[key]

        tail = self._tails[key] = SharedTail(poller, self._interval_s, forget)
        return tail


def _covers(watermarks: Watermarks, others: Watermarks) -> bool:
    return all(watermarks.get(partition, 0) >= end for partition, end in others.items())


async def _next(queue: Queue) -> bytes | None:
    try:
        return await asyncio.wait_for(queue.get(), KEEP_ALIVE_S)
    except TimeoutError:
        return KEEP_ALIVE
