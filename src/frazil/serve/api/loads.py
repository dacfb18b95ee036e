"""Endpoints of running loads."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from frazil.errors import Unavailable, Unknown
from frazil.httpd import HttpError, Response
from frazil.load import Loader, LoadProgress
from frazil.model import doc
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.router import NoParams

T = TypeVar("T")
LoadId = Annotated[
    str,
    Meta(max_length=64, description="Id of a running load.", examples=["load-0123456789abcdef"]),
]


class RunningLoad(msgspec.Struct, frozen=True, kw_only=True):
    """A COPY INTO, DESCRIBE or VALIDATE that runs."""

    id: str
    statement: str
    who: Annotated[str, doc("Fingerprint of the token that sent it.")]
    started_at: datetime.datetime
    step: Annotated[str, doc("Such as `inferring columns` or `loading files`.")]
    files: Annotated[int, doc("Files of the statement; 0 until they are listed.")]
    files_done: Annotated[int, doc("Files that the current step has read.")]
    bytes: Annotated[int, doc("Size of these files, as they are stored.")]
    bytes_done: int
    rows_done: Annotated[int, doc("Rows that the current step has read.")]
    tasks: Annotated[int, doc("Tasks of the current step; 0 if none run.")]
    tasks_done: int
    is_cancelled: bool


class LoadsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Running loads, the oldest first."""

    loads: list[RunningLoad]


class CancelLoadRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which load to cancel."""

    id: LoadId


async def list_loads(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """List running loads with their progress."""
    loader = handler.context.loader
    return await handler.respond_without_sql(
        lambda: LoadsAnswer(
            loads=[] if loader is None else [_running(each) for each in loader.running()]
        )
    )


async def cancel_load(handler: Handler, params: CancelLoadRequest, _: ApiRequest) -> Response:
    """Cancel a running load; nothing is loaded, unless its commit has begun."""
    loader = loader_of(handler)
    return await handler.respond_without_sql(
        lambda: _running(or_not_found(lambda: loader.cancel(params.id)))
    )


def or_not_found(work: Callable[[], T]) -> T:
    """Run `work`. 404 if it raises `Unknown`."""
    try:
        return work()
    except Unknown as error:
        raise HttpError(HTTPStatus.NOT_FOUND, str(error)) from None


def loader_of(handler: Handler) -> Loader:
    """Return what loads files. `Unavailable` if the node has no lake or no hot tier."""
    if handler.context.loader is None:
        raise Unavailable(
            "this node cannot load files: hot.enabled or lake.enabled is false, or the lake is not "
            "installed"
        )
    return handler.context.loader


def _running(progress: LoadProgress) -> RunningLoad:
    done = progress.done()
    tasks_done, tasks = progress.tasks()
    started = datetime.datetime.fromtimestamp(progress.start_ms / 1000, datetime.UTC)
    return RunningLoad(
        id=progress.id,
        statement=progress.statement,
        who=progress.who,
        started_at=started,
        step=progress.step,
        files=progress.file_count,
        files_done=done.file_count,
        bytes=progress.size_bytes,
        bytes_done=done.size_bytes,
        rows_done=done.row_count,
        tasks=tasks,
        tasks_done=tasks_done,
        is_cancelled=progress.group.is_cancelled,
    )
