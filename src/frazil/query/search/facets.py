"""Facets: which values columns and attributes have, and how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frazil.model.arrow import LOGS, SPANS
from frazil.query.search.filters import Ask, column, where, whole
from frazil.query.search.severity import MORE
from frazil.query.search.to_sql import ALIASES

LIMIT_MAX = 1000
SCHEMAS = {"logs": LOGS, "spans": SPANS}
MADE: Mapping[str, Mapping[str, str]] = {
    "logs": {**MORE, "level": MORE["severity"], **ALIASES["logs"]},
    "spans": {"status": "status_code", **ALIASES["spans"]},
}
"""What has a name and is no column: the names of the search box, whose values are offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """A column or attribute with its most frequent values."""

    name: str
    values: tuple[tuple[str | None, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetsAnswer:
    """Most frequent values, and the total number of rows."""

    total: int
    facets: tuple[Facet, ...]


def facets_of(
    ask: Ask, table: str, names: Sequence[str], conditions: Sequence[str], *, limit: int = 10
) -> FacetsAnswer:
    """The most frequent values of each column or attribute of a table, among rows that fit."""
    fitting = where(conditions)
    facets = []
    total = None
    for name in names:
        rows = ask(
            f"SELECT {column(name, SCHEMAS[table], MADE[table])} AS value, count(*) AS count "
            f"FROM {table} {fitting} GROUP BY 1 ORDER BY 2 DESC, 1 "
            f"LIMIT {whole(limit, 'limit', LIMIT_MAX)}"
        ).to_pylist()
        values = tuple((row["value"], row["count"]) for row in rows)
        facets.append(Facet(name=name, values=values))
        if len(values) < limit:  # none is left out: together they are all rows
            total = sum(count for _, count in values)
    if total is None:
        total = ask(f"SELECT count(*) AS count FROM {table} {fitting}")["count"][0].as_py()
    return FacetsAnswer(total=total, facets=tuple(facets))
