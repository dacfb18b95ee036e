"""Selectors: from points to a value per step, or to the points that each step sees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frazil.languages.promql.evaluation import Evaluation
from frazil.languages.promql.histogram import NativeHistogram, ResetHint, with_hint
from frazil.languages.promql.histogram_sums import added, is_reset
from frazil.languages.promql.kernels.arrays import Flags, Floats, Longs, any_along, exist, given
from frazil.languages.promql.kernels.windows import window_bounds
from frazil.languages.promql.labels import metric_name
from frazil.languages.promql.notes import Notes
from frazil.languages.promql.points import PointSet
from frazil.languages.promql.syntax import InstantSelector, RangeSelector, Subquery
from frazil.languages.promql.vectors import (
    Objects,
    PointRows,
    Ranges,
    Vector,
    empty,
    no_histograms,
    ranges_of,
)

STALE_BITS = 0x7FF0000000000002
"""The NaN that marks the end of a series."""


def are_stale(values: Floats) -> Flags:
    """Which values mark the end of their series."""
    flags: Flags = values.view(np.int64) == STALE_BITS
    return flags


@dataclass(slots=True)
class _Selected:
    """Points in the order of their labels."""

    points: PointSet
    begins: Longs
    stops: Longs
    order: list[int]
    values: Floats
    histograms: Objects | None

    def is_delta(self) -> Flags:
        return self.points.is_delta[self.order]


def _selected(points: PointSet, counts_only: bool) -> _Selected:
    labels = points.labels
    order = sorted(range(len(labels)), key=labels.__getitem__)
    values = np.ascontiguousarray(points.values)
    histograms = None
    if points.histograms is not None and len(points.histograms):
        histograms = no_histograms((len(values),))
        histograms[:] = points.histograms
    rows = np.array(order, np.int64)
    begins, stops = given(points.starts[:-1][rows]), given(points.starts[1:][rows])
    if counts_only and histograms is not None:
        _find_resets(begins, stops, histograms)
    return _Selected(points, begins, stops, order, values, histograms)


def _find_resets(begins: Longs, stops: Longs, histograms: Objects) -> None:
    for begin, stop in zip(begins, stops, strict=True):
        previous: NativeHistogram | None = None
        for at in range(begin, stop):
            point = histograms[at]
            if point is not None and previous is not None and point.hint is ResetHint.UNKNOWN:
                hint = ResetHint.RESET if is_reset(point, previous) else ResetHint.NOT_RESET
                histograms[at] = with_hint(point, hint)
            previous = point if point is not None else previous


def instant(selector: InstantSelector, evaluation: Evaluation) -> tuple[Vector, Longs]:
    """Return the latest value of each series at each step, and its time."""
    ends = evaluation.ends(selector.at, selector.offset_ms)
    if not len(ends):
        return empty(0), np.zeros((0, 0), np.int64)
    lookback_ms = evaluation.limits.lookback_ms
    points = evaluation.read(selector.matchers, int(ends[0]) - lookback_ms, int(ends[-1]))
    if not len(points.times_ms):
        return empty(evaluation.steps), np.zeros((0, evaluation.steps), np.int64)
    selected = _selected(points, evaluation.counts_only is True)
    evaluation.count(len(points.labels) * evaluation.steps)
    _show_totals(selected, evaluation.notes, selector.begin)
    first, last = window_bounds(
        selected.begins, selected.stops, given(points.times_ms), ends, lookback_ms
    )
    at = np.where(last > first, last - 1, 0)
    present = (last > first) & ~are_stale(selected.values)[at]
    values = np.where(present, selected.values[at], 0.0)
    vector = Vector(
        [points.labels[row] for row in selected.order],
        values,
        present,
        np.zeros(len(points.labels), np.bool_),
        _shown(selected.histograms, at, present),
    )
    times = points.times_ms[at]
    has_any = any_along(present, 1)
    return spread(vector.rows(has_any), evaluation.steps), _spread_grid(
        times[has_any], evaluation.steps
    )


def _shown(histograms: Objects | None, at: Longs, present: Flags) -> Objects | None:
    if histograms is None:
        return None
    shown = no_histograms(present.shape)
    shown[present] = histograms[at[present]]
    return shown


def spread(vector: Vector, steps: int) -> Vector:
    """Repeat a value that is the same at every step."""
    if vector.steps == steps:
        return vector
    histograms = vector.histograms
    if histograms is not None:
        histograms = np.repeat(histograms, steps, axis=1)
    return replace(
        vector,
        values=_spread_grid(vector.values, steps),
        present=np.repeat(vector.present, steps, axis=1),
        histograms=histograms,
    )


def _spread_grid(grid: NDArray[Any], steps: int) -> NDArray[Any]:
    return grid if grid.shape[1] == steps else np.repeat(grid, steps, axis=1)


def _show_totals(selected: _Selected, notes: Notes, begin: int) -> None:
    """Show points of delta temporality as running totals since the first point that was read."""
    deltas = np.flatnonzero(selected.is_delta())
    if not len(deltas):
        return
    selected.values = totals_of(selected.begins, selected.stops, selected.values, deltas)
    if selected.histograms is not None:
        selected.histograms = _histogram_totals(selected, deltas)
    for row in deltas:
        name = metric_name(selected.points.labels[selected.order[row]])
        notes.of_metric(
            "delta temporality is shown as a running total since the first point in view; use"
            " increase or rate",
            name,
            begin,
        )


def totals_of(begins: Longs, stops: Longs, values: Floats, rows: Longs) -> Floats:
    """Return values with running totals in some of the series."""
    totals = values.copy()
    for row in rows:
        part = totals[begins[row] : stops[row]]
        lives = ~are_stale(part)
        part[lives] = np.cumsum(part[lives])
    return totals


def _histogram_totals(selected: _Selected, rows: Longs) -> Objects:
    if selected.histograms is None:
        raise AssertionError("there are no histograms to add up")
    totals = selected.histograms.copy()
    for row in rows:
        total: NativeHistogram | None = None
        for at in range(selected.begins[row], selected.stops[row]):
            if totals[at] is None:
                continue
            if total is not None:
                combined = added(total, totals[at])
                totals[at] = totals[at] if combined is None else combined.histogram
            total = totals[at]
    return totals


def select_ranges(selector: RangeSelector, evaluation: Evaluation) -> tuple[Ranges, Longs]:
    """Return the points that the steps see, and the end of each range."""
    ends = evaluation.ends(selector.at, selector.offset_ms)
    if not len(ends):
        return ranges_of(empty(0), evaluation.times), ends
    points = evaluation.read(
        selector.selector.matchers, int(ends[0]) - selector.range_ms, int(ends[-1])
    )
    if not len(points.times_ms):
        return ranges_of(empty(0), given(np.zeros(0, np.int64))), ends
    selected = _selected(points, evaluation.counts_only is True)
    are_histograms = np.zeros(len(selected.values), np.bool_)
    if selected.histograms is not None:
        are_histograms = exist(selected.histograms)
    are_floats = ~are_histograms & ~are_stale(selected.values)
    histograms = None
    if are_histograms.any() and selected.histograms is not None:
        histograms = _chosen(selected, are_histograms)
        histograms.histograms = list(selected.histograms[are_histograms])
    return (
        Ranges(
            [points.labels[row] for row in selected.order],
            np.zeros(len(points.labels), np.bool_),
            selected.is_delta(),
            _chosen(selected, are_floats),
            histograms,
        ),
        ends,
    )


def _chosen(selected: _Selected, chosen: Flags) -> PointRows:
    times, values = selected.points.times_ms, selected.values
    if chosen.all():
        return PointRows(selected.begins, selected.stops, given(times), given(values))
    before = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(chosen, out=before[1:])
    return PointRows(
        given(before[selected.begins]),
        given(before[selected.stops]),
        given(times[chosen]),
        given(values[chosen]),
    )


def subquery_times(subquery: Subquery, evaluation: Evaluation) -> tuple[int, Longs, Longs]:
    """Return the number of steps of a subquery, their times, and the end of each range."""
    ends = evaluation.ends(subquery.at, subquery.offset_ms)
    step_ms = subquery.step_ms or evaluation.limits.subquery_step_ms
    if not len(ends):
        return 0, ends, ends
    start = (int(ends[0]) - subquery.range_ms) // step_ms * step_ms + step_ms
    count = max(0, (int(ends[-1]) - start) // step_ms + 1)
    if count > evaluation.limits.subquery_steps_max:
        return count, ends[:0], ends
    return count, given(start + step_ms * np.arange(count, dtype=np.int64)), ends
