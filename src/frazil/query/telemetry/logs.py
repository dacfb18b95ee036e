"""Log records: lists, histogram, facets, neighbors."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, Unpack

from frazil.errors import TooLarge
from frazil.model import NUMBERS_PER_SEVERITY, SEVERITIES, doc
from frazil.model.arrow import LOGS
from frazil.query.search.cursor import Cursor
from frazil.query.search.facets import Facet, facets_of
from frazil.query.search.filters import (
    ALWAYS,
    Ask,
    Filters,
    TimeRange,
    bounded,
    if_set,
    micros_of,
    row_conditions,
    text,
    where,
)
from frazil.query.search.severity import COMPUTED, least_number, severity_of
from frazil.query.search.to_sql import query_conditions

LIMIT_MAX = 1000
BUCKETS_MAX = 10_000
Order = Literal["newest", "oldest"]


class LogFilter(TypedDict, total=False):
    """Which log records. All conditions must match."""

    within: TimeRange
    filters: Filters | None
    """Field -> values; see `filters.column` for names."""
    exclude: Filters | None
    search: str | None
    """Words in the body, in the syntax of `matches`."""
    min_severity: str | None
    trace_id: str | None
    span_id: str | None
    query: str | None
    """Query of the search box; see functions/search_parser.py."""


def conditions_of(
    *,
    within: TimeRange = ALWAYS,
    filters: Filters | None = None,
    exclude: Filters | None = None,
    search: str | None = None,
    min_severity: str | None = None,
    trace_id: str | None = None,
    span_id: str | None = None,
    query: str | None = None,
) -> list[str]:
    """SQL conditions of a filter."""
    return [
        *within.conditions(),
        *row_conditions(filters, exclude, LOGS, COMPUTED),
        *if_set("severity_number >= {}", min_severity, least_number),
        *if_set("trace_id = {}", trace_id, _id_sql),
        *if_set("span_id = {}", span_id, _id_sql),
        *if_set("matches(body, {})", search, text),
        *([] if query is None else query_conditions("logs", query)),
    ]


def _id_sql(identifier: str) -> str:
    return text(identifier.lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """One log record with everything a client displays."""

    place: Cursor
    cursor: Annotated[str, doc("Cursor of this record, for `after` or /logs/around.")]
    time: datetime.datetime
    time_unix_nano: int
    observed_time_unix_nano: int
    service_name: str
    severity: str
    severity_number: int
    severity_text: str | None
    event_name: str | None
    body: str | None
    body_type: str
    trace_id: str | None
    span_id: str | None
    flags: int
    attributes: Mapping[str, str]
    resource_attributes: Mapping[str, str]
    scope_name: str | None
    scope_version: str | None
    scope_attributes: Mapping[str, str]


_COMPUTED = ("place", "cursor", "severity")
_READ = tuple(name for name in LogRow.__dataclass_fields__ if name not in _COMPUTED)
COLUMNS = ", ".join(("_log_partition", "_offset", "_row", *_READ))
"""Columns that `log_rows` needs."""


def log_rows(rows: Iterable[Mapping[str, Any]]) -> list[LogRow]:
    """Convert rows with `COLUMNS`, maps as dicts."""
    return [
        LogRow(
            place=cursor,
            cursor=str(cursor),
            severity=severity_of(row["severity_number"]),
            **{name: row[name] for name in _READ},
        )
        for row in rows
        for cursor in (Cursor.of(row),)
    ]


def find_logs(
    ask: Ask,
    *,
    limit: int = 100,
    order: Order = "newest",
    after: Cursor | None = None,
    **which: Unpack[LogFilter],
) -> list[LogRow]:
    """Return matching log records, newest or oldest first.

    `after` is the cursor of the last row of the previous page. Every row is on exactly one page,
    even if many have the same time. Rows that arrive while paging appear only if they sort after
    the current page.
    """
    is_newest = order == "newest"
    conditions = conditions_of(**which)
    if after is not None:
        conditions += after.after(is_descending=is_newest)
    return _select(ask, conditions, is_newest=is_newest, limit=limit)


def _select(ask: Ask, conditions: list[str], *, is_newest: bool, limit: int) -> list[LogRow]:
    rows = ask(
        f"SELECT {COLUMNS} FROM logs {where(conditions)} "
        f"ORDER BY {Cursor.order(is_descending=is_newest)} "
        f"LIMIT {bounded(limit, 'limit', LIMIT_MAX)}"
    )
    return log_rows(rows.to_pylist(maps_as_pydicts="lossy"))


def logs_of_trace(ask: Ask, trace_id: str, *, limit: int = LIMIT_MAX) -> list[LogRow]:
    """Return the log records of a trace, oldest first."""
    return find_logs(ask, trace_id=trace_id, order="oldest", limit=limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """A log record with the records before and after it, oldest first."""

    before: tuple[LogRow, ...]
    row: LogRow
    after: tuple[LogRow, ...]


def logs_around(
    ask: Ask, cursor: Cursor, *, count: int = 10, **which: Unpack[LogFilter]
) -> Around | None:
    """Return a log record with `count` neighbors on each side that match `which`, or None if the
    record does not exist."""
    rows = _select(ask, cursor.at(), is_newest=True, limit=1)
    if not rows:
        return None
    before = find_logs(ask, order="newest", after=cursor, limit=count, **which)
    after = find_logs(ask, order="oldest", after=cursor, limit=count, **which)
    return Around(before=tuple(reversed(before)), row=rows[0], after=tuple(after))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Number of log records of one severity in one time bucket."""

    time: datetime.datetime
    severity: str
    count: int


def histogram(ask: Ask, bucket: datetime.timedelta, **which: Unpack[LogFilter]) -> list[Bar]:
    """Count log records over time, by severity. Buckets are aligned to 1970."""
    micros = micros_of(bucket, "bucket")
    rows = ask(
        f"SELECT date_bin(INTERVAL '{micros} microseconds', time) AS time, "
        f"{_FIRST_NUMBER} AS number, count(*) AS count "
        f"FROM logs {where(conditions_of(**which))} GROUP BY 1, 2 LIMIT {BUCKETS_MAX + 1}"
    ).to_pylist()
    if len(rows) > BUCKETS_MAX:
        raise TooLarge(
            f"buckets of {bucket} give more than {BUCKETS_MAX}; use longer ones or a shorter range"
        )
    bars = [
        Bar(time=row["time"], severity=severity_of(row["number"]), count=row["count"])
        for row in rows
    ]
    return sorted(bars, key=lambda bar: (bar.time, bar.severity))


_FIRST_NUMBER = (
    f"CASE WHEN severity_number BETWEEN 1 AND {NUMBERS_PER_SEVERITY * len(SEVERITIES)} "
    f"THEN (severity_number - 1) / {NUMBERS_PER_SEVERITY} * {NUMBERS_PER_SEVERITY} + 1 ELSE 0 END"
)
"""Lowest number of each severity; grouping numbers is much faster than text."""


def facets(
    ask: Ask, names: Sequence[str], *, limit: int = 10, **which: Unpack[LogFilter]
) -> list[Facet]:
    """Count the most frequent values of each field among matching records."""
    return list(facets_of(ask, "logs", names, conditions_of(**which), limit=limit).facets)
