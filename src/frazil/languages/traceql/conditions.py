"""Field expressions of TraceQL as SQL.

A value that is missing, or not of the type it is compared with, is NULL in SQL, and a comparison
with it does not hold. Attributes are text in the table: a number equals an attribute that was sent
as this number or as its digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NoReturn

import re2

from frazil.errors import Malformed
from frazil.languages.traceql.fields import (
    CHILD_COUNT,
    ITEM,
    NESTED_SET,
    ROOT_NAME,
    ROOT_SERVICE,
    TRACE_LEVEL,
    TRACE_NANO,
    FieldSql,
    ItemColumn,
    field_sql,
    item_column_of,
)
from frazil.languages.traceql.nodes import (
    FieldExpression,
    FieldLiteral,
    FieldOperation,
    SpanAttribute,
    SpanIntrinsic,
    UnaryOperation,
    named_values_in,
)
from frazil.query import sql_text as text
from frazil.query import sql_where as where

EXACT_MAX = 2**53
ARITHMETIC = ("+", "-", "*", "/", "%", "^")
_ROW = ("_log_partition", "_offset", "_row")
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_LITERAL_KINDS = {"duration": "number"}


@dataclass(slots=True)
class SpanJoins:
    """What conditions need besides the row of a span."""

    items: dict[ItemColumn, list[str]] = field(default_factory=dict)
    """Aggregates over the events or links of a span, by the column that has them."""
    has_traces: bool = False
    has_children: bool = False

    def item_value(self, column: ItemColumn, aggregate: str) -> str:
        """Return the column of an aggregate over the events or links of a span."""
        known = self.items.setdefault(column, [])
        if aggregate not in known:
            known.append(aggregate)
        return f"{column}_value_{known.index(aggregate)}"

    def source(self, conditions: list[str]) -> str:
        """SQL of `spans` with all of it, for FROM. Spans that meet `conditions` count."""
        joined = ["spans"]
        joined += [_items_sql(column, known, conditions) for column, known in self.items.items()]
        if self.has_traces:
            first = "ORDER BY parent_span_id IS NULL DESC, time_unix_nano"
            joined.append(
                f"LEFT JOIN (SELECT trace_id AS traces_id, first_value(name {first}) AS "
                f"{ROOT_NAME}, first_value(service_name {first}) AS {ROOT_SERVICE}, "
                f"max(end_time_unix_nano) - min(time_unix_nano) AS {TRACE_NANO} "
                f"FROM spans {where(conditions)} GROUP BY trace_id) ON trace_id = traces_id"
            )
        if self.has_children:
            has_parent = where([*conditions, "parent_span_id IS NOT NULL"])
            joined.append(
                "LEFT JOIN (SELECT trace_id AS children_trace_id, parent_span_id AS children_of, "
                f"count(*) AS {CHILD_COUNT} FROM spans {has_parent} "
                "GROUP BY trace_id, parent_span_id) "
                "ON trace_id = children_trace_id AND span_id = children_of"
            )
        return " ".join(joined)


def _items_sql(column: ItemColumn, aggregates: list[str], conditions: list[str]) -> str:
    """SQL that joins aggregates over events or links."""
    keys = ", ".join(f"{name} AS {column}{name}" for name in _ROW)
    values = ", ".join(f"{sql} AS {column}_value_{i}" for i, sql in enumerate(aggregates))
    matches = " AND ".join(f"{name} = {column}{name}" for name in _ROW)
    inner = where([*conditions, f"cardinality({column}) > 0"])
    return (
        f"LEFT JOIN (SELECT {keys}, {values} FROM (SELECT *, unnest({column}) AS {ITEM} "
        f"FROM spans {inner}) GROUP BY {', '.join(_ROW)}) ON {matches}"
    )


def condition_sql(node: FieldExpression, joins: SpanJoins) -> str:
    """SQL of a condition; NULL counts as false."""
    match node:
        case FieldLiteral("bool", value):
            return "TRUE" if value else "FALSE"
        case SpanAttribute():
            return f"{value_sql(node, joins).sql} = 'true'"
        case UnaryOperation("!", operand):
            return f"(({condition_sql(operand, joins)}) IS NOT TRUE)"
        case FieldOperation("&&" | "||" as sign, left, right):
            word = "AND" if sign == "&&" else "OR"
            return f"({condition_sql(left, joins)} {word} {condition_sql(right, joins)})"
        case FieldOperation(sign, left, right) if sign not in ARITHMETIC:
            return _comparison(sign, left, right, joins)
    raise Malformed(f"{_shown(node)} is not a condition; compare it, such as {_shown(node)} = …")


def value_sql(node: FieldExpression, joins: SpanJoins) -> FieldSql:
    """SQL of a value. Of several events or links, the least value counts."""
    column = _item_column(node)
    if column is None:
        return item_or_span_sql(node, joins)
    inner = item_or_span_sql(node, joins)
    return FieldSql(
        inner.kind, joins.item_value(column, f"min({inner.sql})"), inner.is_whole, inner.is_nano
    )


def _comparison(sign: str, left: FieldExpression, right: FieldExpression, joins: SpanJoins) -> str:
    root = _root_condition(sign, left, right)
    if root is not None:
        return root
    column = _item_column(FieldOperation(sign, left, right))
    if column is None:
        return _compare(sign, left, right, joins)
    is_missing = sign == "=" and FieldLiteral("nil", None) in (left, right)
    inner = _compare("!=" if is_missing else sign, left, right, joins)
    found = f"coalesce({joins.item_value(column, f'bool_or({inner})')}, FALSE)"
    return f"{found} = FALSE" if is_missing else found


def _item_column(node: FieldExpression) -> ItemColumn | None:
    """Return whether an expression reads events or links. `Malformed` if both."""
    columns = {item_column_of(each) for each in named_values_in(node)} - {None}
    if len(columns) > 1:
        raise Malformed("events cannot be compared with links; use two conditions")
    return next(iter(columns), None)


def _root_condition(sign: str, left: FieldExpression, right: FieldExpression) -> str | None:
    """Condition on `nestedSetParent`, which is -1 for root spans and positive for others; None
    if it is another comparison."""
    if isinstance(right, SpanIntrinsic) and sign in _FLIPPED:
        sign, left, right = _FLIPPED[sign], right, left
    if not isinstance(left, SpanIntrinsic) or left.name not in NESTED_SET:
        return None
    number = _constant(right)
    if left.name == "nestedSetParent" and number is not None and sign in _FLIPPED:
        of_root, of_least = (_holds(sign, place, number) for place in (-1, 1))
        is_decided = number < 1 or (number == 1 and sign in ("<", ">="))
        if is_decided:
            answers = {
                (True, True): "TRUE",
                (True, False): "parent_span_id IS NULL",
                (False, True): "parent_span_id IS NOT NULL",
                (False, False): "FALSE",
            }
            return answers[of_root, of_least]
    field_sql(left)  # says what is supported
    raise Malformed("nestedSetParent can only be compared with numbers up to 1")


def _holds(sign: str, left: float, right: float) -> bool:
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[sign]


def _constant(node: FieldExpression) -> float | None:
    """Return the number that an expression always is; None if it is none."""
    match node:
        case FieldLiteral("number", int() | float() as number):
            return number
        case UnaryOperation("-", operand):
            number_of = _constant(operand)
            return None if number_of is None else -number_of
    return None


def _compare(sign: str, left: FieldExpression, right: FieldExpression, joins: SpanJoins) -> str:
    if isinstance(left, FieldLiteral) and not isinstance(right, FieldLiteral) and sign in _FLIPPED:
        return _compare(_FLIPPED[sign], right, left, joins)
    subject = item_or_span_sql(left, joins)
    if isinstance(right, FieldLiteral) and right.kind == "nil":
        return _compare_nil(sign, subject)
    if sign in ("=~", "!~"):
        return _match(sign, subject, left, right)
    value = item_or_span_sql(right, joins)
    kinds = {subject.kind, value.kind}
    if kinds <= {"number", "attribute"} and (kinds != {"attribute"} or sign not in ("=", "!=")):
        return _compare_numbers(sign, subject, value, right)
    if kinds <= {"text", "attribute"}:
        return f"{subject.sql} {_sql_sign(sign)} {value.sql}"
    if sign in ("=", "!=") and kinds == {"bool", "attribute"}:
        return _compare_bool(sign, subject, right)
    if len(kinds) == 1 and sign in ("=", "!=") and kinds <= {"status", "kind", "bool"}:
        return f"{subject.sql} {_sql_sign(sign)} {value.sql}"
    _refuse_kinds(sign, left, subject, right, value)


def _refuse_kinds(
    sign: str, left: FieldExpression, subject: FieldSql, right: FieldExpression, value: FieldSql
) -> NoReturn:
    raise Malformed(
        f"{_shown(left)} is a {subject.kind}, which cannot be compared by {sign} with "
        f"{_shown(right)}, a {value.kind}"
    )


def _compare_nil(sign: str, subject: FieldSql) -> str:
    if sign not in ("=", "!="):
        raise Malformed(f"nil cannot be compared by {sign}; use = nil or != nil")
    return f"{subject.sql} IS {'NOT ' if sign == '!=' else ''}NULL"


def _match(sign: str, subject: FieldSql, left: FieldExpression, right: FieldExpression) -> str:
    if not isinstance(right, FieldLiteral) or right.kind != "text":
        raise Malformed(f"{sign} needs a regular expression in quotes, not {_shown(right)}")
    if subject.kind not in ("text", "attribute"):
        raise Malformed(f"{_shown(left)} is a {subject.kind}; {sign} needs text")
    pattern = str(right.value)
    try:
        re2.compile(pattern)
    except re2.error as error:
        raise Malformed(f"{pattern!r:.100} is not a regular expression of RE2: {error}") from None
    return f"{subject.sql} {'~' if sign == '=~' else '!~'} {text(f'^(?s:{pattern})$')}"


def _compare_numbers(sign: str, subject: FieldSql, value: FieldSql, right: FieldExpression) -> str:
    if sign == "=" and subject.kind == "attribute" and isinstance(right, FieldLiteral):
        number = right.value
        if isinstance(number, int) and abs(number) < EXACT_MAX:
            return f"{subject.sql} = {text(str(number))}"
    return f"{_number(subject)} {_sql_sign(sign)} {_number(value)}"


def _compare_bool(sign: str, subject: FieldSql, right: FieldExpression) -> str:
    wanted = isinstance(right, FieldLiteral) and bool(right.value)
    return f"{subject.sql} = {text(str(wanted == (sign == '=')).lower())}"


def _sql_sign(sign: str) -> str:
    return "<>" if sign == "!=" else sign


def _number(value: FieldSql) -> str:
    """SQL of a value as a number; NULL if it is none."""
    return value.sql if value.kind == "number" else f"TRY_CAST({value.sql} AS DOUBLE)"


def number_sql(node: FieldExpression, joins: SpanJoins) -> FieldSql:
    """SQL of a field expression that must be a number."""
    value = value_sql(node, joins)
    if value.kind not in ("number", "attribute"):
        raise Malformed(f"{_shown(node)} is a {value.kind}; a number is needed here")
    return FieldSql("number", f"CAST({_number(value)} AS DOUBLE)", is_nano=value.is_nano)


def item_or_span_sql(node: FieldExpression, joins: SpanJoins) -> FieldSql:
    """SQL of a value of a span, or of one event or link: the alias `ITEM` has it."""
    match node:
        case FieldLiteral():
            return _literal(node)
        case SpanAttribute() | SpanIntrinsic():
            if isinstance(node, SpanIntrinsic):
                joins.has_traces |= node.name in TRACE_LEVEL
                joins.has_children |= node.name == "span:childCount"
            return field_sql(node)
        case UnaryOperation("-", operand):
            return FieldSql("number", f"(-{_operand(operand, joins).sql})")
        case FieldOperation(sign, left, right) if sign in ARITHMETIC:
            return _arithmetic(sign, _operand(left, joins), _operand(right, joins))
    return FieldSql("bool", f"({condition_sql(node, joins)})")


def _operand(node: FieldExpression, joins: SpanJoins) -> FieldSql:
    value = item_or_span_sql(node, joins)
    if value.kind not in ("number", "attribute"):
        raise Malformed(f"{_shown(node)} is a {value.kind}, with which one cannot calculate")
    return FieldSql("number", f"CAST({_number(value)} AS DOUBLE)", is_nano=value.is_nano)


def _arithmetic(sign: str, left: FieldSql, right: FieldSql) -> FieldSql:
    sql = f"({left.sql} {sign} {right.sql})"
    if sign == "^":
        sql = f"power({left.sql}, {right.sql})"
    elif sign in ("/", "%"):
        sql = f"({left.sql} {sign} nullif({right.sql}, 0))"
    return FieldSql("number", sql, is_nano=left.is_nano or right.is_nano)


def _literal(literal: FieldLiteral) -> FieldSql:
    value = literal.value
    match literal.kind:
        case "number" | "duration":
            assert isinstance(value, int | float)
            if not math.isfinite(value) or (isinstance(value, int) and abs(value) >= 2**63):
                raise Malformed(f"{value} is too large; use a smaller number")
            return FieldSql(
                "number", repr(value), isinstance(value, int), literal.kind == "duration"
            )
        case "bool":
            return FieldSql("bool", "TRUE" if value else "FALSE")
        case "nil":
            return FieldSql("nil", "NULL")
        case kind:
            return FieldSql(kind, text(str(value)))


def _shown(node: FieldExpression) -> str:
    """Return a field expression as one would write it, for errors."""
    match node:
        case FieldLiteral("text", value):
            return f'"{value}"'[:100]
        case FieldLiteral("nil"):
            return "nil"
        case FieldLiteral(_, value):
            return str(value).lower()
        case UnaryOperation(sign, operand):
            return f"{sign}{_shown(operand)}"
        case FieldOperation(sign, left, right):
            return f"{_shown(left)} {sign} {_shown(right)}"
        case _:
            return str(node)[:100]
