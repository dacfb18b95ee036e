"""The syntax tree of a PromQL query. `begin` is where an expression begins in the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from frazil.languages.promql.points import LabelMatcher

At = int | Literal["start", "end"] | None
"""When a selector is evaluated: at each step, at a time in ms, or at an end of the query."""


@dataclass(frozen=True, slots=True)
class NumberLiteral:
    """A number, or a duration in seconds."""

    begin: int
    value: float


@dataclass(frozen=True, slots=True)
class TextLiteral:
    """A text in quotes."""

    begin: int
    text: str
    written: str
    """With its quotes, as in the query."""


@dataclass(frozen=True, slots=True)
class InstantSelector:
    """The latest point of each series that matches."""

    begin: int
    matchers: tuple[LabelMatcher, ...]
    offset_ms: int
    at: At


@dataclass(frozen=True, slots=True)
class RangeSelector:
    """The points of each series in a time range."""

    begin: int
    selector: InstantSelector
    range_ms: int

    @property
    def offset_ms(self) -> int:
        """How far its time range is moved into the past."""
        return self.selector.offset_ms

    @property
    def at(self) -> At:
        """When it is evaluated."""
        return self.selector.at


@dataclass(frozen=True, slots=True)
class Subquery:
    """The values of an expression at the steps of a time range."""

    begin: int
    expression: Expression
    range_ms: int
    step_ms: int | None
    offset_ms: int
    at: At


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and returns. `variadic`: how many more arguments it takes; -1, any."""

    argument_types: tuple[str, ...]
    variadic: int
    return_type: str


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function and its arguments."""

    begin: int
    name: str
    arguments: tuple[Expression, ...]
    signature: Signature


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An operator over the series of each group."""

    begin: int
    operator: str
    expression: Expression
    parameter: Expression | None
    labels: tuple[str, ...]
    is_without: bool


@dataclass(frozen=True, slots=True)
class Matching:
    """Which series of two sides belong together."""

    cardinality: Literal["one-to-one", "many-to-one", "one-to-many", "many-to-many"]
    labels: tuple[str, ...] = ()
    is_on: bool = False
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BinaryOperation:
    """An operator between two expressions."""

    begin: int
    operator: str
    left: Expression
    right: Expression
    matching: Matching
    is_bool: bool


@dataclass(frozen=True, slots=True)
class Negation:
    """Minus in front of an expression."""

    begin: int
    expression: Expression


@dataclass(frozen=True, slots=True)
class Parentheses:
    """An expression in parentheses."""

    begin: int
    expression: Expression


Expression = (
    NumberLiteral
    | TextLiteral
    | InstantSelector
    | RangeSelector
    | Subquery
    | FunctionCall
    | Aggregation
    | BinaryOperation
    | Negation
    | Parentheses
)

SCALAR_FUNCTIONS = frozenset(
    ("time", "scalar", "pi", "start", "end", "step", "range", "max_of", "min_of")
)
COMPARISONS = frozenset(("==", "!=", "<", ">", "<=", ">="))
SET_OPERATORS = frozenset(("and", "or", "unless"))


def is_scalar(expression: Expression) -> bool:
    """Whether an expression has one value per step and no labels."""
    match expression:
        case NumberLiteral():
            return True
        case FunctionCall(name=name):
            return name in SCALAR_FUNCTIONS
        case Parentheses(expression=inner) | Negation(expression=inner):
            return is_scalar(inner)
        case BinaryOperation(left=left, right=right):
            return is_scalar(left) and is_scalar(right)
    return False


def bare(expression: Expression) -> Expression:
    """Return an expression without the parentheses around it."""
    while isinstance(expression, Parentheses):
        expression = expression.expression
    return expression


def children(expression: Expression) -> Sequence[Expression]:
    """Return the expressions directly in an expression, in the order of the text."""
    match expression:
        case RangeSelector(selector=selector):
            return (selector,)
        case Subquery(expression=inner) | Negation(expression=inner):
            return (inner,)
        case Parentheses(expression=inner):
            return (inner,)
        case FunctionCall(arguments=arguments):
            return arguments
        case Aggregation(expression=inner, parameter=parameter):
            return (inner,) if parameter is None else (parameter, inner)
        case BinaryOperation(left=left, right=right):
            return (left, right)
    return ()
