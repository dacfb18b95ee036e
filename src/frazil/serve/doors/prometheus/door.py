"""PROMETHEUS: the paths of Prometheus' HTTP API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from frazil.serve.doors.endpoint import Door, DoorEndpoint, DoorRequest
from frazil.serve.doors.prometheus import listing, queries, status
from frazil.serve.doors.prometheus.answers import failure
from frazil.serve.http.handler import Handler
from frazil.serve.http.router import Reply

PREFIX = "/prometheus/"
GET, GET_AND_POST = ("GET",), ("GET", "POST")


def _endpoint(
    path: str,
    serve: Callable[[Handler, DoorRequest], Awaitable[Reply]],
    methods: tuple[str, ...] = GET,
) -> DoorEndpoint:
    return DoorEndpoint(path=f"{PREFIX}api/v1/{path}", serve=serve, methods=methods)


PROMETHEUS = Door(
    prefix=PREFIX,
    endpoints=(
        _endpoint("query", queries.query, GET_AND_POST),
        _endpoint("query_range", queries.query_range, GET_AND_POST),
        _endpoint("query_exemplars", queries.query_exemplars, GET_AND_POST),
        _endpoint("format_query", queries.format_query, GET_AND_POST),
        _endpoint("parse_query", queries.parse_query, GET_AND_POST),
        _endpoint("labels", listing.labels, GET_AND_POST),
        _endpoint("label/{name}/values", listing.label_values),
        _endpoint("series", listing.series, GET_AND_POST),
        _endpoint("metadata", listing.metadata),
        _endpoint("status/buildinfo", status.buildinfo),
        _endpoint("status/runtimeinfo", status.runtimeinfo),
        _endpoint("status/flags", status.flags),
        _endpoint("status/config", status.config),
        _endpoint("rules", status.rules),
        _endpoint("alerts", status.alerts),
    ),
    error_response=failure,
)
