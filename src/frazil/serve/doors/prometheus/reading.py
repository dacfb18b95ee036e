"""A request that reads: within limits, in a thread, until its client leaves or its time is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TypeVar

from frazil.errors import FrazilError
from frazil.httpd import Response
from frazil.languages import SeriesListing, TablePointSource
from frazil.query import Ask
from frazil.results import CancelToken
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.prometheus.answers import QueryTimedOut, answer
from frazil.serve.doors.prometheus.params import MS_PER_S, duration_ms
from frazil.serve.http.handler import Handler, ask_with, watched
from frazil.serve.http.responses import JSON
from frazil.serve.http.router import Reply
from frazil.serve.http.row_streams import RowStream

TIMEOUT_MS = 120_000
"""As in Prometheus. Each SQL query has a limit of its own, `query.timeout_ms`."""
WHOLE_BYTES_MAX = 1 << 20
"""A longer answer is sent in pieces, while it is made."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a request reads with."""

    handler: Handler
    ask: Ask
    token: CancelToken
    sources: list[TablePointSource] = field(default_factory=list)

    def source(self) -> TablePointSource:
        handler = self.handler
        source = TablePointSource(
            self.ask, handler.metric_directory, handler.known_labels, self.token.check
        )
        self.sources.append(source)
        return source

    def listing(self, range_ms: tuple[int, int]) -> SeriesListing:
        return SeriesListing(self.source(), self.ask, self.handler.metric_directory, *range_ms)

    @property
    def point_count(self) -> int:
        """How many points were read."""
        return sum(source.point_count for source in self.sources)


async def respond(
    handler: Handler, request: DoorRequest, make: Callable[[Reading], bytes]
) -> Response:
    """Make the body of an answer in a thread. `ClientGone` if the client disconnects."""
    async with _open(handler, request) as reading:
        return answer(await handler.run(lambda: make(reading)))


async def stream(
    handler: Handler, request: DoorRequest, make: Callable[[Reading], Iterator[bytes]]
) -> Reply:
    """Make an answer of pieces in a thread; send it whole if it is short."""
    async with _open(handler, request) as reading, handler.promql_slots:
        begin, rest = await handler.run(lambda: _begun(make(reading)))
    if rest is None:
        return answer(begin)
    return RowStream(
        content_type=JSON,
        pieces=chain([begin], rest),
        stop=lambda: None,
        close=lambda: None,
        farewell=_nothing,
    )


def _nothing(_: FrazilError) -> bytes:
    """A cut connection says it all."""
    return b""


def _begun(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes] | None]:
    """Return the begin of the pieces, and the rest; None if there is none."""
    begin, size = [], 0
    for piece in pieces:
        begin.append(piece)
        size += len(piece)
        if size > WHOLE_BYTES_MAX:
            return b"".join(begin), pieces
    return b"".join(begin), None


@asynccontextmanager
async def _open(handler: Handler, request: DoorRequest) -> AsyncIterator[Reading]:
    text = request.first("timeout")
    timeout_ms = TIMEOUT_MS if text is None else min(TIMEOUT_MS, duration_ms(text, "timeout"))
    token = CancelToken()
    late = QueryTimedOut(
        f"query timed out after {timeout_ms / MS_PER_S:g} s; choose a shorter range or fewer series"
    )
    timer = asyncio.get_running_loop().call_later(
        timeout_ms / MS_PER_S, partial(token.cancel, late)
    )
    ask = ask_with(handler.sql, token, handler.config.answer_bytes_max)
    try:
        async with watched(request.request, token):
            yield Reading(handler=handler, ask=ask, token=token)
    finally:
        timer.cancel()
