"""HTTP responses, errors that only HTTP has a status for, and CORS headers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from frazil.errors import FrazilError
from frazil.errors import reason_of as reason_of_error

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

PREFLIGHT_AGE_S = 7200
"""How long browsers may cache a preflight response; the longest that all of them accept."""


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


class HttpError(Exception):
    """An error that only HTTP has a status for."""

    def __init__(self, status: HTTPStatus, message: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A whole response."""

    status: int
    headers: Headers
    body: bytes = b""


def reason_of(error: FrazilError | HttpError) -> str:
    """Return the error's label in metrics, such as `not_found`."""
    return error.status.name.lower() if isinstance(error, HttpError) else reason_of_error(error)


STATUS_LINES = {
    status.value: b"HTTP/1.1 %d %s\r\n" % (status, status.phrase.encode()) for status in HTTPStatus
}


def encode_last(response: Response, date: bytes) -> bytes:
    """Encode the last response of a connection. `date` is its encoded `Date` header."""
    headers = [
        *response.headers,
        (b"content-length", b"%d" % len(response.body)),
        (b"connection", b"close"),
    ]
    lines = STATUS_LINES[response.status] + date + encode_headers(headers)
    return lines + b"\r\n" + response.body


def encode_headers(headers: Headers) -> bytes:
    return b"".join(b"%s: %s\r\n" % header for header in headers)


def cors_headers(origin: bytes | None, allowed_origins: Sequence[str]) -> Headers:
    """Return the headers that let a page of an allowed origin read the response."""
    if origin is None:
        return []
    headers = [(b"vary", b"Origin")]
    if any(_is_allowed(origin.decode("latin-1"), allowed) for allowed in allowed_origins):
        headers.append((b"access-control-allow-origin", origin))
        headers.append((b"access-control-expose-headers", b"Retry-After"))
    return headers


def _is_allowed(origin: str, allowed: str) -> bool:
    if not allowed.endswith(":*"):
        return allowed in ("*", origin)
    host, any_port = allowed[: -len(":*")], r"(:\d+)?"
    return re.fullmatch(re.escape(host) + any_port, origin, re.ASCII) is not None
