"""Points in memory as a source, with the hints that Prometheus' storage gives histograms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import re2

from frazil.languages.promql.histogram import CUSTOM_SCHEMA, NativeHistogram, ResetHint, buckets_of
from frazil.languages.promql.histogram_sums import is_reset
from frazil.languages.promql.points import LabelMatcher, LabelSet, PointSet
from tests.languages.promql.notation import STALE, Point

Value = float | NativeHistogram


class MemoryPoints:
    """A source over points that were added."""

    def __init__(self) -> None:
        self._series: dict[LabelSet, dict[int, Value]] = defaultdict(dict)
        self.deltas: set[LabelSet] = set()

    def add(self, labels: LabelSet, times: Iterable[int], points: Iterable[Point]) -> None:
        """Add points to a series."""
        for time, point in zip(times, points, strict=False):
            if point.histogram is not None:
                self._series[labels][time] = point.histogram
            elif point.value is not None:
                self._series[labels][time] = point.value
        self._series[labels] = with_hints(self._series[labels])

    def select(self, matchers: Sequence[LabelMatcher], after_ms: int, until_ms: int) -> PointSet:
        """Return the series that match, with their points in (after_ms, until_ms]."""
        conditions = [(each.name, condition(each)) for each in matchers]
        labels, starts = [], [0]
        times: list[int] = []
        values: list[Value] = []
        for key, points in self._series.items():
            named = dict(key)
            if not all(holds(named.get(name, "")) for name, holds in conditions):
                continue
            chosen = [time for time in sorted(points) if after_ms < time <= until_ms]
            if chosen:
                labels.append(key)
                times += chosen
                values += [points[time] for time in chosen]
                starts.append(len(times))
        histograms = [each if isinstance(each, NativeHistogram) else None for each in values]
        return PointSet(
            labels=labels,
            starts=np.array(starts, np.int64),
            times_ms=np.array(times, np.int64),
            values=np.array(
                [0.0 if isinstance(each, NativeHistogram) else each for each in values]
            ),
            is_delta=np.array([key in self.deltas for key in labels], np.bool_),
            histograms=histograms if any(histograms) else None,
        )


def condition(matcher: LabelMatcher) -> Callable[[str], bool]:
    """Return what a matcher says of a value."""
    if matcher.operator in ("=", "!="):
        return lambda value: (value == matcher.value) == (matcher.operator == "=")
    pattern = re2.compile(f"^(?s:{matcher.value})$")
    return lambda value: (pattern.search(value) is not None) == (matcher.operator == "=~")


def with_hints(points: Mapping[int, Value]) -> dict[int, Value]:
    """Give histograms the hints they come out with: NOT_RESET within a chunk."""
    found: dict[int, Value] = {}
    previous: Value | None = None
    for time in sorted(points):
        point = points[time]
        if isinstance(point, NativeHistogram) and point.hint is not ResetHint.GAUGE:
            continues = isinstance(previous, NativeHistogram) and _continues(point, previous)
            point = replace(point, hint=ResetHint.NOT_RESET if continues else ResetHint.UNKNOWN)
        found[time] = point
        previous = points[time]
    return found


def _continues(point: NativeHistogram, previous: NativeHistogram) -> bool:
    if previous.hint is ResetHint.GAUGE or point.hint is ResetHint.RESET:
        return False
    if (point.schema, point.zero_threshold, point.bounds) != (
        previous.schema,
        previous.zero_threshold,
        previous.bounds,
    ):
        return False
    return not is_reset(replace(point, hint=ResetHint.UNKNOWN), previous)


def custom_histograms(
    series: Mapping[LabelSet, Mapping[int, float]],
) -> dict[LabelSet, dict[int, Point]]:
    """Make histograms with bounds of their own from series of buckets, counts and sums."""
    parts: dict[LabelSet, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for labels, points in series.items():
        named = dict(labels)
        name = named.pop("__name__")
        base, _, suffix = name.rpartition("_")
        bound = named.pop("le", None) if suffix == "bucket" else suffix
        if suffix not in ("bucket", "count", "sum") or bound is None:
            continue
        key = tuple(sorted({**named, "__name__": base}.items()))
        for time, value in points.items():
            parts[key][time][bound] = value
    return {
        key: {time: Point(0.0, _custom(each)) for time, each in times.items()}
        for key, times in parts.items()
    }


def _custom(parts: dict[str, float]) -> NativeHistogram:
    total = parts.pop("sum", 0.0)
    count = parts.pop("count", None)
    buckets: list[tuple[float, float]] = []
    for text, value in parts.items():
        try:
            buckets.append((float(text), value))
        except ValueError:
            continue
    buckets.sort()
    if buckets and buckets[-1][0] != np.inf:
        buckets.append((np.inf, buckets[-1][1] if count is None else count))
    if not buckets:
        buckets = [(np.inf, count or 0.0)]
    counts = np.diff(np.array([value for _, value in buckets]), prepend=0.0)
    return NativeHistogram(
        schema=CUSTOM_SCHEMA,
        count=buckets[-1][1] if count is None else count,
        sum=total,
        positive=buckets_of(0, counts),
        bounds=tuple(bound for bound, _ in buckets[:-1]),
    )


def is_end(value: float) -> bool:
    """Whether a value marks the end of a series."""
    return np.float64(value).tobytes() == np.float64(STALE).tobytes()
