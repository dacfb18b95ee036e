"""What the API answers with: JSON, and for every error a number and a sentence."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

import msgspec

from frazil.errors import (
    Conflict,
    Corrupt,
    FrazilError,
    Overloaded,
    Rejected,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unresolved,
)
from frazil.httpd import HttpError, Response
from frazil.results import ErrorAnswer, ErrorReason

JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"

STATUSES: dict[type[FrazilError], HTTPStatus] = {
    Rejected: HTTPStatus.BAD_REQUEST,
    TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Unauthenticated: HTTPStatus.UNAUTHORIZED,
    Overloaded: HTTPStatus.TOO_MANY_REQUESTS,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    Conflict: HTTPStatus.CONFLICT,
    Corrupt: HTTPStatus.SERVICE_UNAVAILABLE,
    Unresolved: HTTPStatus.GATEWAY_TIMEOUT,
}
"""HTTP status of each error; subclasses inherit it. A test checks that all are covered."""


def status_of(error: FrazilError | HttpError) -> HTTPStatus:
    """HTTP status of an error."""
    if isinstance(error, HttpError):
        return error.status
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def failure_of(error: FrazilError | HttpError) -> ErrorReason:
    name = error.status.name if isinstance(error, HttpError) else _snake_case(type(error).__name__)
    return ErrorReason(kind=name.lower(), message=str(error))


def answer_of_error(error: FrazilError | HttpError) -> Response:
    """Error response."""
    headers = [(b"content-type", JSON)]
    if isinstance(error, HttpError):
        headers += error.headers
    elif isinstance(error, Overloaded):
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(error.retry_after_ms / 1000))))
    elif isinstance(error, Unauthenticated):
        headers.append((b"www-authenticate", b"Bearer"))
    body = msgspec.json.encode(ErrorAnswer(error=failure_of(error)))
    return Response(status=status_of(error), headers=headers, body=body)


def answer_of(value: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """JSON response."""
    return answer_of_body(msgspec.json.encode(value), JSON, status)


def answer_of_body(
    body: bytes, content_type: bytes, status: HTTPStatus = HTTPStatus.OK
) -> Response:
    return Response(status=status, headers=[(b"content-type", content_type)], body=body)


def _snake_case(name: str) -> str:
    """`TooLarge` becomes `too_large`."""
    return "".join(f"_{c}" if c.isupper() else c for c in name).lstrip("_")
