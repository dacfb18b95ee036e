"""Door: a protocol of other tools, below a prefix of its own, with its own form of errors.

Endpoints take what their clients send: parameters in the query string, in a form, or both, and
unknown ones are ignored. They are not in OpenAPI; their clients know them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

from frazil.errors import FrazilError, Malformed
from frazil.httpd import HttpError, Response, bearer_of_basic
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import FIELDS_MAX, ApiRequest, media_type
from frazil.serve.http.router import Reply

FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorRequest:
    """A request with its parameters and body, which is empty if it was a form."""

    request: ApiRequest
    path_values: Mapping[str, str]
    fields: Mapping[str, Sequence[str]]
    body: bytes

    def first(self, name: str) -> str | None:
        """Return the first value of a parameter, None if it is absent or empty."""
        return next(iter(self.fields.get(name, ())), None) or None

    def required(self, name: str) -> str:
        """Return the first value of a parameter. `Malformed` if there is none."""
        value = self.first(name)
        if value is None:
            raise Malformed(f"the parameter {name} is missing; add it")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorEndpoint:
    """One path. A part in braces is in `path_values`, without percent signs."""

    path: str
    serve: Callable[[Handler, DoorRequest], Awaitable[Reply]]
    methods: tuple[str, ...] = ("GET",)
    takes_statements: bool = False
    """Whether it changes data, as statements do, which have tokens of their own."""

    def match(self, path: str) -> dict[str, str] | None:
        """Return the values of the parts in braces, None if this is another path."""
        parts, values = self.path.split("/"), path.split("/")
        if len(parts) != len(values):
            return None
        named: dict[str, str] = {}
        for part, value in zip(parts, values, strict=True):
            if part.startswith("{") and value:
                named[part[1:-1]] = unquote(value)
            elif part != value:
                return None
        return named


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """A protocol. `prefix` begins and ends with a slash, or is a whole path."""

    prefix: str
    endpoints: tuple[DoorEndpoint, ...]
    error_response: Callable[[FrazilError | HttpError], Response]
    takes_basic: bool = False
    """Whether the token may be the password of HTTP's basic authentication."""

    def authorization(self, request: ApiRequest) -> str | None:
        """Return the header that carries the token."""
        header = request.headers.get("authorization")
        return bearer_of_basic(header) if self.takes_basic else header

    def owns(self, path: str) -> bool:
        return path.startswith(self.prefix) if self.prefix.endswith("/") else path == self.prefix

    def takes_statements(self, request: ApiRequest) -> bool:
        """Return whether a request changes data."""
        return any(
            endpoint.takes_statements
            and request.method in endpoint.methods
            and endpoint.match(request.raw_path) is not None
            for endpoint in self.endpoints
        )

    def find(self, method: str, path: str) -> tuple[DoorEndpoint, dict[str, str]]:
        """Return the endpoint and the values of its path. 404 or 405 if there is none."""
        allowed: list[str] = []
        for endpoint in self.endpoints:
            values = endpoint.match(path)
            if values is not None:
                if method in endpoint.methods:
                    return endpoint, values
                allowed += endpoint.methods
        if not allowed:
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no {path}")
        raise HttpError(
            HTTPStatus.METHOD_NOT_ALLOWED,
            f"{path} does not allow {method}; use {' or '.join(allowed)}",
            (b"allow", ", ".join(allowed).encode()),
        )

    async def answer(self, handler: Handler, request: ApiRequest) -> Reply:
        """Serve one request. The body is read first, whole."""
        endpoint, values = self.find(request.method, request.raw_path)
        body = await request.body(handler.config.body_bytes_max)
        texts = [request.query]
        if media_type(request.headers.get("content-type", "")) == FORM:
            texts.append(body.decode("utf-8", errors="replace"))
            body = b""
        fields: dict[str, list[str]] = {}
        for name, value in (pair for text in texts for pair in _pairs(text)):
            fields.setdefault(name, []).append(value)
        call = DoorRequest(request=request, path_values=values, fields=fields, body=body)
        return await endpoint.serve(handler, call)


def _pairs(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError as error:
        raise Malformed(f"the parameters cannot be parsed: {error}") from None
