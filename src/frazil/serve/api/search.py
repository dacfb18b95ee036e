"""Endpoints of the search box: field names, a query as SQL, and why a query has no rows."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.model import doc
from frazil.query import (
    Ask,
    Hints,
    NamedField,
    TimeRange,
    ambiguity_notes,
    fields_of,
    hints_of,
    log_conditions,
    query_names,
    search_sql,
    span_conditions,
)
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import (
    Excludes,
    Filters,
    Limit,
    LogSearch,
    MinSeverity,
    Name,
    Since,
    Until,
)
from frazil.serve.http.request import ApiRequest, age_or_timestamp, pairs_of, range_of

FIELDS_MAX = 1000
"""Fields among which a name is looked up."""


class QueryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search query and the filters beside it."""

    table: Annotated[Literal["logs", "spans"], doc("Table to search.")] = "logs"
    query: Annotated[str, doc("The query text.")] = ""
    since: Since = None
    until: Until = None
    filter: Filters = ()
    exclude: Excludes = ()
    search: LogSearch = None
    severity: MinSeverity = None


class WrongQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Why a query cannot be parsed, and where."""

    message: str
    begin: Annotated[int, doc("First wrong character, 0-based, in code points.")]
    end: Annotated[int, doc("End of the wrong part, exclusive.")]


class QueryAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The query as SQL, or its error. One of the two is null."""

    sql: str | None
    error: WrongQuery | None
    notes: Annotated[
        list[str], doc("Names that are attributes of both the newest records and their resources.")
    ]


class HintsRequest(QueryRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search without rows."""

    errors: Annotated[bool, doc("Only failed spans.")] = False
    roots: Annotated[bool, doc("Only root spans.")] = False


class FieldsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filter for field names."""

    table: Annotated[Literal["logs", "spans", "metrics"], doc("Table.")] = "logs"
    since: Since = None
    until: Until = None
    prefix: Annotated[Name, doc("Prefix of the name or a dotted part; any case.")] = ""
    limit: Annotated[Limit, doc("Maximum number of names.")] = 100


class FieldsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Searchable field names: columns, then attributes by frequency."""

    fields: list[NamedField]


async def query(handler: Handler, params: QueryRequest, request: ApiRequest) -> Response:
    """Translate a search query to SQL, or locate its error."""
    _check_table(params)
    clock = handler.context.clock
    since = None if params.since is None else age_or_timestamp(params.since, "since", clock)
    until = None if params.until is None else age_or_timestamp(params.until, "until", clock)
    filters, exclude = pairs_of(params.filter, "filter"), pairs_of(params.exclude, "exclude")
    within = range_of(params.since, params.until, clock)

    def load(ask: Ask) -> QueryAnswer:
        try:
            sql = search_sql(
                params.table,
                since=since,
                until=until,
                filters=filters,
                exclude=exclude,
                search=params.search,
                min_severity=params.severity,
                query=params.query,
            )
        except Malformed as error:
            if error.end is None:
                raise
            wrong = WrongQuery(message=str(error), begin=error.begin, end=error.end)
            return QueryAnswer(sql=None, error=wrong, notes=[])
        return QueryAnswer(sql=sql, error=None, notes=_notes(ask, params, within))

    return await handler.respond(request, load)


def _notes(ask: Ask, params: QueryRequest, within: TimeRange) -> list[str]:
    """Rows are read only if the query has a name that can be ambiguous."""
    names = query_names(params.table, params.query)
    if not names:
        return []
    fields = fields_of(ask, params.table, within=within, limit=FIELDS_MAX)
    return ambiguity_notes(fields, names)


async def hints(handler: Handler, params: HintsRequest, request: ApiRequest) -> Response:
    """Explain why a search has no rows, and suggest the nearest one that has some."""
    _check_table(params)
    clock = handler.context.clock
    within = range_of(params.since, params.until, clock)
    filters, exclude = pairs_of(params.filter, "filter"), pairs_of(params.exclude, "exclude")
    if params.table == "logs":
        more = log_conditions(search=params.search, min_severity=params.severity)
    else:
        more = span_conditions(only_errors=params.errors, only_roots=params.roots)

    def load(ask: Ask) -> Hints:
        return hints_of(
            ask,
            params.table,
            query=params.query,
            within=within,
            filters=filters,
            exclude=exclude,
            more=more,
        )

    return await handler.respond(request, load)


def _check_table(params: QueryRequest) -> None:
    if params.table != "logs" and (params.search is not None or params.severity is not None):
        raise Malformed(f"search and severity apply to logs, not to {params.table}; use query")


async def fields(handler: Handler, params: FieldsRequest, request: ApiRequest) -> Response:
    """List searchable columns, and attributes of the newest rows by frequency."""
    within = range_of(params.since, params.until, handler.context.clock)

    def load(ask: Ask) -> FieldsAnswer:
        fields = fields_of(
            ask, params.table, prefix=params.prefix, within=within, limit=params.limit
        )
        return FieldsAnswer(fields=fields)

    return await handler.respond(request, load)
