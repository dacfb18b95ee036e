"""Endpoints of services."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.model import doc
from frazil.query import (
    Ask,
    Dependency,
    Deployment,
    Latency,
    Selection,
    Service,
    ServiceStep,
    TimeRange,
    Volume,
    compare,
    dependencies,
    deployments,
    failures,
    latencies,
    latency_heatmap,
    service_steps,
    services,
    volumes,
)
from frazil.query import Failure as SpanFailure
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Limit, Name, Since, Step, StepWidth, Until
from frazil.serve.http.request import ApiRequest, range_of, seconds_of, wall_time


class TimeRangeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A time range."""

    since: Since = None
    until: Until = None


class ServiceRequest(TimeRangeRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A time range, and optionally one service."""

    service: Annotated[Name | None, doc("Only this service.")] = None
    limit: Annotated[Limit, doc("Maximum number of results.")] = 100


class VolumesRequest(TimeRangeRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A time range, and optionally steps."""

    step: Annotated[Step | None, doc("Step width, such as 5m. Default: one total.")] = None


class ServiceSeriesRequest(TimeRangeRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A time range in steps, and optionally one service."""

    step: StepWidth = "1m"
    service: Annotated[Name | None, doc("Only this service.")] = None


class LatencyHeatmapRequest(
    ServiceSeriesRequest, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Whose requests, in which steps."""

    operation: Annotated[Name | None, doc("Only this operation.")] = None


class ServicesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Every service that sent telemetry."""

    services: list[Service]


class ServiceSeriesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Services over time; steps without requests are omitted."""

    step_s: int
    steps: list[ServiceStep]


class OperationsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Operations of requests, the busiest first."""

    operations: list[Latency]


class FailuresAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Failed spans, grouped by service, operation, message and type."""

    failures: list[SpanFailure]


class DependenciesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Calls between services."""

    dependencies: list[Dependency]


class DeploymentsRequest(TimeRangeRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A time range, and optionally one service."""

    service: Annotated[Name | None, doc("Only this service.")] = None


class DeploymentsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """New versions of services, oldest first."""

    deployments: list[Deployment]


class CompareRequest(TimeRangeRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service, and what to compare with what: two versions, or two time ranges."""

    service: Annotated[Name, doc("Name of the service.")]
    version: Annotated[Name | None, doc("Only this version.")] = None
    baseline_version: Annotated[Name | None, doc("Version to compare with.")] = None
    baseline_since: Annotated[Since, doc("Start of the range to compare with.")] = None
    baseline_until: Annotated[Until, doc("End of the range to compare with.")] = None


class VolumesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Rows sent by each service."""

    volumes: list[Volume]


async def all_services(handler: Handler, params: TimeRangeRequest, request: ApiRequest) -> Response:
    """List all services with requests, errors and latencies."""
    within = range_of(params.since, params.until, handler.context.clock)
    return await handler.respond(
        request, lambda ask: ServicesAnswer(services=services(ask, within=within))
    )


async def over_time(
    handler: Handler, params: ServiceSeriesRequest, request: ApiRequest
) -> Response:
    """Return requests, errors and latencies of services over time."""
    within = range_of(params.since, params.until, handler.context.clock)
    step = seconds_of(params.step, "step")

    def load(ask: Ask) -> ServiceSeriesAnswer:
        steps = service_steps(ask, step, service=params.service, within=within)
        return ServiceSeriesAnswer(step_s=int(step.total_seconds()), steps=steps)

    return await handler.respond(request, load)


async def heatmap(handler: Handler, params: LatencyHeatmapRequest, request: ApiRequest) -> Response:
    """Count requests by latency and time."""
    within = range_of(params.since, params.until, handler.context.clock)
    step = seconds_of(params.step, "step")
    return await handler.respond(
        request,
        lambda ask: latency_heatmap(
            ask, step, service=params.service, operation=params.operation, within=within
        ),
    )


async def operations(handler: Handler, params: ServiceRequest, request: ApiRequest) -> Response:
    """List the operations of requests, with errors and latencies."""
    which = _which(handler, params)
    return await handler.respond(
        request, lambda ask: OperationsAnswer(operations=latencies(ask, **which))
    )


async def failed(handler: Handler, params: ServiceRequest, request: ApiRequest) -> Response:
    """Group failed spans by cause, the most frequent first."""
    which = _which(handler, params)
    return await handler.respond(
        request, lambda ask: FailuresAnswer(failures=failures(ask, **which))
    )


def _which(handler: Handler, params: ServiceRequest) -> dict[str, Any]:
    within = range_of(params.since, params.until, handler.context.clock)
    return {"service": params.service, "within": within, "limit": params.limit}


async def calls(handler: Handler, params: TimeRangeRequest, request: ApiRequest) -> Response:
    """List calls between services with counts, errors and latencies."""
    within = range_of(params.since, params.until, handler.context.clock)
    return await handler.respond(
        request, lambda ask: DependenciesAnswer(dependencies=dependencies(ask, within=within))
    )


async def deploys(handler: Handler, params: DeploymentsRequest, request: ApiRequest) -> Response:
    """List new versions of services, by `service.version`."""
    within = range_of(params.since, params.until, handler.context.clock)
    return await handler.respond(
        request,
        lambda ask: DeploymentsAnswer(
            deployments=deployments(ask, service=params.service, within=within)
        ),
    )


async def comparison(handler: Handler, params: CompareRequest, request: ApiRequest) -> Response:
    """Compare two versions or time ranges of a service. Default: with the previous period."""
    clock = handler.context.clock
    within = range_of(params.since, params.until, clock)
    before = within
    if params.baseline_since or params.baseline_until:
        before = range_of(params.baseline_since, params.baseline_until, clock)
    elif params.baseline_version is None:
        if within.since is None:
            raise Malformed("there is no previous period; set since, or baseline_version")
        until = within.until or wall_time(clock)
        before = TimeRange(since=within.since - (until - within.since), until=within.since)
    baseline = Selection(service=params.service, within=before, version=params.baseline_version)
    current = Selection(service=params.service, within=within, version=params.version)
    return await handler.respond(request, lambda ask: compare(ask, baseline, current))


async def amounts(handler: Handler, params: VolumesRequest, request: ApiRequest) -> Response:
    """Count the rows that each service sends, in total or over time."""
    within = range_of(params.since, params.until, handler.context.clock)
    step = None if params.step is None else seconds_of(params.step, "step")
    return await handler.respond(
        request, lambda ask: VolumesAnswer(volumes=volumes(ask, within=within, step=step))
    )
