"""The search box, over HTTP: which names it knows, and what a text in it is as SQL."""

from __future__ import annotations

from typing import Literal

import msgspec

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.query import Ask, NamedField, fields_of, written
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Limit, Moment, Name, Pairs, Severity, Text
from frazil.serve.http.request import ApiRequest, ago_or_moment, pairs_of, range_of


class QueryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text in the search box, and what else is chosen beside it."""

    table: Literal["logs", "spans"] = "logs"
    """Of which table."""
    query: str = ""
    """The text."""
    since: Moment | None = None
    """A time with its zone, or how long ago: 90s, 15m, 6h, 7d."""
    until: Moment | None = None
    """The same: what comes before it counts."""
    filter: Pairs = ()
    """name=value: a column, an attribute, or `resource.` and an attribute of the resource."""
    exclude: Pairs = ()
    """The same, for what must not be."""
    search: Text | None = None
    """Words of the body; logs only."""
    severity: Severity | None = None
    """That and worse; logs only."""


class WrongQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Why a text in the search box cannot be understood, and where."""

    message: str
    begin: int
    """The first character that is meant, counted from 0 in code points."""
    end: int
    """The one behind the last."""


class QueryAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The same question as SQL, or what is wrong with it; the other one is null."""

    sql: str | None
    error: WrongQuery | None


class FieldsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which names somebody may be about to write."""

    table: Literal["logs", "spans", "metrics"] = "logs"
    """Of which table."""
    since: Moment | None = None
    """A time with its zone, or how long ago: 90s, 15m, 6h, 7d."""
    until: Moment | None = None
    """The same: what comes before it counts."""
    prefix: Name = ""
    """How the name, or a part of it, begins; in any case."""
    limit: Limit = 100
    """Names, at most."""


class FieldsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Names that can be searched for: columns, then attributes, the most frequent first."""

    fields: list[NamedField]


async def query(desk: Handler, asked: QueryRequest, request: ApiRequest) -> Response:
    """What is typed into a search box as SQL, or where it is wrong."""
    if asked.table != "logs" and (asked.search is not None or asked.severity is not None):
        raise Malformed(f"search and severity are for logs, not for {asked.table}; use query")
    clock = desk.rooms.clock
    since = None if asked.since is None else ago_or_moment(asked.since, "since", clock)
    until = None if asked.until is None else ago_or_moment(asked.until, "until", clock)
    filters, exclude = pairs_of(asked.filter, "filter"), pairs_of(asked.exclude, "exclude")

    def question(_: Ask) -> QueryAnswer:
        try:
            sql = written(
                asked.table,
                since=since,
                until=until,
                filters=filters,
                exclude=exclude,
                search=asked.search,
                min_severity=asked.severity,
                query=asked.query,
            )
        except Malformed as error:
            if error.end is None:
                raise
            wrong = WrongQuery(message=str(error), begin=error.begin, end=error.end)
            return QueryAnswer(sql=None, error=wrong)
        return QueryAnswer(sql=sql, error=None)

    return await desk.answer(request, question)


async def fields(desk: Handler, asked: FieldsRequest, request: ApiRequest) -> Response:
    """Names to search for: columns, and attributes of the newest rows by how many have them."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)

    def question(ask: Ask) -> FieldsAnswer:
        found = fields_of(ask, asked.table, prefix=asked.prefix, within=within, limit=asked.limit)
        return FieldsAnswer(fields=found)

    return await desk.answer(request, question)
