"""Compile what reading series calls, ahead of the first query."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from frazil.languages.prometheus.answer_json import answer_pieces
from frazil.languages.prometheus.kernels import number_ids
from frazil.languages.prometheus.point_groups import PointGroup, point_set_of
from frazil.languages.prometheus.spread_points import spread_buckets
from frazil.languages.promql.evaluate import evaluate_range
from frazil.languages.promql.points import PointSet


def warm_series() -> None:
    """Compile the functions, or load them from the cache on disk."""
    numbers = np.empty(1, np.int32)
    number_ids(np.zeros((1, 2), np.int64), numbers)
    spread_buckets(pa.array([[1, 2]]), pa.array([[0.5]]), np.ones(1))
    answer = evaluate_range("a", _OnePoint(), 0, 0, 1)
    assert list(answer_pieces(answer, 0))


class _OnePoint:
    """A source with a single point."""

    def select(self, _: object, __: int, ___: int) -> PointSet:
        group = PointGroup(
            labels=[(("__name__", "a"),)],
            is_delta=[False],
            numbers=np.zeros(1, np.int32),
            times_ms=np.zeros(1, np.int64),
            ranks=np.zeros(1, np.int64),
            values=np.zeros(1),
        )
        return point_set_of([group], series_max=1)
