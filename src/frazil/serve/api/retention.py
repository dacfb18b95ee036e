"""Endpoints of retention and erasure."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from frazil.httpd import Response
from frazil.model import doc
from frazil.removal import Removal, RemovalPreview, RuleStatus, rule_statuses
from frazil.serve.api.lake_jobs import lake_of
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Name
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import answer_of
from frazil.serve.http.router import NoParams


class EraseRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which rows to erase."""

    where: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=10_000,
            description="SQL condition on the columns of a table, such as `body LIKE '%x%'`.",
        ),
    ]
    table: Annotated[Name | None, doc("Only this table; by default all that it fits.")] = None


class Previews(msgspec.Struct, frozen=True, kw_only=True):
    """What would be removed, by table."""

    tables: list[RemovalPreview]


class RetentionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The retention rules."""

    rules: list[RuleStatus]


async def rules(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """List the retention rules, and what they will remove when."""
    context = handler.context
    found = [] if context.lake is None else rule_statuses(context.lake, context.clock.wall_ms())
    return answer_of(RetentionAnswer(rules=found))


async def apply(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Remove all expired rows now, in every place; responds when done."""
    return answer_of(await handler.run_on_spark(_removal(handler).apply_retention))


async def preview(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Count the rows that have expired."""
    tables = await handler.run_on_spark(_removal(handler).preview_retention)
    return answer_of(Previews(tables=tables))


async def erase(handler: Handler, params: EraseRequest, __: ApiRequest) -> Response:
    """Remove the rows that match, in every place; responds when done."""
    removal = _removal(handler)
    work = partial(removal.erase, params.where, params.table)
    return answer_of(await handler.run_on_spark(work))


async def preview_erasure(handler: Handler, params: EraseRequest, __: ApiRequest) -> Response:
    """Count the rows that an erasure would remove."""
    removal = _removal(handler)
    work = partial(removal.preview_erasure, params.where, params.table)
    return answer_of(Previews(tables=await handler.run_on_spark(work)))


def _removal(handler: Handler) -> Removal:
    context = handler.context
    return Removal(lake_of(handler), context.log, context.tier, context.data, context.clock)
