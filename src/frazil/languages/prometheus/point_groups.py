"""PointGroup: the points of some series as they were read, and how groups become a PointSet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from frazil.errors import TooLarge
from frazil.languages.prometheus.kernels import DROPPED, Floats, Ints, Longs, sort_points
from frazil.languages.promql.histogram import NativeHistogram
from frazil.languages.promql.points import LabelSet, PointSet

STALE_NAN_BITS = 0x7FF0000000000002
"""The NaN that ends a series."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointGroup:
    """Points in any order. `labels` and `is_delta` are by number, the others by point."""

    labels: Sequence[LabelSet | None]
    """None for a series that is not selected."""
    is_delta: Sequence[bool]
    numbers: Ints
    times_ms: Longs
    ranks: Longs
    """Of several points with the same time, the one with the least rank counts."""
    values: Floats
    histograms: Sequence[NativeHistogram | None] | None = None


def point_set_of(groups: Sequence[PointGroup], *, series_max: int) -> PointSet:
    """Return the points by series and time. If a series has running totals as well as
    deltas, the deltas are left out: they cannot be mixed."""
    series_of: dict[LabelSet, int] = {}
    is_delta: list[bool] = []
    maps = [np.full(len(group.labels), DROPPED, np.int32) for group in groups]
    for kind in (False, True):
        for group, series in zip(groups, maps, strict=True):
            _add_series(group, series, series_of, is_delta, kind)
    if len(series_of) > series_max:
        raise TooLarge(
            f"the query selects {len(series_of)} series, more than the limit of {series_max}; add "
            "matchers, or shorten the range"
        )
    numbers = _joined([to[group.numbers] for to, group in zip(maps, groups, strict=True)], np.int32)
    times = _joined([group.times_ms for group in groups], np.int64)
    ranks = _joined([group.ranks for group in groups], np.int64)
    starts = np.zeros(len(series_of) + 1, np.int64)
    order = np.empty(len(numbers), np.int64)
    order = order[: sort_points(numbers, times, ranks, starts, order)]
    values = _joined([group.values for group in groups], np.float64)
    return PointSet(
        labels=list(series_of),
        starts=starts,
        times_ms=times[order],
        values=values[order],
        is_delta=np.array(is_delta, np.bool_),
        histograms=_histograms(groups, order),
    )


def _add_series(
    group: PointGroup,
    series: Ints,
    series_of: dict[LabelSet, int],
    is_delta: list[bool],
    kind: bool,
) -> None:
    """Fill in the series of the numbers of one kind, and add those that are new."""
    for number, labels in enumerate(group.labels):
        if labels is None or group.is_delta[number] != kind:
            continue
        place = series_of.setdefault(labels, len(is_delta))
        if place == len(is_delta):
            is_delta.append(kind)
        if is_delta[place] == kind:
            series[number] = place


def _joined(parts: Sequence[np.ndarray], kind: type[np.generic]) -> np.ndarray:
    return np.concatenate([np.empty(0, kind), *parts]).astype(kind, copy=False)


def _histograms(groups: Sequence[PointGroup], order: Longs) -> list[NativeHistogram | None] | None:
    if all(group.histograms is None for group in groups):
        return None
    every: list[NativeHistogram | None] = []
    for group in groups:
        every += group.histograms or [None] * len(group.values)
    return [every[row] for row in order.tolist()]
