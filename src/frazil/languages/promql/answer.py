"""Answer: the result of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from frazil.languages.promql.histogram import NativeHistogram
from frazil.languages.promql.kernels.arrays import Flags, Floats, Longs, exist
from frazil.languages.promql.points import LabelSet
from frazil.languages.promql.vectors import Objects, Vector


@dataclass(slots=True)
class SeriesPoints:
    """A series with its floats and its histograms."""

    labels: LabelSet
    times_ms: Longs
    values: Floats
    histograms: list[tuple[int, NativeHistogram]]


@dataclass(slots=True, kw_only=True)
class Answer:
    """A grid of series x steps, or a scalar, a text, or points as they are."""

    kind: Literal["vector", "matrix", "scalar", "string"]
    times_ms: Longs
    """The steps; of an instant query, one."""
    labels: list[LabelSet] = field(default_factory=list)
    values: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    present: Flags = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    histograms: Objects | None = None
    number: float | None = None
    text: str = ""
    series: list[SeriesPoints] = field(default_factory=list)
    """The points that a range selector alone shows."""
    warnings: Sequence[str] = ()
    infos: Sequence[str] = ()

    def all_series(self) -> list[SeriesPoints]:
        """Return each series with its points, whatever the answer is made of."""
        return [*self.series, *(self._row(row) for row in range(len(self.labels)))]

    def _row(self, row: int) -> SeriesPoints:
        present = self.present[row]
        found: list[tuple[int, NativeHistogram]] = []
        are_floats = present
        if self.histograms is not None:
            histograms = self.histograms[row]
            are_floats = present & ~exist(histograms)
            found = [
                (int(self.times_ms[step]), histograms[step])
                for step in np.flatnonzero(present & ~are_floats)
            ]
        times, values = self.times_ms[are_floats], self.values[row, are_floats]
        return SeriesPoints(self.labels[row], times, values, found)


def grid_answer(
    kind: Literal["vector", "matrix"],
    vector: Vector,
    times_ms: Longs,
    warnings: Sequence[str],
    infos: Sequence[str],
) -> Answer:
    """Return a vector as an answer."""
    return Answer(
        kind=kind,
        times_ms=times_ms,
        labels=vector.labels,
        values=vector.values,
        present=vector.present,
        histograms=vector.histograms,
        warnings=warnings,
        infos=infos,
    )
