"""Reads spans with the conditions of a query that each of them meets."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from frazil.languages.traceql.conditions import SpanJoins, condition_sql, number_sql, value_sql
from frazil.languages.traceql.fields import FieldSql
from frazil.languages.traceql.nodes import (
    FieldExpression,
    GroupStage,
    PipelineStage,
    ScalarExpression,
    ScalarFilter,
    ScalarOperation,
    SelectStage,
    SpansetAggregate,
    SpansetFilter,
    SpansetJoin,
    SpansetPipeline,
    StructuralJoin,
    filters_in,
)
from frazil.query import Ask, TimeRange
from frazil.query import sql_texts as texts
from frazil.query import sql_where as where

TRACE_SPREAD = datetime.timedelta(hours=1)
"""How far other spans of a trace may lie outside of the time range of a search."""


def widened(within: TimeRange) -> TimeRange:
    """Return the time range in which whole traces are read."""
    since = None if within.since is None else within.since - TRACE_SPREAD
    until = None if within.until is None else within.until + TRACE_SPREAD
    return TimeRange(since=since, until=until)


@dataclass(slots=True)
class SpanReader:
    """The SQL of a pipeline: a column for each filter and each value that it needs."""

    pipeline: SpansetPipeline
    within: TimeRange
    joins: SpanJoins = field(default_factory=SpanJoins)
    conditions: dict[SpansetFilter, str] = field(default_factory=dict)
    values: dict[FieldExpression, FieldSql] = field(default_factory=dict)
    numbers: dict[FieldExpression, FieldSql] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in filters_in(self.pipeline):
            self.conditions.setdefault(each, self.condition(each))
        for stage in stages_in(self.pipeline):
            if isinstance(stage, GroupStage):
                for expression in stage.fields:
                    self.value(expression)
            elif isinstance(stage, ScalarFilter):
                self._add_numbers(stage.left)
                self._add_numbers(stage.right)

    def condition(self, each: SpansetFilter) -> str:
        """SQL of a filter."""
        return "TRUE" if each.condition is None else condition_sql(each.condition, self.joins)

    def value(self, expression: FieldExpression) -> FieldSql:
        """SQL of a value by which spans are grouped; rows have it as well."""
        if expression not in self.values:
            self.values[expression] = value_sql(expression, self.joins)
        return self.values[expression]

    def number(self, expression: FieldExpression) -> FieldSql:
        """SQL of a number that is aggregated; rows have it as well."""
        if expression not in self.numbers:
            self.numbers[expression] = number_sql(expression, self.joins)
        return self.numbers[expression]

    def _add_numbers(self, scalar: ScalarExpression) -> None:
        if isinstance(scalar, ScalarOperation):
            self._add_numbers(scalar.left)
            self._add_numbers(scalar.right)
        elif isinstance(scalar, SpansetAggregate) and scalar.field is not None:
            self.number(scalar.field)

    def source(self, trace_ids: Sequence[str] = ()) -> str:
        """SQL for FROM: spans, with what the conditions need."""
        return self.joins.source([*_of_traces(trace_ids), *widened(self.within).conditions()])

    def plain_conditions(self) -> list[str] | None:
        """Return conditions of the spans that a pipeline finds, if each row decides for itself."""
        if not all(
            isinstance(stage, SpansetFilter | SelectStage) for stage in stages_in(self.pipeline)
        ):
            return None
        return [*self.within.conditions(), *self.conditions.values()]

    def candidates_sql(self, limit: int) -> str:
        """SQL of the traces that may match, the newest first."""
        plain = self.plain_conditions()
        if plain is not None and len(self.conditions) == 1:
            conditions, having = plain, ""
        else:
            any_filter = " OR ".join(f"({sql})" for sql in self.conditions.values())
            conditions = [*self.within.conditions(), f"({any_filter})"]
            having = f"HAVING {self._possible(self.pipeline)} "
        return (
            f"SELECT trace_id, max(time) AS newest FROM {self.source()} {where(conditions)} "
            f"GROUP BY trace_id {having}ORDER BY newest DESC, trace_id LIMIT {limit}"
        )

    def _possible(self, node: PipelineStage) -> str:
        """SQL, over the spans of a trace, that is true if a stage may find spans."""
        match node:
            case SpansetFilter():
                return f"max(CASE WHEN {self.conditions[node]} THEN 1 ELSE 0 END) = 1"
            case SpansetJoin("||", left, right):
                return f"({self._possible(left)} OR {self._possible(right)})"
            case StructuralJoin(_, _, right, is_negated=True):
                return self._possible(right)
            case SpansetJoin(_, left, right) | StructuralJoin(_, left, right):
                return f"({self._possible(left)} AND {self._possible(right)})"
            case SpansetPipeline(stages):
                return " AND ".join(map(self._possible, stages))
        return "TRUE"

    def rows(self, ask: Ask, trace_ids: Sequence[str]) -> pa.Table:
        """Read the spans of these traces by trace and time. Without structural operators only
        spans that meet a condition."""
        in_range = " AND ".join(self.within.conditions()) or "TRUE"
        columns = ["trace_id", "span_id", "parent_span_id", "time_unix_nano", "duration_nano"]
        columns += [
            f"({in_range} AND {sql}) IS TRUE AS {filter_column(i)}"
            for i, sql in enumerate(self.conditions.values())
        ]
        columns += [
            f"{group_sql(value)} AS {value_column(i)}"
            for i, value in enumerate(self.values.values())
        ]
        columns += [
            f"{value.sql} AS {number_column(i)}" for i, value in enumerate(self.numbers.values())
        ]
        conditions = [*_of_traces(trace_ids), *widened(self.within).conditions()]
        if not has_structure(self.pipeline):
            matching = " OR ".join(f"({sql})" for sql in self.conditions.values())
            conditions.append(f"({matching})")
        return ask(
            f"SELECT {', '.join(columns)} FROM {self.source(trace_ids)} {where(conditions)} "
            "ORDER BY trace_id, time_unix_nano, span_id"
        )


def filter_column(index: int) -> str:
    return f"is_match_{index}"


def value_column(index: int) -> str:
    return f"group_value_{index}"


def number_column(index: int) -> str:
    return f"number_{index}"


def group_sql(value: FieldSql) -> str:
    """SQL of a value as text, as TraceQL writes it."""
    if value.kind in ("status", "kind"):
        return f"lower({value.sql})"
    return value.sql if value.kind in ("text", "attribute") else f"CAST({value.sql} AS VARCHAR)"


def _of_traces(trace_ids: Sequence[str]) -> list[str]:
    return [f"trace_id IN ({texts(trace_ids)})"] if trace_ids else []


def has_structure(node: PipelineStage) -> bool:
    """Return whether a pipeline needs to know the parents of spans."""
    if isinstance(node, StructuralJoin):
        return True
    if isinstance(node, SpansetJoin):
        return has_structure(node.left) or has_structure(node.right)
    return isinstance(node, SpansetPipeline) and any(map(has_structure, node.stages))


def stages_in(pipeline: SpansetPipeline) -> list[PipelineStage]:
    """Return the stages of a pipeline and of those inside."""
    found: list[PipelineStage] = []
    waiting: list[PipelineStage] = [*pipeline.stages]
    while waiting:
        stage = waiting.pop(0)
        if isinstance(stage, SpansetPipeline):
            waiting = [*stage.stages, *waiting]
            continue
        if isinstance(stage, SpansetJoin | StructuralJoin):
            waiting = [stage.left, stage.right, *waiting]
        found.append(stage)
    return found
