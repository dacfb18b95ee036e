"""The syntax tree of a query as JSON, as `/api/v1/parse_query` has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from frazil.query.prometheus.names import NAME
from frazil.query.promql.numbers import positional
from frazil.query.promql.parser import parse
from frazil.query.promql.points import LabelMatcher
from frazil.query.promql.syntax import (
    Aggregation,
    At,
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
    is_scalar,
)

Tree = dict[str, Any]


def query_tree(text: str) -> Tree:
    """Return the tree of a query. `Malformed` if it cannot be parsed."""
    return _tree(parse(text))


def _tree(node: Expression) -> Tree:
    match node:
        case NumberLiteral(value=value):
            return {"type": "numberLiteral", "val": positional(value)}
        case TextLiteral(text=text):
            return {"type": "stringLiteral", "val": text}
        case Parentheses(expression=inner):
            return {"type": "parenExpr", "expr": _tree(inner)}
        case Negation(expression=inner):
            return {"type": "unaryExpr", "op": "-", "expr": _tree(inner)}
        case InstantSelector():
            return {"type": "vectorSelector", **_selector(node)}
        case RangeSelector(selector=selector, range_ms=range_ms):
            return {"type": "matrixSelector", "range": range_ms, **_selector(selector)}
        case FunctionCall(name=name, arguments=arguments):
            return {"type": "call", "func": {"name": name}, "args": [*map(_tree, arguments)]}
        case Subquery():
            return _subquery(node)
        case Aggregation():
            return _aggregation(node)
        case BinaryOperation():
            return _binary(node)


def _selector(node: InstantSelector) -> Tree:
    names = [each.value for each in node.matchers if (each.name, each.operator) == (NAME, "=")]
    return {
        "name": names[0] if names else "",
        "offset": node.offset_ms,
        "matchers": _matchers(node.matchers),
        **_at(node.at),
    }


def _matchers(matchers: Sequence[LabelMatcher]) -> list[Tree]:
    return [{"name": each.name, "value": each.value, "type": each.operator} for each in matchers]


def _at(at: At) -> Tree:
    is_end = at in ("start", "end")
    return {"timestamp": None if is_end else at, "startOrEnd": at if is_end else None}


def _subquery(node: Subquery) -> Tree:
    return {
        "type": "subquery",
        "expr": _tree(node.expression),
        "range": node.range_ms,
        "offset": node.offset_ms,
        "step": node.step_ms or 0,
        **_at(node.at),
    }


def _aggregation(node: Aggregation) -> Tree:
    return {
        "type": "aggregation",
        "op": node.operator,
        "expr": _tree(node.expression),
        "param": None if node.parameter is None else _tree(node.parameter),
        "grouping": list(node.labels),
        "without": node.is_without,
    }


def _binary(node: BinaryOperation) -> Tree:
    between = node.matching
    matching = {
        "card": between.cardinality,
        "labels": list(between.labels),
        "on": between.is_on,
        "include": list(between.include),
    }
    has_scalar = is_scalar(node.left) or is_scalar(node.right)
    return {
        "type": "binaryExpr",
        "op": node.operator,
        "lhs": _tree(node.left),
        "rhs": _tree(node.right),
        "matching": None if has_scalar else matching,
        "bool": node.is_bool,
    }
