"""Projection: register only the columns that a query may name.

DataFusion imports a batch column by column, which for a table of forty columns takes longer than
counting the rows of one. The plan says which columns are read; the text may name others that the
optimiser has removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa

from frazil.model.arrow import promoted_in
from frazil.query.plan.plan import TableScans
from frazil.query.plan.session import may_name_views
from frazil.query.scan.table_rows import LIVE, RowsByTable, TableRows, UnfilledRows
from frazil.results import tokens

_BEFORE_ALL = frozenset({"select", "distinct", "all", ",", ".", "("})
"""Tokens before a `*` that means all columns; elsewhere it multiplies."""
_BEFORE_FIRST = frozenset(
    {"", "(", "union", "all", "except", "intersect", "as", "explain", "analyze", "verbose"}
)
"""Tokens before a `FROM` without `SELECT`, which means all columns."""
_UNNAMED = frozenset({"table", "describe", "with"})
"""Words that may refer to columns without naming them."""


def narrow_columns(schema: pa.Schema, scans: TableScans, text: str) -> list[str]:
    """Return the columns of a table that a query needs to be planned and run, in schema order.

    These are all columns unless the text certainly refers to no other, by `*` or by position.
    """
    return _needed(schema, scans, text) or schema.names[:1]


def reads_no_column(schema: pa.Schema, scans: TableScans, text: str) -> bool:
    """Return whether a query certainly reads nothing of a table but how many rows it has."""
    return not _needed(schema, scans, text)


def _needed(schema: pa.Schema, scans: TableScans, text: str) -> list[str]:
    names: list[str] = schema.names
    if scans.columns is None or may_name_views(text) or not _names_columns(text):
        return names
    lower = text.lower()
    return [name for name in names if name in scans.columns or name in lower]


def _names_columns(text: str) -> bool:
    """Return whether the text names every column it refers to."""
    words = ["", *(token.name for token in tokens(text))]
    pairs = list(pairwise(words))
    stars = sum(star == "*" and before in _BEFORE_ALL for before, star in pairs)
    counts = sum(words[at : at + 4] == ["count", "(", "*", ")"] for at in range(len(words)))
    has_first = any(word == "from" and before in _BEFORE_FIRST for before, word in pairs)
    return stars == counts and not has_first and _UNNAMED.isdisjoint(words)


def without_values(rows: TableRows) -> TableRows:
    """Return as many rows, for a query that reads no column: no row version has to be filtered."""
    live = [
        batch.slice(0, batch.column(LIVE).true_count).select(batch.schema.names[:-1])
        for batch in rows.versions
    ]
    return replace(rows, batches=[*rows.batches, *live], versions=[])


def narrowed(rows: RowsByTable, columns: Mapping[str, Sequence[str]]) -> RowsByTable:
    """Return the same rows with these columns only."""
    return {
        table: replace(
            table_rows,
            batches=[batch.select(columns[table]) for batch in table_rows.batches],
            unfilled=[_narrowed(rows, columns[table]) for rows in table_rows.unfilled],
            versions=[batch.select([*columns[table], LIVE]) for batch in table_rows.versions],
            columns=columns[table],
        )
        for table, table_rows in rows.items()
    }


def _narrowed(rows: UnfilledRows, columns: Sequence[str]) -> UnfilledRows:
    """Return rows with these columns, but with maps in place of the columns that they lack."""
    schema = rows.batches[0].schema
    lacking = tuple(name for name in columns if name in rows.columns)
    maps = [each.map_name for each in promoted_in(schema) if each.name in lacking]
    kept = dict.fromkeys([*(name for name in columns if name not in lacking), *maps])
    return UnfilledRows(
        columns=lacking, batches=[batch.select(list(kept)) for batch in rows.batches]
    )
