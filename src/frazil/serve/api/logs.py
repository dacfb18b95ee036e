"""Questions about logs, over HTTP."""

from __future__ import annotations

import datetime
from http import HTTPStatus
from typing import Annotated, Literal

import msgspec

from frazil.errors import Malformed
from frazil.httpd import HttpError, Response
from frazil.model import Clock
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
    logs_around,
)
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import (
    Limit,
    LogCursor,
    Moment,
    Names,
    Pairs,
    Severity,
    SpanId,
    Stretch,
    Text,
    TraceId,
)
from frazil.serve.http.request import ApiRequest, moment_now, pairs_of, range_of, seconds_of

FACETS = ("service_name", "severity", "event_name", "scope_name", "host_name", "k8s_pod_name")
"""When nobody says which."""
EVERY_MIN, EVERY_MAX = 10, 1000
"""Records of one page: a million of them still have fewer pages than an answer can hold."""
BARS = 60
"""Into so many the time is cut, when nobody says how long a bar is."""


class LogsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which log records. All that is given must fit."""

    since: Moment | None = None
    """A time with its zone, or how long ago: 90s, 15m, 6h, 7d."""
    until: Moment | None = None
    """The same: what comes before it counts."""
    filter: Pairs = ()
    """name=value: a column, an attribute, or `resource.` and an attribute of the resource."""
    exclude: Pairs = ()
    """The same, for what must not be."""
    search: Text | None = None
    """Words of the body."""
    severity: Severity | None = None
    """That and worse: TRACE, DEBUG, INFO, WARN, ERROR, FATAL."""
    trace_id: TraceId | None = None
    """Only what was logged in this trace."""
    span_id: SpanId | None = None
    """Only what was logged in this span."""
    query: Text | None = None
    """What somebody types into a search box: words, field:value, field:>5, AND, OR, NOT."""

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

    limit: Limit = 100
    """Records of one page, at most."""
    order: Literal["newest", "oldest"] = "newest"
    """Which of them come first."""
    after: LogCursor | None = None
    """The `cursor` of a page, or of one of its records: what comes behind it."""


class LogsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Log records; `cursor` turns the page, and is null on the last one."""

    logs: list[LogRow]
    cursor: str | None


class HistogramRequest(LogsRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which log records, and how long a bar is."""

    step: Stretch | None = None
    """As 10s, 5m, 1h; without it the time between since and until is cut into 60."""


class HistogramAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How many there were when, by severity."""

    step_s: float
    bars: list[Bar]


class FacetsRequest(LogsRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which log records, and which columns or attributes of them."""

    name: Names = FACETS
    """A column, an attribute, or `resource.` and an attribute of the resource; several by
    repetition."""
    limit: Limit = 10
    """Values of each, at most."""


class PagesRequest(LogsRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which log records, and how long a page of them is."""

    order: Literal["newest", "oldest"] = "newest"
    """Which of them come first."""
    every: Annotated[int, msgspec.Meta(ge=EVERY_MIN, le=EVERY_MAX)] = EVERY_MAX
    """Records of one page."""


class AroundRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happened right before and after a log record."""

    at: LogCursor
    """The `cursor` of that record, from another answer."""
    filter: Pairs = ()
    """Only those that fit, as name=value."""
    count: Limit = 10
    """Records before it, and as many after it, at most."""


async def find(desk: Handler, asked: FindLogsRequest, request: ApiRequest) -> Response:
    """Log records, newest or oldest first, page by page."""
    which = asked.which(desk.rooms.clock)
    after = None if asked.after is None else Cursor.parse(asked.after)

    def question(ask: Ask) -> LogsAnswer:
        rows = find_logs(ask, limit=asked.limit, order=asked.order, after=after, **which)
        cursor = str(rows[-1].place) if len(rows) == asked.limit else None
        return LogsAnswer(logs=rows, cursor=cursor)

    return await desk.answer(request, question)


async def bars(desk: Handler, asked: HistogramRequest, request: ApiRequest) -> Response:
    """How many log records there were when, by severity."""
    which = asked.which(desk.rooms.clock)
    step = _step(asked, which, desk.rooms.clock)
    step_s = step.total_seconds()
    return await desk.answer(
        request,
        lambda ask: HistogramAnswer(step_s=step_s, bars=histogram(ask, step, **which)),
    )


def _step(asked: HistogramRequest, which: LogFilter, clock: Clock) -> datetime.timedelta:
    if asked.step is not None:
        return seconds_of(asked.step, "step")
    since = which["within"].since
    if since is None:
        raise Malformed("say since when, or how long a bar is: since=1h, or step=1m")
    whole = ((which["within"].until or moment_now(clock)) - since).total_seconds()
    return datetime.timedelta(seconds=max(1, round(whole / BARS)))


async def values(desk: Handler, asked: FacetsRequest, request: ApiRequest) -> Response:
    """The most frequent values of columns and attributes."""
    conditions = log_conditions(**asked.which(desk.rooms.clock))
    return await desk.answer(
        request, lambda ask: facets_of(ask, "logs", asked.name, conditions, limit=asked.limit)
    )


async def pages(desk: Handler, asked: PagesRequest, request: ApiRequest) -> Response:
    """Where pages begin in all log records that fit, to jump anywhere in a long list."""
    which = asked.which(desk.rooms.clock)
    return await desk.answer(
        request, lambda ask: log_pages(ask, every=asked.every, order=asked.order, **which)
    )


async def around(desk: Handler, asked: AroundRequest, request: ApiRequest) -> Response:
    """A log record, and those right before and after it."""
    place, filters = Cursor.parse(asked.at), pairs_of(asked.filter, "filter")

    def question(ask: Ask) -> Around:
        found = logs_around(ask, place, count=asked.count, filters=filters)
        if found is None:
            raise HttpError(HTTPStatus.NOT_FOUND, f"no log record is at {asked.at}")
        return found

    return await desk.answer(request, question)
