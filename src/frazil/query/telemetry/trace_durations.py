"""Trace durations over time, as a bounded number of dots."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated, Unpack

from frazil.errors import TooLarge
from frazil.model import doc
from frazil.query.search.filters import Ask, micros_of
from frazil.query.telemetry.traces import DURATION, TraceFilter, trace_conditions

DOTS_MAX = 20_000
STEPS_PER_DECADE = 10
"""Durations in one dot differ by at most about 26 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDot:
    """Traces with about the same start and duration, represented by the longest."""

    trace_id: str
    time: Annotated[datetime.datetime, doc("Start of the longest trace.")]
    duration_nano: int
    root_service: Annotated[str | None, doc("Null if the root span is out of range.")]
    root_name: str | None
    is_failed: Annotated[bool, doc("True: all traces have an error. False: none.")]
    trace_count: int


def trace_dots(ask: Ask, step: datetime.timedelta, **which: Unpack[TraceFilter]) -> list[TraceDot]:
    """Return matching traces; those of one step and about one duration become one dot."""
    conditions, having = trace_conditions(**which).clauses(is_whole=True)
    traces = (
        f"SELECT trace_id, min(time) AS time, {DURATION} AS duration_nano, "
        "max(CASE WHEN status_code = 'ERROR' THEN 1 ELSE 0 END) AS is_failed, "
        "max(CASE WHEN parent_span_id IS NULL THEN service_name END) AS root_service, "
        "max(CASE WHEN parent_span_id IS NULL THEN name END) AS root_name "
        f"FROM spans {conditions} GROUP BY trace_id "
        f"{'HAVING ' + ' AND '.join(having) if having else ''}"
    )
    longest = "ORDER BY duration_nano DESC, trace_id"
    columns = ("trace_id", "time", "duration_nano", "root_service", "root_name")
    rows = ask(
        f"SELECT date_bin(INTERVAL '{micros_of(step)} microseconds', time) AS step, "
        f"floor(log10(greatest(duration_nano, 1)) * {STEPS_PER_DECADE}) AS height, is_failed, "
        f"{', '.join(f'first_value({name} {longest}) AS {name}' for name in columns)}, "
        f"count(*) AS trace_count FROM ({traces}) GROUP BY 1, 2, 3 LIMIT {DOTS_MAX + 1}"
    ).to_pylist()
    if len(rows) > DOTS_MAX:
        raise TooLarge(
            f"steps of {step} give more than {DOTS_MAX} dots; use longer ones or a shorter range"
        )
    dots = [
        TraceDot(
            **{name: row[name] for name in columns},
            is_failed=bool(row["is_failed"]),
            trace_count=row["trace_count"],
        )
        for row in rows
    ]
    return sorted(dots, key=lambda dot: (dot.time, dot.trace_id))
