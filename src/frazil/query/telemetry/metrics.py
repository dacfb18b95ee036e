"""Metric names, labels and exemplars. Values over time are in metric_series.py."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from frazil.model import doc
from frazil.model.arrow import METRICS
from frazil.query.search.filters import (
    ALWAYS,
    RESOURCE,
    Ask,
    Filters,
    TimeRange,
    attribute_name,
    bounded,
    equals,
    text,
    where,
)

LIMIT_MAX = 1000
EXEMPLARS_MAX = 1000
COMBINATIONS_MAX = 10_000
"""Distinct sets of attributes that are read, the most frequent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. The same name with another type, unit or temporality is a different metric."""

    name: str
    type: Annotated[str, doc("gauge, sum, histogram, exponential_histogram, summary.")]
    unit: str | None
    description: str | None
    temporality: str | None
    is_monotonic: bool | None
    services: tuple[str, ...]
    point_count: int
    newest: datetime.datetime


def metric_names(
    ask: Ask,
    *,
    within: TimeRange = ALWAYS,
    search: str | None = None,
    filters: Filters | None = None,
    limit: int = 100,
) -> list[Metric]:
    """List metrics whose name contains `search`, ignoring case, by name."""
    conditions = within.conditions() + equals(filters or {}, METRICS)
    if search is not None:
        conditions.append(f"contains(lower(metric_name), {text(search.lower())})")
    rows = ask(
        "SELECT metric_name AS name, metric_type AS type, unit, max(description) AS description, "
        "aggregation_temporality AS temporality, is_monotonic, "
        "array_agg(DISTINCT service_name) AS services, count(*) AS point_count, "
        f"max(time) AS newest FROM metrics {where(conditions)} "
        "GROUP BY metric_name, metric_type, unit, aggregation_temporality, is_monotonic "
        f"ORDER BY 1, 2, 3, 5, 6 LIMIT {bounded(limit, 'limit', LIMIT_MAX)}"
    ).to_pylist()
    return [Metric(**{**row, "services": tuple(sorted(row["services"]))}) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """An attribute of a metric's points, with its most frequent values and their counts. `name`
    can be used in `group_by` and `filters`."""

    name: str
    values: tuple[tuple[str, int], ...]


def metric_labels(
    ask: Ask,
    name: str,
    *,
    within: TimeRange = ALWAYS,
    filters: Filters | None = None,
    limit: int = 10,
) -> list[Label]:
    """List the attributes of a metric's points, then of their resources, with at most `limit`
    values each, from the most frequent sets of attributes."""
    bounded(limit, "limit", LIMIT_MAX)
    conditions = [f"metric_name = {text(name)}", *within.conditions()]
    conditions += equals(filters or {}, METRICS)
    labels = []
    for column in ("attributes", "resource_attributes"):
        rows = ask(
            f"SELECT {column} AS pairs, count(*) AS count FROM metrics {where(conditions)} "
            f"GROUP BY {column} ORDER BY count DESC LIMIT {COMBINATIONS_MAX}"
        ).to_pylist(maps_as_pydicts="lossy")
        values: dict[str, Counter[str]] = {}
        for row in rows:
            for key, value in row["pairs"].items():
                values.setdefault(key, Counter())[value] += row["count"]
        is_resource = column == "resource_attributes"
        labels += [
            Label(
                name=RESOURCE + key if is_resource else attribute_name(key, METRICS),
                values=tuple(
                    sorted(values[key].items(), key=lambda item: (-item[1], item[0]))[:limit]
                ),
            )
            for key in sorted(values)
        ]
    return labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemplar:
    """One recorded value and the span it was recorded in."""

    time_unix_nano: int
    value: float
    trace_id: str
    span_id: str
    service_name: str
    labels: Annotated[Mapping[str, str], doc("Attributes of point and exemplar.")]


def exemplars(
    ask: Ask,
    name: str,
    *,
    within: TimeRange = ALWAYS,
    filters: Filters | None = None,
    limit: int = 100,
) -> list[Exemplar]:
    """Return exemplars of the newest points that have any, newest first and without duplicates."""
    conditions = [f"metric_name = {text(name)}", "NOT empty(exemplars)"]
    conditions += within.conditions() + equals(filters or {}, METRICS)
    rows = ask(
        f"SELECT service_name, attributes, exemplars FROM metrics {where(conditions)} "
        f"ORDER BY time DESC LIMIT {bounded(limit, 'limit', EXEMPLARS_MAX)}"
    ).to_pylist(maps_as_pydicts="lossy")
    unique = {_key(each): each for row in rows for each in _exemplars(row)}
    return sorted(unique.values(), key=lambda each: -each.time_unix_nano)[:limit]


def _exemplars(row: Mapping[str, Any]) -> list[Exemplar]:
    return [
        Exemplar(
            time_unix_nano=each["time_unix_nano"],
            value=float(
                each["value_int"] if each["value_double"] is None else each["value_double"]
            ),
            trace_id=each["trace_id"],
            span_id=each["span_id"],
            service_name=row["service_name"],
            labels={**row["attributes"], **each["filtered_attributes"]},
        )
        for each in row["exemplars"]
        if each["value_double"] is not None or each["value_int"] is not None
    ]


def _key(each: Exemplar) -> tuple[object, ...]:
    labels = tuple(sorted(each.labels.items()))
    return (
        each.time_unix_nano,
        repr(each.value),
        each.trace_id,
        each.span_id,
        labels,
    )
