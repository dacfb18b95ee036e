"""Endpoints of Jaeger's query API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus

import msgspec

from frazil.errors import FrazilError
from frazil.httpd import HttpError, Response
from frazil.serve.doors.endpoint import Door, DoorEndpoint, DoorRequest
from frazil.serve.doors.jaeger import v1, v3
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import answer_of_error
from frazil.serve.http.router import Reply

METRICS = ("latencies", "calls", "errors", "minstep")
GRPC_CODES = {
    HTTPStatus.BAD_REQUEST: 3,
    HTTPStatus.NOT_FOUND: 5,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 8,
    HTTPStatus.NOT_IMPLEMENTED: 12,
    HTTPStatus.SERVICE_UNAVAILABLE: 14,
}
UNKNOWN = 2


def error_response(error: FrazilError | HttpError) -> Response:
    """Return an error in the envelopes of both versions."""
    answer = answer_of_error(error)
    status = HTTPStatus(answer.status)
    body = {
        "data": None,
        "total": 0,
        "limit": 0,
        "offset": 0,
        "errors": [{"code": int(status), "msg": str(error)}],
        "error": {
            "grpcCode": GRPC_CODES.get(status, UNKNOWN),
            "httpCode": int(status),
            "message": str(error),
            "httpStatus": status.phrase,
        },
    }
    return replace(answer, body=msgspec.json.encode(body))


def _get(path: str, serve: Callable[[Handler, DoorRequest], Awaitable[Reply]]) -> DoorEndpoint:
    return DoorEndpoint(path=f"/jaeger/api/{path}", serve=serve)


JAEGER = Door(
    prefix="/jaeger/",
    endpoints=(
        _get("services", v1.services),
        _get("services/{service}/operations", v1.operations_of_service),
        _get("operations", v1.operations),
        _get("traces", v1.traces),
        _get("traces/{id}", v1.trace),
        _get("dependencies", v1.service_dependencies),
        *(_get(f"metrics/{name}", v1.no_metrics) for name in METRICS),
        _get("v3/services", v3.services),
        _get("v3/operations", v3.operations),
        _get("v3/traces", v3.traces),
        _get("v3/traces/{id}", v3.trace),
        _get("v3/trace-summaries", v3.trace_summaries),
    ),
    error_response=error_response,
)
