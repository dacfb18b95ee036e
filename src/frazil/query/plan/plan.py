"""QueryPlan: what the engine's plan of a query tells before it runs.

Which tables it scans, what each scan demands of its rows, which columns it reads; whether it asks
for the newest rows only, or only counts rows; whether it may run in this process.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from frazil.query.plan.count_rewrite import CountQuery, tally_of
from frazil.query.plan.isolation import reason_to_run_apart
from frazil.query.plan.predicates import (
    ANYTHING,
    AS_TIME,
    Conditions,
    both,
    conditions_of,
    either_of,
)

_SCAN = re.compile(r"^\s*TableScan: (?P<table>\S+)", re.MULTILINE)
_HOME = ("", "public.", "datafusion.public.")
"""How a table of ours may be written."""


class TopN(msgspec.Struct, frozen=True, kw_only=True):
    """The query wants the first rows by `time` of one table, and nothing else."""

    table: str
    is_descending: bool
    row_count: int
    """How many rows it has, if there are enough."""
    time_column: int | None
    """Where `time` stands in the result, if it is there."""


class TableScans(msgspec.Struct, frozen=True, kw_only=True):
    """What all scans of one table want, together."""

    conditions: Conditions
    """What a row must fulfil to be wanted by any of them."""
    columns: tuple[str, ...] | None
    """The columns that are read; None when that is not known."""


class QueryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a query before it runs."""

    scans: dict[str, TableScans]
    newest: TopN | None
    tally: CountQuery | None
    """If it only counts rows that are much alike."""
    apart_reason: str | None
    """Why it may not run in this process; None when it may."""
    is_explain: bool


def plan_of(logical: Any, tables: Mapping[str, Any]) -> QueryPlan:
    """Read an optimised plan of the engine. `tables` are the names that are ours."""
    text = logical.display_indent()
    is_explain = text.startswith(("Explain", "Analyze"))
    found: list[tuple[str, Conditions, tuple[str, ...]]] = []
    _visit(logical, ANYTHING, lambda *scan: found.append(scan))
    return QueryPlan(
        scans=_scans(found, _scan_counts(text, tables)),
        newest=_newest_of(logical.inputs()[0] if is_explain else logical),
        tally=tally_of(logical.inputs()[0] if is_explain else logical),
        apart_reason=reason_to_run_apart(text),
        is_explain=is_explain,
    )


def _scan_counts(text: str, tables: Mapping[str, Any]) -> Counter[str]:
    """How often the plan scans each table, by its own account, subqueries included."""
    names = {prefix + table: table for table in tables for prefix in _HOME}
    scanned = (found["table"] for found in _SCAN.finditer(text))
    return Counter(names[name] for name in scanned if name in names)


def _scans(
    found: list[tuple[str, Conditions, tuple[str, ...]]], counts: Counter[str]
) -> dict[str, TableScans]:
    """Join the scans of each table. Where not all of them were seen, nothing is known."""
    scans = {}
    for table, count in counts.items():
        seen = [scan for scan in found if scan[0] == table]
        if len(seen) != count:
            scans[table] = TableScans(conditions=ANYTHING, columns=None)
            continue
        columns = dict.fromkeys(column for _, _, columns in seen for column in columns)
        scans[table] = TableScans(
            conditions=either_of(conditions for _, conditions, _ in seen), columns=tuple(columns)
        )
    return scans


def _visit(plan: Any, wanted: Conditions, found: Callable[..., None]) -> None:
    """Walk down. `wanted` is what filters right above demand, in the names of this node's output;
    it passes nodes that leave rows and names as they are, and ends at all others."""
    node = plan.to_variant()
    kind = type(node).__name__
    if kind == "TableScan":
        for expression in node.filters():
            wanted = both(wanted, conditions_of(expression))
        found(node.fqn()[2], wanted, tuple(name for _, name in node.projection()))
        return
    below = ANYTHING
    if kind == "Filter":
        below = both(wanted, conditions_of(node.predicate()))
    elif kind == "SubqueryAlias":
        below = wanted
    elif kind == "Projection":
        below = _through(node.projections(), wanted)
    for child in plan.inputs():
        _visit(child, below, found)


def _through(projections: Any, wanted: Conditions) -> Conditions:
    """Conditions on the output of a projection, as conditions on its input."""
    passed = {}
    for name, condition in wanted.items():
        column, cast, _ = name.partition(AS_TIME)
        source = dict(_passed_on(projections)).get(column)
        if source is not None:
            passed[source + cast] = condition
        elif not column:
            passed[name] = condition
    return passed


def _passed_on(projections: Any) -> list[tuple[str, str | None]]:
    """Each output name of a projection, with the input column that it only passes on. A name that
    is there twice means nothing."""
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


def _newest_of(plan: Any) -> TopN | None:
    """The shape `SELECT ... FROM table WHERE ... ORDER BY time LIMIT n`, or None."""
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
    """Output columns of a chain of nodes that ends in a scan, each with the column of the table
    that it only passes on."""
    columns: list[tuple[str, str | None]] = [(name, name) for _, name in nodes[-1].projection()]
    for node in reversed(nodes[:-1]):
        if type(node).__name__ == "Projection":
            known = dict(columns)
            columns = [
                (name, None if source is None else known.get(source))
                for name, source in _passed_on(node.projections())
            ]
    return columns
