"""Endpoint of statements: what defines and changes things. Queries have their own."""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec
from msgspec import Meta

from frazil.definitions import StatementExecutor
from frazil.errors import Unavailable
from frazil.httpd import Response
from frazil.model import doc
from frazil.results import CancelToken, result_of
from frazil.serve.api.sql import Format, SqlRequest, accepted, rows_response
from frazil.serve.http.handler import Handler, watched
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.row_streams import RowStream

ROWS_MAX = 1_000_000
"""Of one statement, such as LIST."""
FINGERPRINT_CHARS = 8
ANYONE = "anyone on this machine"


class StatementRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One statement."""

    sql: Annotated[
        str,
        Meta(
            min_length=1,
            examples=["CREATE VIEW failed AS SELECT * FROM logs WHERE severity_number >= 17"],
            description="One CREATE, COPY, ALTER, SHOW, LIST, DESCRIBE, VALIDATE, DROP, PAUSE, "
            "RESUME or EXECUTE. Queries are refused.",
        ),
    ]
    format: Annotated[Format | None, doc("Default: the Accept header, or JSON.")] = None


async def execute(
    handler: Handler, params: StatementRequest, request: ApiRequest
) -> Response | RowStream:
    """Carry out one statement; responds when it is done."""
    response_format = params.format or accepted(request.headers.get("accept"))
    executor = executor_of(handler)
    who = who_of(request.headers.get("authorization"))
    token = CancelToken()
    async with watched(request, token):
        rows = await handler.run_on_spark(
            lambda: executor.execute(params.sql, who=who, cancel_token=token)
        )
    answer = SqlRequest(sql=params.sql, details=True)
    return await rows_response(handler, result_of(rows, ROWS_MAX), response_format, answer)


def who_of(authorization: str | None) -> str:
    """Return who sends a request, for the audit and for the history of rows: a fingerprint of the
    token, never the token."""
    if authorization is None:
        return ANYONE
    token = authorization.partition(" ")[2].strip().encode("utf-8", "surrogateescape")
    return f"token {hashlib.sha256(token).hexdigest()[:FINGERPRINT_CHARS]}"


def executor_of(handler: Handler) -> StatementExecutor:
    """Return what carries out statements. `Unavailable` if the node has none."""
    executor = handler.context.statements
    if executor is None:
        raise Unavailable("this node takes no statements: hot.enabled is false; set it to true")
    return executor
