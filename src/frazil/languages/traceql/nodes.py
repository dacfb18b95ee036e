"""What a TraceQL query consists of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

LiteralKind = Literal["number", "duration", "text", "bool", "status", "kind", "nil"]
Scope = Literal["", "span", "resource", "event", "link", "instrumentation"]
StructuralSign = Literal[">", ">>", "<", "<<", "~"]


@dataclass(frozen=True, slots=True)
class FieldLiteral:
    """A constant. Durations are in nanoseconds; the name of a status or kind is in upper case."""

    kind: LiteralKind
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class SpanAttribute:
    """An attribute. Without a scope: of the span, else of its resource."""

    scope: Scope
    key: str

    def __str__(self) -> str:
        return f"{self.scope}.{self.key}"


@dataclass(frozen=True, slots=True)
class SpanIntrinsic:
    """What every span has, by its name with a scope."""

    name: str
    written: str

    def __str__(self) -> str:
        return self.written


@dataclass(frozen=True, slots=True)
class UnaryOperation:
    sign: Literal["-", "!"]
    operand: FieldExpression


@dataclass(frozen=True, slots=True)
class FieldOperation:
    """Arithmetic, a comparison, && or ||."""

    sign: str
    left: FieldExpression
    right: FieldExpression


NamedValue = SpanAttribute | SpanIntrinsic
FieldExpression = FieldLiteral | NamedValue | UnaryOperation | FieldOperation


@dataclass(frozen=True, slots=True)
class SpansetFilter:
    """`{ … }`; None matches every span."""

    condition: FieldExpression | None


@dataclass(frozen=True, slots=True)
class SpansetJoin:
    """&& and ||: the spans of both sides."""

    sign: Literal["&&", "||"]
    left: SpansetExpression
    right: SpansetExpression


@dataclass(frozen=True, slots=True)
class StructuralJoin:
    """Spans of the right side by where they are from spans of the left side."""

    sign: StructuralSign
    left: SpansetExpression
    right: SpansetExpression
    is_negated: bool = False
    has_both: bool = False
    """Return the spans of the left side, too."""


@dataclass(frozen=True, slots=True)
class GroupStage:
    """by(…): a spanset for each value."""

    fields: tuple[FieldExpression, ...]
    written: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SelectStage:
    """select(…): values that the result shows."""

    fields: tuple[NamedValue, ...]


@dataclass(frozen=True, slots=True)
class CoalesceStage:
    """coalesce(): one spanset again."""


@dataclass(frozen=True, slots=True)
class SpansetAggregate:
    """A number for each spanset; `field` is None for count()."""

    function: Literal["count", "avg", "min", "max", "sum"]
    field: FieldExpression | None
    written: str


@dataclass(frozen=True, slots=True)
class ScalarOperation:
    sign: str
    left: ScalarExpression
    right: ScalarExpression


ScalarExpression = SpansetAggregate | ScalarOperation | FieldLiteral


@dataclass(frozen=True, slots=True)
class ScalarFilter:
    """Keeps the spansets for which a comparison holds."""

    sign: str
    left: ScalarExpression
    right: ScalarExpression


@dataclass(frozen=True, slots=True)
class SpansetPipeline:
    """Stages from left to right; the first one takes all spans of a trace."""

    stages: tuple[PipelineStage, ...]


SpansetExpression = SpansetFilter | SpansetJoin | StructuralJoin | SpansetPipeline
PipelineStage = SpansetExpression | GroupStage | SelectStage | CoalesceStage | ScalarFilter


@dataclass(frozen=True, slots=True)
class MetricsStage:
    """A value for each step and group."""

    function: str
    field: FieldExpression | None = None
    quantiles: tuple[float, ...] = ()
    by: tuple[FieldExpression, ...] = ()
    written: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CompareStage:
    """compare(…): the selected spans beside all others, by their most frequent values."""

    selection: SpansetFilter
    top: int
    begin_nano: int | None
    end_nano: int | None


@dataclass(frozen=True, slots=True)
class RankStage:
    """topk(n) or bottomk(n): the largest or smallest series of each step."""

    is_top: bool
    count: int


@dataclass(frozen=True, slots=True)
class SampleFilter:
    """Keeps the samples for which a comparison holds."""

    sign: str
    number: float


@dataclass(frozen=True, slots=True)
class TraceqlQuery:
    """A whole query. Without `metrics` it finds traces."""

    pipeline: SpansetPipeline
    metrics: MetricsStage | CompareStage | None = None
    after: tuple[RankStage | SampleFilter, ...] = ()


def spans_with(conditions: Iterable[FieldExpression]) -> SpansetPipeline:
    """Return a pipeline that finds the spans that meet all conditions."""
    joined: FieldExpression | None = None
    for condition in conditions:
        joined = condition if joined is None else FieldOperation("&&", joined, condition)
    return SpansetPipeline((SpansetFilter(joined),))


def filters_in(node: PipelineStage) -> Iterator[SpansetFilter]:
    """Yield the filters of a stage, from left to right."""
    if isinstance(node, SpansetFilter):
        yield node
    elif isinstance(node, SpansetJoin | StructuralJoin):
        yield from filters_in(node.left)
        yield from filters_in(node.right)
    elif isinstance(node, SpansetPipeline):
        for stage in node.stages:
            yield from filters_in(stage)


def named_values_in(node: FieldExpression | None) -> Iterator[NamedValue]:
    """Yield the attributes and intrinsics of a field expression."""
    if isinstance(node, SpanAttribute | SpanIntrinsic):
        yield node
    elif isinstance(node, UnaryOperation):
        yield from named_values_in(node.operand)
    elif isinstance(node, FieldOperation):
        yield from named_values_in(node.left)
        yield from named_values_in(node.right)
