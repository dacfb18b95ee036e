"""The question of a search as SQL that somebody likes to read, and goes on with."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from frazil.errors import Malformed
from frazil.query.search.filters import ATTRIBUTE, Filters, differs, equals, text
from frazil.query.search.severity import MORE, least_number
from frazil.query.search.to_sql import SCHEMAS, box_conditions, field_condition, is_taken, timestamp

LIMIT = 100
SELECTED = {
    "logs": "time, severity_text, service_name, body, trace_id, attributes",
    "spans": "time, service_name, name, kind, status_code, duration_nano / 1e6 AS duration_ms, "
    "trace_id, attributes",
}

When = datetime.datetime | datetime.timedelta
"""A time, or how long ago it is when the query runs."""


def written(
    table: str,
    *,
    since: When | None = None,
    until: When | None = None,
    filters: Filters | None = None,
    exclude: Filters | None = None,
    search: str | None = None,
    min_severity: str | None = None,
    query: str = "",
) -> str:
    """The newest rows that fit all of these. `Malformed` has the place in `query`."""
    conditions = [] if since is None else [f"time >= {_moment(since)}"]
    conditions += [] if until is None else [f"time < {_moment(until)}"]
    conditions += _filtered(table, filters or {}, is_wanted=True)
    conditions += _filtered(table, exclude or {}, is_wanted=False)
    if min_severity is not None:
        conditions.append(f"severity_number >= {least_number(min_severity)}")
    if search is not None:
        conditions.append(f"matches(body, {text(search)})")
    conditions += box_conditions(table, query)
    demanded = f"WHERE {_AND.join(conditions)}\n" if conditions else ""
    return f"SELECT {SELECTED[table]}\nFROM {table}\n{demanded}ORDER BY time DESC\nLIMIT {LIMIT}"


_AND = "\n  AND "


def _moment(when: When) -> str:
    if isinstance(when, datetime.timedelta):
        seconds = int(when.total_seconds())
        size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
        count = seconds // size
        return f"now() - INTERVAL '{count} {unit if count == 1 else unit + 's'}'"
    return timestamp(when)


_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def _filtered(table: str, filters: Filters, *, is_wanted: bool) -> list[str]:
    return [
        _filter(table, name, [value] if isinstance(value, str) else value, is_wanted=is_wanted)
        for name, value in filters.items()
    ]


def _filter(table: str, name: str, values: Sequence[str], *, is_wanted: bool) -> str:
    """As the box would write it; what the box refuses, such as a text where a number is, fits
    nothing, and is written as filters are."""
    more = MORE if table == "logs" else {}
    known = ATTRIBUTE + name if is_taken(table, name) and name not in more else name
    try:
        return field_condition(table, known, values, is_wanted=is_wanted)
    except Malformed:
        write = equals if is_wanted else differs
        return write({name: values}, SCHEMAS[table], more)[0]
