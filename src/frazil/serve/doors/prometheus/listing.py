"""Endpoints that list: labels, their values, series, and what metrics are."""

from __future__ import annotations

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.languages import unescaped
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.prometheus.answers import listed, success
from frazil.serve.doors.prometheus.params import LISTED_MS, limit_of, range_ms, selectors_of
from frazil.serve.doors.prometheus.reading import Reading, respond
from frazil.serve.http.handler import Handler


async def labels(handler: Handler, request: DoorRequest) -> Response:
    """List the names of labels."""
    limit, within = limit_of(request), _range(handler, request)
    selectors = selectors_of(request)
    return await respond(
        handler,
        request,
        lambda reading: listed(reading.listing(within).label_names(selectors), limit),
    )


async def label_values(handler: Handler, request: DoorRequest) -> Response:
    """List the values of a label."""
    limit, within = limit_of(request), _range(handler, request)
    name, selectors = unescaped(request.path_values["name"]), selectors_of(request)
    return await respond(
        handler,
        request,
        lambda reading: listed(reading.listing(within).label_values(name, selectors), limit),
    )


async def series(handler: Handler, request: DoorRequest) -> Response:
    """List the series that match."""
    limit, within = limit_of(request), _range(handler, request)
    selectors = selectors_of(request)
    if not selectors:
        raise Malformed("no match[] parameter provided")
    return await respond(
        handler,
        request,
        lambda reading: listed(
            [dict(labels) for labels in reading.listing(within).series(selectors)], limit
        ),
    )


async def metadata(handler: Handler, request: DoorRequest) -> Response:
    """Tell what metrics are."""
    limit, name = limit_of(request), request.first("metric")
    now_ms = handler.context.clock.wall_ms()

    def make(reading: Reading) -> bytes:
        listing = reading.listing((now_ms - LISTED_MS, now_ms))
        if listing.is_empty():
            listing = reading.listing((0, now_ms))
        found = listing.metadata(name)
        return success(dict(list(found.items())[: limit or None]))

    return await respond(handler, request, make)


def _range(handler: Handler, request: DoorRequest) -> tuple[int, int]:
    return range_ms(request, handler.context.clock.wall_ms())
