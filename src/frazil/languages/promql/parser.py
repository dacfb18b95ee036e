"""From a PromQL text to its syntax tree, by promql-parser."""

from __future__ import annotations

import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Literal

import promql_parser

from frazil.errors import Malformed, TooLarge
from frazil.languages.promql.failures import UnsupportedQuery
from frazil.languages.promql.points import LabelMatcher
from frazil.languages.promql.syntax import (
    Aggregation,
    At,
    BinaryOperation,
    Expression,
    FunctionCall,
    InstantSelector,
    Matching,
    Negation,
    NumberLiteral,
    Parentheses,
    RangeSelector,
    Signature,
    Subquery,
    TextLiteral,
)
from frazil.languages.promql.tokens import (
    DURATION,
    DURATION_PART,
    TRIM_SIGNS,
    UNITS_MS,
    TokenCursor,
    experiment_in,
    outline_of,
    readable_by_parser,
    tokens_of,
    unquoted,
)

EXPRESSIONS_MAX = 200
"""Expressions in one another."""

_YEARS_MAX = 1000
TIME_MS_MAX = 10**15
"""Thirty thousand years from 1970: no sum of times leaves the range of a number."""

_MATCH_OPERATORS: dict[str, Literal["=", "!=", "=~", "!~"]] = {
    "MatchOp.Equal": "=",
    "MatchOp.NotEqual": "!=",
    "MatchOp.Re": "=~",
    "MatchOp.NotRe": "!~",
}
_CARDINALITIES: dict[str, Literal["one-to-one", "many-to-one", "one-to-many", "many-to-many"]] = {
    "VectorMatchCardinality.OneToOne": "one-to-one",
    "VectorMatchCardinality.ManyToOne": "many-to-one",
    "VectorMatchCardinality.OneToMany": "one-to-many",
    "VectorMatchCardinality.ManyToMany": "many-to-many",
}
_UNSUPPORTED_FUNCTIONS = frozenset(("info", "start_timestamp"))
_UNSUPPORTED_AGGREGATIONS = frozenset(("limit_ratio",))


def parse(query: str) -> Expression:
    """Parse a query, which is also checked for types. Raises Malformed, or UnsupportedQuery."""
    tokens = tokens_of(query)
    outline = outline_of(tokens)
    if outline.has_fill:
        raise UnsupportedQuery("fill modifiers are experimental and not evaluated; leave them out")
    too_long = f"a duration is too long; use at most {_YEARS_MAX}y"
    try:
        tree = promql_parser.parse(readable_by_parser(query, tokens))
    except OverflowError as error:
        raise Malformed(too_long) from error
    except ValueError as error:
        experiment = experiment_in(tokens)
        if experiment is not None:
            raise UnsupportedQuery(f"{experiment}: experimental and not evaluated") from error
        raise Malformed(f"invalid PromQL: {error}") from error
    try:
        return _Reader(TokenCursor(outline)).read(tree, 0)
    except OverflowError as error:
        raise Malformed(too_long) from error


class _Reader:
    """Takes over the tree of promql-parser together with the tokens it came from."""

    def __init__(self, cursor: TokenCursor) -> None:
        self._cursor = cursor

    def read(self, node: Any, depth: int) -> Expression:
        if depth > EXPRESSIONS_MAX:
            raise TooLarge(f"the query nests more than {EXPRESSIONS_MAX} expressions; simplify it")
        while not isinstance(node, promql_parser.NumberLiteral) and self._cursor.take_if("+"):
            pass
        expression: Expression = _READERS[type(node)](self, node, depth + 1)
        return expression

    def number(self, node: Any, _: int) -> Expression:
        begin = self._cursor.begin
        while self._cursor.take_if("+", "-"):
            pass
        self._cursor.take()
        return NumberLiteral(begin, node.val)

    def text(self, _: Any, __: int) -> Expression:
        token = self._cursor.take()
        return TextLiteral(token.begin, unquoted(token.text), token.text)

    def parentheses(self, node: Any, depth: int) -> Expression:
        begin = self._cursor.take().begin
        inner = self.read(node.expr, depth)
        self._cursor.take()
        return Parentheses(begin, inner)

    def negation(self, node: Any, depth: int) -> Expression:
        begin = self._cursor.take().begin
        return Negation(begin, self.read(node.expr, depth))

    def selector(self, node: Any, _: int) -> InstantSelector:
        begin = self._cursor.take().begin
        if node.matchers.or_matchers:
            raise UnsupportedQuery("matchers with `or` are not evaluated; use a regular expression")
        matchers = [
            LabelMatcher(matcher.name, _MATCH_OPERATORS[str(matcher.op)], matcher.value)
            for matcher in node.matchers.matchers
        ]
        if node.name is not None and all(each.name != "__name__" for each in matchers):
            matchers.insert(0, LabelMatcher("__name__", "=", node.name))
        return InstantSelector(begin, tuple(matchers), _milliseconds(node.offset), self.at(node))

    def range_selector(self, node: Any, depth: int) -> Expression:
        selector = self.selector(node.vector_selector, depth)
        return RangeSelector(selector.begin, selector, _milliseconds(node.range))

    def subquery(self, node: Any, depth: int) -> Expression:
        inner = self.read(node.expr, depth)
        return Subquery(
            inner.begin,
            inner,
            range_ms=_milliseconds(node.range),
            step_ms=None if node.step is None else _milliseconds(node.step),
            offset_ms=_milliseconds(node.offset),
            at=self.at(node),
        )

    def at(self, node: Any) -> At:
        # The parser cannot give the time itself when it is before 1970.
        if node.at is None:
            return None
        time = self._cursor.time()
        if time == "start":
            return "start"
        return "end" if time == "end" else _time_ms(time)

    def call(self, node: Any, depth: int) -> Expression:
        begin = self._cursor.take().begin
        name = node.func.name
        if name in _UNSUPPORTED_FUNCTIONS:
            raise UnsupportedQuery(f"the function {name} is experimental and not evaluated")
        signature = Signature(
            tuple(_type_name(each) for each in node.func.arg_types),
            node.func.variadic,
            _type_name(node.func.return_type),
        )
        return FunctionCall(begin, name, self.arguments(node.args, depth), signature)

    def arguments(self, nodes: Any, depth: int) -> tuple[Expression, ...]:
        self._cursor.take()
        found = []
        for node in nodes:
            found.append(self.read(node, depth))
            self._cursor.take_if(",")
        self._cursor.take()
        return tuple(found)

    def aggregation(self, node: Any, depth: int) -> Expression:
        begin = self._cursor.take().begin
        operator = str(node.op).lower()
        if operator in _UNSUPPORTED_AGGREGATIONS:
            raise UnsupportedQuery(f"{operator} is experimental and not evaluated")
        *parameters, inner = self.arguments(
            [node.expr] if node.param is None else [node.param, node.expr], depth
        )
        labels = () if node.modifier is None else tuple(node.modifier.labels)
        is_without = node.modifier is not None and (
            node.modifier.type == promql_parser.AggModifierType.Without
        )
        parameter = parameters[0] if parameters else None
        return Aggregation(begin, operator, inner, parameter, labels, is_without)

    def binary(self, node: Any, depth: int) -> Expression:
        left = self.read(node.lhs, depth)
        operator = self._cursor.take().text.lower()
        right = self.read(node.rhs, depth)
        is_bool = node.modifier is not None and node.modifier.return_bool
        return BinaryOperation(
            left.begin, operator, left, right, _matching(node.modifier, operator), is_bool
        )


_READERS: dict[type, Any] = {
    promql_parser.NumberLiteral: _Reader.number,
    promql_parser.StringLiteral: _Reader.text,
    promql_parser.ParenExpr: _Reader.parentheses,
    promql_parser.UnaryExpr: _Reader.negation,
    promql_parser.VectorSelector: _Reader.selector,
    promql_parser.MatrixSelector: _Reader.range_selector,
    promql_parser.SubqueryExpr: _Reader.subquery,
    promql_parser.Call: _Reader.call,
    promql_parser.AggregateExpr: _Reader.aggregation,
    promql_parser.BinaryExpr: _Reader.binary,
}


def _matching(modifier: Any, operator: str) -> Matching:
    is_set = operator in ("and", "or", "unless")
    if modifier is None:
        return Matching("many-to-many" if is_set else "one-to-one")
    include = modifier.group_labels
    labels = () if modifier.matching is None else tuple(modifier.matching.labels)
    is_on = modifier.matching is not None and (
        modifier.matching.type == promql_parser.LabelModifierType.Include
    )
    return Matching(
        "many-to-many" if is_set else _CARDINALITIES[str(modifier.card)],
        labels,
        is_on,
        () if include is None else tuple(include),
    )


def _type_name(kind: Any) -> str:
    return str(kind).rpartition(".")[2].lower()


def _milliseconds(span: datetime.timedelta | None) -> int:
    milliseconds = 0 if span is None else span // datetime.timedelta(milliseconds=1)
    if abs(milliseconds) > _YEARS_MAX * UNITS_MS["y"]:
        raise OverflowError(milliseconds)
    return milliseconds


def _time_ms(text: str) -> int:
    """A time in seconds, as it was written, in milliseconds."""
    if DURATION.fullmatch(text.lstrip("+-")):
        sign = -1 if text.startswith("-") else 1
        return sign * sum(
            int(count) * UNITS_MS[unit] for count, unit in DURATION_PART.findall(text)
        )
    try:
        exact = Decimal(int(text, 0) if "x" in text.lower() else text)
    except ArithmeticError as error:
        raise Malformed(f"{text} after @ is not a time in seconds") from error
    if not exact.is_finite() or abs(exact) * 1000 > TIME_MS_MAX:
        raise Malformed(f"{text} after @ is not a time in seconds")
    return int((exact * 1000).to_integral_value(ROUND_HALF_UP))


def prettified(query: str) -> str:
    """Return a query, written as Prometheus' formatter writes it."""
    parse(query)
    if any(token.text in TRIM_SIGNS for token in tokens_of(query)):
        raise UnsupportedQuery("queries with the operators </ and >/ are not formatted")
    return promql_parser.parse(query).prettify()
