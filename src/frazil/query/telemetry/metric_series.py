"""Series: a metric over time, in steps, grouped by labels.

Steps are aligned to 1970; a point belongs to the step of its `time`; empty steps are omitted. Each
resource, scope and set of attributes is a series of its own; `group_by` merges them.

    kind                    aggregate        value of a step
    gauge, sum              avg, min, max    of all points
                            count            number of points
                            last             the newest point
                            quantile         of all points, within about 1 %
                            sum              of the newest point of each series; for delta sums of
                                             all points, since each is a part of the total
    monotonic sum           increase         increase in the step: see counter_resets.py
                            rate             increase per second
    histogram (both kinds)  count, increase  number of recorded values
                            rate             recorded values per second
                            sum, avg         of the recorded values
                            quantile         of the recorded values: see histograms.py
    summary                 count, increase, rate, sum, avg   like a cumulative histogram
                            quantile         as sent, of the newest point of each series; of
                                             several series the largest: they cannot be merged

An increment belongs to the step of its later point: nothing is spread over steps or extrapolated.
Points of `LOOK_BACK` before the range are read, too, for the initial values of counters. Points
without a recorded value are ignored, and so are NaNs in `sum`, `increase` and `rate`. A mix of
delta and cumulative sums is treated as cumulative, except for `increase` and `rate`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from frazil.errors import Malformed, TooLarge
from frazil.model import doc
from frazil.model.arrow import METRICS
from frazil.query.search.filters import (
    EPOCH,
    MICROSECOND,
    Ask,
    Filters,
    TimeRange,
    bounded,
    column,
    if_set,
    micros_of,
    row_conditions,
    text,
    timestamp_sql,
    where,
)
from frazil.query.telemetry.rates import CELLS_MAX, NUMBERS, VALUE, RateQuery, Row, rate_rows

LIMIT_MAX = 1000
STEPS_MAX = 10_000
POINTS_MAX = 1_000_000
"""Points of one query: almost three hours of 1000 series every 10 seconds."""
BUCKETS_MAX = 4_000_000
"""Histogram buckets of one query."""
BUCKET_LISTS = {
    "histogram": ("bucket_counts",),
    "exponential_histogram": ("positive_bucket_counts", "negative_bucket_counts"),
}
GROUPS_MAX = 8
LOOK_BACK = datetime.timedelta(minutes=5)

PLAIN = {"avg": "avg({0})", "min": "min({0})", "max": "max({0})", "count": "count({0})"}
AGGREGATES = ("avg", "sum", "min", "max", "count", "last", "rate", "increase", "quantile")
INCREASES = ("rate", "increase")
NUMBER_AGGREGATES = frozenset(AGGREGATES) - {*INCREASES}
HISTOGRAM_AGGREGATES = frozenset({"count", "sum", "avg", "quantile", *INCREASES})
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,4})?)", re.ASCII)

Value = tuple[datetime.datetime, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values over time of all points with these labels. A label is None where a point lacks it."""

    labels: Mapping[str, str | None]
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesAnswer:
    """A metric over time; series with the most values first."""

    metric_type: Annotated[str | None, doc("Null if there are no points.")]
    unit: str | None
    series: tuple[Series, ...]
    is_cut: Annotated[bool, doc("True if there are more series than `limit`.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricKind:
    """Type of a metric's points."""

    metric_type: str
    unit: str | None
    is_delta: bool  # all points
    is_monotonic: bool
    point_count: int


def metric_series(
    ask: Ask,
    name: str,
    *,
    within: TimeRange,
    step: datetime.timedelta,
    aggregate: str,
    quantile: float | None = None,
    group_by: Sequence[str] = (),
    filters: Filters | None = None,
    exclude: Filters | None = None,
    metric_type: str | None = None,
    limit: int = 100,
) -> SeriesAnswer:
    """Return one metric over time; see above for the aggregates. `p99` is short for `quantile` with
    0.99. `metric_type` is needed only if several metrics share the name."""
    aggregate, share = _aggregate_of(aggregate, quantile)
    since, until = grid_of(within, step)
    bounded(limit, "limit", LIMIT_MAX)
    if len(group_by) > GROUPS_MAX:
        raise Malformed(f"group_by has {len(group_by)} names; use at most {GROUPS_MAX}")
    conditions = [
        f"metric_name = {text(name)}",
        "(flags & 1) = 0",
        *row_conditions(filters, exclude, METRICS),
        *if_set("metric_type = {}", metric_type, text),
    ]
    read = TimeRange(since=since - LOOK_BACK, until=until)
    kind = kind_of(ask, name, [*read.conditions(), *conditions])
    if kind is None:
        return SeriesAnswer(metric_type=None, unit=None, series=(), is_cut=False)
    _check(name, kind, aggregate)
    is_number = kind.metric_type in NUMBERS
    is_newest = aggregate == ("sum" if is_number else "quantile")
    query = RateQuery(
        aggregate=aggregate,
        share=share,
        step_us=micros_of(step),
        since_us=(since - EPOCH) // MICROSECOND,
        read_us=(since - LOOK_BACK - EPOCH) // MICROSECOND,
        labels=tuple(column(label, METRICS) for label in group_by),
        is_newest=is_newest and kind.metric_type not in BUCKET_LISTS,
    )
    if is_number and (kind.is_delta or aggregate not in ("sum", *INCREASES)):
        values = [*within.conditions(), *conditions, f"NOT isnan({VALUE})"]
        rows = _numbers(ask, query, where(values))
    else:
        matching = where([*read.conditions(), *conditions])
        check_size(ask, name, kind, aggregate, matching)
        rows = rate_rows(ask, kind.metric_type, query, matching)
    return _answer(kind, tuple(group_by), rows, limit)


def _aggregate_of(aggregate: str, share: float | None) -> tuple[str, float]:
    short = _PERCENTILE.fullmatch(aggregate)
    if short is not None:
        aggregate, share = "quantile", float(short[1]) / 100
    if aggregate not in AGGREGATES:
        raise Malformed(f"no aggregate {aggregate}; use one of {', '.join(AGGREGATES)}, or p99")
    if (share is None) == (aggregate == "quantile"):
        raise Malformed("set quantile if, and only if, aggregate is quantile")
    if share is not None and not 0 <= share <= 1:
        raise Malformed(f"quantile is {share}; it must be 0 to 1")
    return aggregate, 0.0 if share is None else share


def grid_of(
    within: TimeRange, step: datetime.timedelta
) -> tuple[datetime.datetime, datetime.datetime]:
    if within.since is None or within.until is None:
        raise Malformed("a metric over time needs since and until")
    timestamp_sql(within.since)
    timestamp_sql(within.until)
    count = (within.until - within.since) // MICROSECOND // micros_of(step)
    if count > STEPS_MAX:
        raise TooLarge(
            f"{count} steps of {step} exceed {STEPS_MAX}; use a longer step or a shorter range"
        )
    return within.since, within.until


def kind_of(ask: Ask, name: str, conditions: list[str]) -> MetricKind | None:
    """Return the type of the points. `Malformed` if there are several."""
    rows = ask(
        "SELECT metric_type, max(unit) AS unit, bool_and(coalesce(is_monotonic, false)) AS "
        "is_monotonic, bool_and(coalesce(aggregation_temporality = 'DELTA', false)) AS is_delta, "
        "count(*) AS point_count "
        f"FROM metrics {where(conditions)} GROUP BY metric_type ORDER BY metric_type"
    ).to_pylist()
    if len(rows) > 1:
        kinds = " and ".join(row["metric_type"] for row in rows)
        raise Malformed(f"{name} is {kinds}; choose one with metric_type")
    return MetricKind(**rows[0]) if rows else None


def _check(name: str, kind: MetricKind, aggregate: str) -> None:
    allowed = HISTOGRAM_AGGREGATES
    if kind.metric_type in NUMBERS:
        allowed = NUMBER_AGGREGATES | ({*INCREASES} if kind.is_monotonic else set())
    if aggregate not in allowed:
        only = "" if kind.metric_type != "sum" else " that can decrease"
        raise Malformed(
            f"{name} is a {kind.metric_type}{only}, which has no {aggregate}; use one of "
            f"{', '.join(sorted(allowed))}"
        )


def check_size(ask: Ask, name: str, kind: MetricKind, aggregate: str, matching: str) -> None:
    advice = "use a shorter range, or filter by service or attribute"
    if kind.point_count > POINTS_MAX:
        raise TooLarge(
            f"{name} has {kind.point_count} matching points, more than the limit of {POINTS_MAX}; "
            f"{advice}"
        )
    lists = BUCKET_LISTS.get(kind.metric_type)
    if aggregate != "quantile" or lists is None:
        return
    lengths = " + ".join(f"coalesce(array_length({name}), 0)" for name in lists)
    rows = ask(f"SELECT sum({lengths}) AS count FROM metrics {matching}")
    count = rows["count"][0].as_py() or 0
    if count > BUCKETS_MAX:
        raise TooLarge(
            f"{name} has {count} matching buckets, more than the limit of {BUCKETS_MAX}; {advice}"
        )


def _numbers(ask: Ask, query: RateQuery, matching: str) -> list[Row]:
    """Aggregates of gauges and sums that SQL computes."""
    step = f"date_bin(INTERVAL '{query.step_us} microseconds', time) AS step"
    labels = [f"{label} AS l{index}" for index, label in enumerate(query.labels)]
    grouped = ", ".join(str(index + 1) for index in range(len(labels) + 1))
    selected = ", ".join([*labels, step, f"{_value_sql(query)} AS value"])
    rows = ask(
        f"SELECT {selected} FROM metrics {matching} GROUP BY {grouped} LIMIT {CELLS_MAX + 1}"
    )
    if rows.num_rows > CELLS_MAX:
        raise TooLarge(
            f"the result has more than {CELLS_MAX} values; use a longer step or fewer labels"
        )
    return [
        (tuple(row[:-2]), (row[-2] - EPOCH) // MICROSECOND, row[-1])
        for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)
        if row[-1] is not None
    ]


def _value_sql(query: RateQuery) -> str:
    if query.aggregate == "last":
        return f"last_value({VALUE} ORDER BY time, _offset, _row)"
    if query.aggregate == "quantile":
        return f"approx_percentile_cont({float(query.share)!r}) WITHIN GROUP (ORDER BY {VALUE})"
    if query.aggregate == "rate":
        return f"sum({VALUE}) / {query.step_us / 1e6!r}"
    if query.aggregate in ("sum", "increase"):
        return f"sum({VALUE})"
    return PLAIN[query.aggregate].format(VALUE)


def _answer(kind: MetricKind, names: tuple[str, ...], rows: list[Row], limit: int) -> SeriesAnswer:
    by_labels: dict[tuple[str | None, ...], list[tuple[int, float]]] = {}
    for labels, step_us, value in rows:
        by_labels.setdefault(labels, []).append((step_us, value))
    order = sorted(
        by_labels, key=lambda key: (-len(by_labels[key]), [label or "" for label in key])
    )
    return SeriesAnswer(
        metric_type=kind.metric_type,
        unit=kind.unit,
        series=tuple(
            Series(
                labels=dict(zip(names, labels, strict=True)),
                values=tuple(
                    (EPOCH + at * MICROSECOND, float(value))
                    for at, value in sorted(by_labels[labels])
                ),
            )
            for labels in order[:limit]
        ),
        is_cut=len(order) > limit,
    )
