"""Facets: the most frequent values of columns and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frazil.model.arrow import LOGS, SPANS
from frazil.query.search.filters import Ask, bounded, column, where
from frazil.query.search.severity import COMPUTED
from frazil.query.search.to_sql import ALIASES

LIMIT_MAX = 1000
SCHEMAS = {"logs": LOGS, "spans": SPANS}
EXPRESSIONS: Mapping[str, Mapping[str, str]] = {
    "logs": {**COMPUTED, "level": COMPUTED["severity"], **ALIASES["logs"]},
    "spans": {"status": "status_code", **ALIASES["spans"]},
}
"""Names of the search box that are not columns -> SQL."""


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
    """Count the most frequent values of each field among matching rows."""
    matching = where(conditions)
    facets = []
    total = None
    for name in names:
        value = column(name, SCHEMAS[table], EXPRESSIONS[table])
        rows = ask(
            f"SELECT {value} AS value, count(*) AS count "
            f"FROM {table} {matching} GROUP BY 1 ORDER BY 2 DESC, 1 "
            f"LIMIT {bounded(limit, 'limit', LIMIT_MAX)}"
        ).to_pylist()
        values = tuple((row["value"], row["count"]) for row in rows)
        facets.append(Facet(name=name, values=values))
        if len(values) < limit:  # all values are listed, so their counts add up to the total
            total = sum(count for _, count in values)
    if total is None:
        total = ask(f"SELECT count(*) AS count FROM {table} {matching}")["count"][0].as_py()
    return FacetsAnswer(total=total, facets=tuple(facets))
