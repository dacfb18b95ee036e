"""Endpoint: one thing that can be asked for. The description for others is made from these."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, Literal, TypeVar, get_type_hints

import msgspec

from frazil.httpd import HttpError, Response
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.row_streams import LiveStream, RowStream

T = TypeVar("T", bound=msgspec.Struct)

Reply = Response | RowStream | LiveStream

SEGMENT_MAX = 256
"""Letters of a name in a path."""


class NoParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Generic[T]):
    """One method of one path."""

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    """A part in braces stands for one name, which is a field of `takes`."""
    takes: type[T]
    body: str | None = None
    """The field of `takes` that comes as the body of a PUT. The body of a POST is all of it."""
    gives: Any
    """The type of the answer in JSON; None when it has none."""
    types: tuple[str, ...] = ("application/json",)
    """What the answer may be."""
    statuses: tuple[HTTPStatus, ...] = ()
    """Answers that only this one has."""
    serve: Callable[[Handler, T, ApiRequest], Awaitable[Reply]]
    is_open: bool = False
    """Does it need no token? As those for probes, which say nothing about the data."""

    @property
    def body_type(self) -> type[msgspec.Struct]:
        """What the body of a PUT is."""
        assert self.body is not None
        kind: type[msgspec.Struct] = get_type_hints(self.takes)[self.body]
        return kind

    @property
    def summary(self) -> str:
        """What it does, as its function says."""
        return (self.serve.__doc__ or "").strip().partition("\n")[0]


class Router:
    """All endpoints, found by path and method."""

    def __init__(self, endpoints: Sequence[Endpoint[Any]]) -> None:
        self.endpoints = tuple(endpoints)

    def knows(self, path: str) -> bool:
        """Is there anything at that path?"""
        return any(_match(each.path, path) is not None for each in self.endpoints)

    def find(self, method: str, path: str) -> tuple[Endpoint[Any], dict[str, str]]:
        """The endpoint for a request, and the names in its path."""
        there = [
            (each, named)
            for each in self.endpoints
            if (named := _match(each.path, path)) is not None
        ]
        if not there:
            raise HttpError(HTTPStatus.NOT_FOUND, f"nothing is at {path}; /openapi.json lists all")
        for endpoint, named in there:
            if endpoint.method == method:
                return endpoint, named
        allowed = sorted(endpoint.method for endpoint, _ in there)
        raise HttpError(
            HTTPStatus.METHOD_NOT_ALLOWED,
            f"{path} takes {' and '.join(allowed)}, not {method}",
            (b"allow", ", ".join(allowed).encode()),
        )


def _match(template: str, path: str) -> dict[str, str] | None:
    wanted, given = template.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    named: dict[str, str] = {}
    for part, value in zip(wanted, given, strict=True):
        if part.startswith("{"):
            if not 0 < len(value) <= SEGMENT_MAX:
                return None
            named[part[1:-1]] = value
        elif part != value:
            return None
    return named
