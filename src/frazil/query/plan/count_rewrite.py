"""CountQuery: a query that only counts rows, grouped by columns that may have few distinct values.

    SELECT service_name, count(*) AS n FROM logs GROUP BY 1 ORDER BY 2 DESC
    SELECT service_name, sum(_frazil_row_count) AS n FROM logs GROUP BY 1 ORDER BY 2 DESC

are equal if each row of the second stands for `_frazil_row_count` rows of the first. DataFusion's
plan shows whether a query has this form, and whether it still has it after the rewrite.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pyarrow as pa

from frazil.query.sql.dialect import EngineText
from frazil.results import tokens

ROW_COUNT = "_frazil_row_count"
"""The column with the number of rows that a row stands for."""

_COUNTS = (["count", "(", "*", ")"], ["count", "(", "1", ")"])
_COUNT = re.compile(r"count\(Int64\(1\)\)")
_SUM = re.compile(rf"sum\((?:\w+\.)?{ROW_COUNT}\)")
_ABOVE = frozenset({"Projection", "SubqueryAlias", "Limit", "Sort", "Filter"})
_BELOW = frozenset({"Projection", "SubqueryAlias", "Filter"})
_COUNTABLE = frozenset({pa.string(), pa.int32(), pa.int64()})
_VOLATILE = ("rand(", "random(", "uuid(")
"""Functions that differ between equal rows."""


class CountQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is counted, and by which columns."""

    table: str
    columns: tuple[str, ...]
    """Columns of the table that are read."""
    groups: tuple[str, ...]
    count_count: int
    """Counts per group: mostly one, none for DISTINCT."""

    def suits(self, schema: pa.Schema) -> bool:
        """Return whether all columns are text or integers, which we can group by."""
        return all(schema.field(name).type in _COUNTABLE for name in self.columns)


def count_query_of(logical: Any, *, is_rewritten: bool = False) -> CountQuery | None:
    """Return what an optimised plan counts; None if it does anything else as well.

    `is_rewritten`: its counts must be sums of `_frazil_row_count`.
    """
    chain = [logical]
    while len(inputs := chain[-1].inputs()) == 1:
        chain.append(inputs[0])
    nodes = [link.to_variant() for link in chain]
    kinds = [type(node).__name__ for node in nodes]
    if "Aggregate" not in kinds or kinds[-1] != "TableScan":
        return None
    at = kinds.index("Aggregate")
    if not _ABOVE.issuperset(kinds[:at]) or not _BELOW.issuperset(kinds[at + 1 : -1]):
        return None
    groups = tuple(expression.schema_name() for expression in nodes[at].group_by_exprs())
    columns = [name for _, name in nodes[-1].projection() if name != ROW_COUNT]
    if not groups or not columns:
        return None
    text = logical.display_indent()
    if any(name in text for name in _VOLATILE):
        return None
    counts = [expression.schema_name() for expression in nodes[at].aggregate_exprs()]
    if not all(map((_SUM if is_rewritten else _COUNT).fullmatch, counts)):
        return None
    return CountQuery(
        table=nodes[-1].fqn()[2],
        columns=tuple(columns),
        groups=groups,
        count_count=len(counts),
    )


def sum_counts(sql: EngineText) -> EngineText | None:
    """Return the text with counts as sums of `_frazil_row_count`; None if it has that name."""
    if ROW_COUNT in sql.text.lower():
        return None
    parsed = list(tokens(sql.text))
    names = [token.name for token in parsed]
    parts, end = [], 0
    for at in range(len(parsed)):
        if names[at : at + 4] in _COUNTS:
            parts += [sql.text[end : parsed[at].begin], f"sum({ROW_COUNT})"]
            end = parsed[at + 3].end
    text = "".join(parts) + sql.text[end:]
    return EngineText(
        text=text,
        original=sql.original,
        as_ofs=sql.as_ofs,
        changes=sql.changes,
        keyed=sql.keyed,
        topics=sql.topics,
        tables=sql.tables,
    )
