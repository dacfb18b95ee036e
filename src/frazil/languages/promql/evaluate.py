"""Evaluate PromQL: at one time, or at the steps of a range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frazil.errors import Malformed, TooLarge
from frazil.languages.promql.answer import Answer, SeriesPoints, grid_answer
from frazil.languages.promql.evaluation import Evaluation, PromqlLimits, QueryWindow
from frazil.languages.promql.evaluator import Evaluator
from frazil.languages.promql.kernels.arrays import Longs, given
from frazil.languages.promql.parser import TIME_MS_MAX, parse
from frazil.languages.promql.points import LabelMatcher, PointSet, PointSource
from frazil.languages.promql.range_windows import windows_of
from frazil.languages.promql.selectors import select_ranges
from frazil.languages.promql.syntax import Expression, RangeSelector, Subquery, TextLiteral, bare
from frazil.languages.promql.vectors import Vector, floats, without_names
from frazil.results import CancelToken


def evaluate_instant(
    query: str,
    source: PointSource,
    time_ms: int,
    limits: PromqlLimits | None = None,
    cancel: CancelToken | None = None,
) -> Answer:
    """Evaluate a query at one time."""
    _check_times(time_ms)
    window = QueryWindow(time_ms, time_ms, 0, is_instant=True)
    times = np.array([time_ms], np.int64)
    evaluation = _evaluation(source, window, times, limits, cancel)
    with np.errstate(all="ignore"):
        return _instant_answer(query, parse(query), evaluation)


def evaluate_range(
    query: str,
    source: PointSource,
    start_ms: int,
    end_ms: int,
    step_ms: int,
    limits: PromqlLimits | None = None,
    cancel: CancelToken | None = None,
) -> Answer:
    """Evaluate a query at each step from a start to an end, which may be one of them."""
    limits = limits or PromqlLimits()
    _check_times(start_ms, end_ms)
    if step_ms <= 0:
        raise Malformed("zero or negative query resolution step widths are not accepted; use 1s")
    if end_ms < start_ms:
        raise Malformed("the end of the range is before its start")
    steps = (end_ms - start_ms) // step_ms + 1
    if steps > limits.steps_max:
        raise TooLarge(
            f"the range has {steps} steps, more than {limits.steps_max}; choose a longer step"
        )
    window = QueryWindow(start_ms, end_ms, step_ms, is_instant=False)
    times = start_ms + step_ms * np.arange(steps, dtype=np.int64)
    evaluation = _evaluation(source, window, times, limits, cancel)
    with np.errstate(all="ignore"):
        return _range_answer(query, parse(query), evaluation)


def _check_times(*times_ms: int) -> None:
    for time_ms in times_ms:
        if abs(time_ms) > TIME_MS_MAX:
            raise Malformed(f"{time_ms} ms is not a time of this era; times are in seconds")


def _evaluation(
    source: PointSource,
    window: QueryWindow,
    times: Longs,
    limits: PromqlLimits | None,
    cancel: CancelToken | None,
) -> Evaluation:
    return Evaluation(
        source,
        limits or PromqlLimits(),
        cancel or CancelToken(),
        window,
        given(times),
        window.is_instant,
    )


def _range_answer(query: str, expression: Expression, evaluation: Evaluation) -> Answer:
    if isinstance(bare(expression), RangeSelector | Subquery | TextLiteral):
        raise Malformed(
            "invalid expression type for a range query: it must be a scalar or an instant vector"
        )
    value = Evaluator(evaluation).value(expression)
    if isinstance(value, str):
        raise Malformed("a range query needs numbers, not a text")
    if not isinstance(value, Vector):
        value = floats([()], value[np.newaxis], np.ones((1, len(value)), np.bool_), False)
    vector = without_names(value)
    order = sorted(range(len(vector.labels)), key=vector.labels.__getitem__)
    warnings, infos = evaluation.notes.written(query)
    return grid_answer(
        "matrix", vector.rows(np.array(order, np.int64)), evaluation.times, warnings, infos
    )


def _instant_answer(query: str, expression: Expression, evaluation: Evaluation) -> Answer:
    evaluator = Evaluator(evaluation)
    inner = bare(expression)
    if isinstance(inner, RangeSelector | Subquery):
        return _points_answer(query, inner, evaluation)
    value = evaluator.value(inner)
    warnings, infos = evaluation.notes.written(query)
    if isinstance(value, Vector):
        vector = without_names(value)
        return grid_answer("vector", vector, evaluation.times, warnings, infos)
    text, number = (value, None) if isinstance(value, str) else ("", float(value[0]))
    return Answer(
        kind="scalar" if number is not None else "string",
        times_ms=evaluation.times,
        text=text,
        number=number,
        warnings=warnings,
        infos=infos,
    )


def _points_answer(
    query: str, expression: RangeSelector | Subquery, evaluation: Evaluation
) -> Answer:
    """The points of a range, as they are."""
    if isinstance(expression, RangeSelector):
        ranges, ends = select_ranges(expression, evaluation)
    else:
        ranges, ends = Evaluator(evaluation).subquery(expression)
    windows = windows_of(ranges, ends, expression.range_ms, evaluation, expression.begin)
    series = []
    for row, labels in enumerate(ranges.labels):
        low, high = windows.first[row, 0], windows.last[row, 0]
        points = SeriesPoints(
            labels, windows.floats.times[low:high], windows.floats.values[low:high], []
        )
        for at in range(windows.histogram_first[row, 0], windows.histogram_last[row, 0]):
            histogram = windows.histograms.histograms[at]
            points.histograms.append((int(windows.histograms.times[at]), histogram))
        if len(points.times_ms) or points.histograms:
            series.append(points)
    warnings, infos = evaluation.notes.written(query)
    return Answer(
        kind="matrix",
        times_ms=evaluation.times,
        series=series,
        warnings=warnings,
        infos=infos,
    )


class _Selections:
    """A source that only notes what is asked of it."""

    def __init__(self) -> None:
        self.found: list[tuple[tuple[LabelMatcher, ...], int, int]] = []

    def select(self, matchers: Sequence[LabelMatcher], after_ms: int, until_ms: int) -> PointSet:
        self.found.append((tuple(matchers), after_ms, until_ms))
        return PointSet(
            labels=(),
            starts=np.zeros(1, np.int64),
            times_ms=np.zeros(0, np.int64),
            values=np.zeros(0),
            is_delta=np.zeros(0, np.bool_),
        )


def selections(
    query: str, start_ms: int, end_ms: int, step_ms: int, limits: PromqlLimits | None = None
) -> list[tuple[tuple[LabelMatcher, ...], int, int]]:
    """Return what a query reads: the matchers, and the times after and until which. An instant
    query has no step."""
    noted = _Selections()
    if step_ms == 0:
        evaluate_instant(query, noted, start_ms, limits)
    else:
        evaluate_range(query, noted, start_ms, end_ms, step_ms, limits)
    return noted.found
