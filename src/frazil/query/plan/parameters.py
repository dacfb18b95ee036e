"""The types of a query's parameters, as far as they follow from its text.

`severity_number > $1` has an integer; `SELECT $1` has no type. DataFusion keeps the type that it
has found with each placeholder of the plan. Those inside subqueries are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

EXPRESSIONS = ("predicate", "projections", "aggregate_exprs", "group_by_exprs", "sort_exprs")
"""Methods of plan nodes that return expressions."""


def parameters_of(plan: Any) -> bytes:
    """Return the schema of the parameters with a type, as Arrow IPC."""
    found: dict[str, pa.DataType] = {}
    for expression in _expressions(plan):
        for name, kind in _placeholders(expression):
            found.setdefault(name, kind)
    schema: bytes = pa.schema(list(found.items())).serialize().to_pybytes()
    return schema


def _expressions(plan: Any) -> Iterator[Any]:
    node = plan.to_variant()
    for name in EXPRESSIONS:
        method = getattr(node, name, None)
        if method is not None:
            found = method()
            yield from found if isinstance(found, list) else [found]
    for child in plan.inputs():
        yield from _expressions(child)


def _placeholders(expression: Any) -> Iterator[tuple[str, pa.DataType]]:
    if type(expression).__name__ == "SortExpr":
        expression = expression.expr()
    kind = expression.variant_name()
    if kind == "Placeholder":
        placeholder = expression.to_variant()
        field = placeholder.field()
        if field is not None and field.type != pa.null():
            yield placeholder.id(), field.type
    elif kind not in ("Column", "Literal"):
        for operand in _operands(expression):
            yield from _placeholders(operand)


def _operands(expression: Any) -> list[Any]:
    try:
        return list(expression.rex_call_operands())
    except RuntimeError:  # of an expression that DataFusion does not show to Python, as EXISTS
        return []
