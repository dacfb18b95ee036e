"""Endpoints of Grafana Tempo's API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from frazil.errors import FrazilError
from frazil.httpd import HttpError, Response
from frazil.serve.doors.endpoint import Door, DoorEndpoint, DoorRequest
from frazil.serve.doors.tempo.metrics import query_instant, query_range
from frazil.serve.doors.tempo.search import search
from frazil.serve.doors.tempo.tags import tags_v1, tags_v2, values_v1, values_v2
from frazil.serve.doors.tempo.traces import trace_v1, trace_v2
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import TEXT, answer_of, answer_of_body, answer_of_error
from frazil.serve.http.router import Reply
from frazil.version import __version__

TEMPO_VERSION = "2.8.0"
"""The version of Tempo whose API this is."""


async def echo(_: Handler, __: DoorRequest) -> Response:
    """Say that the server is there."""
    return answer_of_body(b"echo", TEXT)


async def build_info(_: Handler, __: DoorRequest) -> Response:
    """Name the version."""
    return answer_of(
        {"version": TEMPO_VERSION, "revision": __version__, "goVersion": "", "branch": ""}
    )


def error_response(error: FrazilError | HttpError) -> Response:
    """Return an error as Tempo does: as text."""
    answer = answer_of_error(error)
    others = [header for header in answer.headers if header[0] != b"content-type"]
    return replace(answer, headers=[(b"content-type", TEXT), *others], body=str(error).encode())


def _get(path: str, serve: Callable[[Handler, DoorRequest], Awaitable[Reply]]) -> DoorEndpoint:
    return DoorEndpoint(path=f"/tempo/{path}", serve=serve, methods=("GET", "POST"))


TEMPO = Door(
    prefix="/tempo/",
    endpoints=(
        _get("api/echo", echo),
        _get("ready", echo),
        _get("api/status/buildinfo", build_info),
        _get("api/traces/{id}", trace_v1),
        _get("api/v2/traces/{id}", trace_v2),
        _get("api/search", search),
        _get("api/search/tags", tags_v1),
        _get("api/search/tag/{tag}/values", values_v1),
        _get("api/v2/search/tags", tags_v2),
        _get("api/v2/search/tag/{tag}/values", values_v2),
        _get("api/metrics/query_range", query_range),
        _get("api/metrics/query", query_instant),
    ),
    error_response=error_response,
)
