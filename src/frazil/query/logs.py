"""Questions about logs: how many when, and which values occur."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frazil.errors import Malformed
from frazil.model.columns import LOGS
from frazil.query.ask import ALWAYS, MICROSECOND, Ask, Range, column, equals, text, where, whole

LIMIT_MAX = 1000
BUCKETS_MAX = 10_000
SEVERITIES = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""Each stands for four numbers, from 1 on."""


def _severity() -> str:
    cases = " ".join(
        f"WHEN severity_number BETWEEN {4 * place + 1} AND {4 * place + 4} THEN '{word}'"
        for place, word in enumerate(SEVERITIES)
    )
    return f"CASE {cases} ELSE 'UNSPECIFIED' END"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """How many log records of one severity lie in one bucket of time."""

    time: datetime.datetime
    severity: str
    count: int


def histogram(
    ask: Ask,
    bucket: datetime.timedelta,
    *,
    within: Range = ALWAYS,
    filters: Mapping[str, str] | None = None,
    search: str | None = None,
) -> list[Bar]:
    """Log records over time, by severity. Buckets begin at whole multiples since 1970."""
    micros = bucket // MICROSECOND
    if micros < 1:
        raise Malformed(f"a bucket of {bucket} is too short; use at least a microsecond")
    rows = ask(
        f"SELECT date_bin(INTERVAL '{micros} microseconds', time) AS time, "
        f"{_severity()} AS severity, count(*) AS count "
        f"FROM logs {where(_conditions(within, filters, search))} GROUP BY 1, 2 ORDER BY 1, 2 "
        f"LIMIT {BUCKETS_MAX}"
    )
    return [Bar(**row) for row in rows.to_pylist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """A column or an attribute, with its most frequent values."""

    name: str
    values: tuple[tuple[str | None, int], ...]


def facets(
    ask: Ask,
    names: Sequence[str],
    *,
    within: Range = ALWAYS,
    filters: Mapping[str, str] | None = None,
    search: str | None = None,
    limit: int = 10,
) -> list[Facet]:
    """The most frequent values of each column or attribute, among the records that fit."""
    conditions = where(_conditions(within, filters, search))
    found = []
    for name in names:
        rows = ask(
            f"SELECT CAST({column(name, LOGS.names)} AS VARCHAR) AS value, count(*) AS count "
            f"FROM logs {conditions} GROUP BY 1 ORDER BY 2 DESC, 1 "
            f"LIMIT {whole(limit, 'limit', LIMIT_MAX)}"
        ).to_pylist()
        values = tuple((row["value"], row["count"]) for row in rows)
        found.append(Facet(name=name, values=values))
    return found


def _conditions(within: Range, filters: Mapping[str, str] | None, search: str | None) -> list[str]:
    conditions = within.conditions() + equals(filters or {}, LOGS.names)
    if search is not None:
        conditions.append(f"matches(body, {text(search)})")
    return conditions
