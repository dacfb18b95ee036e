"""Vector: series x steps, floats and histograms, with what exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frazil.languages.promql.failures import SAME_LABELS, FailedQuery
from frazil.languages.promql.histogram import NativeHistogram
from frazil.languages.promql.kernels.arrays import Flags, Floats, Longs, any_along, exist, given
from frazil.languages.promql.labels import METADATA, drop, group_numbers
from frazil.languages.promql.points import LabelSet

Objects = NDArray[Any]
"""Histograms, or None."""


@dataclass(slots=True)
class Vector:
    """The value of an expression at each step. Its arrays are shared: replace, do not change."""

    labels: list[LabelSet]
    values: Floats
    present: Flags
    """Where there is a float or a histogram."""
    unnamed: Flags
    """By series: the metric's name is dropped at the end, not seen by who reads the result."""
    histograms: Objects | None = None
    """None where a value is a float."""

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return int(self.values.shape[1])

    def are_histograms(self) -> Flags:
        """Where there is a histogram."""
        if self.histograms is None:
            return np.zeros(self.present.shape, np.bool_)
        return self.present & exist(self.histograms)

    def are_floats(self) -> Flags:
        """Where there is a float."""
        return self.present if self.histograms is None else self.present & ~self.are_histograms()

    def rows(self, chosen: NDArray[Any]) -> Vector:
        """Return some of the series."""
        if chosen.dtype == np.bool_ and chosen.all():
            return self
        return Vector(
            [self.labels[row] for row in np.arange(len(self.labels))[chosen]],
            self.values[chosen],
            self.present[chosen],
            self.unnamed[chosen],
            None if self.histograms is None else self.histograms[chosen],
        )

    def where(self, kept: Flags) -> Vector:
        """Return only some values, and the series that have any."""
        present = self.present & kept
        vector = Vector(self.labels, self.values, present, self.unnamed, self.histograms)
        return vector.rows(any_along(present, 1))


def empty(steps: int) -> Vector:
    """Return no series."""
    return Vector([], np.zeros((0, steps)), np.zeros((0, steps), np.bool_), np.zeros(0, np.bool_))


def floats(
    labels: Sequence[LabelSet], values: Floats, present: Flags, unnamed: Flags | bool
) -> Vector:
    """Return a vector of floats, without series that have none."""
    flags = np.broadcast_to(np.asarray(unnamed, np.bool_), (len(labels),))
    return Vector(list(labels), values, present, flags).rows(any_along(present, 1))


def no_histograms(shape: tuple[int, ...]) -> Objects:
    """Return room for histograms."""
    return np.full(shape, None, dtype=object)


def stacked(vectors: Sequence[Vector]) -> Vector:
    """Return the series of all."""
    histograms = None
    if any(each.histograms is not None for each in vectors):
        histograms = np.concatenate(
            [
                no_histograms(each.present.shape) if each.histograms is None else each.histograms
                for each in vectors
            ]
        )
    return Vector(
        [labels for each in vectors for labels in each.labels],
        np.concatenate([each.values for each in vectors]),
        np.concatenate([each.present for each in vectors]),
        np.concatenate([each.unnamed for each in vectors]),
        histograms,
    )


def merged(vector: Vector) -> Vector:
    """Make series with the same labels one. Two of them with a value at one step are an error. A
    series that keeps its name stays apart from one that will lose it."""
    pairs = zip(vector.labels, vector.unnamed.tolist(), strict=True)
    numbers, keys = group_numbers(pairs)
    if len(keys) == len(numbers):
        return vector
    rows = np.array(numbers)
    counts = np.zeros((len(keys), vector.steps), np.int64)
    np.add.at(counts, rows, vector.present)
    if (counts > 1).any():
        raise FailedQuery(SAME_LABELS)
    values = np.zeros((len(keys), vector.steps))
    histograms = None if vector.histograms is None else no_histograms(values.shape)
    for row, into in enumerate(numbers):
        here = vector.present[row]
        values[into, here] = vector.values[row, here]
        if histograms is not None and vector.histograms is not None:
            histograms[into, here] = vector.histograms[row, here]
    unnamed = np.array([is_unnamed for _, is_unnamed in keys], np.bool_)
    return Vector([labels for labels, _ in keys], values, counts > 0, unnamed, histograms)


def without_names(vector: Vector) -> Vector:
    """Drop the names of metrics that are to be dropped: the end of an evaluation."""
    if not vector.unnamed.any():
        return merged(vector)
    labels = [
        drop(labels, METADATA) if is_unnamed else labels
        for labels, is_unnamed in zip(vector.labels, vector.unnamed, strict=True)
    ]
    kept = np.zeros(len(labels), np.bool_)
    return merged(Vector(labels, vector.values, vector.present, kept, vector.histograms))


@dataclass(slots=True)
class PointRows:
    """Points of each series, of one kind. Series `i` has `begins[i]` to `stops[i]`."""

    begins: Longs
    stops: Longs
    times: Longs
    values: Floats
    histograms: Sequence[NativeHistogram] = ()


@dataclass(slots=True)
class Ranges:
    """Series with their points, floats and histograms apart, without marks of their ends."""

    labels: list[LabelSet]
    unnamed: Flags
    is_delta: Flags
    floats: PointRows
    histograms: PointRows | None


def ranges_of(vector: Vector, times: Longs) -> Ranges:
    """Return the values of a subquery as points."""
    are_floats = vector.are_floats()
    rows = _rows_of(are_floats, times, vector.values)
    histograms = None
    if vector.histograms is not None:
        are_histograms = vector.are_histograms()
        histograms = _rows_of(are_histograms, times, vector.values)
        histograms.histograms = list(vector.histograms[are_histograms])
    is_delta = np.zeros(len(vector.labels), np.bool_)
    return Ranges(vector.labels, vector.unnamed, is_delta, rows, histograms)


def _rows_of(chosen: Flags, times: Longs, values: Floats) -> PointRows:
    starts = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(chosen.sum(axis=1), out=starts[1:])
    every = np.broadcast_to(times, chosen.shape)
    return PointRows(
        given(starts[:-1]), given(starts[1:]), given(every[chosen]), given(values[chosen])
    )
