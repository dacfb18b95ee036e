"""Names and values of labels, and what metrics are, for completion and drop-downs.

Without a selector, names come from the keys of maps and values from one attribute: far fewer rows
than there are series.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from frazil.languages.prometheus.directory import MetricDirectory, time_condition
from frazil.languages.prometheus.families import RESOURCES, MetricFamily, all_series
from frazil.languages.prometheus.labels import (
    INSTANCE_LABEL,
    JOB_LABEL,
    labels_of,
)
from frazil.languages.prometheus.names import NAME, label_name_of, unit_name_of
from frazil.languages.prometheus.span_series import SPAN_SERIES
from frazil.languages.prometheus.spread_points import LE, QUANTILE
from frazil.languages.prometheus.table_points import TablePointSource
from frazil.languages.promql.points import LabelMatcher, LabelSet
from frazil.query import Ask
from frazil.query import sql_text as text

Selectors = Sequence[Sequence[LabelMatcher]]
_SPAN_LABELS = frozenset(label for series in SPAN_SERIES for label in series.labels)
_MAPS = ("attributes", "resource_attributes")
_IDENTITY = ("service.name", "service.namespace", "service.instance.id")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricMetadata:
    """What a metric is, as `/api/v1/metadata` has it."""

    type: str
    help: str
    unit: str


class SeriesListing:
    """Lists what has points in (after_ms, until_ms]."""

    def __init__(
        self,
        source: TablePointSource,
        ask: Ask,
        directory: MetricDirectory,
        after_ms: int,
        until_ms: int,
    ) -> None:
        self._source = source
        self._ask = ask
        self._directory = directory
        self._range_ms = (after_ms, until_ms)

    def is_empty(self) -> bool:
        """Return whether there are no metrics."""
        return not self._families()

    def series(self, selectors: Selectors) -> list[LabelSet]:
        """Return the series that match any selector."""
        found: set[LabelSet] = set()
        for matchers in selectors:
            found |= self._source.labels(matchers, *self._range_ms)
        return sorted(found)

    def label_names(self, selectors: Selectors) -> list[str]:
        """Return the names of labels."""
        if selectors:
            return sorted({name for labels in self.series(selectors) for name, _ in labels})
        families = self._families()
        names = {NAME, *_SPAN_LABELS}
        types = {family.metric_type for family in families}
        names |= {LE} if "histogram" in types else set()
        names |= {QUANTILE} if "summary" in types else set()
        for column in _MAPS:
            for key in self._keys(column):
                if key in _IDENTITY and column == "resource_attributes":
                    names.add(INSTANCE_LABEL if key == _IDENTITY[2] else JOB_LABEL)
                else:
                    names.add(label_name_of(key) or NAME)
        return sorted(names)

    def label_values(self, name: str, selectors: Selectors) -> list[str]:
        """Return the values of a label."""
        if not selectors and name == NAME:
            return sorted(self._metric_names())
        if not selectors:
            found = self._attribute_values(name)
            if found is not None:
                return found
            selectors = [[LabelMatcher(name, "!=", ""), *_only_with(name)]]
        escaped = label_name_of(name)
        return sorted(
            {
                value
                for labels in self.series(selectors)
                for key, value in labels
                if key in (name, escaped)
            }
        )

    def metadata(self, name: str | None) -> dict[str, list[MetricMetadata]]:
        """Return what metrics are, by name."""
        described = self._descriptions()
        found: dict[str, list[MetricMetadata]] = {}
        for family in self._families():
            about = MetricMetadata(
                type=family.prometheus_type,
                help=described.get((family.metric_name, family.metric_type), ""),
                unit=unit_name_of(family.unit),
            )
            found.setdefault(family.name, []).append(about)
        for series in SPAN_SERIES:
            about = MetricMetadata(type=series.prometheus_type, help=series.help, unit="")
            found[series.family_name] = [about]
        found[RESOURCES.name] = [MetricMetadata(type="gauge", help="Target metadata", unit="")]
        return {key: found[key] for key in sorted(found) if name in (None, key)}

    def _families(self) -> tuple[MetricFamily, ...]:
        return self._directory.families(self._ask, *self._range_ms, bool)

    def _metric_names(self) -> Iterable[str]:
        families = self._families()
        targets = [RESOURCES] if families else []
        found = {series.name for series in all_series([*families, *targets])}
        is_traced = self._ask(f"SELECT 1 FROM spans WHERE {self._within} LIMIT 1").num_rows
        return found | ({series.name for series in SPAN_SERIES} if is_traced else set())

    @property
    def _within(self) -> str:
        return time_condition(*self._range_ms)

    def _keys(self, column: str) -> set[str]:
        rows = self._ask(
            f"SELECT DISTINCT map_keys({column}) AS keys FROM metrics WHERE {self._within}"
        )
        return {key for keys in rows["keys"].to_pylist() for key in keys}

    def _attribute_values(self, name: str) -> list[str] | None:
        """Return the values of a label that one attribute of points alone has; None if there may be
        others."""
        if name in (LE, QUANTILE) or name in _SPAN_LABELS:
            return None
        if name in (JOB_LABEL, INSTANCE_LABEL):
            return self._identities(name)
        escaped = label_name_of(name)
        keys = {
            column: [key for key in self._keys(column) if label_name_of(key) == escaped]
            for column in _MAPS
        }
        if any(len(found) > 1 for found in keys.values()):
            return None  # the values of several attributes are joined
        values: set[str] = set()
        for column, found in keys.items():
            for key in found:
                rows = self._ask(
                    f"SELECT DISTINCT {column}[{text(key)}] AS value FROM metrics "
                    f"WHERE {self._within}"
                )
                values.update(value for value in rows["value"].to_pylist() if value)
        return sorted(values)

    def _identities(self, name: str) -> list[str]:
        columns = [f"resource_attributes[{text(key)}] AS k{n}" for n, key in enumerate(_IDENTITY)]
        rows = self._ask(f"SELECT DISTINCT {', '.join(columns)} FROM metrics WHERE {self._within}")
        found: set[str] = set()
        for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            resource = {key: value for key, value in zip(_IDENTITY, row, strict=True) if value}
            found.update(value for key, value in labels_of((), resource).escaped if key == name)
        return sorted(found)

    def _descriptions(self) -> dict[tuple[str, str], str]:
        rows = self._ask(
            "SELECT metric_name, metric_type, max(description) AS description FROM metrics "
            f"WHERE {self._within} GROUP BY metric_name, metric_type"
        )
        return {
            (row["metric_name"], row["metric_type"]): row["description"] or ""
            for row in rows.to_pylist()
        }


def _only_with(name: str) -> list[LabelMatcher]:
    """Conditions on the names of series that alone have a label."""
    if name == LE:
        return [LabelMatcher(NAME, "=~", ".+_bucket")]
    return [LabelMatcher(NAME, "=~", "traces_.+")] if name in _SPAN_LABELS else []
