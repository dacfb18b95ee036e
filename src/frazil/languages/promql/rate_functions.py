"""rate, increase, delta, irate and idelta."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from frazil.languages.promql.histogram import (
    NativeHistogram,
    ResetHint,
    divided,
    scaled,
    with_hint,
)
from frazil.languages.promql.histogram_sums import (
    Combined,
    added,
    find_resets,
    is_reset,
    subtracted,
    summed,
)
from frazil.languages.promql.kernels.arrays import Flags, Floats, any_along
from frazil.languages.promql.kernels.over_time import sums
from frazil.languages.promql.kernels.rates import (
    between_last_two,
    extrapolated,
    next_resets,
    stretched,
)
from frazil.languages.promql.labels import quoted
from frazil.languages.promql.notes import (
    mixed_samples,
    mixed_schemas,
    not_counter,
    not_gauge,
    reconciled,
)
from frazil.languages.promql.range_windows import HistogramCell, RangeWindows
from frazil.languages.promql.vectors import Objects, Vector

_COUNTER_ENDINGS = ("_total", "_sum", "_count", "_bucket")


def gains(windows: RangeWindows, is_counter: bool, is_rate: bool) -> Vector:
    """How much each series gains in its range: rate, increase and delta."""
    floats = windows.floats
    resets = next_resets(floats.begins, floats.stops, floats.values)
    values, present = extrapolated(
        windows.first,
        windows.last,
        floats.times,
        floats.values,
        resets,
        windows.ends,
        windows.range_ms,
        is_counter,
        is_rate,
    )
    _note_mixed(windows)
    present &= ~windows.have_histograms()
    if is_counter:
        _sum_deltas(windows, values, present, is_rate)
        _note_gauges(windows, present)
    histograms = windows.room()
    if histograms is not None:
        traits = _traits(windows, is_counter)
        for cell in windows.histogram_cells():
            found = _histogram_gain(windows, cell, traits, is_counter, is_rate)
            histograms[cell.row, cell.step] = found
            present[cell.row, cell.step] = found is not None
    return windows.result(values, present, histograms)


class _Traits(NamedTuple):
    """What is known of all histograms, so that not every window looks for it."""

    resets: Flags
    is_one_schema: bool
    has_gauges: bool


def _traits(windows: RangeWindows, is_counter: bool) -> _Traits:
    rows = windows.histograms
    resets = np.zeros(len(rows.histograms), np.bool_)
    if is_counter:
        resets = find_resets(rows.begins, rows.stops, rows.histograms)
    return _Traits(
        resets,
        len({each.is_custom for each in rows.histograms}) < 2,
        any(each.hint is ResetHint.GAUGE for each in rows.histograms),
    )


def _note_mixed(windows: RangeWindows) -> None:
    for row in windows.mixed_rows():
        mixed_samples(windows.notes, windows.name(row), windows.begin)


def _note_gauges(windows: RangeWindows, present: Flags) -> None:
    for row in np.flatnonzero(any_along(present, 1)):
        name = windows.name(int(row))
        if name and not name.endswith(_COUNTER_ENDINGS):
            windows.notes.inform(
                "metric might not be a counter, name does not end in"
                f" _total/_sum/_count/_bucket: {quoted(name)}",
                windows.begin,
            )


def _sum_deltas(windows: RangeWindows, values: Floats, present: Flags, is_rate: bool) -> None:
    """Points of delta temporality are gains already: those in the range are added up."""
    rows = np.flatnonzero(windows.ranges.is_delta)
    if not len(rows):
        return
    first, last = windows.first[rows], windows.last[rows]
    seconds = windows.range_ms / 1000 if is_rate else 1.0
    values[rows] = sums(first, last, windows.floats.values) / seconds
    present[rows] = (last > first) & ~windows.have_histograms()[rows]


def _histogram_gain(
    windows: RangeWindows, cell: HistogramCell, traits: _Traits, is_counter: bool, is_rate: bool
) -> NativeHistogram | None:
    seconds = windows.range_ms / 1000 if is_rate else 1.0
    if is_counter and windows.ranges.is_delta[cell.row]:
        total = summed(windows.seen(cell))
        if total is None:
            mixed_schemas(windows.notes, windows.name(cell.row), windows.begin)
            return None
        return with_hint(scaled(total.histogram, 1 / seconds), ResetHint.GAUGE)
    points = windows.seen(cell)
    if len(points) < 2:
        return None
    gain = _histogram_difference(windows, cell, points, traits, is_counter)
    if gain is None:
        return None
    times = windows.histograms.times
    factor = stretched(
        int(times[cell.low]),
        int(times[cell.high - 1]),
        len(points),
        int(windows.ends[cell.step]) - windows.range_ms,
        int(windows.ends[cell.step]),
        gain.count,
        points[0].count if is_counter else -1.0,
    )
    return scaled(gain, factor / seconds)


def _histogram_difference(
    windows: RangeWindows,
    cell: HistogramCell,
    points: list[NativeHistogram],
    traits: _Traits,
    is_counter: bool,
) -> NativeHistogram | None:
    """The last histogram less the first, plus those before a reset."""
    if traits.has_gauges or not is_counter:
        _note_hints(windows, cell, points, is_counter)
    if not traits.is_one_schema and any(
        each.is_custom != points[-1].is_custom for each in points[1:]
    ):
        _note_schemas(windows, cell)
        return None
    first, second = points[0], points[1]
    if traits.resets[cell.low + 1]:
        first = NativeHistogram(schema=second.schema, count=0.0, sum=0.0, bounds=second.bounds)
    total = _noted(windows, cell, subtracted(points[-1], first), "subtraction")
    for at in np.flatnonzero(traits.resets[cell.low + 2 : cell.high]):
        if total is None:
            return None
        total = _noted(windows, cell, added(total, points[at + 1]), "addition")
    return None if total is None else with_hint(total, ResetHint.GAUGE)


def _noted(
    windows: RangeWindows, cell: HistogramCell, combined: Combined | None, operation: str
) -> NativeHistogram | None:
    if combined is None:
        _note_schemas(windows, cell)
        return None
    if combined.is_reconciled:
        reconciled(windows.notes, operation, windows.begin)
    return combined.histogram


def _note_schemas(windows: RangeWindows, cell: HistogramCell) -> None:
    mixed_schemas(windows.notes, windows.name(cell.row), windows.begin)


def _note_hints(
    windows: RangeWindows, cell: HistogramCell, points: list[NativeHistogram], is_counter: bool
) -> None:
    name = windows.name(cell.row)
    if is_counter:
        if any(each.hint is ResetHint.GAUGE for each in points):
            not_counter(windows.notes, name, windows.begin)
    elif any(each.hint is not ResetHint.GAUGE for each in (points[0], points[-1])):
        not_gauge(windows.notes, name, windows.begin)


def last_gains(windows: RangeWindows, is_counter: bool) -> Vector:
    """The gain between the last two points: irate and idelta."""
    floats = windows.floats
    values, present = between_last_two(
        windows.first, windows.last, floats.times, floats.values, is_counter
    )
    if is_counter:
        _last_deltas(windows, values, present)
    histograms = windows.room()
    if histograms is not None:
        for cell in windows.histogram_cells(alone=False):
            _last_histogram_gain(windows, cell, is_counter, histograms, present)
    return windows.result(values, present, histograms)


def _last_deltas(windows: RangeWindows, values: Floats, present: Flags) -> None:
    floats = windows.floats
    for row in np.flatnonzero(windows.ranges.is_delta):
        last = windows.last[row][present[row]] - 1
        seconds = (floats.times[last] - floats.times[last - 1]) / 1000
        values[row, present[row]] = floats.values[last] / seconds


def _last_histogram_gain(
    windows: RangeWindows,
    cell: HistogramCell,
    is_counter: bool,
    histograms: Objects,
    present: Flags,
) -> None:
    """The last two points may be of two kinds."""
    times = windows.histograms.times
    low, high = windows.first[cell.row, cell.step], windows.last[cell.row, cell.step]
    latest = [(int(times[at]), True) for at in range(cell.low, cell.high)][-2:]
    latest += [(int(windows.floats.times[at]), False) for at in range(low, high)][-2:]
    latest.sort()
    kinds = {is_histogram for _, is_histogram in latest[-2:]}
    if len(latest) < 2 or kinds == {False}:
        return
    present[cell.row, cell.step] = False
    if len(kinds) == 2:
        mixed_samples(windows.notes, windows.name(cell.row), windows.begin)
        return
    before, point = windows.seen(cell)[-2:]
    _note_hints(windows, cell, [before, point], is_counter)
    gain: NativeHistogram | None = point
    if not is_counter or not is_reset(point, before):
        gain = _noted(windows, cell, subtracted(point, before), "subtraction")
    if gain is None:
        return
    gain = with_hint(gain, ResetHint.GAUGE)
    if is_counter:
        gain = divided(gain, (latest[-1][0] - latest[-2][0]) / 1000)
    histograms[cell.row, cell.step] = gain
    present[cell.row, cell.step] = True
