"""Questions about services, over HTTP."""

from __future__ import annotations

import msgspec

from frazil.httpd import Response
from frazil.query import (
    Ask,
    Dependency,
    Latency,
    Service,
    ServiceStep,
    Volume,
    dependencies,
    failures,
    latencies,
    service_steps,
    services,
    volumes,
)
from frazil.query import Failure as SpanFailure
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Limit, Moment, Name, Stretch
from frazil.serve.http.request import ApiRequest, range_of, seconds_of


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


class ServiceSeriesRequest(StretchRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stretch of time, in steps."""

    step: Stretch = "1m"
    """As 10s, 5m, 1h."""


class ServicesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Every service that sent something."""

    services: list[Service]


class ServiceSeriesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Every service over time; steps without spans are left out."""

    step_s: int
    steps: list[ServiceStep]


class OperationsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How operations do, the busiest first."""

    operations: list[Latency]


class FailuresAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Spans that failed, by service, operation, message and type."""

    failures: list[SpanFailure]


class DependenciesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls whom."""

    dependencies: list[Dependency]


class VolumesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How much each service sends."""

    volumes: list[Volume]


async def all_services(desk: Handler, asked: StretchRequest, request: ApiRequest) -> Response:
    """Every service that sent something, and how it does."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    return await desk.answer(
        request, lambda ask: ServicesAnswer(services=services(ask, within=within))
    )


async def over_time(desk: Handler, asked: ServiceSeriesRequest, request: ApiRequest) -> Response:
    """How every service did, step by step."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    step = seconds_of(asked.step, "step")

    def question(ask: Ask) -> ServiceSeriesAnswer:
        steps = service_steps(ask, step, within=within)
        return ServiceSeriesAnswer(step_s=int(step.total_seconds()), steps=steps)

    return await desk.answer(request, question)


async def operations(desk: Handler, asked: ServiceRequest, request: ApiRequest) -> Response:
    """How fast operations are, and how many fail."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)

    def question(ask: Ask) -> OperationsAnswer:
        found = latencies(ask, service=asked.service, within=within, limit=asked.limit)
        return OperationsAnswer(operations=found)

    return await desk.answer(request, question)


async def failed(desk: Handler, asked: ServiceRequest, request: ApiRequest) -> Response:
    """Spans that failed in the same way, the most frequent first."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)

    def question(ask: Ask) -> FailuresAnswer:
        found = failures(ask, service=asked.service, within=within, limit=asked.limit)
        return FailuresAnswer(failures=found)

    return await desk.answer(request, question)


async def calls(desk: Handler, asked: StretchRequest, request: ApiRequest) -> Response:
    """Which service calls which, how often, and how that goes."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    return await desk.answer(
        request, lambda ask: DependenciesAnswer(dependencies=dependencies(ask, within=within))
    )


async def amounts(desk: Handler, asked: VolumesRequest, request: ApiRequest) -> Response:
    """How many rows each service sends, in all or over time."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    step = None if asked.step is None else seconds_of(asked.step, "step")
    return await desk.answer(
        request, lambda ask: VolumesAnswer(volumes=volumes(ask, within=within, step=step))
    )
