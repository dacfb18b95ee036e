"""Endpoints of dashboards."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.httpd import Response
from frazil.model import doc
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.router import NoParams
from frazil.serve.saved.dashboard import Dashboard
from frazil.serve.saved.files import Etag, FileName, StoredFile


class StoredDashboard(msgspec.Struct, frozen=True, kw_only=True):
    """One dashboard as stored."""

    name: str
    etag: Annotated[str, doc("Version of the text; send it to replace or delete.")]
    dashboard: Annotated[Dashboard | None, doc("Null if the file is broken.")]
    error: Annotated[str | None, doc("Why the file cannot be read.")] = None


class DashboardSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One dashboard in a list."""

    name: Annotated[str, doc("Name in the URL and of the file.")]
    etag: Annotated[str, doc("Version of the text; send it to replace or delete.")]
    title: Annotated[str, doc("The name if the file is broken.")]
    description: str
    panel_count: int
    error: Annotated[str | None, doc("Why the file cannot be read; null if it can.")]


class DashboardsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All dashboards, by name."""

    dashboards: list[DashboardSummary]


class DashboardRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dashboard to return."""

    name: FileName


class PutDashboardRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dashboard to store."""

    name: FileName
    etag: Annotated[Etag | None, doc("Version to replace; omit to create.")] = None
    body: Annotated[Dashboard, doc("The dashboard to store.")]


class DeleteDashboardRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dashboard to delete."""

    name: FileName
    etag: Annotated[Etag | None, doc("Version to delete; omit for any.")] = None


async def list_dashboards(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """List all dashboards, with the error of broken ones."""
    return await handler.respond_without_sql(
        lambda: DashboardsAnswer(dashboards=[_summary(file) for file in handler.dashboards.all()])
    )


async def one(handler: Handler, params: DashboardRequest, _: ApiRequest) -> Response:
    """Return one dashboard."""
    return await handler.respond_without_sql(lambda: _stored(handler.dashboards.get(params.name)))


async def put(handler: Handler, params: PutDashboardRequest, _: ApiRequest) -> Response:
    """Create or replace a dashboard."""
    return await handler.respond_without_sql(
        lambda: _stored(handler.dashboards.put(params.name, params.body, params.etag))
    )


async def delete(handler: Handler, params: DeleteDashboardRequest, _: ApiRequest) -> Response:
    """Delete a dashboard and return it."""
    return await handler.respond_without_sql(
        lambda: _stored(handler.dashboards.delete(params.name, params.etag))
    )


def _stored(file: StoredFile[Dashboard]) -> StoredDashboard:
    return StoredDashboard(name=file.name, etag=file.etag, dashboard=file.content, error=file.error)


def _summary(file: StoredFile[Dashboard]) -> DashboardSummary:
    dashboard = file.content
    return DashboardSummary(
        name=file.name,
        etag=file.etag,
        title=file.name if dashboard is None else dashboard.title,
        description="" if dashboard is None else dashboard.description,
        panel_count=0 if dashboard is None else len(dashboard.panels),
        error=file.error,
    )
