"""Endpoint: one method of one path. Router: finds the endpoint of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, Literal, TypeVar, get_type_hints

import msgspec

from frazil.httpd import HttpError, Response
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.row_streams import LiveStream, RowStream, SocketStream

T = TypeVar("T", bound=msgspec.Struct)

Reply = Response | RowStream | LiveStream | SocketStream

SEGMENT_MAX = 256
"""Characters of a name in a path."""
REST_MAX = 1024
"""Characters of the rest of a path."""


class NoParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Generic[T]):
    """One method of one path."""

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str  # a part in braces is a field of `takes`
    takes_rest: bool = False
    """Whether the last part of the path takes all that follows, with slashes."""
    takes: type[T]
    body: str | None = None
    """Field of `takes` that is the body. Without it, the body of a POST is the whole struct."""
    body_types: tuple[str, ...] = ()
    """Content types of a body with rows, which is taken as it is."""
    takes_bytes: bool = False
    """Whether the body is bytes that `serve` reads itself, as they arrive."""
    gives: Any
    """Type of the JSON response; None for other formats."""
    types: tuple[str, ...] = ("application/json",)
    """Content types of the response."""
    statuses: tuple[HTTPStatus, ...] = ()
    """Error responses besides the common ones."""
    serve: Callable[[Handler, T, ApiRequest], Awaitable[Reply]]
    is_open: bool = False
    """True if it needs no token, such as probes, which reveal no data."""
    takes_statements: bool = False
    """True if it changes data, as statements do, which have tokens of their own."""

    @property
    def body_type(self) -> type[msgspec.Struct]:
        """Type of a JSON body."""
        assert self.body is not None
        kind: type[msgspec.Struct] = get_type_hints(self.takes)[self.body]
        return kind

    @property
    def summary(self) -> str:
        """First line of the handler's docstring."""
        return (self.serve.__doc__ or "").strip().partition("\n")[0]


class Router:
    """All endpoints, found by path and method."""

    def __init__(self, endpoints: Sequence[Endpoint[Any]]) -> None:
        self.endpoints = tuple(endpoints)

    def knows(self, path: str) -> bool:
        """Return whether any endpoint has this path."""
        return any(_match(each, path) is not None for each in self.endpoints)

    def find(self, method: str, path: str) -> tuple[Endpoint[Any], dict[str, str]]:
        """Return the endpoint and the values of its path. 404 or 405 if there is none."""
        matches = [
            (endpoint, values)
            for endpoint in self.endpoints
            if (values := _match(endpoint, path)) is not None
        ]
        if not matches:
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no endpoint {path}; see /openapi.json")
        for endpoint, values in matches:
            if endpoint.method == method:
                return endpoint, values
        allowed = sorted(endpoint.method for endpoint, _ in matches)
        raise HttpError(
            HTTPStatus.METHOD_NOT_ALLOWED,
            f"{path} does not allow {method}; use {' or '.join(allowed)}",
            (b"allow", ", ".join(allowed).encode()),
        )


def _match(endpoint: Endpoint[Any], path: str) -> dict[str, str] | None:
    parts = endpoint.path.split("/")
    values = path.split("/", len(parts) - 1 if endpoint.takes_rest else -1)
    if len(parts) != len(values):
        return None
    named: dict[str, str] = {}
    for part, value in zip(parts, values, strict=True):
        if part.startswith("{"):
            if not 0 < len(value) <= (REST_MAX if "/" in value else SEGMENT_MAX):
                return None
            named[part[1:-1]] = value
        elif part != value:
            return None
    return named
