"""A search as readable SQL, for users to continue with."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from frazil.errors import Malformed
from frazil.query.search.filters import ATTRIBUTE, Filters, differs, equals, if_set, text
from frazil.query.search.severity import COMPUTED, least_number
from frazil.query.search.to_sql import (
    SCHEMAS,
    field_condition,
    is_reserved,
    query_conditions,
    timestamp_literal,
)

LIMIT = 100
COLUMNS = {
    "logs": "time, severity_text, service_name, body, trace_id, attributes",
    "spans": "time, service_name, name, kind, status_code, duration_nano / 1e6 AS duration_ms, "
    "trace_id, attributes",
}

TimeOrAge = datetime.datetime | datetime.timedelta
"""A time, or an age relative to the time of the query."""


def search_sql(
    table: str,
    *,
    since: TimeOrAge | None = None,
    until: TimeOrAge | None = None,
    filters: Filters | None = None,
    exclude: Filters | None = None,
    search: str | None = None,
    min_severity: str | None = None,
    query: str = "",
) -> str:
    """SQL for the newest rows that match. `Malformed` has the position in `query`."""
    conditions = [] if since is None else [f"time >= {_time_sql(since)}"]
    conditions += [] if until is None else [f"time < {_time_sql(until)}"]
    conditions += _filters(table, filters or {}, is_included=True)
    conditions += _filters(table, exclude or {}, is_included=False)
    conditions += if_set("severity_number >= {}", min_severity, least_number)
    conditions += if_set("matches(body, {})", search, text)
    conditions += query_conditions(table, query)
    where = f"WHERE {_AND.join(conditions)}\n" if conditions else ""
    return f"SELECT {COLUMNS[table]}\nFROM {table}\n{where}ORDER BY time DESC\nLIMIT {LIMIT}"


_AND = "\n  AND "


def _time_sql(time: TimeOrAge) -> str:
    if isinstance(time, datetime.timedelta):
        seconds = int(time.total_seconds())
        size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
        count = seconds // size
        return f"now() - INTERVAL '{count} {unit if count == 1 else unit + 's'}'"
    return timestamp_literal(time)


_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def _filters(table: str, filters: Filters, *, is_included: bool) -> list[str]:
    return [
        _filter(table, name, [value] if isinstance(value, str) else value, is_included=is_included)
        for name, value in filters.items()
    ]


def _filter(table: str, name: str, values: Sequence[str], *, is_included: bool) -> str:
    """Like the search box. What it rejects, such as a text for a number, matches nothing and is
    written as a plain filter."""
    computed = COMPUTED if table == "logs" else {}
    is_attribute = is_reserved(table, name) and name not in computed
    field = ATTRIBUTE + name if is_attribute else name
    try:
        return field_condition(table, field, values, is_included=is_included)
    except Malformed:
        write = equals if is_included else differs
        return write({name: values}, SCHEMAS[table], computed)[0]
