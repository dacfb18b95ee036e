"""parse_logql: a query as a tree, by recursive descent.

    {service_name="cart"} |= "error" | json | status >= 500 | line_format "{{.path}}"
    sum by (service_name) (rate({env="prod"} |= "error" [5m])) / 2 > bool 1

Stages of a pipeline are in stage_parser.py.
"""

from __future__ import annotations

import math
from typing import Literal

from frazil.errors import Malformed
from frazil.languages.logql.stage_parser import StageParser
from frazil.languages.logql.syntax import (
    Expression,
    LabelGrouping,
    LogqlAggregation,
    LogqlBinary,
    LogqlMatching,
    LogqlNumber,
    LogqlReplacement,
    LogqlVector,
    LogRange,
    LogSelection,
    MetricExpression,
    Stage,
    Unwrap,
)
from frazil.languages.logql.units import duration_ns

LINE_OPERATIONS = frozenset(
    {"count_over_time", "rate", "bytes_over_time", "bytes_rate", "absent_over_time"}
)
VALUE_OPERATIONS = frozenset(
    {
        "rate",
        "rate_counter",
        "sum_over_time",
        "avg_over_time",
        "min_over_time",
        "max_over_time",
        "first_over_time",
        "last_over_time",
        "stddev_over_time",
        "stdvar_over_time",
        "quantile_over_time",
        "absent_over_time",
    }
)
GROUPED_OPERATIONS = VALUE_OPERATIONS - {
    "rate", "rate_counter", "sum_over_time", "absent_over_time"
}  # fmt: skip
"""Range aggregations that may have `by` or `without`."""
RANGE_OPERATIONS = LINE_OPERATIONS | VALUE_OPERATIONS
VECTOR_OPERATIONS = frozenset(
    {
        "sum",
        "avg",
        "min",
        "max",
        "count",
        "stddev",
        "stdvar",
        "topk",
        "bottomk",
        "sort",
        "sort_desc",
    }
)
UNSUPPORTED = frozenset({"approx_topk", "variants", "quantile"})
DEPTH_MAX = 64
"""Nested parentheses, functions and operators."""
TOPK_MAX = 100_000

_BINDING = {
    "or": 1,
    "and": 2,
    "unless": 2,
    "==": 3,
    "!=": 3,
    ">": 3,
    ">=": 3,
    "<": 3,
    "<=": 3,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
    "^": 6,
}
COMPARISONS = frozenset(name for name, binding in _BINDING.items() if binding == 3)
SET_OPERATORS = frozenset({"and", "or", "unless"})


def parse_logql(query: str) -> Expression:
    """Parse a query. `Malformed` has the position and says what is expected or unsupported."""
    parser = _Parser(query)
    expression = parser.expression()
    parser.expect_end()
    return expression


def parse_selection(query: str) -> LogSelection:
    """Parse a query that must be of lines."""
    expression = parse_logql(query)
    if not isinstance(expression, LogSelection):
        raise Malformed('this needs a query of lines, such as {service_name="cart"} |= "error"')
    return expression


class _Parser(StageParser):
    def __init__(self, query: str) -> None:
        super().__init__(query)
        self._depth = 0

    def expression(self, binding: int = 0) -> Expression:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self.error(f"the query is nested more than {DEPTH_MAX} deep")
        left = self._unary()
        while (operator := self._operator()) and _BINDING[operator] > binding:
            left = self._binary(operator, left)
        self._depth -= 1
        return left

    def _operator(self) -> str | None:
        token = self.token
        is_operator = token.kind in ("sign", "name") and token.text in _BINDING
        return token.text if is_operator else None

    def _binary(self, operator: str, left: Expression) -> LogqlBinary:
        at = self.token
        self.advance()
        is_bool = self.take("bool")
        if is_bool and operator not in COMPARISONS:
            raise self.error("bool follows comparisons only", at)
        matching = self._matching(operator)
        # `^` groups from the right.
        right = self.expression(_BINDING[operator] - (operator == "^"))
        if isinstance(left, LogSelection) or isinstance(right, LogSelection):
            raise self.error(f"{operator} needs numbers on both sides, not lines", at)
        if operator in SET_OPERATORS and _is_number(left, right):
            raise self.error(f"{operator} needs vectors on both sides, not numbers", at)
        return LogqlBinary(operator, left, right, is_bool, matching)

    def _matching(self, operator: str) -> LogqlMatching | None:
        if self.token.text not in ("on", "ignoring") or self.token.kind != "name":
            return None
        is_on = self.advance().text == "on"
        labels = self.label_names()
        group: Literal["", "left", "right"] = ""
        include: tuple[str, ...] = ()
        if self.token.kind == "name" and self.token.text in ("group_left", "group_right"):
            if operator in SET_OPERATORS:
                raise self.error(f"{operator} takes no grouping")
            group = "left" if self.advance().text == "group_left" else "right"
            include = self.label_names() if self.is_sign("(") and self._has_labels() else ()
        return LogqlMatching(labels, is_on, group, include)

    def _has_labels(self) -> bool:
        """Whether the parentheses after `group_left` list labels, or hold the right side."""
        inner, closing = self.peek(1), self.peek(2)
        return inner.text == ")" or (inner.kind == "name" and closing.text in (",", ")"))

    def _unary(self) -> Expression:
        if self.token.kind == "sign" and self.token.text in "+-":
            at = self.advance()
            operand = self.expression(_BINDING["*"])
            if isinstance(operand, LogqlNumber):
                return LogqlNumber(-operand.value if at.text == "-" else operand.value)
            raise self.error("a sign needs a number after it; write 0 - …", at)
        return self._primary()

    def _primary(self) -> Expression:
        token = self.token
        if self.is_sign("{"):
            return self._lines(self.matchers())
        if self.take_sign("("):
            inner = self.expression()
            self.expect_sign(")")
            if isinstance(inner, LogSelection) and self.at_stage():
                return self._lines(inner.matchers, inner.stages)
            return inner
        if token.kind == "number":
            return LogqlNumber(self.number())
        if token.kind == "name":
            return self._function()
        raise self.unexpected('a selector such as {service_name="cart"}, a function or a number')

    def _lines(self, matchers: tuple[object, ...], before: tuple[Stage, ...] = ()) -> LogSelection:
        stages = list(before)
        while self.at_stage():
            stages.append(self.stage())
        return LogSelection(matchers, tuple(stages))  # type: ignore[arg-type]

    def _function(self) -> Expression:
        name = self.advance()
        if name.text in RANGE_OPERATIONS:
            return self._range_aggregation(name.text)
        if name.text in VECTOR_OPERATIONS:
            return self._vector_aggregation(name.text)
        if name.text == "vector":
            self.expect_sign("(")
            value = self._signed_number()
            self.expect_sign(")")
            return LogqlVector(value)
        if name.text == "label_replace":
            return self._label_replace()
        if name.text.lower() in ("inf", "nan"):
            return LogqlNumber(math.inf if name.text.lower() == "inf" else math.nan)
        if name.text in UNSUPPORTED:
            raise self.error(f"{name.text} is not supported", name)
        raise self.error(f"unknown function {name.text}", name)

    def _signed_number(self) -> float:
        is_negative = self.take_sign("-")
        return -self.number() if is_negative else self.number()

    def _label_replace(self) -> LogqlReplacement:
        self.expect_sign("(")
        inner = self._metric()
        texts = []
        for _ in range(4):
            self.expect_sign(",")
            texts.append(self.text())
        self.expect_sign(")")
        self.check_regex(texts[3])
        return LogqlReplacement(inner, *texts)

    def _metric(self) -> MetricExpression:
        at = self.token
        inner = self.expression()
        if isinstance(inner, LogSelection):
            raise self.error(
                "this needs numbers, not lines; use a range, such as rate({…} [5m])", at
            )
        return inner

    def _vector_aggregation(self, operation: str) -> LogqlAggregation:
        at = self.token
        grouping = self._grouping()
        self.expect_sign("(")
        parameter = None
        if operation in ("topk", "bottomk"):
            value = self.number()
            if not (value.is_integer() and 1 <= value <= TOPK_MAX):
                raise self.error(f"{operation} needs a whole number from 1 to {TOPK_MAX}", at)
            parameter = int(value)
            self.expect_sign(",")
        inner = self._metric()
        self.expect_sign(")")
        grouping = grouping or self._grouping()
        if operation.startswith("sort") and grouping is not None:
            raise self.error(f"{operation} takes no by or without", at)
        return LogqlAggregation(operation, inner, grouping, parameter)

    def _grouping(self) -> LabelGrouping | None:
        if self.token.kind != "name" or self.token.text not in ("by", "without"):
            return None
        is_without = self.advance().text == "without"
        return LabelGrouping(self.label_names(), is_without)

    def _range_aggregation(self, operation: str) -> LogRange:
        at = self.token
        grouping = self._grouping()
        self.expect_sign("(")
        parameter = None
        if operation == "quantile_over_time":
            parameter = self._signed_number()
            self.expect_sign(",")
        selection, unwrap, range_ns, offset_ns = self._range()
        self.expect_sign(")")
        grouping = grouping or self._grouping()
        if unwrap is None and operation not in LINE_OPERATIONS:
            raise self.error(f"{operation} needs | unwrap and a label before the range", at)
        if unwrap is not None and operation not in VALUE_OPERATIONS:
            raise self.error(f"{operation} counts lines; remove | unwrap", at)
        if grouping is not None and operation not in GROUPED_OPERATIONS:
            raise self.error(f"{operation} takes no by or without; use sum by (…) around it", at)
        return LogRange(operation, selection, range_ns, offset_ns, unwrap, parameter, grouping)

    def _range(self) -> tuple[LogSelection, Unwrap | None, int, int]:
        if self.take_sign("("):
            inside = self._range()
            self.expect_sign(")")
            return inside
        matchers, stages = self.matchers(), list[Stage]()
        unwrap, range_ns, offset_ns = None, None, 0
        while True:
            if self.is_sign("[") and range_ns is None:
                range_ns = self._range_width()
                offset_ns = self._offset()
            elif self.at_unwrap() and unwrap is None:
                unwrap = self.unwrap()
            elif self.at_stage():
                if unwrap is not None:
                    raise self.unexpected("label filters only after | unwrap")
                stages.append(self.stage())
            else:
                break
        if range_ns is None:
            raise self.unexpected("a range, such as [5m]")
        return LogSelection(matchers, tuple(stages)), unwrap, range_ns, offset_ns

    def _range_width(self) -> int:
        self.expect_sign("[")
        width = self._duration()
        if width <= 0:
            raise self.error("the range must be longer than 0")
        self.expect_sign("]")
        return width

    def _offset(self) -> int:
        if not self.take("offset"):
            return 0
        sign = -1 if self.take_sign("-") else 1
        return sign * self._duration()

    def _duration(self) -> int:
        token = self.advance()
        width = duration_ns(token.text) if token.kind == "quantity" else None
        if width is None:
            raise self.error(f"{token.text} is no duration; write 30s, 5m or 1h30m", token)
        return width


def _is_number(left: MetricExpression, right: MetricExpression) -> bool:
    return isinstance(left, LogqlNumber) or isinstance(right, LogqlNumber)
