"""Functions over the points of a time range, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from frazil.languages.promql.failures import FailedQuery
from frazil.languages.promql.histogram import NativeHistogram, is_equal
from frazil.languages.promql.histogram_sums import averaged, is_reset, summed
from frazil.languages.promql.kernels import over_time
from frazil.languages.promql.kernels.arrays import Floats, Longs, given
from frazil.languages.promql.notes import (
    bad_quantile,
    ignored_in_range,
    mixed_samples,
    mixed_schemas,
    note_total,
)
from frazil.languages.promql.range_windows import HistogramCell, RangeWindows
from frazil.languages.promql.rate_functions import gains, last_gains
from frazil.languages.promql.selectors import totals_of
from frazil.languages.promql.vectors import Vector

RangeFunction = Callable[[RangeWindows, Sequence[Floats]], Vector]
FloatKernel = Callable[[Longs, Longs, Floats], Floats]


def _total(windows: RangeWindows, kernel: FloatKernel, is_mean: bool) -> Vector:
    """A sum or mean, of floats or of histograms, but not of both."""
    for row in windows.mixed_rows():
        mixed_samples(windows.notes, windows.name(row), windows.begin)
    present = windows.have_floats() & ~windows.have_histograms()
    values = kernel(windows.first, windows.last, windows.floats.values)
    histograms = windows.room()
    if histograms is not None:
        for cell in windows.histogram_cells():
            found = _histogram_total(windows, cell, is_mean)
            histograms[cell.row, cell.step] = found
            present[cell.row, cell.step] = found is not None
    return windows.result(values, present, histograms)


def _histogram_total(
    windows: RangeWindows, cell: HistogramCell, is_mean: bool
) -> NativeHistogram | None:
    points = windows.seen(cell)
    total = averaged(points) if is_mean else summed(points)
    if total is None:
        mixed_schemas(windows.notes, windows.name(cell.row), windows.begin)
        return None
    note_total(windows.notes, points, total, windows.begin)
    return total.histogram


def _of_floats(windows: RangeWindows, kernel: FloatKernel, least: int = 1) -> Vector:
    """A function that ignores histograms; it needs some floats."""
    for row in windows.mixed_rows():
        ignored_in_range(windows.notes, windows.name(row), windows.begin)
    present = windows.last - windows.first >= least
    values = kernel(windows.first, windows.last, windows.floats.values)
    return windows.result(values, present)


def _extreme(windows: RangeWindows, sign: float, is_time: bool) -> Vector:
    def kernel(first: Longs, last: Longs, values: Floats) -> Floats:
        places = over_time.extremes(first, last, values, sign, is_time)
        if not len(values):
            return np.zeros(places.shape)
        places = np.where(last > first, places, 0)
        return windows.floats.times[places] / 1000 if is_time else values[places]

    return _of_floats(windows, kernel)


def _count(windows: RangeWindows, is_one: bool) -> Vector:
    counts = (windows.last - windows.first) + (windows.histogram_last - windows.histogram_first)
    values = np.ones(counts.shape) if is_one else counts.astype(np.float64)
    return windows.result(values, counts > 0)


def _variance(windows: RangeWindows, is_root: bool) -> Vector:
    def kernel(first: Longs, last: Longs, values: Floats) -> Floats:
        found = over_time.variances(first, last, values)
        return np.sqrt(found) if is_root else found

    return _of_floats(windows, kernel)


def _quantile(windows: RangeWindows, parameters: Sequence[Floats]) -> Vector:
    q = parameters[0]
    used = windows.have_floats().any(axis=0)
    for value in np.unique(q[used & ~((q >= 0) & (q <= 1))]):
        bad_quantile(windows.notes, float(value), windows.begin)
    return _of_floats(windows, partial(over_time.quantiles, q=given(q)))


def _edge(windows: RangeWindows, is_last: bool, is_time: bool) -> Vector:
    """The first or last point, or when it was."""
    times, values = windows.floats.times, windows.floats.values
    has_floats, has_histograms = windows.have_floats(), windows.have_histograms()
    place = np.where(has_floats, windows.last - 1 if is_last else windows.first, 0)
    shape = place.shape
    float_times = times[place] if len(times) else np.zeros(shape, np.int64)
    found = values[place] if len(values) else np.zeros(shape)
    present = has_floats | has_histograms
    chosen = float_times.copy()
    histograms = windows.room()
    for cell in windows.histogram_cells(alone=False):
        at = cell.high - 1 if is_last else cell.low
        time = windows.histograms.times[at]
        here = cell.row, cell.step
        if not has_floats[here] or (time > chosen[here]) == is_last:
            chosen[here] = time
            if histograms is not None and not is_time:
                histograms[here] = windows.histograms.histograms[at]
    if is_time:
        return windows.result(chosen / 1000, present)
    return windows.result(found, present, histograms, keeps_name=True)


def _changes(windows: RangeWindows, only_resets: bool) -> Vector:
    values = over_time.change_counts(
        windows.first, windows.last, windows.floats.values, only_resets
    )
    for cell in windows.histogram_cells(alone=False):
        values[cell.row, cell.step] = _histogram_changes(windows, cell, only_resets)
    return windows.result(values, windows.have_floats() | windows.have_histograms())


def _histogram_changes(windows: RangeWindows, cell: HistogramCell, only_resets: bool) -> int:
    floats = windows.floats
    low, high = windows.first[cell.row, cell.step], windows.last[cell.row, cell.step]
    points: list[tuple[int, float | NativeHistogram]] = [
        (int(floats.times[at]), float(floats.values[at])) for at in range(low, high)
    ]
    for at in range(cell.low, cell.high):
        points.append((int(windows.histograms.times[at]), windows.histograms.histograms[at]))
    points.sort(key=lambda point: point[0])
    count = 0
    for (_, before), (_, point) in pairwise(points):
        if isinstance(before, NativeHistogram) and isinstance(point, NativeHistogram):
            count += is_reset(point, before) if only_resets else not is_equal(point, before)
        elif isinstance(before, float) and isinstance(point, float):
            is_nan = before != before and point != point
            count += point < before if only_resets else (point != before and not is_nan)
        else:
            count += 1
    return count


def _slope(windows: RangeWindows) -> Vector:
    def kernel(first: Longs, last: Longs, values: Floats) -> Floats:
        no_zero = given(np.zeros(0, np.int64))
        return over_time.regressions(first, last, windows.floats.times, values, no_zero)[0]

    return _of_floats(windows, kernel, least=2)


def predict_linear(windows: RangeWindows, parameters: Sequence[Floats], times: Longs) -> Vector:
    """Where the line through the points is some seconds after each step."""

    def kernel(first: Longs, last: Longs, values: Floats) -> Floats:
        slope, value = over_time.regressions(
            first, last, windows.floats.times, values, given(times)
        )
        return slope * parameters[0] + value

    return _of_floats(windows, kernel, least=2)


def _smoothed(windows: RangeWindows, parameters: Sequence[Floats]) -> Vector:
    smoothing, trend = parameters
    used = (windows.have_floats() | windows.have_histograms()).any(axis=0)
    for what, factors in (("smoothing", smoothing), ("trend", trend)):
        for factor in factors[used & ~((factors > 0) & (factors < 1))]:
            name = "sf" if what == "smoothing" else "tf"
            raise FailedQuery(f"invalid {what} factor. Expected: 0 < {name} < 1, got: {factor:f}")
    return _of_floats(
        windows,
        partial(over_time.smoothed, smoothing=given(smoothing), trend=given(trend)),
        least=2,
    )


def _of_totals(function: Callable[[RangeWindows], Vector]) -> RangeFunction:
    """A function that wants running totals, also of points of delta temporality."""

    def over_totals(windows: RangeWindows, _: Sequence[Floats]) -> Vector:
        deltas = np.flatnonzero(windows.ranges.is_delta)
        if len(deltas):
            floats = windows.floats
            values = totals_of(floats.begins, floats.stops, floats.values, deltas)
            ranges = replace(windows.ranges, floats=replace(floats, values=given(values)))
            windows = replace(windows, ranges=ranges)
        return function(windows)

    return over_totals


def _plain(function: Callable[[RangeWindows], Vector]) -> RangeFunction:
    return lambda windows, _: function(windows)


RANGE_FUNCTIONS: dict[str, RangeFunction] = {
    "avg_over_time": _plain(partial(_total, kernel=over_time.means, is_mean=True)),
    "changes": _of_totals(partial(_changes, only_resets=False)),
    "count_over_time": _plain(partial(_count, is_one=False)),
    "delta": _of_totals(partial(gains, is_counter=False, is_rate=False)),
    "deriv": _of_totals(_slope),
    "double_exponential_smoothing": _smoothed,
    "first_over_time": _plain(partial(_edge, is_last=False, is_time=False)),
    "idelta": _of_totals(partial(last_gains, is_counter=False)),
    "increase": _plain(partial(gains, is_counter=True, is_rate=False)),
    "irate": _plain(partial(last_gains, is_counter=True)),
    "last_over_time": _plain(partial(_edge, is_last=True, is_time=False)),
    "mad_over_time": _plain(partial(_of_floats, kernel=over_time.median_deviations)),
    "max_over_time": _plain(partial(_extreme, sign=1.0, is_time=False)),
    "min_over_time": _plain(partial(_extreme, sign=-1.0, is_time=False)),
    "present_over_time": _plain(partial(_count, is_one=True)),
    "quantile_over_time": _quantile,
    "rate": _plain(partial(gains, is_counter=True, is_rate=True)),
    "resets": _of_totals(partial(_changes, only_resets=True)),
    "stddev_over_time": _plain(partial(_variance, is_root=True)),
    "stdvar_over_time": _plain(partial(_variance, is_root=False)),
    "sum_over_time": _plain(partial(_total, kernel=over_time.sums, is_mean=False)),
    "ts_of_first_over_time": _plain(partial(_edge, is_last=False, is_time=True)),
    "ts_of_last_over_time": _plain(partial(_edge, is_last=True, is_time=True)),
    "ts_of_max_over_time": _plain(partial(_extreme, sign=1.0, is_time=True)),
    "ts_of_min_over_time": _plain(partial(_extreme, sign=-1.0, is_time=True)),
}
