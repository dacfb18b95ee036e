"""Questions about metrics, over HTTP."""

from __future__ import annotations

from typing import Literal

import msgspec

from frazil.asking import json_of
from frazil.errors import Malformed
from frazil.ingest import Answer
from frazil.query import (
    Exemplar,
    Label,
    Metric,
    Range,
    SeriesAnswer,
    exemplars,
    metric_labels,
    metric_names,
    metric_series,
)
from frazil.serve.answers import JSON, answer_of_body
from frazil.serve.desk import Desk
from frazil.serve.logs import Limit, Texts
from frazil.serve.request import Request, moment_now, pairs_of, range_of, seconds_of

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

    since: str | None = None
    """A time with its zone, or how long ago: 90s, 15m, 6h, 7d."""
    until: str | None = None
    search: str | None = None
    """A part of the name."""
    filter: Texts = ()
    """name=value: a column, an attribute, or `resource.` and an attribute of the resource."""
    limit: Limit = 100


class MetricsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics by name."""

    metrics: list[Metric]


class OneMetricRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric in a stretch of time."""

    name: str
    since: str | None = None
    until: str | None = None
    filter: Texts = ()
    limit: Limit = 10


class LabelsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the points of a metric can be told apart by."""

    labels: list[Label]


class ExemplarsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Single values, with the spans they were recorded in."""

    exemplars: list[Exemplar]


class MetricQueryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric over time."""

    name: str
    aggregate: Aggregate
    since: str
    until: str | None = None
    step: str | None = None
    """As 10s, 5m, 1h; without it the time is cut into 120."""
    quantile: float | None = None
    group_by: Texts = ()
    filter: Texts = ()
    exclude: Texts = ()
    type: Literal["gauge", "sum", "histogram", "exponential_histogram", "summary"] | None = None
    """Needed only where a name is used for several kinds."""
    limit: Limit = 100


async def names(desk: Desk, asked: MetricsRequest, request: Request) -> Answer:
    """Which metrics there are: type, unit, description, services."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    filters = pairs_of(asked.filter, "filter")
    found = await desk.ask(
        request,
        lambda ask: metric_names(
            ask, within=within, search=asked.search, filters=filters, limit=asked.limit
        ),
    )
    return answer_of_body(json_of(MetricsAnswer(metrics=found)), JSON)


async def labels(desk: Desk, asked: OneMetricRequest, request: Request) -> Answer:
    """What the points of a metric can be told apart by, with the most frequent values."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    filters = pairs_of(asked.filter, "filter")
    found = await desk.ask(
        request,
        lambda ask: metric_labels(
            ask, asked.name, within=within, filters=filters, limit=asked.limit
        ),
    )
    return answer_of_body(json_of(LabelsAnswer(labels=found)), JSON)


async def examples(desk: Desk, asked: OneMetricRequest, request: Request) -> Answer:
    """Single values of a metric, with the spans they were recorded in, newest first."""
    within = range_of(asked.since, asked.until, desk.rooms.clock)
    filters = pairs_of(asked.filter, "filter")
    found = await desk.ask(
        request,
        lambda ask: exemplars(ask, asked.name, within=within, filters=filters, limit=asked.limit),
    )
    return answer_of_body(json_of(ExemplarsAnswer(exemplars=found)), JSON)


async def query(desk: Desk, asked: MetricQueryRequest, request: Request) -> Answer:
    """One metric over time, in steps, by the labels one asks for."""
    clock = desk.rooms.clock
    within = range_of(asked.since, asked.until, clock)
    within = Range(since=within.since, until=within.until or moment_now(clock))
    assert within.since is not None
    assert within.until is not None
    if within.until <= within.since:
        raise Malformed("until is not after since; ask for a stretch of time")
    seconds = (within.until - within.since).total_seconds()
    step = seconds_of(asked.step or f"{max(1, round(seconds / STEPS))}s", "step")
    filters, exclude = pairs_of(asked.filter, "filter"), pairs_of(asked.exclude, "exclude")
    found: SeriesAnswer = await desk.ask(
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
    return answer_of_body(await desk.run(lambda: json_of(found)), JSON)
