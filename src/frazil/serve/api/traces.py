"""Endpoints of traces."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.httpd import Response
from frazil.model import NS_PER_MS, Clock, doc
from frazil.query import (
    Ask,
    SpanFilter,
    TraceDot,
    TraceFilter,
    TraceOrder,
    TraceSummary,
    facets_of,
    find_traces,
    find_traces_by_id,
    span_conditions,
    trace_dots,
)
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import (
    Duration,
    Excludes,
    FacetLimit,
    FacetNames,
    Filters,
    Groups,
    Limit,
    Name,
    SearchQuery,
    Since,
    StepWidth,
    TraceCursor,
    TraceIdPrefix,
    Until,
)
from frazil.serve.http.request import ApiRequest, pairs_of, range_of, seconds_of

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
"""Default fields."""


class SpansRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which spans. All conditions must match."""

    since: Since = None
    until: Until = None
    service: Annotated[Name | None, doc("Service of the span.")] = None
    operation: Annotated[Name | None, doc("Name of the span.")] = None
    min_duration_ms: Annotated[Duration | None, doc("Minimum span duration.")] = None
    max_duration_ms: Annotated[Duration | None, doc("Maximum span duration.")] = None
    filter: Filters = ()
    exclude: Excludes = ()
    errors: Annotated[bool, doc("Only failed spans.")] = False
    roots: Annotated[bool, doc("Only root spans.")] = False
    query: SearchQuery = None

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


class TraceFilterRequest(SpansRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which traces: at least one span must match, and the trace as a whole."""

    through: Annotated[Groups, doc("Services that must all be in the trace.")] = ()
    min_trace_ms: Annotated[
        Duration | None, doc("Minimum duration of the trace, first start to last end.")
    ] = None
    max_trace_ms: Annotated[Duration | None, doc("Maximum trace duration.")] = None

    def which_traces(self, clock: Clock) -> TraceFilter:
        return TraceFilter(
            **self.which(clock),
            through=self.through,
            min_trace_nano=_nanos(self.min_trace_ms),
            max_trace_nano=_nanos(self.max_trace_ms),
        )


class TracesRequest(TraceFilterRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which traces, and in which order."""

    order: Annotated[TraceOrder, doc("Newest, longest, most spans, or most errors first.")] = (
        "newest"
    )
    limit: Annotated[Limit, doc("Page size.")] = 20
    after: Annotated[TraceCursor | None, doc("`cursor` of the previous page.")] = None


class DurationsRequest(TraceFilterRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which traces, and the time resolution."""

    step: StepWidth = "1m"


class DurationsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All matching traces as dots."""

    step_s: int
    dots: list[TraceDot]


class SpanFacetsRequest(SpansRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which spans, and which fields of them."""

    name: FacetNames = FACETS
    limit: FacetLimit = 10


class TracesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A page of traces; `cursor` is null on the last page."""

    traces: list[TraceSummary]
    cursor: str | None


class LookupRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which traces, by the begin of their id."""

    id: Annotated[TraceIdPrefix, doc("Trace id, or the first digits of it.")]
    limit: Annotated[Limit, doc("Maximum number of traces.")] = 5


async def lookup(handler: Handler, params: LookupRequest, request: ApiRequest) -> Response:
    """Find traces of any time by their id or a prefix of it."""

    def load(ask: Ask) -> TracesAnswer:
        traces = find_traces_by_id(ask, params.id, limit=params.limit)
        return TracesAnswer(traces=traces, cursor=None)

    return await handler.respond(request, load)


async def find(handler: Handler, params: TracesRequest, request: ApiRequest) -> Response:
    """List traces with a matching span, in pages."""
    which = params.which_traces(handler.context.clock)

    def load(ask: Ask) -> TracesAnswer:
        traces = find_traces(
            ask, order=params.order, limit=params.limit, after=params.after, **which
        )
        cursor = traces[-1].cursor if len(traces) == params.limit else None
        return TracesAnswer(traces=traces, cursor=cursor)

    return await handler.respond(request, load)


async def durations(handler: Handler, params: DurationsRequest, request: ApiRequest) -> Response:
    """Return trace durations over time."""
    which = params.which_traces(handler.context.clock)
    step = seconds_of(params.step, "step")

    def load(ask: Ask) -> DurationsAnswer:
        dots = trace_dots(ask, step, **which)
        return DurationsAnswer(step_s=int(step.total_seconds()), dots=dots)

    return await handler.respond(request, load)


def _nanos(duration_ms: float | None) -> int | None:
    return None if duration_ms is None else int(duration_ms * NS_PER_MS)


async def values(handler: Handler, params: SpanFacetsRequest, request: ApiRequest) -> Response:
    """Count the most frequent values of columns and attributes of spans."""
    conditions = span_conditions(**params.which(handler.context.clock))
    return await handler.respond(
        request, lambda ask: facets_of(ask, "spans", params.name, conditions, limit=params.limit)
    )
