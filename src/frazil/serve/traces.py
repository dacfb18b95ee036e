"""Questions about traces and services, over HTTP."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from frazil.ingest import Answer, Refusal
from frazil.query import (
    Ask,
    Dependency,
    Latency,
    Line,
    LogRow,
    Service,
    TraceSummary,
    Volume,
    dependencies,
    failures,
    find_traces,
    latencies,
    logs_of_trace,
    services,
    trace,
    volumes,
    waterfall,
)
from frazil.query import Failure as SpanFailure
from frazil.serve.desk import Desk
from frazil.serve.request import Request, pairs_of, range_of, seconds_of
from frazil.serve.values import (
    Duration,
    Limit,
    Moment,
    Name,
    Pairs,
    Stretch,
    TraceCursor,
    TraceId,
)

NS_PER_MS = 1_000_000


class TracesRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which traces: those with a span that fits all of these."""

    since: Moment | None = None
    """A time with its zone, or how long ago: 90s, 15m, 6h, 7d."""
    until: Moment | None = None
    """The same: what comes before it counts."""
    service: Name | None = None
    """Of that span."""
    operation: Name | None = None
    """The name of that span."""
    min_duration_ms: Duration | None = None
    """Of that span."""
    max_duration_ms: Duration | None = None
    """Of that span."""
    filter: Pairs = ()
    """name=value: a column, an attribute, or `resource.` and an attribute of the resource."""
    exclude: Pairs = ()
    """The same, for what must not be."""
    errors: bool = False
    """Only traces with a span that failed."""
    roots: bool = False
    """Only the first span of a trace is looked at."""
    limit: Limit = 20
    """Traces of one page, at most."""
    after: TraceCursor | None = None
    """The cursor of the last one of a page, to turn it."""


class TracesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Traces, newest first; `cursor` turns the page, and is null on the last one."""

    traces: list[TraceSummary]
    cursor: str | None


class TraceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which trace."""

    trace_id: TraceId
    """32 hexadecimal digits."""
    logs: bool = False
    """With what was logged in it?"""


class TraceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One trace as lines, in the order of a waterfall."""

    trace_id: str
    span_count: int
    is_cut: bool
    """Are there more spans than are shown?"""
    lines: list[Line]
    logs: list[LogRow]


class StretchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stretch of time."""

    since: Moment | None = None
    """A time with its zone, or how long ago: 90s, 15m, 6h, 7d."""
    until: Moment | None = None
    """The same: what comes before it counts."""


class ServiceRequest(StretchRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stretch of time, and perhaps one service."""

    service: Name | None = None
    """Only this one."""
    limit: Limit = 100
    """Lines of the answer, at most."""


class VolumesRequest(StretchRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stretch of time, and perhaps steps of it."""

    step: Stretch | None = None
    """As 10s, 5m, 1h; without it, all of the time is one."""


class ServicesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Every service that sent something."""

    services: list[Service]


class OperationsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How operations do, the busiest first."""

    operations: list[Latency]


class FailuresAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Spans that failed, by service, operation and message."""

    failures: list[SpanFailure]


class DependenciesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls whom."""

    dependencies: list[Dependency]


class VolumesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How much each service sends."""

    volumes: list[Volume]


async def find(desk: Desk, asked: TracesRequest, request: Request) -> Answer:
    """Traces with a span that fits, newest first, page by page."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    tags, exclude = pairs_of(asked.filter, "filter"), pairs_of(asked.exclude, "exclude")

    def question(ask: Ask) -> TracesAnswer:
        found = find_traces(
            ask,
            service=asked.service,
            operation=asked.operation,
            min_duration_nano=_nanos(asked.min_duration_ms),
            max_duration_nano=_nanos(asked.max_duration_ms),
            tags=tags,
            exclude=exclude,
            only_errors=asked.errors,
            only_roots=asked.roots,
            within=within,
            limit=asked.limit,
            after=asked.after,
        )
        cursor = found[-1].cursor if len(found) == asked.limit else None
        return TracesAnswer(traces=found, cursor=cursor)

    return await desk.answer(request, question)


def _nanos(duration_ms: float | None) -> int | None:
    return None if duration_ms is None else int(duration_ms * NS_PER_MS)


async def one(desk: Desk, asked: TraceRequest, request: Request) -> Answer:
    """One trace as a waterfall, with what was logged in it."""

    def question(ask: Ask) -> TraceAnswer:
        found = trace(ask, asked.trace_id)
        if found is None:
            raise Refusal(HTTPStatus.NOT_FOUND, f"no span of a trace {asked.trace_id} is here")
        return TraceAnswer(
            trace_id=found.trace_id,
            span_count=found.span_count,
            is_cut=found.is_cut,
            lines=waterfall(found),
            logs=logs_of_trace(ask, asked.trace_id) if asked.logs else [],
        )

    return await desk.answer(request, question)


async def all_services(desk: Desk, asked: StretchRequest, request: Request) -> Answer:
    """Every service that sent something, and how it does."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    return await desk.answer(
        request, lambda ask: ServicesAnswer(services=services(ask, within=within))
    )


async def operations(desk: Desk, asked: ServiceRequest, request: Request) -> Answer:
    """How fast operations are, and how many fail."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)

    def question(ask: Ask) -> OperationsAnswer:
        found = latencies(ask, service=asked.service, within=within, limit=asked.limit)
        return OperationsAnswer(operations=found)

    return await desk.answer(request, question)


async def failed(desk: Desk, asked: ServiceRequest, request: Request) -> Answer:
    """Spans that failed in the same way, the most frequent first."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)

    def question(ask: Ask) -> FailuresAnswer:
        found = failures(ask, service=asked.service, within=within, limit=asked.limit)
        return FailuresAnswer(failures=found)

    return await desk.answer(request, question)


async def calls(desk: Desk, asked: StretchRequest, request: Request) -> Answer:
    """Which service calls which, how often, and how that goes."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    return await desk.answer(
        request, lambda ask: DependenciesAnswer(dependencies=dependencies(ask, within=within))
    )


async def amounts(desk: Desk, asked: VolumesRequest, request: Request) -> Answer:
    """How many rows each service sends, in all or over time."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    step = None if asked.step is None else seconds_of(asked.step, "step")
    return await desk.answer(
        request, lambda ask: VolumesAnswer(volumes=volumes(ask, within=within, step=step))
    )
