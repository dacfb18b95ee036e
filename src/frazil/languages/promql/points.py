"""PointSource: where an evaluation reads. PointSet: series with their points, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from frazil.languages.promql.histogram import NativeHistogram

LabelSet = tuple[tuple[str, str], ...]
"""Labels of a series with its `__name__`, sorted by name. No label is empty."""


@dataclass(frozen=True, slots=True)
class LabelMatcher:
    """A condition on one label. An absent label is the empty text."""

    name: str
    operator: Literal["=", "!=", "=~", "!~"]
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PointSet:
    """Series `i` has the points `starts[i]` to `starts[i + 1]`, by time, at most one per
    millisecond. A series that has ended has a point with Prometheus' stale NaN."""

    labels: Sequence[LabelSet]
    starts: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    values: NDArray[np.float64]
    is_delta: NDArray[np.bool_]
    """By series: each value is the increase since the point before, not a running total."""
    histograms: Sequence[NativeHistogram | None] | None = None
    """By point: the histogram of a point that is one; its value does not count then."""


class PointSource(Protocol):
    """Reads points; the tables of a node, or points in memory."""

    def select(self, matchers: Sequence[LabelMatcher], after_ms: int, until_ms: int) -> PointSet:
        """Return the series that match, with their points in (after_ms, until_ms]."""
        ...
