"""Endpoints for flush, maintenance and snapshots."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec

from frazil.errors import Unavailable
from frazil.httpd import Response
from frazil.lake import Appended, Lake, Maintained
from frazil.model import doc
from frazil.query import Ask
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Name
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import answer_of
from frazil.serve.http.router import NoParams

SNAPSHOTS_MAX = 1000


class Flushed(msgspec.Struct, frozen=True, kw_only=True):
    """Commits made by a flush."""

    commits: list[Appended]


class Tidied(msgspec.Struct, frozen=True, kw_only=True):
    """Results of maintenance, by table."""

    tables: list[Maintained]


class SnapshotsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filter for snapshots."""

    table: Annotated[Name | None, doc("Only this table, such as logs.")] = None


class Snapshots(msgspec.Struct, frozen=True, kw_only=True):
    """Snapshots of the tables, newest first."""

    snapshots: list[dict[str, Any]]


async def flush(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Append all acknowledged data to the tables; responds after the commit."""
    return answer_of(Flushed(commits=await asyncio.wrap_future(lake_of(handler).submit_flush())))


async def maintain(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Compact files, expire snapshots, delete orphan files; responds when done."""
    return answer_of(Tidied(tables=await asyncio.wrap_future(lake_of(handler).submit_maintain())))


async def snapshots(handler: Handler, params: SnapshotsRequest, request: ApiRequest) -> Response:
    """List the snapshots of the tables, newest first."""

    def load(ask: Ask) -> Snapshots:
        rows: list[dict[str, Any]] = ask(
            f"SELECT * FROM snapshots ORDER BY committed_at DESC, table_name LIMIT {SNAPSHOTS_MAX}"
        ).to_pylist()
        rows = [row for row in rows if params.table in (None, row["table_name"])]
        return Snapshots(snapshots=rows)

    return await handler.respond(request, load)


def lake_of(handler: Handler) -> Lake:
    """Return the lake. `Unavailable` if the node has none."""
    if handler.context.lake is None:
        raise Unavailable(
            "there is no lake on this node: install it with `pip install 'frazil[lake]'`, or set "
            "lake.enabled = true"
        )
    return handler.context.lake
