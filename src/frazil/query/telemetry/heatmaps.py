"""Heatmaps: how many values lie in each bucket in each time step.

latency       durations of requests, in buckets of equal width on a logarithmic scale
histograms    increases of the buckets as sent. If series have different bounds, a bound that
              lies inside of another bucket is dropped; above `ROWS_MAX`, neighbors are merged.
              So each bucket belongs to one row as a whole, and counts are exact.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from frazil.errors import Malformed, TooLarge
from frazil.model import doc
from frazil.model.arrow import METRICS
from frazil.query.search.filters import (
    EPOCH,
    MICROSECOND,
    Ask,
    Filters,
    TimeRange,
    if_set,
    micros_of,
    row_conditions,
    text,
    where,
)
from frazil.query.sql.entry_spans import is_entry
from frazil.query.telemetry.counter_resets import Floats, Integers
from frazil.query.telemetry.metric_series import (
    BUCKET_LISTS,
    LOOK_BACK,
    check_size,
    grid_of,
    kind_of,
)
from frazil.query.telemetry.rates import RateQuery, bucket_steps
from frazil.query.telemetry.services import ERRORS

CELLS_MAX = 20_000
ROWS_MAX = 100
"""Buckets of a metric; more are merged."""
PER_DECADE = 10
"""Buckets of latencies: bounds differ by about 26 %."""
ROUNDING = 1e-9
"""Added to the logarithm, so that powers of ten are in the bucket that begins with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatmapBucket:
    """A range of values."""

    low: Annotated[float | None, doc("Null: no lower bound.")]
    high: Annotated[float | None, doc("Null: no upper bound.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatmapCell:
    """Values of one bucket in one step. Empty cells are omitted."""

    step: Annotated[int, doc("Number of the step, from 0.")]
    bucket: Annotated[int, doc("Number of the bucket, from 0.")]
    count: float
    error_count: Annotated[int, doc("Failed requests; 0 for metrics.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heatmap:
    """Counts of values by time and size."""

    unit: str | None
    since: Annotated[datetime.datetime | None, doc("Start of step 0; null without values.")]
    step_s: float
    buckets: Annotated[tuple[HeatmapBucket, ...], doc("Ascending.")]
    cells: tuple[HeatmapCell, ...]


def latency_heatmap(
    ask: Ask,
    step: datetime.timedelta,
    *,
    service: str | None = None,
    operation: str | None = None,
    within: TimeRange,
) -> Heatmap:
    """Return how many requests took how long. The lower bound of a bucket is inclusive."""
    conditions = [
        *within.conditions(),
        *if_set("service_name = {}", service, text),
        *if_set("name = {}", operation, text),
        is_entry(),
    ]
    rows = ask(
        f"SELECT date_bin(INTERVAL '{micros_of(step)} microseconds', time) AS time, "
        "CAST(floor(log10(CAST(greatest(duration_nano, 1) AS DOUBLE)) "
        f"* {PER_DECADE} + {ROUNDING}) AS BIGINT) AS bucket, count(*) AS count, "
        f"{ERRORS} AS error_count FROM spans {where(conditions)} "
        f"GROUP BY 1, 2 LIMIT {CELLS_MAX + 1}"
    ).to_pylist()
    _check_cells(len(rows), step)
    if not rows:
        return Heatmap(unit="ns", since=None, step_s=step.total_seconds(), buckets=(), cells=())
    since = min(row["time"] for row in rows)
    first, last = (bound(row["bucket"] for row in rows) for bound in (min, max))
    cells = [
        HeatmapCell(
            step=(row["time"] - since) // step,
            bucket=row["bucket"] - first,
            count=row["count"],
            error_count=row["error_count"],
        )
        for row in rows
    ]
    return Heatmap(
        unit="ns",
        since=since,
        step_s=step.total_seconds(),
        buckets=tuple(
            HeatmapBucket(low=_latency(number), high=_latency(number + 1))
            for number in range(first, last + 1)
        ),
        cells=tuple(sorted(cells, key=lambda cell: (cell.step, cell.bucket))),
    )


def _latency(bucket: int) -> float:
    """Lower bound in nanoseconds."""
    return 0.0 if bucket == 0 else 10 ** (bucket / PER_DECADE)


def metric_heatmap(
    ask: Ask,
    name: str,
    *,
    within: TimeRange,
    step: datetime.timedelta,
    filters: Filters | None = None,
    exclude: Filters | None = None,
    metric_type: str | None = None,
) -> Heatmap:
    """Return how many values a histogram has recorded in each bucket and step."""
    since, until = grid_of(within, step)
    conditions = [
        f"metric_name = {text(name)}",
        "(flags & 1) = 0",
        *row_conditions(filters, exclude, METRICS),
        *if_set("metric_type = {}", metric_type, text),
    ]
    matching = [*TimeRange(since=since - LOOK_BACK, until=until).conditions(), *conditions]
    kind = kind_of(ask, name, matching)
    if kind is None:
        return Heatmap(unit=None, since=None, step_s=step.total_seconds(), buckets=(), cells=())
    if kind.metric_type not in BUCKET_LISTS:
        raise Malformed(f"{name} is a {kind.metric_type}, which has no buckets; use a histogram")
    check_size(ask, name, kind, "quantile", where(matching))
    query = RateQuery(
        aggregate="quantile",
        share=0.0,
        step_us=micros_of(step),
        since_us=(since - EPOCH) // MICROSECOND,
        read_us=(since - LOOK_BACK - EPOCH) // MICROSECOND,
        labels=(),
        is_newest=False,
    )
    step_us, buckets = bucket_steps(ask, kind.metric_type, query, where(matching))
    if not len(step_us):
        none: dict[str, Any] = {"since": None, "buckets": (), "cells": ()}
        return Heatmap(unit=kind.unit, step_s=step.total_seconds(), **none)
    rows, row_of = merge_rows(buckets.low, buckets.high)
    steps = (step_us - step_us.min()) // query.step_us
    cells, inverse = np.unique(steps * len(rows) + row_of, return_inverse=True)
    _check_cells(len(cells), step)
    counts = np.bincount(inverse, weights=buckets.count)
    return Heatmap(
        unit=kind.unit,
        since=EPOCH + int(step_us.min()) * MICROSECOND,
        step_s=step.total_seconds(),
        buckets=tuple(HeatmapBucket(low=_finite(low), high=_finite(high)) for low, high in rows),
        cells=tuple(
            HeatmapCell(step=cell // len(rows), bucket=cell % len(rows), count=count)
            for cell, count in zip(cells.tolist(), counts.tolist(), strict=True)
        ),
    )


def merge_rows(low: Floats, high: Floats) -> tuple[list[tuple[float, float]], Integers]:
    """Return rows that contain each bucket as a whole, ascending, and the row of each bucket."""
    edges = np.unique(np.concatenate([low, high]))
    begin, end = np.searchsorted(edges, low), np.searchsorted(edges, high)
    # Edges inside of a bucket, which cannot separate rows.
    change = np.zeros(len(edges) + 2, np.int64)
    is_wide = end > begin
    np.add.at(change, begin[is_wide] + 1, 1)
    np.add.at(change, end[is_wide], -1)
    edges = edges[np.cumsum(change)[: len(edges)] == 0]
    size = max(1, math.ceil((len(edges) - 1) / ROWS_MAX))
    edges = np.unique(np.append(edges[::size], edges[-1]))
    spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    # A bucket without width, such as zero, is a row if it lies between two others.
    is_point = (low == high) & np.isin(low, edges)
    rows = sorted({*spans, *((value, value) for value in low[is_point].tolist())})
    number = {row: index for index, row in enumerate(rows)}
    of_span = np.array([number[span] for span in spans], np.int64)
    found = np.empty(len(low), np.int64)
    inside = np.searchsorted(edges, low[~is_point], side="right") - 1
    found[~is_point] = of_span[inside] if len(spans) else 0
    found[is_point] = [number[value, value] for value in low[is_point].tolist()]
    return rows, found


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def _check_cells(count: int, step: datetime.timedelta) -> None:
    if count > CELLS_MAX:
        raise TooLarge(
            f"steps of {step} give more than {CELLS_MAX} cells; use longer ones or a shorter range"
        )
