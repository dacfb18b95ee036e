"""HttpRequest: a request's head, read before its body."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from frazil.errors import Malformed
from frazil.httpd import Headers, HttpError, Receive, Scope
from frazil.ingest.http.responses import TYPES
from frazil.ingest.otlp.decompress import ENCODINGS
from frazil.model import Signal

PATHS = {signal.path: signal for signal in Signal}


@dataclass(slots=True, kw_only=True)
class HttpRequest:
    """A request that is being served."""

    method: str
    path: str
    headers: dict[bytes, bytes]
    receive: Receive
    length: int = 0
    """Bytes of the body read so far."""

    @classmethod
    def of(cls, scope: Scope, receive: Receive) -> HttpRequest:
        headers = _joined(scope["headers"])
        return cls(method=scope["method"], path=scope["path"], headers=headers, receive=receive)

    @property
    def signal(self) -> Signal | None:
        return PATHS.get(self.path)

    @property
    def is_preflight(self) -> bool:
        """Is this a CORS preflight request?"""
        return self.method == "OPTIONS" and b"access-control-request-method" in self.headers

    @property
    def content_length(self) -> int:
        """The declared length, or 0. The parser accepts only digits, and not too many."""
        return int(self.headers.get(b"content-length", b"0"))

    @property
    def content_type(self) -> bytes | None:
        """The media type without parameters; None if it is not supported."""
        value = self.headers.get(b"content-type", b"")
        return TYPES.get(value.partition(b";")[0].strip().lower())

    def text(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


def supported_type(request: HttpRequest) -> bytes:
    """Return the media type of the body. Raises `HttpError` if it is not supported."""
    if request.content_type is None:
        raise HttpError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Type is {request.text(b'content-type')!r}; send application/x-protobuf or "
            "application/json",
        )
    return request.content_type


def supported_encoding(request: HttpRequest) -> str:
    """Return the compression of the body. Raises `HttpError` if it is not supported."""
    value = request.text(b"content-encoding") or "identity"
    encoding = value.strip().lower()
    if "," in encoding:
        raise Malformed(f"Content-Encoding is {value!r}; compress once, not several times")
    if encoding not in ENCODINGS:
        raise HttpError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Encoding is {value!r}; send gzip, zstd, deflate, or none",
            (b"accept-encoding", b"gzip, zstd, deflate"),
        )
    return encoding


def _joined(headers: Headers) -> dict[bytes, bytes]:
    """Return headers by name. Repeated ones are joined by commas, as HTTP allows."""
    joined: dict[bytes, bytes] = {}
    for name, value in headers:
        joined[name] = joined[name] + b", " + value if name in joined else value
    return joined
