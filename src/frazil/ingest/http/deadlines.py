"""BodyReader: bodies on their way. Each has its time; in a crowd slow ones make way for others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

from frazil.errors import Overloaded, TooLarge
from frazil.httpd import ClientGone, HttpError
from frazil.ingest.admission import Reservation
from frazil.ingest.config import IngestConfig
from frazil.ingest.http.request import HttpRequest

CROWD_SHARE = 0.4
PATIENCE_S = 1.0
"""When more than this share of all places is taken by bodies that are still coming, the one that
takes longest, and longer than this, must go: slow senders leave the rest to whoever is quick."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Arrival:
    """One body on its way."""

    deadline: asyncio.Timeout
    since_s: float
    is_in_the_way: bool = False


class BodyReader:
    """Reads bodies. Belongs to the event loop."""

    def __init__(self, config: IngestConfig) -> None:
        self._bytes_max = config.body_bytes_max
        self._timeout_ms = config.body_timeout_ms
        self._crowd_count = max(1, int(config.requests_max * CROWD_SHARE))
        self._coming: dict[_Arrival, None] = {}  # longest first

    def make_way(self) -> None:
        """In a crowd, end the body that has been coming longest, if that is long."""
        if len(self._coming) < self._crowd_count:
            return
        now_s = asyncio.get_running_loop().time()
        longest = next(iter(self._coming))
        if now_s - longest.since_s >= PATIENCE_S and not longest.deadline.expired():
            longest.is_in_the_way = True
            longest.deadline.reschedule(now_s)

    async def read(self, request: HttpRequest, passage: Reservation) -> bytes:
        """The whole body of a request, within the limits. `ClientGone` if the client left."""
        now_s = asyncio.get_running_loop().time()
        deadline = asyncio.timeout_at(now_s + self._timeout_ms / 1000)
        arrival = _Arrival(deadline=deadline, since_s=now_s)
        self._coming[arrival] = None
        try:
            async with deadline:
                return await self._read(request, passage)
        except TimeoutError:
            raise self._late(request, arrival) from None
        finally:
            del self._coming[arrival]

    async def _read(self, request: HttpRequest, passage: Reservation) -> bytes:
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
            passage.take(len(parts[-1]))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def check_length(self, length: int) -> None:
        """Refuse a body of this length, or one that has already got so long."""
        if length > self._bytes_max:
            raise TooLarge(
                f"the body has {length} bytes or more, the limit is {self._bytes_max} "
                "(ingest.body_bytes_max); send smaller batches"
            )

    def _late(self, request: HttpRequest, arrival: _Arrival) -> Overloaded | HttpError:
        if arrival.is_in_the_way:
            return Overloaded(
                f"the body comes slowly, and {len(self._coming)} others come at the same time; "
                "send it again later"
            )
        return HttpError(
            HTTPStatus.REQUEST_TIMEOUT,
            f"{request.length} bytes of the body came in {self._timeout_ms} ms "
            "(ingest.body_timeout_ms), and not the rest; send it again",
        )
