"""Questions about traces, over HTTP."""

from __future__ import annotations

import msgspec

from frazil.httpd import Response
from frazil.model import Clock
from frazil.query import (
    Ask,
    SpanFilter,
    TraceDot,
    TraceFilter,
    TraceOrder,
    TraceSummary,
    facets_of,
    find_traces,
    span_conditions,
    trace_dots,
)
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import (
    Duration,
    Groups,
    Limit,
    Moment,
    Name,
    Names,
    Pairs,
    Stretch,
    Text,
    TraceCursor,
)
from frazil.serve.http.request import ApiRequest, pairs_of, range_of, seconds_of

NS_PER_MS = 1_000_000


FACETS = (
    "service_name",
    "name",
    "kind",
    "status_code",
    "http_request_method",
    "http_route",
    "http_response_status_code",
    "db_system",
    "rpc_method",
    "messaging_system",
    "deployment_environment",
    "host_name",
)
"""When nobody says which."""


class SpansRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which spans: those that fit all of these."""

    since: Moment | None = None
    """A time with its zone, or how long ago: 90s, 15m, 6h, 7d."""
    until: Moment | None = None
    """The same: what comes before it counts."""
    service: Name | None = None
    """Of the span."""
    operation: Name | None = None
    """The name of the span."""
    min_duration_ms: Duration | None = None
    """Of the span."""
    max_duration_ms: Duration | None = None
    """Of the span."""
    filter: Pairs = ()
    """name=value: a column, an attribute, or `resource.` and an attribute of the resource."""
    exclude: Pairs = ()
    """The same, for what must not be."""
    errors: bool = False
    """Only spans that failed."""
    roots: bool = False
    """Only the first span of a trace is looked at."""
    query: Text | None = None
    """What somebody types into a search box: words of the span's name, field:value, field:>5, AND,
    OR, NOT."""

    def which(self, clock: Clock) -> SpanFilter:
        return SpanFilter(
            within=range_of(self.since, self.until, clock),
            service=self.service,
            operation=self.operation,
            min_duration_nano=_nanos(self.min_duration_ms),
            max_duration_nano=_nanos(self.max_duration_ms),
            tags=pairs_of(self.filter, "filter"),
            exclude=pairs_of(self.exclude, "exclude"),
            only_errors=self.errors,
            only_roots=self.roots,
            query=self.query,
        )


class FittingRequest(SpansRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which traces: those with a span that fits all of these, and that fit as a whole."""

    through: Groups = ()
    """Services that the trace goes through, all of them."""
    min_trace_ms: Duration | None = None
    """Of the whole trace, from its first begin to its last end."""
    max_trace_ms: Duration | None = None
    """The same."""

    def which_traces(self, clock: Clock) -> TraceFilter:
        return TraceFilter(
            **self.which(clock),
            through=self.through,
            min_trace_nano=_nanos(self.min_trace_ms),
            max_trace_nano=_nanos(self.max_trace_ms),
        )


class TracesRequest(FittingRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which traces, and which of them first."""

    order: TraceOrder = "newest"
    """What comes first: the newest, the longest, or those with the most spans or errors."""
    limit: Limit = 20
    """Traces of one page, at most."""
    after: TraceCursor | None = None
    """The cursor of the last one of a page, to turn it; for the same order."""


class DurationsRequest(FittingRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which traces, and how finely they are told apart."""

    step: Stretch = "1m"
    """As 10s, 5m, 1h."""


class DurationsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All traces that fit, as dots."""

    step_s: int
    dots: list[TraceDot]


class SpanFacetsRequest(SpansRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which spans, and which columns or attributes of them."""

    name: Names = FACETS
    """A column, an attribute, or `resource.` and an attribute of the resource; several by
    repetition."""
    limit: Limit = 10
    """Values of each, at most."""


class TracesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Traces in the order asked for; `cursor` turns the page, and is null on the last one."""

    traces: list[TraceSummary]
    cursor: str | None


async def find(desk: Handler, asked: TracesRequest, request: ApiRequest) -> Response:
    """Traces with a span that fits, newest first or otherwise, page by page."""
    which = asked.which_traces(desk.rooms.clock)

    def question(ask: Ask) -> TracesAnswer:
        found = find_traces(ask, order=asked.order, limit=asked.limit, after=asked.after, **which)
        cursor = found[-1].cursor if len(found) == asked.limit else None
        return TracesAnswer(traces=found, cursor=cursor)

    return await desk.answer(request, question)


async def durations(desk: Handler, asked: DurationsRequest, request: ApiRequest) -> Response:
    """How long traces took, over time."""
    which = asked.which_traces(desk.rooms.clock)
    step = seconds_of(asked.step, "step")

    def question(ask: Ask) -> DurationsAnswer:
        dots = trace_dots(ask, step, **which)
        return DurationsAnswer(step_s=int(step.total_seconds()), dots=dots)

    return await desk.answer(request, question)


def _nanos(duration_ms: float | None) -> int | None:
    return None if duration_ms is None else int(duration_ms * NS_PER_MS)


async def values(desk: Handler, asked: SpanFacetsRequest, request: ApiRequest) -> Response:
    """The most frequent values of columns and attributes of spans."""
    conditions = span_conditions(**asked.which(desk.rooms.clock))
    return await desk.answer(
        request, lambda ask: facets_of(ask, "spans", asked.name, conditions, limit=asked.limit)
    )
