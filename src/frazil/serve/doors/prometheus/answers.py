"""Answers in the form of Prometheus' API."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from frazil.errors import FrazilError, Malformed, Overloaded, TooLarge, Unavailable
from frazil.httpd import HttpError, Response
from frazil.languages import FailedQuery, UnsupportedQuery
from frazil.serve.http.responses import JSON, answer_of_body, answer_of_error


class QueryTimedOut(Unavailable):
    """The time that a client gives a query is over."""


CUT = "results truncated due to limit"
_KINDS: tuple[tuple[type[FrazilError], HTTPStatus, str], ...] = (
    (QueryTimedOut, HTTPStatus.SERVICE_UNAVAILABLE, "timeout"),
    (UnsupportedQuery, HTTPStatus.NOT_IMPLEMENTED, "not_implemented"),
    (FailedQuery, HTTPStatus.UNPROCESSABLE_ENTITY, "execution"),
    (TooLarge, HTTPStatus.UNPROCESSABLE_ENTITY, "execution"),
    (Malformed, HTTPStatus.BAD_REQUEST, "bad_data"),
    (Overloaded, HTTPStatus.SERVICE_UNAVAILABLE, "unavailable"),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE, "unavailable"),
)
_HTTP_KINDS = {
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.UNAUTHORIZED: "unauthorized",
    HTTPStatus.FORBIDDEN: "forbidden",
    HTTPStatus.SERVICE_UNAVAILABLE: "timeout",
}


def success(data: Any, warnings: Sequence[str] = (), infos: Sequence[str] = ()) -> bytes:
    """Return the body of an answer."""
    body: dict[str, Any] = {"status": "success", "data": data}
    if warnings:
        body["warnings"] = list(warnings)
    if infos:
        body["infos"] = list(infos)
    return msgspec.json.encode(body)


def listed(values: Sequence[Any], limit: int) -> bytes:
    """Return the body of an answer with a list, of which a limit may leave only the first."""
    is_cut = 0 < limit < len(values)
    return success(values[:limit] if is_cut else values, [CUT] if is_cut else ())


def answer(body: bytes) -> Response:
    return answer_of_body(body, JSON)


def failure(error: FrazilError | HttpError) -> Response:
    """Return an error as Prometheus has it, with the headers that ours has."""
    usual = answer_of_error(error)
    status, kind = usual.status, "bad_data"
    if isinstance(error, HttpError):
        kind = _HTTP_KINDS.get(HTTPStatus(error.status), kind)
    else:
        for each, its_status, its_kind in _KINDS:
            if isinstance(error, each):
                status, kind = its_status, its_kind
                break
    body = msgspec.json.encode({"status": "error", "errorType": kind, "error": str(error)})
    return Response(status=status, headers=usual.headers, body=body)
