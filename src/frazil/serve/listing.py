"""Everything that can be asked for, in one list."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Any

import msgspec

from frazil.ingest import Answer
from frazil.serve.answers import JSON, answer_of_body
from frazil.serve.desk import Desk
from frazil.serve.endpoints import Endpoint, Nothing
from frazil.serve.lake_work import (
    Flushed,
    Snapshots,
    SnapshotsRequest,
    Tidied,
    flush,
    maintain,
    snapshots,
)
from frazil.serve.openapi import describe
from frazil.serve.request import Request
from frazil.serve.sql import FORMATS, SqlAnswer, SqlRequest, sql

VERSION = "1"


async def openapi(_: Desk, __: Nothing, ___: Request) -> Answer:
    """This description."""
    return answer_of_body(_description(), JSON)


@lru_cache(maxsize=1)
def _description() -> bytes:
    return msgspec.json.encode(describe(endpoints_of(), VERSION))


def endpoints_of() -> tuple[Endpoint[Any], ...]:
    """All endpoints, in the order in which they are described."""
    return (
        Endpoint(
            method="POST",
            path="/api/v1/sql",
            takes=SqlRequest,
            gives=SqlAnswer,
            types=tuple(FORMATS),
            statuses=(HTTPStatus.CONFLICT,),
            serve=sql,
        ),
        Endpoint(method="POST", path="/api/v1/flush", takes=Nothing, gives=Flushed, serve=flush),
        Endpoint(
            method="POST", path="/api/v1/maintain", takes=Nothing, gives=Tidied, serve=maintain
        ),
        Endpoint(
            method="GET",
            path="/api/v1/snapshots",
            takes=SnapshotsRequest,
            gives=Snapshots,
            serve=snapshots,
        ),
        Endpoint(
            method="GET",
            path="/openapi.json",
            takes=Nothing,
            gives=None,
            serve=openapi,
            is_open=True,
        ),
    )
