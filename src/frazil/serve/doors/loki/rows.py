"""Runs the queries of a request in a thread, with its limits, until the client leaves."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from frazil.errors import TooLarge
from frazil.httpd import Response
from frazil.languages import ReadRows
from frazil.results import CancelToken
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.http.handler import Handler, run_query, watched
from frazil.serve.http.responses import JSON, answer_of_body


async def respond(
    handler: Handler, call: DoorRequest, load: Callable[[ReadRows], object]
) -> Response:
    """Run `load` and return what it returns as JSON."""
    token = CancelToken()

    def work() -> bytes:
        body = msgspec.json.encode(load(reader(handler, token)))
        if len(body) > handler.config.answer_bytes_max:
            raise TooLarge(
                f"the answer has {len(body)} bytes, more than serve.answer_bytes_max "
                f"({handler.config.answer_bytes_max}); lower the limit, or narrow the time"
            )
        return body

    async with watched(call.request, token):
        return answer_of_body(await handler.run(work), JSON)


def reader(handler: Handler, token: CancelToken) -> ReadRows:
    """Return a function that starts queries which `token` cancels."""
    sql = handler.sql
    return lambda text: run_query(sql, token, text)
