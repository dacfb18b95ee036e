"""Runs a pipeline over the spans of one trace: structural operators, aggregates, groups.

A spanset is a list of spans, by their index in the trace, in order of time. A stage takes spansets
and returns those that are left; the first one takes all spans of the trace.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from frazil.languages.traceql.nodes import (
    CoalesceStage,
    FieldExpression,
    FieldLiteral,
    GroupStage,
    PipelineStage,
    ScalarExpression,
    ScalarFilter,
    ScalarOperation,
    SelectStage,
    SpansetAggregate,
    SpansetExpression,
    SpansetFilter,
    SpansetPipeline,
    StructuralJoin,
    StructuralSign,
)
from frazil.query import parents_of

SpansetValue = str | float | None
COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPPOSITE: Mapping[StructuralSign, StructuralSign] = {
    ">": "<",
    ">>": "<<",
    "<": ">",
    "<<": ">>",
    "~": "~",
}


@dataclass(frozen=True, slots=True)
class Spanset:
    """Spans of one trace, with the values that stages have computed for them."""

    spans: tuple[int, ...]
    values: tuple[tuple[str, SpansetValue], ...] = ()


@dataclass(frozen=True, kw_only=True)
class TraceSpans:
    """The spans of one trace, in columns."""

    ids: Sequence[str]
    parent_ids: Sequence[str | None]
    matches: Mapping[SpansetFilter, Sequence[bool]]
    values: Mapping[FieldExpression, Sequence[str | None]] = field(default_factory=dict)
    numbers: Mapping[FieldExpression, Sequence[float | None]] = field(default_factory=dict)

    @cached_property
    def parents(self) -> list[int | None]:
        """Index of each parent; None for roots."""
        return parents_of(self.ids, self.parent_ids)


def spansets_of(trace: TraceSpans, pipeline: SpansetPipeline) -> list[Spanset]:
    """Return the spansets that a pipeline finds in a trace."""
    spansets = [Spanset(tuple(range(len(trace.ids))))]
    for stage in pipeline.stages:
        spansets = _run(trace, stage, spansets)
    return spansets


def _run(trace: TraceSpans, stage: PipelineStage, spansets: list[Spanset]) -> list[Spanset]:
    match stage:
        case SpansetPipeline(stages):
            for each in stages:
                spansets = _run(trace, each, spansets)
            return spansets
        case GroupStage():
            return [part for spanset in spansets for part in _grouped(trace, stage, spanset)]
        case ScalarFilter():
            return [kept for each in spansets for kept in _filtered(trace, stage, each)]
        case CoalesceStage():
            spans = sorted({span for spanset in spansets for span in spanset.spans})
            return [Spanset(tuple(spans))] if spans else []
        case SelectStage():
            return spansets
    found = (replace(each, spans=_found(trace, stage, each)) for each in spansets)
    return [each for each in found if each.spans]


def _found(trace: TraceSpans, node: SpansetExpression, spanset: Spanset) -> tuple[int, ...]:
    """Return the spans of a spanset that an expression finds."""
    match node:
        case SpansetFilter():
            is_match = trace.matches[node]
            return tuple(span for span in spanset.spans if is_match[span])
        case SpansetPipeline():
            parts = _run(trace, node, [spanset])
            return tuple(sorted({span for part in parts for span in part.spans}))
    left = _found(trace, node.left, spanset)
    right = _found(trace, node.right, spanset)
    if isinstance(node, StructuralJoin):
        return _structural(trace, node, left, right)
    if node.sign == "&&" and not (left and right):
        return ()
    return tuple(sorted({*left, *right}))


def _structural(
    trace: TraceSpans, node: StructuralJoin, left: tuple[int, ...], right: tuple[int, ...]
) -> tuple[int, ...]:
    related = _related(trace.parents, node.sign, left, right)
    if node.is_negated:
        return tuple(span for span in right if span not in related)
    if node.has_both:
        related |= _related(trace.parents, _OPPOSITE[node.sign], sorted(related), left)
    return tuple(sorted(related))


def _related(
    parents: Sequence[int | None],
    sign: StructuralSign,
    left: Sequence[int],
    right: Sequence[int],
) -> set[int]:
    """Return the spans of `right` that are children, descendants, parents, ancestors or siblings
    of spans of `left`."""
    if sign == ">":
        of_left = set(left)
        return {span for span in right if parents[span] in of_left}
    if sign == "<":
        return {parents[span] for span in left} & set(right)  # type: ignore[return-value]  # no None
    if sign == ">>":
        return _descendants(parents, set(left)) & set(right)
    if sign == "<<":
        return _ancestors(parents, left) & set(right)
    counts = Counter(parents[span] for span in left if parents[span] is not None)
    is_left = set(left)
    return {span for span in right if counts[parents[span]] > (span in is_left)}


def _ancestors(parents: Sequence[int | None], spans: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for span in spans:
        parent = parents[span]
        while parent is not None and parent not in found:
            found.add(parent)
            parent = parents[parent]
    return found


def _descendants(parents: Sequence[int | None], spans: set[int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for span, parent in enumerate(parents):
        if parent is not None:
            children.setdefault(parent, []).append(span)
    found: set[int] = set()
    waiting = list(spans)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def _grouped(trace: TraceSpans, stage: GroupStage, spanset: Spanset) -> list[Spanset]:
    columns = [trace.values[expression] for expression in stage.fields]
    groups: dict[tuple[str | None, ...], list[int]] = {}
    for span in spanset.spans:
        groups.setdefault(tuple(column[span] for column in columns), []).append(span)
    names = [f"by({written})" for written in stage.written]
    return [
        Spanset(tuple(spans), (*spanset.values, *zip(names, key, strict=True)))
        for key, spans in groups.items()
    ]


def _filtered(trace: TraceSpans, stage: ScalarFilter, spanset: Spanset) -> list[Spanset]:
    values: dict[str, SpansetValue] = {}
    left = _number(trace, stage.left, spanset, values)
    right = _number(trace, stage.right, spanset, values)
    if left is None or right is None or not COMPARE[stage.sign](left, right):
        return []
    return [replace(spanset, values=(*spanset.values, *values.items()))]


def _number(
    trace: TraceSpans,
    scalar: ScalarExpression,
    spanset: Spanset,
    values: dict[str, SpansetValue],
) -> float | None:
    """Return the number of a spanset, and note those of aggregates; None if there is none."""
    match scalar:
        case FieldLiteral(_, value):
            assert isinstance(value, int | float)
            return value
        case SpansetAggregate():
            number = _aggregate(trace, scalar, spanset)
            values[scalar.written] = number
            return number
        case ScalarOperation(sign, left, right):
            first = _number(trace, left, spanset, values)
            second = _number(trace, right, spanset, values)
            return None if first is None or second is None else _calculate(sign, first, second)


def _aggregate(trace: TraceSpans, aggregate: SpansetAggregate, spanset: Spanset) -> float | None:
    if aggregate.field is None:
        return len(spanset.spans)
    column = trace.numbers[aggregate.field]
    numbers = [number for span in spanset.spans if (number := column[span]) is not None]
    if not numbers:
        return None
    match aggregate.function:
        case "avg":
            return math.fsum(numbers) / len(numbers)
        case "sum":
            return math.fsum(numbers)
        case function:
            return min(numbers) if function == "min" else max(numbers)


def _calculate(sign: str, left: float, right: float) -> float | None:
    """Return the result of an operation; None if there is none, as for a division by zero."""
    try:
        match sign:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left / right
            case "%":
                return math.fmod(left, right)
            case _:
                return math.pow(left, right)
    except (ArithmeticError, ValueError):
        return None
