"""MetricFamily: a metric of the tables, and the names that its series have in Prometheus.

    type                    series
    gauge, sum              name
    histogram               name_bucket, name_sum, name_count
    exponential_histogram   name, whose values are native histograms
    summary                 name with a label quantile, name_sum, name_count

A series is found by Prometheus' name and by the name of OpenTelemetry. If the latter needs quotes,
as `http.route` does, its labels keep their names, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from frazil.languages.prometheus.matching import test_of
from frazil.languages.prometheus.names import NAME, is_legacy_metric, metric_name_of
from frazil.languages.promql.points import LabelMatcher
from frazil.query import sql_text as text

TARGET_INFO = "target_info"


class SeriesPart(Enum):
    """What the values of a series are."""

    VALUE = "value"
    COUNT = "count"
    SUM = "sum"
    BUCKETS = "buckets"
    QUANTILES = "quantiles"
    HISTOGRAM = "histogram"
    RESOURCE = "resource"


PARTS = {
    "gauge": {"": SeriesPart.VALUE},
    "sum": {"": SeriesPart.VALUE},
    "histogram": {
        "_bucket": SeriesPart.BUCKETS,
        "_sum": SeriesPart.SUM,
        "_count": SeriesPart.COUNT,
    },
    "exponential_histogram": {"": SeriesPart.HISTOGRAM},
    "summary": {"": SeriesPart.QUANTILES, "_sum": SeriesPart.SUM, "_count": SeriesPart.COUNT},
    "resource": {"": SeriesPart.RESOURCE},
}
"""Type of a metric -> suffix of a name -> the values of that series."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFamily:
    """A metric. The same name with another type or unit is another one."""

    metric_name: str
    metric_type: str
    unit: str
    is_monotonic: bool
    name: str
    has_delta: bool = False
    has_cumulative: bool = True
    point_count: int = 0

    @property
    def condition(self) -> str:
        """SQL of the rows of this metric."""
        monotonic = "" if self.is_monotonic else "NOT "
        return (
            f"metric_name = {text(self.metric_name)} AND metric_type = {text(self.metric_type)} "
            f"AND coalesce(unit, '') = {text(self.unit)} "
            f"AND {monotonic}coalesce(is_monotonic, false)"
        )

    @property
    def prometheus_type(self) -> str:
        """Return the type as `/api/v1/metadata` has it."""
        if self.metric_type == "sum":
            return "counter" if self.is_monotonic else "gauge"
        if self.metric_type == "exponential_histogram":
            return "histogram"
        return self.metric_type

    def is_delta_only(self) -> bool:
        return self.has_delta and not self.has_cumulative


RESOURCES = MetricFamily(
    metric_name="", metric_type="resource", unit="", is_monotonic=False, name=TARGET_INFO
)
"""The resources of all metrics, as the series `target_info`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSeries:
    """Series of a metric that a selector names."""

    family: MetricFamily
    part: SeriesPart
    name: str
    keeps_labels: bool = False
    """Whether labels keep the names that OpenTelemetry gives them."""


def families_of(rows: Iterable[dict[str, Any]]) -> list[MetricFamily]:
    """Return the metrics, from rows with their columns and the number of their points."""
    found: dict[tuple[str, str, str, bool], list[dict[str, Any]]] = {}
    for row in rows:
        key = (row["metric_name"], row["metric_type"], row["unit"] or "", bool(row["is_monotonic"]))
        found.setdefault(key, []).append(row)
    return [
        MetricFamily(
            metric_name=key[0],
            metric_type=key[1],
            unit=key[2],
            is_monotonic=key[3],
            name=name,
            has_delta=any(row["aggregation_temporality"] == "DELTA" for row in same),
            has_cumulative=any(row["aggregation_temporality"] != "DELTA" for row in same),
            point_count=sum(row["point_count"] for row in same),
        )
        for key, same in sorted(found.items())
        if key[1] in PARTS
        for name in [metric_name_of(key[0], key[2], key[1], is_monotonic=key[3])]
        if name is not None
    ]


def all_series(families: Iterable[MetricFamily]) -> Iterator[FoundSeries]:
    """Yield the series of all metrics, by Prometheus' names."""
    for family in families:
        for suffix, part in PARTS[family.metric_type].items():
            yield FoundSeries(family=family, part=part, name=family.name + suffix)


def find_series(
    families: Iterable[MetricFamily], matchers: Sequence[LabelMatcher]
) -> list[FoundSeries]:
    """Return the series whose names match. Only `=` finds names of OpenTelemetry."""
    tests = [test_of(matcher) for matcher in matchers if matcher.name == NAME]
    every = [*all_series(families), *all_series([RESOURCES])]
    found = [series for series in every if all(test(series.name) for test in tests)]
    if found:
        return found
    wanted = {matcher.value for matcher in matchers if is_equal_name(matcher)}
    if len(wanted) != 1:
        return []
    (name,) = wanted
    return [
        FoundSeries(
            family=series.family,
            part=series.part,
            name=name,
            keeps_labels=not is_legacy_metric(name),
        )
        for series in every
        if name == series.family.metric_name + series.name.removeprefix(series.family.name)
        and all(test(name) for test in tests)
    ]


def is_equal_name(matcher: LabelMatcher) -> bool:
    """Return whether a condition names one metric."""
    return matcher.name == NAME and matcher.operator == "="
