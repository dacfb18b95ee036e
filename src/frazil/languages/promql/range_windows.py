"""RangeWindows: the points that each step of a range function sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from frazil.languages.promql.evaluation import Evaluation
from frazil.languages.promql.histogram import NativeHistogram
from frazil.languages.promql.kernels.arrays import Flags, Floats, Longs, any_along, given
from frazil.languages.promql.kernels.windows import window_bounds
from frazil.languages.promql.labels import metric_name
from frazil.languages.promql.notes import Notes
from frazil.languages.promql.vectors import Objects, PointRows, Ranges, Vector, no_histograms
from frazil.results import CancelToken

_NO_POINTS = np.zeros(0, np.int64)


class HistogramCell(NamedTuple):
    """The histograms that a step of a series sees."""

    row: int
    step: int
    low: int
    high: int


@dataclass(slots=True)
class RangeWindows:
    """By series and step: floats `first` to `last`, histograms `histogram_first` to
    `histogram_last`."""

    ranges: Ranges
    ends: Longs
    range_ms: int
    notes: Notes
    begin: int
    cancel: CancelToken
    first: Longs
    last: Longs
    histogram_first: Longs
    histogram_last: Longs

    @property
    def floats(self) -> PointRows:
        """The floats of all series."""
        return self.ranges.floats

    @property
    def histograms(self) -> PointRows:
        """The histograms of all series."""
        if self.ranges.histograms is None:
            return PointRows(_NO_POINTS, _NO_POINTS, _NO_POINTS, np.zeros(0))
        return self.ranges.histograms

    def have_floats(self) -> Flags:
        """Where there is a float in view."""
        return self.last > self.first

    def have_histograms(self) -> Flags:
        """Where there is a histogram in view."""
        return self.histogram_last > self.histogram_first

    def name(self, row: int) -> str:
        """The name of the metric of a series."""
        return metric_name(self.ranges.labels[row])

    def mixed_rows(self) -> Iterator[int]:
        """Series of which some step sees floats and histograms."""
        if self.ranges.histograms is None:
            return
        mixed = (self.have_floats() & self.have_histograms()).any(axis=1)
        yield from (int(row) for row in np.flatnonzero(mixed))

    def histogram_cells(self, alone: bool = True) -> Iterator[HistogramCell]:
        """Where there are histograms in view; `alone`, without floats."""
        if self.ranges.histograms is None:
            return
        chosen = self.have_histograms()
        if alone:
            chosen = chosen & ~self.have_floats()
        for row, step in zip(*np.nonzero(chosen), strict=True):
            self.cancel.check()
            low, high = self.histogram_first[row, step], self.histogram_last[row, step]
            yield HistogramCell(int(row), int(step), int(low), int(high))

    def seen(self, cell: HistogramCell) -> list[NativeHistogram]:
        """The histograms of a cell."""
        return list(self.histograms.histograms[cell.low : cell.high])

    def result(
        self,
        values: Floats,
        present: Flags,
        histograms: Objects | None = None,
        keeps_name: bool = False,
    ) -> Vector:
        """Return what a function made of each cell."""
        unnamed = self.ranges.unnamed | (not keeps_name)
        vector = Vector(self.ranges.labels, values, present, unnamed, histograms)
        return vector.rows(any_along(present, 1))

    def room(self) -> Objects | None:
        """Room for histograms, if there are any."""
        if self.ranges.histograms is None:
            return None
        return no_histograms(self.first.shape)


def windows_of(
    ranges: Ranges, ends: Longs, range_ms: int, evaluation: Evaluation, begin: int
) -> RangeWindows:
    """Find which points each step sees."""
    rows = ranges.floats
    first, last = window_bounds(rows.begins, rows.stops, rows.times, given(ends), range_ms)
    histogram_first = histogram_last = first
    if ranges.histograms is not None:
        rows = ranges.histograms
        histogram_first, histogram_last = window_bounds(
            rows.begins, rows.stops, rows.times, given(ends), range_ms
        )
    else:
        histogram_last = histogram_first
    return RangeWindows(
        ranges,
        ends,
        range_ms,
        evaluation.notes,
        begin,
        evaluation.cancel,
        first,
        last,
        histogram_first,
        histogram_last,
    )
