"""Exemplars of the series that a query reads. Those of a histogram belong to its buckets."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frazil.languages.prometheus.directory import time_condition
from frazil.languages.prometheus.families import FoundSeries, SeriesPart
from frazil.languages.prometheus.labels import labels_of, with_label
from frazil.languages.prometheus.matching import SeriesFilter
from frazil.languages.prometheus.names import NAME
from frazil.languages.prometheus.spread_points import LE, bound_text
from frazil.languages.prometheus.table_points import TablePointSource
from frazil.languages.promql.points import LabelMatcher, LabelSet
from frazil.query import Ask

POINTS_MAX = 10_000
"""Points whose exemplars are read, the newest first."""
LABELS_LENGTH_MAX = 128
"""Characters of the labels of an exemplar; above it, only those of its span are left."""
PARTS = (SeriesPart.VALUE, SeriesPart.BUCKETS, SeriesPart.HISTOGRAM)
NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PointExemplar:
    """A value that was recorded, and the span it was recorded in."""

    time_ms: int
    value: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesExemplars:
    """Exemplars of a series, by time."""

    labels: LabelSet
    exemplars: tuple[PointExemplar, ...]


def series_exemplars(
    ask: Ask,
    source: TablePointSource,
    selectors: Sequence[Sequence[LabelMatcher]],
    start_ms: int,
    end_ms: int,
) -> list[SeriesExemplars]:
    """Return the exemplars of series that match any selector, in [start_ms, end_ms]."""
    found: dict[LabelSet, dict[tuple[Any, ...], PointExemplar]] = {}
    for matchers in selectors:
        wanted = SeriesFilter(matchers)
        for series in source.find(matchers, start_ms - 1, end_ms):
            if series.part not in PARTS:
                continue
            for row in _rows(ask, series, start_ms, end_ms):
                _add(found, series, row, wanted, start_ms, end_ms)
    return [
        SeriesExemplars(
            labels=labels,
            exemplars=tuple(sorted(some.values(), key=lambda each: each.time_ms)),
        )
        for labels, some in sorted(found.items())
    ]


def _rows(ask: Ask, series: FoundSeries, start_ms: int, end_ms: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ask(
        "SELECT attributes, resource_attributes, explicit_bounds, exemplars FROM metrics WHERE "
        f"{series.family.condition} AND NOT empty(exemplars) AND "
        f"{time_condition(start_ms - 1, end_ms)} ORDER BY time DESC LIMIT {POINTS_MAX}"
    ).to_pylist(maps_as_pydicts="lossy")
    return rows


def _add(
    found: dict[LabelSet, dict[tuple[Any, ...], PointExemplar]],
    series: FoundSeries,
    row: Mapping[str, Any],
    wanted: SeriesFilter,
    start_ms: int,
    end_ms: int,
) -> None:
    labels = labels_of(sorted(row["attributes"].items()), row["resource_attributes"])
    base = with_label(labels.original if series.keeps_labels else labels.escaped, NAME, series.name)
    for each in row["exemplars"]:
        value = each["value_double"] if each["value_int"] is None else float(each["value_int"])
        time_ms = each["time_unix_nano"] // NS_PER_MS
        if value is None or not start_ms <= time_ms <= end_ms:
            continue
        key = base
        if series.part is SeriesPart.BUCKETS:
            key = with_label(base, LE, _bucket(value, row["explicit_bounds"] or ()))
        if wanted.selects(key):
            exemplar = PointExemplar(time_ms=time_ms, value=value, labels=_labels(each))
            identity = (time_ms, value, *sorted(exemplar.labels.items()))
            found.setdefault(key, {})[identity] = exemplar


def _bucket(value: float, bounds: Sequence[float]) -> str:
    place = bisect_left(bounds, value)
    return bound_text(bounds[place] if place < len(bounds) else float("inf"))


def _labels(exemplar: Mapping[str, Any]) -> dict[str, str]:
    span = {key: exemplar[key] for key in ("trace_id", "span_id") if exemplar[key]}
    labels = {**exemplar["filtered_attributes"], **span}
    length = sum(len(key) + len(value) for key, value in labels.items())
    return labels if length <= LABELS_LENGTH_MAX else span
