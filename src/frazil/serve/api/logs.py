"""Endpoints of log records."""

from __future__ import annotations

import datetime
from http import HTTPStatus
from typing import Annotated

import msgspec
from msgspec import Meta

from frazil.errors import Malformed
from frazil.httpd import HttpError, Response
from frazil.model import Clock, doc
from frazil.query import (
    Around,
    Ask,
    Bar,
    Cursor,
    LogFilter,
    LogRow,
    facets_of,
    find_logs,
    histogram,
    log_conditions,
    log_pages,
    log_patterns,
    logs_around,
)
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import (
    Excludes,
    FacetLimit,
    FacetNames,
    Filters,
    Limit,
    LogCursor,
    LogOrder,
    LogSearch,
    MinSeverity,
    Pairs,
    SearchQuery,
    Since,
    SpanId,
    Step,
    TraceId,
    Until,
)
from frazil.serve.http.request import ApiRequest, pairs_of, range_of, seconds_of, wall_time

FACETS = ("service_name", "severity", "event_name", "scope_name", "host_name", "k8s_pod_name")
"""Default fields."""
EVERY_MIN, EVERY_MAX = 10, 1000
"""Bounds of the page size: a million records must not give too many pages."""
BARS = 60
"""Default number of bars."""


class LogsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which log records. All conditions must match."""

    since: Since = None
    until: Until = None
    filter: Filters = ()
    exclude: Excludes = ()
    search: LogSearch = None
    severity: MinSeverity = None
    trace_id: Annotated[TraceId | None, doc("Only records of this trace.")] = None
    span_id: Annotated[SpanId | None, doc("Only records of this span.")] = None
    query: SearchQuery = None

    def which(self, clock: Clock) -> LogFilter:
        return LogFilter(
            within=range_of(self.since, self.until, clock),
            filters=pairs_of(self.filter, "filter"),
            exclude=pairs_of(self.exclude, "exclude"),
            search=self.search,
            min_severity=self.severity,
            trace_id=self.trace_id,
            span_id=self.span_id,
            query=self.query,
        )


class FindLogsRequest(LogsRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which log records, and how many."""

    limit: Annotated[Limit, doc("Page size.")] = 100
    order: LogOrder = "newest"
    after: Annotated[LogCursor | None, doc("`cursor` of a page or record.")] = None


class LogsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A page of log records; `cursor` is null on the last page."""

    logs: list[LogRow]
    cursor: str | None


class HistogramRequest(LogsRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which log records, and the bar width."""

    step: Annotated[Step | None, doc("Bar width. Default: 1/60 of the range.")] = None


class HistogramAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Log records over time, by severity."""

    step_s: float
    bars: list[Bar]


class FacetsRequest(LogsRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which log records, and which fields of them."""

    name: FacetNames = FACETS
    limit: FacetLimit = 10


class PatternsRequest(HistogramRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which log records, the step of the trend, and how many patterns."""

    limit: Annotated[Limit, doc("Maximum number of patterns.")] = 100


class PagesRequest(LogsRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which log records, and the page size."""

    order: LogOrder = "newest"
    every: Annotated[int, Meta(ge=EVERY_MIN, le=EVERY_MAX, description="Page size.")] = EVERY_MAX


class AroundRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A log record whose neighbors to return."""

    at: Annotated[LogCursor, doc("`cursor` of the record.")]
    filter: Annotated[Pairs, doc("Only neighbors that match, as name=value.")] = ()
    count: Annotated[Limit, doc("Maximum number of records before, and after.")] = 10


async def find(handler: Handler, params: FindLogsRequest, request: ApiRequest) -> Response:
    """List log records, newest or oldest first, in pages."""
    which = params.which(handler.context.clock)
    after = None if params.after is None else Cursor.parse(params.after)

    def load(ask: Ask) -> LogsAnswer:
        rows = find_logs(ask, limit=params.limit, order=params.order, after=after, **which)
        cursor = str(rows[-1].place) if len(rows) == params.limit else None
        return LogsAnswer(logs=rows, cursor=cursor)

    return await handler.respond(request, load)


async def bars(handler: Handler, params: HistogramRequest, request: ApiRequest) -> Response:
    """Count log records over time, by severity."""
    which = params.which(handler.context.clock)
    step = _step(params, which, handler.context.clock)
    step_s = step.total_seconds()
    return await handler.respond(
        request,
        lambda ask: HistogramAnswer(step_s=step_s, bars=histogram(ask, step, **which)),
    )


def _step(params: HistogramRequest, which: LogFilter, clock: Clock) -> datetime.timedelta:
    if params.step is not None:
        return seconds_of(params.step, "step")
    since = which["within"].since
    if since is None:
        raise Malformed("the bar width is unknown; set since=1h or step=1m")
    range_s = ((which["within"].until or wall_time(clock)) - since).total_seconds()
    return datetime.timedelta(seconds=max(1, round(range_s / BARS)))


async def patterns(handler: Handler, params: PatternsRequest, request: ApiRequest) -> Response:
    """Cluster log records by their text, with counts and a trend."""
    which = params.which(handler.context.clock)
    step = _step(params, which, handler.context.clock)
    return await handler.respond(
        request, lambda ask: log_patterns(ask, step, limit=params.limit, **which)
    )


async def values(handler: Handler, params: FacetsRequest, request: ApiRequest) -> Response:
    """Count the most frequent values of columns and attributes."""
    conditions = log_conditions(**params.which(handler.context.clock))
    return await handler.respond(
        request, lambda ask: facets_of(ask, "logs", params.name, conditions, limit=params.limit)
    )


async def pages(handler: Handler, params: PagesRequest, request: ApiRequest) -> Response:
    """Return page cursors for jumping in a long list of log records."""
    which = params.which(handler.context.clock)
    return await handler.respond(
        request, lambda ask: log_pages(ask, every=params.every, order=params.order, **which)
    )


async def around(handler: Handler, params: AroundRequest, request: ApiRequest) -> Response:
    """Return a log record with its neighbors."""
    cursor, filters = Cursor.parse(params.at), pairs_of(params.filter, "filter")

    def load(ask: Ask) -> Around:
        records = logs_around(ask, cursor, count=params.count, filters=filters)
        if records is None:
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no log record at {params.at}")
        return records

    return await handler.respond(request, load)
