"""evaluate: a query of numbers, at each step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frazil.errors import Malformed, TooLarge
from frazil.languages.logql.binary import Value, binary, replace_labels
from frazil.languages.logql.records import ReadRows
from frazil.languages.logql.samples import range_series
from frazil.languages.logql.series import SERIES_MAX, LineSeries, LogScalar, LogSteps, label_key
from frazil.languages.logql.syntax import (
    LabelGrouping,
    LogqlAggregation,
    LogqlBinary,
    LogqlNumber,
    LogqlReplacement,
    LogqlVector,
    LogRange,
    MetricExpression,
)
from frazil.languages.logql.vectors import aggregate

JOINED = {
    "count_over_time": "sum",
    "rate": "sum",
    "bytes_over_time": "sum",
    "bytes_rate": "sum",
    "sum_over_time": "sum",
    "min_over_time": "min",
    "max_over_time": "max",
}
"""Range aggregations -> the vector aggregation that may as well be applied to their samples."""


def evaluate(read: ReadRows, expression: MetricExpression, grid: LogSteps) -> Value:
    """Return a number, or series without those that are empty."""
    value = _Evaluation(read, grid).value(expression)
    if isinstance(value, LogScalar):
        return value
    present = [series for series in value if series.is_present.any()]
    if len(present) > SERIES_MAX:
        raise TooLarge(
            f"maximum number of series ({SERIES_MAX}) reached for a single query; consider "
            "reducing query cardinality by adding more specific stream selectors, reducing the "
            "time range, or aggregating results with functions like sum, count or topk"
        )
    return present


@dataclass(frozen=True, slots=True)
class _Evaluation:
    read: ReadRows
    grid: LogSteps

    def value(self, expression: MetricExpression) -> Value:
        if isinstance(expression, LogqlNumber):
            return LogScalar(expression.value)
        if isinstance(expression, LogqlVector):
            return [self._constant(expression.value)]
        if isinstance(expression, LogqlBinary):
            return binary(expression, self.value(expression.left), self.value(expression.right))
        return self._vector(expression)

    def _vector(self, expression: MetricExpression) -> list[LineSeries]:
        if isinstance(expression, LogqlAggregation):
            joined = self._joined(expression)
            inner = self._series(expression.inner) if joined is None else joined
            return aggregate(expression, inner)
        if isinstance(expression, LogqlReplacement):
            return replace_labels(expression, self._series(expression.inner))
        assert isinstance(expression, LogRange)
        if expression.operation == "absent_over_time":
            return self._absent(expression)
        return range_series(self.read, expression, self.grid, expression.grouping)

    def _series(self, expression: MetricExpression) -> list[LineSeries]:
        value = self.value(expression)
        if isinstance(value, LogScalar):
            raise Malformed("this needs series, not a number; write vector(1)")
        return value

    def _joined(self, outer: LogqlAggregation) -> list[LineSeries] | None:
        """Series that have the labels of the outer aggregation only, if that is the same."""
        inner = outer.inner
        if not isinstance(inner, LogRange) or inner.grouping is not None:
            return None
        if JOINED.get(inner.operation) != outer.operation:
            return None
        return range_series(self.read, inner, self.grid, outer.grouping or LabelGrouping(()))

    def _absent(self, expression: LogRange) -> list[LineSeries]:
        """One series, of the labels that the selector names, where nothing else is."""
        found = range_series(self.read, expression, self.grid, LabelGrouping(()))
        labels = {
            matcher.name: matcher.value
            for matcher in expression.selection.matchers
            if matcher.operator == "="
        }
        is_present = found[0].is_present if found else np.zeros(self.grid.count, np.bool_)
        constant = self._constant(1.0)
        return [LineSeries(label_key(labels), constant.values, ~is_present)]

    def _constant(self, value: float) -> LineSeries:
        count = self.grid.count
        return LineSeries((), np.full(count, value), np.ones(count, np.bool_))
