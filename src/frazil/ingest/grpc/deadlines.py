"""MessageReader: messages on their way. Each has its time; in a crowd slow ones make way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import grpc

from frazil.errors import FrazilError, Malformed, Overloaded, Unavailable
from frazil.ingest.config import IngestConfig
from frazil.ingest.grpc.errors import Context, refuse
from frazil.metrics import Counter

SWEEP_S = 1.0
SWEEPS_PER_TIMEOUT = 4
"""Late calls are looked for this often, and so many times before one can be late."""

CROWD_SHARE = 0.4
PATIENCE_S = 1.0
"""When more than this share of all places is taken by messages that are still coming, those that
take longer than this must go: slow senders leave the rest to whoever is quick."""

SETTLE_S = 0.05
"""Between the end of a message that never came whole and the cancellation that says so."""

UNREAD = Counter(
    "frazil.ingest.unread.requests",
    "gRPC calls whose message was above the limit, or whose caller gave up while sending.",
)


class MessageReader:
    """Reads messages. Belongs to the event loop.

    A call that takes too long is ended by an answer, not by cancelling the read: then gRPC itself
    ends the read, and gives back what has come of the message.
    """

    def __init__(self, config: IngestConfig) -> None:
        self._timeout_ms = config.body_timeout_ms
        self._crowd_count = max(1, int(config.requests_max * CROWD_SHARE))
        self._sweep_s = min(SWEEP_S, config.body_timeout_ms / 1000 / SWEEPS_PER_TIMEOUT)
        self._since_s: dict[Context, float] = {}  # longest first
        self._endings: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(self._sweep_s, self._sweep)

    async def read_only(self, context: Context) -> bytes:
        """The message of a call that has one, once the caller has said that it is the only one."""
        with self._awaited(context):
            message: bytes = await context.read()
            if message is grpc.aio.EOF:
                await _settle()
                raise Malformed("the call ended before its message; send one")
            if await context.read() is not grpc.aio.EOF:
                raise Malformed("the call carries a second message; make a call for each")
        return message

    async def read_next(self, context: Context) -> bytes | None:
        """The next message of a call that may have many; None after the last one."""
        with self._awaited(context):
            message: bytes = await context.read()
        return None if message is grpc.aio.EOF else message

    @contextmanager
    def _awaited(self, context: Context) -> Iterator[None]:
        self._since_s[context] = self._loop.time()
        try:
            yield
        finally:
            self._since_s.pop(context, None)

    def _sweep(self) -> None:
        """End calls that are late; in a crowd, slow ones as well."""
        now_s = self._loop.time()
        for context, since_s in list(self._since_s.items()):
            waited_s = now_s - since_s
            if waited_s * 1000 >= self._timeout_ms:
                self._end(context, Unavailable(self._late()))
            elif waited_s >= PATIENCE_S and len(self._since_s) > self._crowd_count:
                self._end(context, Overloaded(self._slow()))
            else:
                break
        self._timer = self._loop.call_later(self._sweep_s, self._sweep)

    def _late(self) -> str:
        return (
            f"the message did not come within {self._timeout_ms} ms (ingest.body_timeout_ms); "
            "send it again"
        )

    def _slow(self) -> str:
        return (
            f"the message comes slowly, and {len(self._since_s)} others come at the same time; "
            "send it again later"
        )

    def _end(self, context: Context, error: FrazilError) -> None:
        del self._since_s[context]
        ending = self._loop.create_task(_refuse(context, error))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    def close(self) -> None:
        self._timer.cancel()


async def _refuse(context: Context, error: FrazilError) -> None:
    with suppress(grpc.aio.BaseError):  # always, also when the caller is gone
        await refuse(context, error)


async def _settle() -> None:
    """Wait for the end of a call that gRPC has ended by itself.

    A message above the limit and a caller who has given up look like a call without a message. But
    then gRPC cancels this task, and has answered already.
    """
    try:
        await asyncio.sleep(SETTLE_S)
    except asyncio.CancelledError:
        UNREAD.add()
        raise
