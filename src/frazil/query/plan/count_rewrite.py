"""CountQuery: a query that only counts rows, by columns that may have few different values.

    SELECT service_name, count(*) AS n FROM logs GROUP BY 1 ORDER BY 2 DESC
    SELECT service_name, sum(_frazil_row_count) AS n FROM logs GROUP BY 1 ORDER BY 2 DESC

are the same when each row of the second says how many of the first it stands for. Whether a query
is such a one, and whether it still is after it was written differently, the engine's plan tells.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pyarrow as pa

from frazil.query.sql.dialect import EngineText
from frazil.results import tokens

ROW_COUNT = "_frazil_row_count"
"""The column that says how many rows a row stands for."""

_COUNTS = (["count", "(", "*", ")"], ["count", "(", "1", ")"])
_COUNTED = re.compile(r"count\(Int64\(1\)\)")
_ADDED_UP = re.compile(rf"sum\((?:\w+\.)?{ROW_COUNT}\)")
_ABOVE = frozenset({"Projection", "SubqueryAlias", "Limit", "Sort", "Filter"})
_BELOW = frozenset({"Projection", "SubqueryAlias", "Filter"})
_COUNTABLE = frozenset({pa.string(), pa.int32(), pa.int64()})
_FICKLE = ("rand(", "random(", "uuid(")
"""Functions that say something else of each row, however alike they are."""


class CountQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is counted, and by what."""

    table: str
    columns: tuple[str, ...]
    """Those of the table that are read."""
    groups: tuple[str, ...]
    count_count: int
    """How many counts there are of each group: none, or one in most cases."""

    def suits(self, schema: pa.Schema) -> bool:
        """Are all columns of texts or whole numbers, by which rows can be told apart?"""
        kinds = [schema.field(name).type for name in self.columns]
        return all(kind in _COUNTABLE for kind in kinds)


def tally_of(logical: Any, *, is_added_up: bool = False) -> CountQuery | None:
    """What an optimised plan of the engine counts; None when it does anything else as well.

    `is_added_up`: its counts are written as sums, all of them.
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
    if any(name in text for name in _FICKLE):
        return None
    counts = [expression.schema_name() for expression in nodes[at].aggregate_exprs()]
    if not all(map((_ADDED_UP if is_added_up else _COUNTED).fullmatch, counts)):
        return None
    return CountQuery(
        table=nodes[-1].fqn()[2],
        columns=tuple(columns),
        groups=groups,
        count_count=len(counts),
    )


def added_up(spelled: EngineText) -> EngineText | None:
    """The text with every count as a sum of how many rows each row stands for."""
    if ROW_COUNT in spelled.text.lower():
        return None
    found = list(tokens(spelled.text))
    names = [token.name for token in found]
    parts, end = [], 0
    for at in range(len(found)):
        if names[at : at + 4] in _COUNTS:
            parts += [spelled.text[end : found[at].begin], f"sum({ROW_COUNT})"]
            end = found[at + 3].end
    text = "".join(parts) + spelled.text[end:]
    return EngineText(
        text=text, written=spelled.written, as_ofs=spelled.as_ofs, topics=spelled.topics
    )
