"""Endpoints of saved queries."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.httpd import Response
from frazil.model import doc
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.router import NoParams
from frazil.serve.saved.files import Etag, FileName, StoredFile
from frazil.serve.saved.query import SavedQuery


class StoredQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One saved query as stored."""

    name: str
    etag: Annotated[str, doc("Version of the text; send it to replace or delete.")]
    query: Annotated[SavedQuery | None, doc("Null if the file is broken.")]
    error: Annotated[str | None, doc("Why the file cannot be read.")] = None


class QueriesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All saved queries, by name."""

    queries: list[StoredQuery]


class SavedQueryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which saved query to return."""

    name: FileName


class PutQueryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A saved query to store."""

    name: FileName
    etag: Annotated[Etag | None, doc("Version to replace; omit to create.")] = None
    body: Annotated[SavedQuery, doc("The saved query to store.")]


class DeleteQueryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A saved query to delete."""

    name: FileName
    etag: Annotated[Etag | None, doc("Version to delete; omit for any.")] = None


async def list_queries(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """List all saved queries, with the error of broken ones."""
    return await handler.respond_without_sql(
        lambda: QueriesAnswer(queries=[_stored(file) for file in handler.queries.all()])
    )


async def one(handler: Handler, params: SavedQueryRequest, _: ApiRequest) -> Response:
    """Return one saved query."""
    return await handler.respond_without_sql(lambda: _stored(handler.queries.get(params.name)))


async def put(handler: Handler, params: PutQueryRequest, _: ApiRequest) -> Response:
    """Create or replace a saved query."""
    return await handler.respond_without_sql(
        lambda: _stored(handler.queries.put(params.name, params.body, params.etag))
    )


async def delete(handler: Handler, params: DeleteQueryRequest, _: ApiRequest) -> Response:
    """Delete a saved query and return it."""
    return await handler.respond_without_sql(
        lambda: _stored(handler.queries.delete(params.name, params.etag))
    )


def _stored(file: StoredFile[SavedQuery]) -> StoredQuery:
    return StoredQuery(name=file.name, etag=file.etag, query=file.content, error=file.error)
