"""Evaluator: the value of each expression at each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from frazil.errors import Malformed, TooLarge
from frazil.languages.promql import functions
from frazil.languages.promql.aggregations import aggregate
from frazil.languages.promql.binary import between_vectors, with_scalar
from frazil.languages.promql.classic_histograms import (
    distributions_of,
    fractions,
    many_quantiles,
    quantiles,
)
from frazil.languages.promql.evaluation import Evaluation
from frazil.languages.promql.failures import UnsupportedQuery
from frazil.languages.promql.histogram import NativeHistogram, ResetHint, scaled, with_hint
from frazil.languages.promql.kernels.arrays import Floats, Longs, given
from frazil.languages.promql.label_functions import (
    absent,
    label_joined,
    label_replaced,
    sorted_by_labels,
    sorted_by_value,
)
from frazil.languages.promql.operators import TRIMMING, scalars
from frazil.languages.promql.points import LabelMatcher
from frazil.languages.promql.range_functions import RANGE_FUNCTIONS, predict_linear
from frazil.languages.promql.range_windows import RangeWindows, windows_of
from frazil.languages.promql.selectors import instant, select_ranges, spread, subquery_times
from frazil.languages.promql.syntax import (
    Aggregation,
    BinaryOperation,
    Expression,
    FunctionCall,
    InstantSelector,
    Negation,
    NumberLiteral,
    Parentheses,
    RangeSelector,
    Subquery,
    TextLiteral,
    bare,
)
from frazil.languages.promql.vectors import (
    Ranges,
    Vector,
    floats,
    no_histograms,
    ranges_of,
)

Value = Vector | Floats | str
SORTING = frozenset(("sort", "sort_desc", "sort_by_label", "sort_by_label_desc"))


class Evaluator:
    """Evaluates expressions at the times of an evaluation."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._notes = evaluation.notes

    def value(self, expression: Expression) -> Value:
        """Return the value of an expression at each step."""
        self._evaluation.cancel.check()
        match expression:
            case NumberLiteral(value=number):
                return np.full(self._evaluation.steps, number)
            case TextLiteral(text=text):
                return text
            case Parentheses(expression=inner):
                return self.value(inner)
            case Negation(expression=inner):
                return self._negated(inner)
            case InstantSelector():
                return instant(expression, self._evaluation)[0]
            case FunctionCall():
                return self._called(expression)
            case Aggregation():
                return self._aggregated(expression)
            case BinaryOperation():
                return self._operated(expression)
            case RangeSelector() | Subquery():
                raise Malformed("a range of time needs a function such as rate around it")

    def vector(self, expression: Expression) -> Vector:
        """Return the value of an expression that has series."""
        value = self.value(expression)
        if not isinstance(value, Vector):
            raise Malformed("expected an instant vector; wrap a scalar into vector(...)")
        return value

    def scalar(self, expression: Expression) -> Floats:
        """Return the value of an expression without series."""
        value = self.value(expression)
        if not isinstance(value, np.ndarray):
            raise Malformed("expected a scalar; wrap a vector into scalar(...)")
        return value

    def text(self, expression: Expression) -> str:
        """Return the value of a text."""
        value = self.value(expression)
        if not isinstance(value, str):
            raise Malformed("expected a text in quotes")
        return value

    def _negated(self, inner: Expression) -> Value:
        value = self.value(inner)
        if isinstance(value, str):
            raise Malformed("a text has no negative")
        if not isinstance(value, Vector):
            return -value
        histograms = value.histograms
        if histograms is not None:
            histograms = no_histograms(histograms.shape)
            for row, step in zip(*np.nonzero(value.are_histograms()), strict=True):
                histograms[row, step] = scaled(_at(value, row, step), -1.0)
        unnamed = np.ones(len(value.labels), np.bool_)
        return replace(value, values=-value.values, unnamed=unnamed, histograms=histograms)

    def _aggregated(self, aggregation: Aggregation) -> Vector:
        parameter: Floats | str | None = None
        if aggregation.parameter is not None:
            value = self.value(aggregation.parameter)
            if isinstance(value, Vector):
                raise Malformed(f"the parameter of {aggregation.operator} must be a scalar")
            parameter = value
        vector = self.vector(aggregation.expression)
        self._evaluation.count(vector.present.size)
        return aggregate(aggregation, vector, parameter, self._evaluation)

    def _reading(self, counts_only: bool) -> Evaluator:
        evaluation = self._evaluation.counting(counts_only)
        return self if evaluation is self._evaluation else Evaluator(evaluation)

    def _operated(self, operation: BinaryOperation) -> Value:
        inner = self._reading(False) if operation.operator in TRIMMING else self
        left, right = inner.value(operation.left), inner.value(operation.right)
        if isinstance(left, str) or isinstance(right, str):
            raise Malformed("operators work on numbers, not on texts")
        if isinstance(left, Vector) and isinstance(right, Vector):
            self._evaluation.count(left.present.size + right.present.size)
            return between_vectors(operation, left, right, self._evaluation)
        if isinstance(left, Vector) and not isinstance(right, Vector):
            return with_scalar(operation, left, right, True, self._evaluation)
        if isinstance(right, Vector) and not isinstance(left, Vector):
            return with_scalar(operation, right, left, False, self._evaluation)
        if isinstance(left, Vector) or isinstance(right, Vector):
            raise AssertionError("a side is either a vector or not")
        return scalars(operation.operator, left, right)

    def _called(self, call: FunctionCall) -> Value:
        name, arguments = call.name, call.arguments
        if name in RANGE_FUNCTIONS or name in ("predict_linear", "absent_over_time"):
            return self._ranged(call)
        if name in SORTING:
            return self._sorted(call)
        if name in functions.MATHEMATICS:
            return functions.mapped(self.vector(arguments[0]), functions.MATHEMATICS[name])
        if name in functions.DATES:
            return self._dated(call)
        if name in functions.HISTOGRAM_NUMBERS:
            needs_buckets = name in ("histogram_stddev", "histogram_stdvar")
            return functions.histogram_numbers(
                self._reading(not needs_buckets).vector(arguments[0]),
                functions.HISTOGRAM_NUMBERS[name],
            )
        scalar = self._scalar_called(call)
        if scalar is not None:
            return scalar
        return self._vector_called(call)

    def _scalar_called(self, call: FunctionCall) -> Floats | None:
        window, times = self._evaluation.window, self._evaluation.times
        constants = {
            "pi": np.pi,
            "start": window.start_ms / 1000,
            "end": window.end_ms / 1000,
            "range": (window.end_ms - window.start_ms) / 1000,
            "step": window.step_ms / 1000,
        }
        if call.name in constants:
            return np.full(len(times), constants[call.name])
        match call.name:
            case "time":
                return times / 1000
            case "scalar":
                return functions.scalar(self.vector(call.arguments[0]))
            case "max_of":
                return np.maximum(*(self.scalar(each) for each in call.arguments))
            case "min_of":
                return np.minimum(*(self.scalar(each) for each in call.arguments))
        return None

    def _vector_called(self, call: FunctionCall) -> Vector:
        arguments = call.arguments
        match call.name:
            case "vector":
                values = self.scalar(arguments[0])[np.newaxis]
                return floats([()], values, np.ones(values.shape, np.bool_), False)
            case "timestamp":
                return self._timestamps(arguments[0])
            case "absent":
                inner = bare(arguments[0])
                matchers = inner.matchers if isinstance(inner, InstantSelector) else ()
                return absent(self.vector(inner).present, matchers)
            case "round":
                nearest = self.scalar(arguments[1]) if len(arguments) > 1 else np.ones(1)
                return functions.rounded(self.vector(arguments[0]), nearest)
            case "clamp" | "clamp_min" | "clamp_max":
                return self._clamped(call)
            case "label_replace":
                texts = [self.text(each) for each in arguments[1:]]
                return label_replaced(self.vector(arguments[0]), *texts)
            case "label_join":
                target, separator, *sources = (self.text(each) for each in arguments[1:])
                return label_joined(self.vector(arguments[0]), target, separator, sources)
            case "histogram_quantile" | "histogram_fraction" | "histogram_quantiles":
                return self._distributed(call)
        raise UnsupportedQuery(f"the function {call.name} is not evaluated")

    def _distributed(self, call: FunctionCall) -> Vector:
        inner = call.arguments[0 if call.name == "histogram_quantiles" else -1]
        vector = self._reading(False).vector(inner)
        distributions = distributions_of(vector, self._evaluation, inner.begin)
        match call.name:
            case "histogram_quantile":
                q = call.arguments[0]
                return quantiles(distributions, self.scalar(q), q.begin)
            case "histogram_fraction":
                lower, upper = (self.scalar(each) for each in call.arguments[:2])
                return fractions(distributions, lower, upper)
        name, qs = self.text(call.arguments[1]), call.arguments[2:]
        return many_quantiles(
            distributions, name, [self.scalar(q) for q in qs], [q.begin for q in qs]
        )

    def _clamped(self, call: FunctionCall) -> Vector:
        limits = [self.scalar(each) for each in call.arguments[1:]]
        least = np.full(self._evaluation.steps, -np.inf)
        most = np.full(self._evaluation.steps, np.inf)
        if call.name != "clamp_max":
            least = limits[0]
        if call.name != "clamp_min":
            most = limits[-1]
        return functions.clamped(self.vector(call.arguments[0]), least, most)

    def _timestamps(self, argument: Expression) -> Vector:
        """When each point was; of a computed value, when it was computed."""
        inner = bare(argument)
        if isinstance(inner, InstantSelector):
            vector, times = instant(inner, self._evaluation)
            return floats(vector.labels, times / 1000, vector.present, True)
        vector = self.vector(inner)
        seconds = np.broadcast_to(self._evaluation.times / 1000, vector.present.shape)
        return floats(vector.labels, seconds, vector.present, True)

    def _dated(self, call: FunctionCall) -> Vector:
        if call.arguments:
            return functions.mapped(
                self.vector(call.arguments[0]), lambda values: functions.dated(call.name, values)
            )
        values = functions.dated(call.name, np.floor(self._evaluation.times / 1000))[np.newaxis]
        return floats([()], values, np.ones(values.shape, np.bool_), False)

    def _sorted(self, call: FunctionCall) -> Vector:
        if not self._evaluation.window.is_instant:
            self._notes.warn(
                "sort is ineffective for range queries since results are always ordered by labels",
                call.begin,
            )
        vector = self.vector(call.arguments[0])
        is_descending = call.name.endswith("_desc")
        if not call.name.startswith("sort_by_label"):
            return sorted_by_value(vector, is_descending)
        names = [self.text(each) for each in call.arguments[1:]]
        return sorted_by_labels(vector, names, is_descending)

    def _ranged(self, call: FunctionCall) -> Vector:
        """A function over ranges; one that is the same at all steps is evaluated once."""
        place = next(
            at
            for at, each in enumerate(call.arguments)
            if isinstance(bare(each), RangeSelector | Subquery)
        )
        parameters = [self.scalar(each) for at, each in enumerate(call.arguments) if at != place]
        argument = bare(call.arguments[place])
        windows = self._windows(argument, call.arguments[0].begin, len(parameters) > 0)
        if call.name == "absent_over_time":
            matchers: Sequence[LabelMatcher] = ()
            if isinstance(argument, RangeSelector):
                matchers = argument.selector.matchers
            present = windows.have_floats() | windows.have_histograms()
            found = absent(present, matchers)
        elif call.name == "predict_linear":
            found = predict_linear(windows, parameters, self._evaluation.times)
        else:
            found = RANGE_FUNCTIONS[call.name](windows, parameters)
        return spread(found, self._evaluation.steps)

    def _windows(self, argument: Expression, begin: int, each_step: bool) -> RangeWindows:
        if isinstance(argument, RangeSelector):
            ranges, ends = select_ranges(argument, self._evaluation)
            range_ms = argument.range_ms
        elif isinstance(argument, Subquery):
            ranges, ends = self.subquery(argument)
            range_ms = argument.range_ms
        else:
            raise Malformed("expected a range of time, such as metric[5m]")
        if each_step and len(ends) == 1:
            ends = given(np.repeat(ends, self._evaluation.steps))
        self._evaluation.count(len(ranges.labels) * len(ends))
        return windows_of(ranges, ends, range_ms, self._evaluation, begin)

    def subquery(self, subquery: Subquery) -> tuple[Ranges, Longs]:
        """Evaluate the expression of a subquery at all its steps."""
        count, times, ends = subquery_times(subquery, self._evaluation)
        if count > len(times):
            raise TooLarge(
                f"a subquery has {count} steps, more than"
                f" {self._evaluation.limits.subquery_steps_max}; choose a longer step"
            )
        value = Evaluator(self._evaluation.at_times(times)).value(subquery.expression)
        if isinstance(value, np.ndarray):
            value = floats([()], value[np.newaxis], np.ones((1, len(value)), np.bool_), False)
        if isinstance(value, str):
            raise Malformed("a subquery needs a vector")
        return ranges_of(_without_hints(value), times), ends


def _at(vector: Vector, row: int, step: int) -> NativeHistogram:
    if vector.histograms is None:
        raise AssertionError("there are no histograms")
    histogram: NativeHistogram = vector.histograms[row, step]
    return histogram


def _without_hints(vector: Vector) -> Vector:
    """Between the steps of a subquery nothing is known about resets."""
    if vector.histograms is None:
        return vector
    histograms = vector.histograms.copy()
    for row, step in zip(*np.nonzero(vector.are_histograms()), strict=True):
        if histograms[row, step].hint is not ResetHint.GAUGE:
            histograms[row, step] = with_hint(histograms[row, step], ResetHint.UNKNOWN)
    return replace(vector, histograms=histograms)
