"""Questions about metrics, over HTTP."""

from __future__ import annotations

from typing import Literal

import msgspec

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.query import (
    Exemplar,
    Label,
    Metric,
    TimeRange,
    exemplars,
    metric_labels,
    metric_names,
    metric_series,
)
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Groups, Limit, Moment, Name, Pairs, Share, Stretch, Text
from frazil.serve.http.request import ApiRequest, moment_now, pairs_of, range_of, seconds_of

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
"""Into so many the time is cut, when nobody says how long a step is."""


class MetricsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which metrics."""

    since: Moment | None = None
    """A time with its zone, or how long ago: 90s, 15m, 6h, 7d."""
    until: Moment | None = None
    """The same: what comes before it counts."""
    search: Text | None = None
    """A part of the name."""
    filter: Pairs = ()
    """name=value: a column, an attribute, or `resource.` and an attribute of the resource."""
    limit: Limit = 100
    """Metrics, at most."""


class MetricsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics by name."""

    metrics: list[Metric]


class OneMetricRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric in a stretch of time."""

    name: Name
    """Of the metric."""
    since: Moment | None = None
    """A time with its zone, or how long ago: 90s, 15m, 6h, 7d."""
    until: Moment | None = None
    """The same: what comes before it counts."""
    filter: Pairs = ()
    """name=value: a column, an attribute, or `resource.` and an attribute of the resource."""
    limit: Limit = 10
    """How many of what is asked for, at most; of labels, values of each."""


class LabelsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the points of a metric can be told apart by."""

    labels: list[Label]


class ExemplarsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Single values, with the spans they were recorded in."""

    exemplars: list[Exemplar]


class MetricQueryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric over time."""

    name: Name
    """Of the metric."""
    aggregate: Aggregate
    """What becomes of the points of a step; p50 and its like, and quantile, are of distributions
    or of numbers, rate and increase of what only counts up."""
    since: Moment
    """A time with its zone, or how long ago: 90s, 15m, 6h, 7d."""
    until: Moment | None = None
    """The same: what comes before it counts."""
    step: Stretch | None = None
    """As 10s, 5m, 1h; without it the time is cut into 120."""
    quantile: Share | None = None
    """With the aggregate of that name: 0.99 is what 99 of 100 are at most."""
    group_by: Groups = ()
    """Labels: there is a series for each of their values; several by repetition."""
    filter: Pairs = ()
    """name=value: a column, an attribute, or `resource.` and an attribute of the resource."""
    exclude: Pairs = ()
    """The same, for what must not be."""
    type: Literal["gauge", "sum", "histogram", "exponential_histogram", "summary"] | None = None
    """Needed only where a name is used for several kinds."""
    limit: Limit = 100
    """Series, at most."""


async def names(desk: Handler, asked: MetricsRequest, request: ApiRequest) -> Response:
    """Which metrics there are: type, unit, description, services."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    filters = pairs_of(asked.filter, "filter")
    return await desk.answer(
        request,
        lambda ask: MetricsAnswer(
            metrics=metric_names(
                ask, within=within, search=asked.search, filters=filters, limit=asked.limit
            )
        ),
    )


async def labels(desk: Handler, asked: OneMetricRequest, request: ApiRequest) -> Response:
    """What the points of a metric can be told apart by, with the most frequent values."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    filters = pairs_of(asked.filter, "filter")
    return await desk.answer(
        request,
        lambda ask: LabelsAnswer(
            labels=metric_labels(ask, asked.name, within=within, filters=filters, limit=asked.limit)
        ),
    )


async def examples(desk: Handler, asked: OneMetricRequest, request: ApiRequest) -> Response:
    """Single values of a metric, with the spans they were recorded in, newest first."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    filters = pairs_of(asked.filter, "filter")
    return await desk.answer(
        request,
        lambda ask: ExemplarsAnswer(
            exemplars=exemplars(ask, asked.name, within=within, filters=filters, limit=asked.limit)
        ),
    )


async def query(desk: Handler, asked: MetricQueryRequest, request: ApiRequest) -> Response:
    """One metric over time, in steps, by the labels one asks for."""
    clock = desk.rooms.clock
    within = range_of(asked.since, asked.until, clock)
    within = TimeRange(since=within.since, until=within.until or moment_now(clock))
    assert within.since is not None
    assert within.until is not None
    if within.until <= within.since:
        raise Malformed("until is not after since; ask for a stretch of time")
    seconds = (within.until - within.since).total_seconds()
    step = seconds_of(asked.step or f"{max(1, round(seconds / STEPS))}s", "step")
    filters, exclude = pairs_of(asked.filter, "filter"), pairs_of(asked.exclude, "exclude")
    return await desk.answer(
        request,
        lambda ask: metric_series(
            ask,
            asked.name,
            within=within,
            step=step,
            aggregate=asked.aggregate,
            quantile=asked.quantile,
            group_by=asked.group_by,
            filters=filters,
            exclude=exclude,
            metric_type=asked.type,
            limit=asked.limit,
        ),
    )
