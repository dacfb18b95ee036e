"""MessageReader: reads the messages of gRPC calls within their time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import grpc

from frazil.errors import FrazilError, Malformed, Overloaded, Unavailable
from frazil.ingest.admission import PendingReads
from frazil.ingest.grpc.errors import Context, refuse
from frazil.metrics import Counter

CANCEL_WAIT_S = 0.05
"""How long gRPC may take to cancel a call after the read of its message ended early."""

UNREAD = Counter(
    "frazil.ingest.unread.requests",
    "gRPC calls whose message was too large, or whose client gave up while sending.",
)


class _MessageRead:
    """A `PendingRead`. Ending it answers the call instead of cancelling the read: gRPC then ends
    the read itself and frees the part of the message that has arrived.
    """

    __slots__ = ("_context", "_refusals", "_timeout_ms")

    def __init__(
        self, context: Context, refusals: set[asyncio.Task[None]], timeout_ms: int
    ) -> None:
        self._context = context
        self._refusals = refusals
        self._timeout_ms = timeout_ms

    def time_out(self) -> None:
        self._refuse(
            Unavailable(
                f"the message did not arrive within {self._timeout_ms} ms "
                "(ingest.body_timeout_ms); send it again"
            )
        )

    def evict(self, reason: str) -> None:
        self._refuse(Overloaded(reason))

    def _refuse(self, error: FrazilError) -> None:
        refusal = asyncio.get_running_loop().create_task(_refuse(self._context, error))
        self._refusals.add(refusal)
        refusal.add_done_callback(self._refusals.discard)


class MessageReader:
    """Reads messages. Owned by the event loop."""

    def __init__(self, reads: PendingReads) -> None:
        self._reads = reads
        self._refusals: set[asyncio.Task[None]] = set()

    async def read_only(self, context: Context) -> bytes:
        """Return the only message of a call, once the client has closed its side."""
        with self._pending(context):
            message: bytes = await context.read()
            if message is grpc.aio.EOF:
                await _await_cancel()
                raise Malformed("the call ended before its message; send one")
            if await context.read() is not grpc.aio.EOF:
                raise Malformed("the call carries a second message; make a call for each")
        return message

    async def read_next(self, context: Context) -> bytes | None:
        """Return the next message of a call, or None after the last one."""
        with self._pending(context):
            message: bytes = await context.read()
        return None if message is grpc.aio.EOF else message

    @contextmanager
    def _pending(self, context: Context) -> Iterator[None]:
        read = _MessageRead(context, self._refusals, self._reads.timeout_ms)
        self._reads.add(read)
        try:
            yield
        finally:
            self._reads.remove(read)


async def _refuse(context: Context, error: FrazilError) -> None:
    with suppress(grpc.aio.BaseError):  # always raised, also when the client is gone
        await refuse(context, error)


async def _await_cancel() -> None:
    """Wait for gRPC to cancel a call that it has already answered itself.

    A message above the limit, and a client that gave up, look like a call without a message. In
    both cases gRPC cancels this task.
    """
    try:
        await asyncio.sleep(CANCEL_WAIT_S)
    except asyncio.CancelledError:
        UNREAD.add()
        raise
