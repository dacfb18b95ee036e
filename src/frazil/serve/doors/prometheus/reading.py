"""A request that reads: within limits, in a thread, until its client leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from frazil.httpd import Response
from frazil.query import Ask, SeriesListing, TablePointSource
from frazil.results import CancelToken
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.prometheus.answers import answer
from frazil.serve.http.handler import Handler, ask_with, watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a request reads with."""

    handler: Handler
    ask: Ask
    token: CancelToken

    def source(self) -> TablePointSource:
        handler = self.handler
        return TablePointSource(
            self.ask, handler.metric_directory, handler.known_labels, self.token.check
        )

    def listing(self, range_ms: tuple[int, int]) -> SeriesListing:
        return SeriesListing(self.source(), self.ask, self.handler.metric_directory, *range_ms)


async def respond(
    handler: Handler, request: DoorRequest, make: Callable[[Reading], bytes]
) -> Response:
    """Make the body of an answer in a thread. `ClientGone` if the client disconnects."""
    token = CancelToken()
    ask = ask_with(handler.sql, token, handler.config.answer_bytes_max)
    reading = Reading(handler=handler, ask=ask, token=token)
    async with watched(request.request, token):
        return answer(await handler.run(lambda: make(reading)))
