"""Endpoints of metrics."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

import msgspec

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.model import doc
from frazil.query import (
    Exemplar,
    Label,
    Metric,
    TimeRange,
    exemplars,
    metric_heatmap,
    metric_labels,
    metric_names,
    metric_series,
)
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import (
    Excludes,
    Filters,
    Fraction,
    Groups,
    Limit,
    Name,
    RequiredSince,
    Since,
    Step,
    Text,
    Until,
)
from frazil.serve.http.request import ApiRequest, pairs_of, range_of, seconds_of, wall_time

Aggregate = Literal[
    "avg",
    "sum",
    "min",
    "max",
    "count",
    "last",
    "rate",
    "increase",
    "quantile",
    "p50",
    "p90",
    "p95",
    "p99",
]
STEPS = 120
"""Default number of steps."""


class MetricsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filter for metrics."""

    since: Since = None
    until: Until = None
    search: Annotated[Text | None, doc("Part of the metric name.")] = None
    filter: Filters = ()
    limit: Annotated[Limit, doc("Maximum number of metrics.")] = 100


class MetricsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics by name."""

    metrics: list[Metric]


class OneMetricRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric in a time range."""

    name: Annotated[Name, doc("Metric name.")]
    since: Since = None
    until: Until = None
    filter: Filters = ()
    limit: Annotated[Limit, doc("Maximum exemplars, or values per label.")] = 10


class LabelsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Labels of a metric's points."""

    labels: list[Label]


class ExemplarsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Exemplars and the spans they were recorded in."""

    exemplars: list[Exemplar]


class MetricQueryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric over time."""

    name: Annotated[Name, doc("Metric name.")]
    aggregate: Annotated[
        Aggregate,
        doc("How to combine the points of a step. rate and increase need a counter."),
    ]
    since: RequiredSince
    until: Until = None
    step: Annotated[Step | None, doc("Default: 1/120 of the range.")] = None
    quantile: Annotated[Fraction | None, doc("For aggregate `quantile`.")] = None
    group_by: Annotated[Groups, doc("Labels to group by; repeat for several.")] = ()
    filter: Filters = ()
    exclude: Excludes = ()
    type: Annotated[
        Literal["gauge", "sum", "histogram", "exponential_histogram", "summary"] | None,
        doc("Needed if several metrics share the name."),
    ] = None
    limit: Annotated[Limit, doc("Maximum number of series.")] = 100


class MetricHeatmapRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One histogram over time."""

    name: Annotated[Name, doc("Metric name.")]
    since: RequiredSince
    until: Until = None
    step: Annotated[Step | None, doc("Default: 1/120 of the range.")] = None
    filter: Filters = ()
    exclude: Excludes = ()
    type: Annotated[
        Literal["histogram", "exponential_histogram"] | None,
        doc("Needed if several metrics share the name."),
    ] = None


async def names(handler: Handler, params: MetricsRequest, request: ApiRequest) -> Response:
    """List metrics with type, unit, description and services."""
    which = _which(handler, params)
    return await handler.respond(
        request,
        lambda ask: MetricsAnswer(metrics=metric_names(ask, search=params.search, **which)),
    )


async def labels(handler: Handler, params: OneMetricRequest, request: ApiRequest) -> Response:
    """List the labels of a metric with their most frequent values."""
    which = _which(handler, params)
    return await handler.respond(
        request, lambda ask: LabelsAnswer(labels=metric_labels(ask, params.name, **which))
    )


async def examples(handler: Handler, params: OneMetricRequest, request: ApiRequest) -> Response:
    """List exemplars of a metric, newest first."""
    which = _which(handler, params)
    return await handler.respond(
        request, lambda ask: ExemplarsAnswer(exemplars=exemplars(ask, params.name, **which))
    )


def _which(handler: Handler, params: MetricsRequest | OneMetricRequest) -> dict[str, Any]:
    return {
        "within": range_of(params.since, params.until, handler.context.clock),
        "filters": pairs_of(params.filter, "filter"),
        "limit": params.limit,
    }


def _grid(
    handler: Handler, params: MetricQueryRequest | MetricHeatmapRequest
) -> tuple[TimeRange, datetime.timedelta]:
    """The time range and the step."""
    clock = handler.context.clock
    within = range_of(params.since, params.until, clock)
    within = TimeRange(since=within.since, until=within.until or wall_time(clock))
    assert within.since is not None
    assert within.until is not None
    if within.until <= within.since:
        raise Malformed("until must be after since")
    seconds = (within.until - within.since).total_seconds()
    return within, seconds_of(params.step or f"{max(1, round(seconds / STEPS))}s", "step")


async def heatmap(handler: Handler, params: MetricHeatmapRequest, request: ApiRequest) -> Response:
    """Count the values of a histogram by bucket and time."""
    within, step = _grid(handler, params)
    filters, exclude = pairs_of(params.filter, "filter"), pairs_of(params.exclude, "exclude")
    return await handler.respond(
        request,
        lambda ask: metric_heatmap(
            ask,
            params.name,
            within=within,
            step=step,
            filters=filters,
            exclude=exclude,
            metric_type=params.type,
        ),
    )


async def query(handler: Handler, params: MetricQueryRequest, request: ApiRequest) -> Response:
    """Query one metric over time, grouped by labels."""
    within, step = _grid(handler, params)
    filters, exclude = pairs_of(params.filter, "filter"), pairs_of(params.exclude, "exclude")
    return await handler.respond(
        request,
        lambda ask: metric_series(
            ask,
            params.name,
            within=within,
            step=step,
            aggregate=params.aggregate,
            quantile=params.quantile,
            group_by=params.group_by,
            filters=filters,
            exclude=exclude,
            metric_type=params.type,
            limit=params.limit,
        ),
    )
