"""Endpoints of saved views."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.httpd import Response
from frazil.model import doc
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.router import NoParams
from frazil.serve.saved.files import Etag, FileName, StoredFile
from frazil.serve.saved.view import SavedView


class StoredView(msgspec.Struct, frozen=True, kw_only=True):
    """One saved view as stored."""

    name: str
    etag: Annotated[str, doc("Version of the text; send it to replace or delete.")]
    view: Annotated[SavedView | None, doc("Null if the file is broken.")]
    error: Annotated[str | None, doc("Why the file cannot be read.")] = None


class ViewsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All saved views, by name."""

    views: list[StoredView]


class ViewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which saved view to return."""

    name: FileName


class PutViewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A saved view to store."""

    name: FileName
    etag: Annotated[Etag | None, doc("Version to replace; omit to create.")] = None
    body: Annotated[SavedView, doc("The saved view to store.")]


class DeleteViewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A saved view to delete."""

    name: FileName
    etag: Annotated[Etag | None, doc("Version to delete; omit for any.")] = None


async def list_views(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """List all saved views, with the error of broken ones."""
    return await handler.respond_without_sql(
        lambda: ViewsAnswer(views=[_stored(file) for file in handler.views.all()])
    )


async def one(handler: Handler, params: ViewRequest, _: ApiRequest) -> Response:
    """Return one saved view."""
    return await handler.respond_without_sql(lambda: _stored(handler.views.get(params.name)))


async def put(handler: Handler, params: PutViewRequest, _: ApiRequest) -> Response:
    """Create or replace a saved view."""
    return await handler.respond_without_sql(
        lambda: _stored(handler.views.put(params.name, params.body, params.etag))
    )


async def delete(handler: Handler, params: DeleteViewRequest, _: ApiRequest) -> Response:
    """Delete a saved view and return it."""
    return await handler.respond_without_sql(
        lambda: _stored(handler.views.delete(params.name, params.etag))
    )


def _stored(file: StoredFile[SavedView]) -> StoredView:
    return StoredView(name=file.name, etag=file.etag, view=file.content, error=file.error)
