"""BodyReader: reads request bodies within their length and time limits."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from frazil.errors import Overloaded, TooLarge
from frazil.httpd import ClientGone, HttpError
from frazil.ingest.admission import PendingReads, Reservation
from frazil.ingest.http.request import HttpRequest
from frazil.settings import IngestConfig


class _BodyRead:
    """A `PendingRead`. Ending it raises `TimeoutError` in the task that reads."""

    __slots__ = ("deadline", "evicted")

    def __init__(self) -> None:
        self.deadline = asyncio.timeout(None)
        self.evicted: str | None = None

    def time_out(self) -> None:
        self.deadline.reschedule(0)

    def evict(self, reason: str) -> None:
        self.evicted = reason
        self.time_out()


class BodyReader:
    """Reads bodies. Owned by the event loop."""

    def __init__(self, config: IngestConfig, reads: PendingReads) -> None:
        self._bytes_max = config.body_bytes_max
        self._reads = reads

    async def read(self, request: HttpRequest, reservation: Reservation) -> bytes:
        """Return the whole body. Raises `ClientGone` when the client disconnects."""
        pending = _BodyRead()
        self._reads.add(pending)
        try:
            async with pending.deadline:
                return await self._read(request, reservation)
        except TimeoutError:
            if pending.evicted is not None:
                raise Overloaded(pending.evicted) from None
            raise HttpError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"only {request.length} bytes of the body arrived within {self._reads.timeout_ms} "
                "ms (ingest.body_timeout_ms); send the request again",
            ) from None
        finally:
            self._reads.remove(pending)

    async def _read(self, request: HttpRequest, reservation: Reservation) -> bytes:
        parts: list[bytes] = []
        is_over = False
        while not is_over:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            is_over = not message["more_body"]
            parts.append(message["body"])
            request.length += len(parts[-1])
            self.check_length(request.length)
            reservation.take(len(parts[-1]))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def check_length(self, length: int) -> None:
        """Raise `TooLarge` for a body that has, or will have, this many bytes."""
        if length > self._bytes_max:
            raise TooLarge(
                f"the body has {length} bytes or more, the limit is {self._bytes_max} "
                "(ingest.body_bytes_max); send smaller batches"
            )
