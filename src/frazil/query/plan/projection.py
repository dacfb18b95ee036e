"""Handing the engine only the columns that a query may name.

Each batch is handed over column by column, which for a table of forty columns takes longer than
counting the rows of one. The plan says which columns are read; a text may also name some that the
plan has done without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa

from frazil.query.plan.plan import TableScans
from frazil.query.plan.session import may_name_views
from frazil.query.scan.table_rows import RowsByTable
from frazil.results import tokens

_BEFORE_ALL = frozenset({"select", "distinct", "all", ",", ".", "("})
"""What stands before a `*` that means all columns; elsewhere it multiplies."""
_BEFORE_FIRST = frozenset(
    {"", "(", "union", "all", "except", "intersect", "as", "explain", "analyze", "verbose"}
)
"""What stands before a `FROM` that has no `SELECT`, and means all columns."""
_UNNAMED = frozenset({"table", "describe", "with"})
"""Words behind which columns may be meant that are not named."""


def narrow_columns(schema: pa.Schema, scans: TableScans, text: str) -> list[str]:
    """The columns of a table that a query needs for being planned and run, in their order.

    All of them, unless it is certain that no other one is meant: by `*`, or by its place.
    """
    names: list[str] = schema.names
    if scans.columns is None or may_name_views(text) or not _names_columns(text):
        return names
    lower = text.lower()
    found = [name for name in names if name in scans.columns or name in lower]
    return found or names[:1]


def _names_columns(text: str) -> bool:
    """Does this text name every column that it means?"""
    words = ["", *(token.name for token in tokens(text))]
    pairs = list(pairwise(words))
    stars = sum(star == "*" and before in _BEFORE_ALL for before, star in pairs)
    counts = sum(words[at : at + 4] == ["count", "(", "*", ")"] for at in range(len(words)))
    has_first = any(word == "from" and before in _BEFORE_FIRST for before, word in pairs)
    return stars == counts and not has_first and _UNNAMED.isdisjoint(words)


def narrowed(rows: RowsByTable, columns: Mapping[str, Sequence[str]]) -> RowsByTable:
    """The same rows with these columns only."""
    return {
        table: replace(
            some,
            batches=[batch.select(columns[table]) for batch in some.batches],
            columns=columns[table],
        )
        for table, some in rows.items()
    }
