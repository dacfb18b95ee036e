"""Evaluation: the steps of a query, what it has read, its limits and its notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from frazil.errors import TooLarge
from frazil.languages.promql.kernels.arrays import Longs, given
from frazil.languages.promql.notes import Notes
from frazil.languages.promql.points import LabelMatcher, PointSet, PointSource
from frazil.languages.promql.syntax import At
from frazil.results import CancelToken

HISTOGRAM_SAMPLES = 20
"""What a point counts where some are histograms."""


class PromqlLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one query may cost, and how it looks back. Its time is up to the cancel token."""

    samples_max: int = 50_000_000
    """Points read and values computed, together."""
    series_max: int = 100_000
    """Series of one selector, and of the result."""
    steps_max: int = 11_000
    """Steps of a range query, as in Prometheus."""
    subquery_steps_max: int = 500_000
    lookback_ms: int = 300_000
    """How old the point that a plain selector shows may be."""
    subquery_step_ms: int = 60_000
    """Steps of a subquery that names none."""


@dataclass(frozen=True, slots=True)
class QueryWindow:
    """The times of a whole query."""

    start_ms: int
    end_ms: int
    step_ms: int
    is_instant: bool


@dataclass(slots=True)
class _Budget:
    samples: int = 0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Evaluates at `times`; in a subquery, at those of its steps."""

    source: PointSource
    limits: PromqlLimits
    cancel: CancelToken
    window: QueryWindow
    times: Longs
    is_instant: bool
    counts_only: bool | None = None
    """Of histograms only counts and sums are wanted: resets are looked for while reading. False
    is for good."""
    notes: Notes = field(default_factory=Notes)
    _read: dict[tuple[object, ...], PointSet] = field(default_factory=dict)
    _budget: _Budget = field(default_factory=_Budget)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return len(self.times)

    def at_times(self, times: Longs) -> Evaluation:
        """Return an evaluation of the same query at other times."""
        return replace(self, times=given(times), is_instant=False, counts_only=False)

    def counting(self, counts_only: bool) -> Evaluation:
        """Return an evaluation that reads histograms for their counts, or for all of them."""
        if self.counts_only in (False, counts_only):
            return self
        return replace(self, counts_only=counts_only)

    def ends(self, at: At, offset_ms: int) -> Longs:
        """Return the time that a selector looks at: by step, or one if it is always the same."""
        if at is None:
            return given(self.times - offset_ms)
        time = {"start": self.window.start_ms, "end": self.window.end_ms}.get(str(at), at)
        return given(np.array([int(time) - offset_ms], np.int64))

    def count(self, samples: int) -> None:
        """Count samples that will be touched; refuses too many."""
        self.cancel.check()
        self._budget.samples += samples
        if self._budget.samples > self.limits.samples_max:
            raise TooLarge(
                f"the query touches more than {self.limits.samples_max} samples; choose a shorter"
                " time range, a longer step or fewer series"
            )

    def read(self, matchers: Sequence[LabelMatcher], after_ms: int, until_ms: int) -> PointSet:
        """Read the points in (after_ms, until_ms], once for each query."""
        self.cancel.check()
        key = (tuple(matchers), after_ms, until_ms)
        if key not in self._read:
            points = self.source.select(matchers, after_ms, until_ms)
            if len(points.labels) > self.limits.series_max:
                raise TooLarge(
                    f"a selector matches {len(points.labels)} series, more than"
                    f" {self.limits.series_max}; add matchers"
                )
            self._read[key] = points
        points = self._read[key]
        count = len(points.times_ms)
        self.count(count if points.histograms is None else count * HISTOGRAM_SAMPLES)
        return points
