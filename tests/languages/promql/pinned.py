"""A query whose selectors all look at one time, whenever it is evaluated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from frazil.languages.promql import evaluate
from frazil.languages.promql.answer import Answer
from frazil.languages.promql.evaluation import QueryWindow
from frazil.languages.promql.parser import parse
from frazil.languages.promql.points import PointSource
from frazil.languages.promql.syntax import (
    Aggregation,
    BinaryOperation,
    Expression,
    FunctionCall,
    InstantSelector,
    Negation,
    Parentheses,
    RangeSelector,
    Subquery,
    children,
)

_DATES = ("days_in_month", "day_of_month", "day_of_week", "day_of_year", "hour", "minute", "month")
_TIMES = ("year", "predict_linear", "start", "end", "step", "range", "time", "timestamp")
OF_THE_STEP = frozenset((*_DATES, *_TIMES))
"""Functions whose value depends on when they are evaluated."""


def depends_on_step(expression: Expression) -> bool:
    """Whether an expression differs from step to step, even if its selectors do not."""
    if isinstance(expression, FunctionCall) and expression.name in OF_THE_STEP:
        return True
    return any(depends_on_step(child) for child in children(expression))


def pinned(expression: Expression, time_ms: int) -> Expression:
    """Return an expression with `@ time_ms` at each selector that has none."""
    match expression:
        case InstantSelector() | Subquery():
            return expression if expression.at is not None else replace(expression, at=time_ms)
        case RangeSelector(selector=selector):
            at = time_ms if selector.at is None else selector.at
            return replace(expression, selector=replace(selector, at=at))
        case FunctionCall(arguments=arguments):
            return replace(expression, arguments=tuple(pinned(each, time_ms) for each in arguments))
        case Aggregation(expression=inner, parameter=parameter):
            fixed = None if parameter is None else pinned(parameter, time_ms)
            return replace(expression, expression=pinned(inner, time_ms), parameter=fixed)
        case BinaryOperation(left=left, right=right):
            return replace(expression, left=pinned(left, time_ms), right=pinned(right, time_ms))
        case Negation(expression=inner) | Parentheses(expression=inner):
            return replace(expression, expression=pinned(inner, time_ms))
    return expression


def pinned_answer(query: str, source: PointSource, time_ms: int, at_ms: int) -> Answer | None:
    """Evaluate a query pinned to one time at another; None if it depends on the step anyway."""
    expression = parse(query)
    if depends_on_step(expression):
        return None
    window = QueryWindow(at_ms, at_ms, 0, is_instant=True)
    times = np.array([at_ms], np.int64)
    evaluation = evaluate._evaluation(source, window, times, None, None)
    with np.errstate(all="ignore"):
        return evaluate._instant_answer(query, pinned(expression, time_ms), evaluation)
