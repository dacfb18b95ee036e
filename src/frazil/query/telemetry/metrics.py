"""Questions about metrics: which there are, what labels they have, and examples of single values.
Their values over time are in series.py."""

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
    equals,
    spelled,
    text,
    where,
    whole,
)

LIMIT_MAX = 1000
EXEMPLARS_MAX = 1000
COMBINATIONS_MAX = 10_000
"""Different sets of attributes that are looked at; the most frequent ones."""


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
    """Metrics by name, those whose name has `search` in it, in any case."""
    conditions = within.conditions() + equals(filters or {}, METRICS)
    if search is not None:
        conditions.append(f"contains(lower(metric_name), {text(search.lower())})")
    rows = ask(
        "SELECT metric_name AS name, metric_type AS type, unit, max(description) AS description, "
        "aggregation_temporality AS temporality, is_monotonic, "
        "array_agg(DISTINCT service_name) AS services, count(*) AS point_count, "
        f"max(time) AS newest FROM metrics {where(conditions)} "
        "GROUP BY metric_name, metric_type, unit, aggregation_temporality, is_monotonic "
        f"ORDER BY 1, 2, 3, 5, 6 LIMIT {whole(limit, 'limit', LIMIT_MAX)}"
    ).to_pylist()
    return [Metric(**{**row, "services": tuple(sorted(row["services"]))}) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """An attribute of a metric's points, with its most frequent values and how many points have
    each. The name is what `group_by` and `filters` take."""

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
    """What a metric's points can be told apart by: their attributes, then those of the resources
    they come from. At most `limit` values each. Of very many different sets of attributes only the
    most frequent are looked at."""
    whole(limit, "limit", LIMIT_MAX)
    conditions = [f"metric_name = {text(name)}", *within.conditions()]
    conditions += equals(filters or {}, METRICS)
    found = []
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
        found += [
            Label(
                name=RESOURCE + key if is_resource else spelled(key, METRICS),
                values=tuple(
                    sorted(values[key].items(), key=lambda one: (-one[1], one[0]))[:limit]
                ),
            )
            for key in sorted(values)
        ]
    return found


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
    """Examples of a metric's values, newest first, from the newest points that have some. One that
    several points repeat is there once."""
    conditions = [f"metric_name = {text(name)}", "NOT empty(exemplars)"]
    conditions += within.conditions() + equals(filters or {}, METRICS)
    rows = ask(
        f"SELECT service_name, attributes, exemplars FROM metrics {where(conditions)} "
        f"ORDER BY time DESC LIMIT {whole(limit, 'limit', EXEMPLARS_MAX)}"
    ).to_pylist(maps_as_pydicts="lossy")
    found = {_key(one): one for row in rows for one in _exemplars(row)}
    return sorted(found.values(), key=lambda one: -one.time_unix_nano)[:limit]


def _exemplars(row: Mapping[str, Any]) -> list[Exemplar]:
    return [
        Exemplar(
            time_unix_nano=one["time_unix_nano"],
            value=float(one["value_int"] if one["value_double"] is None else one["value_double"]),
            trace_id=one["trace_id"],
            span_id=one["span_id"],
            service_name=row["service_name"],
            labels={**row["attributes"], **one["filtered_attributes"]},
        )
        for one in row["exemplars"]
        if one["value_double"] is not None or one["value_int"] is not None
    ]


def _key(one: Exemplar) -> tuple[object, ...]:
    labels = tuple(sorted(one.labels.items()))
    return one.time_unix_nano, repr(one.value), one.trace_id, one.span_id, labels
