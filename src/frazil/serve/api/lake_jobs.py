"""What can be asked of the lake: bring in what is durable, tidy up, say what there is."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from frazil.errors import Unavailable
from frazil.httpd import Response
from frazil.lake import Appended, Lake, Maintained
from frazil.query import Ask
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Name
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import answer_of
from frazil.serve.http.router import NoParams

SNAPSHOTS_MAX = 1000


class Flushed(msgspec.Struct, frozen=True, kw_only=True):
    """What a flush has brought into tables, commit by commit."""

    commits: list[Appended]


class Tidied(msgspec.Struct, frozen=True, kw_only=True):
    """What maintenance has done, table by table."""

    tables: list[Maintained]


class SnapshotsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which snapshots: of one table, or of all."""

    table: Name | None = None
    """As logs, or spans; without it, of all."""


class Snapshots(msgspec.Struct, frozen=True, kw_only=True):
    """Snapshots of the tables, newest first."""

    snapshots: list[dict[str, Any]]


async def flush(desk: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Bring everything that is acknowledged by now into the tables; answers when it is there."""
    return answer_of(Flushed(commits=await asyncio.wrap_future(lake_of(desk).ask_flush())))


async def maintain(desk: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Join small files, let old snapshots go, remove what nobody names; answers when it is done."""
    return answer_of(Tidied(tables=await asyncio.wrap_future(lake_of(desk).ask_maintain())))


async def snapshots(desk: Handler, asked: SnapshotsRequest, request: ApiRequest) -> Response:
    """The snapshots that the tables still have, newest first."""

    def question(ask: Ask) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = ask(
            f"SELECT * FROM snapshots ORDER BY committed_at DESC, table_name LIMIT {SNAPSHOTS_MAX}"
        ).to_pylist()
        return [row for row in rows if asked.table in (None, row["table_name"])]

    return await desk.answer(request, lambda ask: Snapshots(snapshots=question(ask)))


def lake_of(desk: Handler) -> Lake:
    """The lake of a node. `Unavailable` where there is none."""
    if desk.rooms.lake is None:
        raise Unavailable(
            "there is no lake on this node: install it with `pip install 'frazil[lake]'`, or set "
            "lake.enabled = true"
        )
    return desk.rooms.lake
