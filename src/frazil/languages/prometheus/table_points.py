"""TablePointSource: reads the points that a selector names, of metrics and of spans.

selector ─> names of metrics ─> a PartReader for each kind of values ─> sorted points
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from frazil.languages.prometheus.directory import MetricDirectory
from frazil.languages.prometheus.families import (
    FoundSeries,
    MetricFamily,
    SeriesPart,
    find_series,
    is_equal_name,
)
from frazil.languages.prometheus.labels import KnownLabels
from frazil.languages.prometheus.part_reader import PartReader, PartSelection
from frazil.languages.prometheus.point_groups import PointGroup, point_set_of
from frazil.languages.prometheus.span_series import find_span_series, read_span_series
from frazil.languages.promql.points import LabelMatcher, LabelSet, PointSet
from frazil.query import Ask

SERIES_MAX = 100_000
"""Series of one selector."""


class TablePointSource:
    """Reads for one evaluation. `check` raises an error when its time is over."""

    def __init__(
        self, ask: Ask, directory: MetricDirectory, known: KnownLabels, check: Callable[[], None]
    ) -> None:
        self._ask = ask
        self._directory = directory
        self._reader = PartReader(ask, known, check)
        self.point_count = 0
        """Points returned so far."""

    def select(self, matchers: Sequence[LabelMatcher], after_ms: int, until_ms: int) -> PointSet:
        """Return the series that match, with their points in (after_ms, until_ms]."""
        parts = self._parts(matchers, after_ms, until_ms)
        groups = [self._reader.read(part) for part in parts]
        groups += self._span_groups(matchers, after_ms, until_ms)
        points = point_set_of(groups, series_max=SERIES_MAX)
        self.point_count += len(points.times_ms)
        return points

    def labels(
        self, matchers: Sequence[LabelMatcher], after_ms: int, until_ms: int
    ) -> set[LabelSet]:
        """Return the labels of the series that match and have points in (after_ms, until_ms]."""
        parts = self._parts(matchers, after_ms, until_ms)
        found = {labels for part in parts for labels in self._reader.labels(part)}
        for group in self._span_groups(matchers, after_ms, until_ms):
            found.update(labels for labels in group.labels if labels is not None)
        return found

    def _span_groups(
        self, matchers: Sequence[LabelMatcher], after_ms: int, until_ms: int
    ) -> list[PointGroup]:
        return [
            read_span_series(self._ask, series, matchers, after_ms, until_ms)
            for series in find_span_series(matchers)
        ]

    def _parts(
        self, matchers: Sequence[LabelMatcher], after_ms: int, until_ms: int
    ) -> list[PartSelection]:
        by_part: dict[SeriesPart, list[FoundSeries]] = {}
        for series in self.find(matchers, after_ms, until_ms):
            by_part.setdefault(series.part, []).append(series)
        return [
            PartSelection(
                part=part,
                found=tuple(some),
                matchers=tuple(matchers),
                after_ms=after_ms,
                until_ms=until_ms,
            )
            for part, some in by_part.items()
        ]

    def find(
        self, matchers: Sequence[LabelMatcher], after_ms: int, until_ms: int
    ) -> list[FoundSeries]:
        """Return the series whose names match."""
        is_named = any(is_equal_name(matcher) for matcher in matchers)

        def has_wanted(families: Sequence[MetricFamily]) -> bool:
            return not is_named or bool(find_series(families, matchers))

        families = self._directory.families(self._ask, after_ms, until_ms, has_wanted)
        return find_series(families, matchers)
