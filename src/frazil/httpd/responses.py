"""HTTP responses: a status, headers and a body; errors that only HTTP has a status for; and the
headers that let web pages of allowed origins read a response.
"""

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
"""How long a browser may remember that it may send; the longest that all of them heed."""


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


class HttpError(Exception):
    """A request that HTTP has a number of its own for."""

    def __init__(self, status: HTTPStatus, message: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """All that goes back to the client."""

    status: int
    headers: Headers
    body: bytes = b""


def reason_of(error: FrazilError | HttpError) -> str:
    """One word for metrics, as in `not_found`."""
    return error.status.name.lower() if isinstance(error, HttpError) else reason_of_error(error)


def encode_answer(answer: Response, default_headers: Headers) -> bytes:
    """An answer that is the last one of its connection, as bytes."""
    status = HTTPStatus(answer.status)
    headers = [
        *default_headers,
        *answer.headers,
        (b"content-length", b"%d" % len(answer.body)),
        (b"connection", b"close"),
    ]
    first = b"HTTP/1.1 %d %s\r\n" % (status, status.phrase.encode())
    return first + encode_headers(headers) + b"\r\n" + answer.body


def encode_headers(headers: Headers) -> bytes:
    return b"".join(b"%s: %s\r\n" % header for header in headers)


def cors_headers(origin: bytes | None, allowed_origins: Sequence[str]) -> Headers:
    """Let the page that asks read the answer, if it is from one of the allowed origins."""
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
