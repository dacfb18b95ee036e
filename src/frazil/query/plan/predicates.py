"""Predicates: what a filter requires of each column.

A `Predicate` is necessary, never sufficient: rows outside it certainly do not pass the filter.
Expressions that are not understood require nothing. So OR widens, AND narrows, and NOT, functions
and the rest are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pyarrow as pa

NS_PER = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
NS_PER_DAY = 86_400 * NS_PER["s"]

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


class Predicate(msgspec.Struct, frozen=True, kw_only=True):
    """Inclusive bounds of one column, or all values it may have.

    Times are in nanoseconds, whatever the unit of the column; other numbers are as they are.
    """

    low: int | None = None
    high: int | None = None
    values: frozenset[str] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no value matches."""
        if self.values is not None:
            return not self.values
        return self.low is not None and self.high is not None and self.low > self.high

    @property
    def encodable(self) -> Predicate:
        """The predicate without bounds that MessagePack cannot represent: those of years beyond
        2262 in nanoseconds. Without a bound, less is pruned."""
        low = self.low if self.low is None or _MIN <= self.low <= _MAX else None
        high = self.high if self.high is None or _MIN <= self.high <= _MAX else None
        return Predicate(low=low, high=high, values=self.values)


_MIN, _MAX = -(2**63), 2**63 - 1

Conditions = dict[str, Predicate]
"""Predicates by column; a missing column may have any value."""

AS_TIME = "::"
"""Suffix of a column name: the predicate holds for the column cast to a time or a date. It is only
used for time columns; a number could be cast from any unit."""

ANYTHING: Conditions = {}
NEVER: Conditions = {"": Predicate(values=frozenset())}
"""No row passes: the column without a name has no possible value."""


def is_never(conditions: Mapping[str, Predicate]) -> bool:
    return any(condition.is_empty for condition in conditions.values())


def both(one: Conditions, other: Conditions) -> Conditions:
    """Combine with AND."""
    joined = dict(one)
    for column, condition in other.items():
        mine = joined.get(column)
        joined[column] = condition if mine is None else _narrow(mine, condition)
    return joined


def either(one: Conditions, other: Conditions) -> Conditions:
    """Combine with OR."""
    if is_never(one):
        return other
    if is_never(other):
        return one
    shared = {column: _widen(one[column], other[column]) for column in one.keys() & other.keys()}
    return {column: condition for column, condition in shared.items() if condition != Predicate()}


def either_of(many: Iterable[Conditions]) -> Conditions:
    joined = NEVER
    for conditions in many:
        joined = either(joined, conditions)
    return joined


def _narrow(one: Predicate, other: Predicate) -> Predicate:
    values = [item for item in (one.values, other.values) if item is not None]
    return Predicate(
        low=max((low for low in (one.low, other.low) if low is not None), default=None),
        high=min((high for high in (one.high, other.high) if high is not None), default=None),
        values=frozenset.intersection(*values) if values else None,
    )


def _widen(one: Predicate, other: Predicate) -> Predicate:
    return Predicate(
        low=None if one.low is None or other.low is None else min(one.low, other.low),
        high=None if one.high is None or other.high is None else max(one.high, other.high),
        values=None if one.values is None or other.values is None else one.values | other.values,
    )


def conditions_of(expression: Any) -> Conditions:
    """Return what a DataFusion filter expression requires of each column."""
    kind = expression.variant_name()
    if kind == "BinaryExpr":
        return _of_binary(expression.to_variant())
    if kind == "Between":
        return _of_between(expression.to_variant())
    if kind == "InList":
        return _of_list(expression.to_variant())
    if kind == "Literal":
        return ANYTHING if expression.python_value().as_py() else NEVER
    return ANYTHING


def _of_binary(variant: Any) -> Conditions:
    sign = variant.op()
    left, right = variant.left(), variant.right()
    if sign == "AND":
        return both(conditions_of(left), conditions_of(right))
    if sign == "OR":
        return either(conditions_of(left), conditions_of(right))
    if sign not in _FLIPPED:
        return ANYTHING
    if left.variant_name() == "Literal":
        left, right, sign = right, left, _FLIPPED[sign]
    return _of_comparison(left, sign, right)


def _of_between(variant: Any) -> Conditions:
    if variant.negated():
        return ANYTHING
    subject = variant.expr()
    return both(
        _of_comparison(subject, ">=", variant.low()), _of_comparison(subject, "<=", variant.high())
    )


def _of_list(variant: Any) -> Conditions:
    if variant.negated():
        return ANYTHING
    subject = variant.expr()
    return either_of(_of_comparison(subject, "=", value) for value in variant.list())


def _of_comparison(subject: Any, sign: str, value: Any) -> Conditions:
    """Compare a column, possibly cast to another time type, with a constant."""
    if value.variant_name() != "Literal":
        return ANYTHING
    is_cast = subject.variant_name() == "Cast"
    if is_cast:
        subject = subject.rex_call_operands()[0]
    if subject.variant_name() != "Column":
        return ANYTHING
    column = subject.to_variant().name()
    constant = value.python_value()
    if not constant.is_valid:
        return NEVER
    if pa.types.is_timestamp(constant.type) or pa.types.is_date32(constant.type):
        low, high = _time_range(constant)
        column += AS_TIME if is_cast else ""
    elif pa.types.is_integer(constant.type) and not is_cast:
        low = high = constant.as_py()
    elif _is_text(constant.type) and sign == "=" and not is_cast:
        return {column: Predicate(values=frozenset({constant.as_py()}))}
    else:
        return ANYTHING
    return {column: _bounded(sign, low, high)}


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.string_view(), pa.large_string())


def _time_range(constant: Any) -> tuple[int, int]:
    """Return the first and last nanosecond that may be cast to this time or date. A cast may round
    either way, so the range has one more unit on both sides."""
    if pa.types.is_date32(constant.type):
        day = constant.value * NS_PER_DAY
        return day - NS_PER_DAY, day + 2 * NS_PER_DAY
    unit = NS_PER[constant.type.unit]
    moment = constant.value * unit
    if unit <= NS_PER["us"]:
        return moment, moment
    return moment - unit, moment + unit


def _bounded(sign: str, low: int, high: int) -> Predicate:
    if sign == "=":
        return Predicate(low=low, high=high)
    if sign in (">", ">="):
        return Predicate(low=low)
    return Predicate(high=high)
