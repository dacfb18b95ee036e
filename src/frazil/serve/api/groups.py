"""Endpoints of consumer groups. The writer process coordinates them, and is asked."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import msgspec

from frazil.httpd import HttpError, Response
from frazil.model import doc
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Name
from frazil.serve.http.request import ApiRequest
from frazil.status import (
    ConsumerGroupDetail,
    ConsumerGroups,
    ConsumerGroupSummary,
    GroupsQuery,
)


class GroupsParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which groups to list."""

    search: Annotated[Name, doc("Text in their names.")] = ""
    topic: Annotated[
        Name | None, doc("Only groups with committed offsets of it; lag counts its partitions.")
    ] = None


class GroupParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One group."""

    group: Annotated[Name, doc("Its id.")]


class GroupAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer group, its members and offsets."""

    group: ConsumerGroupSummary
    detail: ConsumerGroupDetail


async def list_groups(handler: Handler, params: GroupsParams, _: ApiRequest) -> Response:
    """List consumer groups with state, members and lag."""
    query = GroupsQuery(search=params.search, topic=params.topic)
    return await handler.respond_without_sql(lambda: groups_of(handler, query))


async def describe_group(handler: Handler, params: GroupParams, _: ApiRequest) -> Response:
    """Return one consumer group: members, and lag by partition."""

    def load() -> GroupAnswer:
        found = groups_of(handler, GroupsQuery(name=params.group))
        if found.detail is None:
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no consumer group {params.group}")
        return GroupAnswer(group=found.groups[0], detail=found.detail)

    return await handler.respond_without_sql(load)


def groups_of(handler: Handler, query: GroupsQuery) -> ConsumerGroups:
    return handler.context.consumer_groups(query)
