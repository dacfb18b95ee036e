"""Compile what PromQL calls, ahead of the first query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frazil.languages.promql.evaluate import evaluate_range
from frazil.languages.promql.kernels.rates import stretched
from frazil.languages.promql.points import LabelMatcher, PointSet

_QUERIES = (
    "rate(a[1m]) + irate(a[1m]) + changes(a[1m]) + deriv(a[1m])",
    "quantile(0.5, avg_over_time(a[1m]) + quantile_over_time(0.5, a[1m]))",
    "stddev(stddev_over_time(a[1m])) + max(max_over_time(a[1m])) + avg(sum_over_time(a[1m]))",
    "count(mad_over_time(a[1m])) + sum(double_exponential_smoothing(a[1m], 0.5, 0.5))",
    "histogram_quantile(0.5, a) + histogram_fraction(0, 1, a)",
)


class _FewPoints:
    """Two series of two points."""

    def select(self, matchers: Sequence[LabelMatcher], after_ms: int, until_ms: int) -> PointSet:
        return PointSet(
            labels=[(("__name__", "a"), ("le", bound)) for bound in ("+Inf", "1")],
            starts=np.array([0, 2, 4], np.int64),
            times_ms=np.array([1, 2, 1, 2], np.int64),
            values=np.arange(4.0),
            is_delta=np.zeros(2, np.bool_),
        )


def warm_promql() -> None:
    """Compile the kernels of queries, or load them from the cache on disk."""
    stretched(0, 1, 2, 0, 1, 1.0, 0.0)
    for query in _QUERIES:
        evaluate_range(query, _FewPoints(), 2, 3, 1)
