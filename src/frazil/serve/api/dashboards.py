"""Dashboards, over HTTP."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.httpd import Response
from frazil.results import json_of
from frazil.serve.dashboards.model import Dashboard
from frazil.serve.dashboards.store import NAME_PATTERN, StoredDashboard
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import JSON, answer_of_body
from frazil.serve.http.router import NoParams

DashboardName = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN, examples=["shop"])]
Etag = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]


class DashboardSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One dashboard in a list."""

    name: str
    """Of its file, and of its address."""
    etag: str
    """Names this very text: whoever writes says which he has seen."""
    title: str
    """The name where the file is broken."""
    description: str
    panel_count: int
    error: str | None
    """What is wrong with a file that somebody broke; None when all is well."""


class DashboardsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All dashboards, by name."""

    dashboards: list[DashboardSummary]


class DashboardRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dashboard."""

    name: DashboardName
    """Lower-case letters, digits, - and _; at most 64."""


class PutDashboardRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dashboard to store."""

    name: DashboardName
    """Lower-case letters, digits, - and _; at most 64."""
    etag: Etag | None = None
    """That of the text this one replaces; without it, the name must be free."""
    body: Dashboard
    """What is stored."""


class DeleteDashboardRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dashboard to delete."""

    name: DashboardName
    """Lower-case letters, digits, - and _; at most 64."""
    etag: Etag | None = None
    """That of the text that was seen last; without it, whatever is there is deleted."""


async def all_of_them(desk: Handler, _: NoParams, __: ApiRequest) -> Response:
    """All dashboards, with what is wrong with those that are broken."""

    def look() -> bytes:
        found = [_summary(each) for each in desk.dashboards.all()]
        return json_of(DashboardsAnswer(dashboards=found))

    return answer_of_body(await desk.run(look), JSON)


async def one(desk: Handler, asked: DashboardRequest, _: ApiRequest) -> Response:
    """One dashboard, as its file has it."""
    return answer_of_body(await desk.run(lambda: json_of(desk.dashboards.get(asked.name))), JSON)


async def put(desk: Handler, asked: PutDashboardRequest, _: ApiRequest) -> Response:
    """Store a dashboard, as a new one or in place of the one that was seen."""

    def store() -> bytes:
        return json_of(desk.dashboards.put(asked.name, asked.body, asked.etag))

    return answer_of_body(await desk.run(store), JSON)


async def delete(desk: Handler, asked: DeleteDashboardRequest, _: ApiRequest) -> Response:
    """Delete a dashboard, and give what it was."""
    return answer_of_body(
        await desk.run(lambda: json_of(desk.dashboards.delete(asked.name, asked.etag))), JSON
    )


def _summary(stored: StoredDashboard) -> DashboardSummary:
    found = stored.dashboard
    return DashboardSummary(
        name=stored.name,
        etag=stored.etag,
        title=stored.name if found is None else found.title,
        description="" if found is None else found.description,
        panel_count=0 if found is None else len(found.panels),
        error=stored.error,
    )
