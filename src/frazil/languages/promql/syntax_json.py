"""The syntax tree of a query as Prometheus' `parse_query` writes it."""

from __future__ import annotations

from typing import Any

from frazil.languages.promql.labels import NAME
from frazil.languages.promql.numbers import positional
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
    Subquery,
    TextLiteral,
    is_scalar,
)


def syntax_json(expression: Expression) -> dict[str, Any]:
    """Return the tree in values that JSON has."""
    match expression:
        case NumberLiteral(value=value):
            return {"type": "numberLiteral", "val": positional(value)}
        case TextLiteral(text=text):
            return {"type": "stringLiteral", "val": text}
        case Parentheses(expression=inner):
            return {"type": "parenExpr", "expr": syntax_json(inner)}
        case Negation(expression=inner):
            return {"type": "unaryExpr", "op": "-", "expr": syntax_json(inner)}
        case InstantSelector():
            return {"type": "vectorSelector", **_selector(expression)}
        case RangeSelector(selector=selector, range_ms=range_ms):
            return {"type": "matrixSelector", "range": range_ms, **_selector(selector)}
        case Subquery():
            return _subquery(expression)
        case FunctionCall():
            return _call(expression)
        case Aggregation():
            return _aggregation(expression)
        case BinaryOperation():
            return _binary(expression)


def _time(at: At) -> dict[str, Any]:
    return {
        "timestamp": at if isinstance(at, int) else None,
        "startOrEnd": at if isinstance(at, str) else None,
    }


def _selector(selector: InstantSelector) -> dict[str, Any]:
    names = [each for each in selector.matchers if each.name == NAME and each.operator == "="]
    others = [each for each in selector.matchers if each not in names]
    return {
        "name": names[0].value if names else "",
        "offset": selector.offset_ms,
        "matchers": [
            {"name": each.name, "value": each.value, "type": each.operator}
            for each in (*others, *names)
        ],
        **_time(selector.at),
    }


def _subquery(subquery: Subquery) -> dict[str, Any]:
    return {
        "type": "subquery",
        "expr": syntax_json(subquery.expression),
        "range": subquery.range_ms,
        "offset": subquery.offset_ms,
        "step": subquery.step_ms or 0,
        **_time(subquery.at),
    }


def _call(call: FunctionCall) -> dict[str, Any]:
    return {
        "type": "call",
        "func": {
            "name": call.name,
            "argTypes": list(call.signature.argument_types),
            "variadic": call.signature.variadic,
            "returnType": call.signature.return_type,
        },
        "args": [syntax_json(each) for each in call.arguments],
    }


def _aggregation(aggregation: Aggregation) -> dict[str, Any]:
    parameter = aggregation.parameter
    return {
        "type": "aggregation",
        "op": aggregation.operator,
        "expr": syntax_json(aggregation.expression),
        "param": None if parameter is None else syntax_json(parameter),
        "grouping": list(aggregation.labels),
        "without": aggregation.is_without,
    }


def _binary(operation: BinaryOperation) -> dict[str, Any]:
    is_matched = not (is_scalar(operation.left) or is_scalar(operation.right))
    return {
        "type": "binaryExpr",
        "op": operation.operator,
        "lhs": syntax_json(operation.left),
        "rhs": syntax_json(operation.right),
        "matching": _matching(operation.matching) if is_matched else None,
        "bool": operation.is_bool,
    }


def _matching(matching: Matching) -> dict[str, Any]:
    return {
        "card": matching.cardinality,
        "labels": list(matching.labels),
        "on": matching.is_on,
        "include": list(matching.include),
        "fillValues": {"lhs": None, "rhs": None},
    }
