"""QueryPlan: what DataFusion's optimised plan says about a query before it runs.

Which tables it scans, with which predicates and columns; whether it is a top-N or a count query.

The scans are counted in the printed plan, which includes subqueries, and their predicates are read
from the plan's nodes, which do not. `check_scans` compares the count with the plan that executes,
so a scan that was missed is an error and never a wrong answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from frazil.query.plan.count_rewrite import CountQuery, count_query_of
from frazil.query.plan.parameters import parameters_of
from frazil.query.plan.predicates import (
    ANYTHING,
    AS_TIME,
    Conditions,
    both,
    conditions_of,
    either_of,
)
from frazil.query.scan.table_rows import NO_ROWS, RowsByTable

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext

_LEAF = re.compile(
    r"^\s*(?:TableScan: (?P<table>\S+)|EmptyRelation|Values|DescribeTable)", re.MULTILINE
)
_SCHEMAS = ("", "public.", "datafusion.public.")
"""Prefixes under which the plan may print a table of ours."""


class TopN(msgspec.Struct, frozen=True, kw_only=True):
    """The query is `SELECT ... FROM table WHERE ... ORDER BY time LIMIT n` over one table."""

    table: str
    is_descending: bool
    row_count: int
    """Rows of the result, if the table has enough."""
    time_column: int | None
    """Index of `time` in the result; None if it is not selected."""


class TableScans(msgspec.Struct, frozen=True, kw_only=True):
    """All scans of one table, combined."""

    count: int
    conditions: Conditions
    """Necessary for a row to pass the filters of any scan."""
    columns: tuple[str, ...] | None
    """Columns read; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryColumns:
    """What a query returns and takes."""

    columns: pa.Schema
    parameters: pa.Schema
    """By name, such as `$1`; only those whose type follows from the text."""


class QueryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a query before it runs."""

    scans: dict[str, TableScans]
    other_leaf_count: int
    """Leaves of the plan that are no scan of these tables, such as VALUES."""
    top_n: TopN | None
    count_query: CountQuery | None
    is_explain: bool
    schema: bytes
    """Schema of the result, as Arrow IPC."""
    parameters: bytes | None = None
    """Schema of the parameters whose type follows from the text, such as `$1`, as Arrow IPC."""

    @property
    def described(self) -> QueryColumns:
        parameters = pa.schema([])
        if self.parameters is not None:
            parameters = pa.ipc.read_schema(pa.py_buffer(self.parameters))
        columns = pa.ipc.read_schema(pa.py_buffer(self.schema))
        return QueryColumns(columns=columns, parameters=parameters)

    def leaf_count(self, rows: RowsByTable) -> int:
        """Return how many leaves the plan may have when it runs over `rows`."""
        scans = (s.count * rows.get(table, NO_ROWS).scan_count for table, s in self.scans.items())
        return self.other_leaf_count + sum(scans)


def plan_of(session: SessionContext, frame: DataFrame, tables: Iterable[str]) -> QueryPlan:
    """Optimise a query and read its plan. `tables` are the names of our tables."""
    logical = frame.optimized_logical_plan()
    # A query that was not optimised yet has other types, if values of several types meet.
    schema = session.create_dataframe_from_logical_plan(logical).schema()
    text = logical.display_indent()
    is_explain = text.startswith(("Explain", "Analyze"))
    query = logical.inputs()[0] if is_explain else logical
    visited: list[tuple[str, Conditions, tuple[str, ...]]] = []
    _visit(logical, ANYTHING, lambda *scan: visited.append(scan))
    names = {prefix + table: table for table in tables for prefix in _SCHEMAS}
    leaves = Counter(names.get(leaf["table"]) for leaf in _LEAF.finditer(text))
    other_leaf_count = leaves.pop(None, 0)
    return QueryPlan(
        scans=_scans(visited, leaves),  # type: ignore[arg-type]
        other_leaf_count=other_leaf_count,
        top_n=_top_n_of(query),
        count_query=count_query_of(query),
        is_explain=is_explain,
        schema=schema.serialize().to_pybytes(),
        parameters=parameters_of(frame.logical_plan()) if "$" in text else None,
    )


def check_scans(frame: DataFrame, leaf_count_max: int) -> None:
    """Raise `AssertionError` if an executing query has more leaves than were planned for: a scan
    that was not counted would read pruned rows, or none."""
    leaf_count, nodes = 0, [frame.execution_plan()]
    while nodes:
        children = nodes.pop().children()
        leaf_count += not children
        nodes += children
    if leaf_count > leaf_count_max:
        raise AssertionError(
            f"the query scans {leaf_count} inputs but was planned for {leaf_count_max}; this is a "
            "bug in Frazil's reading of DataFusion plans, please report the query"
        )


def _scans(
    visited: list[tuple[str, Conditions, tuple[str, ...]]], counts: Mapping[str, int]
) -> dict[str, TableScans]:
    """Combine the scans of each table. A table with scans that were not visited, as in subqueries,
    gets no conditions and all columns."""
    scans = {}
    for table, count in counts.items():
        seen = [scan for scan in visited if scan[0] == table]
        if len(seen) != count:
            scans[table] = TableScans(count=count, conditions=ANYTHING, columns=None)
            continue
        columns = dict.fromkeys(column for _, _, columns in seen for column in columns)
        conditions = {
            name: predicate.encodable
            for name, predicate in either_of(conditions for _, conditions, _ in seen).items()
        }
        scans[table] = TableScans(count=count, conditions=conditions, columns=tuple(columns))
    return scans


def _visit(plan: Any, conditions: Conditions, on_scan: Callable[..., None]) -> None:
    """Walk down to the scans. `conditions` are those of the filters above, in the column names of
    this node's output; they pass nodes that keep rows and names, and end at all others."""
    node = plan.to_variant()
    kind = type(node).__name__
    if kind == "TableScan":
        for expression in node.filters():
            conditions = both(conditions, conditions_of(expression))
        on_scan(node.fqn()[2], conditions, tuple(name for _, name in node.projection()))
        return
    below = ANYTHING
    if kind == "Filter":
        below = both(conditions, conditions_of(node.predicate()))
    elif kind == "SubqueryAlias":
        below = conditions
    elif kind == "Projection":
        below = _below_projection(node.projections(), conditions)
    for child in plan.inputs():
        _visit(child, below, on_scan)


def _below_projection(projections: Any, conditions: Conditions) -> Conditions:
    """Rename conditions on the output of a projection to its input columns."""
    renamed = {}
    for name, condition in conditions.items():
        column, cast, _ = name.partition(AS_TIME)
        source = dict(_renames(projections)).get(column)
        if source is not None:
            renamed[source + cast] = condition
        elif not column:
            renamed[name] = condition
    return renamed


def _renames(projections: Any) -> list[tuple[str, str | None]]:
    """Return each output name of a projection with the input column it passes through unchanged,
    or None. An ambiguous name has none."""
    names: list[tuple[str, str | None]] = []
    for expression in projections:
        inner = expression
        if expression.variant_name() == "Alias":
            inner = expression.rex_call_operands()[0]
            name = expression.to_variant().alias()
        elif expression.variant_name() == "Column":
            name = expression.to_variant().name()
        else:
            name = expression.schema_name()
        is_column = inner.variant_name() == "Column"
        names.append((name, inner.to_variant().name() if is_column else None))
    counts = Counter(name for name, _ in names)
    return [(name, source if counts[name] == 1 else None) for name, source in names]


def _top_n_of(plan: Any) -> TopN | None:
    chain = [plan]
    while len(inputs := chain[-1].inputs()) == 1:
        chain.append(inputs[0])
    nodes = [link.to_variant() for link in chain]
    kinds = [type(node).__name__ for node in nodes]
    if "Sort" not in kinds or kinds[-1] != "TableScan":
        return None
    at = kinds.index("Sort")
    if not {*kinds[:at]} <= _ABOVE_SORT or not {*kinds[at + 1 : -1]} <= _BELOW_SORT:
        return None
    skips = [node.skip() for node, kind in zip(nodes, kinds, strict=True) if kind == "Limit"]
    skip = sum(value.python_value().as_py() for value in skips if value is not None)
    fetch = nodes[at].get_fetch_val()
    if fetch is None or len(skips) > 1 or fetch <= skip:
        return None
    first = nodes[at].sort_exprs()[0]
    if first.expr().variant_name() != "Column":
        return None
    if dict(_sources(nodes[at + 1 :])).get(first.expr().to_variant().name()) != "time":
        return None
    columns = [source for _, source in _sources(nodes)]
    return TopN(
        table=nodes[-1].fqn()[2],
        is_descending=not first.ascending(),
        row_count=fetch - skip,
        time_column=columns.index("time") if "time" in columns else None,
    )


_ABOVE_SORT = {"Projection", "SubqueryAlias", "Limit"}
_BELOW_SORT = {"Projection", "SubqueryAlias", "Filter"}


def _sources(nodes: list[Any]) -> list[tuple[str, str | None]]:
    """Return the output columns of a chain that ends in a scan, each with the table column it
    passes through unchanged, or None."""
    columns: list[tuple[str, str | None]] = [(name, name) for _, name in nodes[-1].projection()]
    for node in reversed(nodes[:-1]):
        if type(node).__name__ == "Projection":
            known = dict(columns)
            columns = [
                (name, None if source is None else known.get(source))
                for name, source in _renames(node.projections())
            ]
    return columns
