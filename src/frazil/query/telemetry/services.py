"""Services: requests, errors, durations, failures and dependencies."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import Annotated

from frazil.errors import TooLarge
from frazil.model import doc
from frazil.query.search.filters import (
    ALWAYS,
    Ask,
    TimeRange,
    bounded,
    if_set,
    micros_of,
    text,
    where,
)
from frazil.query.search.severity import least_number

LIMIT_MAX = 1000
STEPS_MAX = 20_000
"""200 services in 100 steps."""

ERRORS = "sum(CASE WHEN {0}status_code = 'ERROR' THEN 1 ELSE 0 END)"
"""SQL of the number of failed spans; `{0}` is a table prefix with a dot, or empty."""


def _percentile(share: float, column: str = "duration_nano") -> str:
    return f"CAST(approx_percentile_cont({share}) WITHIN GROUP (ORDER BY {column}) AS BIGINT)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Health of one service across all signals. Durations need spans."""

    name: str
    span_count: int = 0
    error_count: Annotated[int, doc("Spans with status ERROR.")] = 0
    p50_nano: int | None = None
    p95_nano: int | None = None
    p99_nano: int | None = None
    log_count: int = 0
    error_log_count: int = 0
    point_count: int = 0
    last_seen: datetime.datetime


def services(ask: Ask, *, within: TimeRange = ALWAYS, limit: int = LIMIT_MAX) -> list[Service]:
    """List services by name; above `limit`, the busiest ones of each signal. Durations are
    estimates within about 1 %."""
    selected = {
        "spans": f"count(*) AS span_count, {ERRORS.format('')} AS error_count, "
        f"{_percentile(0.5)} AS p50_nano, {_percentile(0.95)} AS p95_nano, "
        f"{_percentile(0.99)} AS p99_nano",
        "logs": "count(*) AS log_count, sum(CASE WHEN severity_number >= "
        f"{least_number('ERROR')} THEN 1 ELSE 0 END) AS error_log_count",
        "metrics": "count(*) AS point_count",
    }
    by_name: dict[str, Service] = {}
    for table, columns in selected.items():
        rows = ask(
            f"SELECT service_name AS name, max(time) AS last_seen, {columns} FROM {table} "
            f"{where(within.conditions())} GROUP BY 1 ORDER BY 3 DESC, 1 "
            f"LIMIT {bounded(limit, 'limit', LIMIT_MAX)}"
        )
        for row in rows.to_pylist():
            name, last_seen = row["name"], row["last_seen"]
            service = by_name.get(name) or Service(name=name, last_seen=last_seen)
            row["last_seen"] = max(last_seen, service.last_seen)
            by_name[name] = replace(service, **row)
    return [by_name[name] for name in sorted(by_name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStep:
    """Requests, errors and durations of one service in one time step."""

    service: str
    time: Annotated[datetime.datetime, doc("Start of the step.")]
    span_count: int
    error_count: int
    p95_nano: int


def service_steps(
    ask: Ask, step: datetime.timedelta, *, within: TimeRange = ALWAYS
) -> list[ServiceStep]:
    """Return all services over time, oldest first. Steps are aligned to 1970; empty ones are
    omitted."""
    rows = ask(
        f"SELECT date_bin(INTERVAL '{micros_of(step)} microseconds', time) AS time, "
        f"service_name AS service, count(*) AS span_count, {ERRORS.format('')} AS error_count, "
        f"{_percentile(0.95)} AS p95_nano FROM spans {where(within.conditions())} "
        f"GROUP BY 1, 2 LIMIT {STEPS_MAX + 1}"
    ).to_pylist()
    if len(rows) > STEPS_MAX:
        raise TooLarge(
            f"steps of {step} give more than {STEPS_MAX} rows; use longer ones or a shorter range"
        )
    return sorted((ServiceStep(**row) for row in rows), key=lambda row: (row.time, row.service))


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Calls, errors and durations of one operation."""

    service: str
    operation: str
    span_count: int
    error_count: int
    p50_nano: int
    p90_nano: int
    p99_nano: int
    max_nano: int


def latencies(
    ask: Ask, *, service: str | None = None, within: TimeRange = ALWAYS, limit: int = 100
) -> list[Latency]:
    """List operations with durations, the busiest first."""
    conditions = within.conditions() + if_set("service_name = {}", service, text)
    rows = ask(
        "SELECT service_name AS service, name AS operation, count(*) AS span_count, "
        f"{ERRORS.format('')} AS error_count, {_percentile(0.5)} AS p50_nano, "
        f"{_percentile(0.9)} AS p90_nano, {_percentile(0.99)} AS p99_nano, "
        f"max(duration_nano) AS max_nano FROM spans {where(conditions)} "
        "GROUP BY service_name, name ORDER BY span_count DESC, service, operation "
        f"LIMIT {bounded(limit, 'limit', LIMIT_MAX)}"
    )
    return [Latency(**row) for row in rows.to_pylist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Failed spans with the same service, operation, message and type."""

    service: str
    operation: str
    message: str | None
    error_type: Annotated[str | None, doc("`error.type`: exception or status.")]
    count: int
    origin_count: Annotated[int, doc("Spans without a failed child: likely origins.")]
    last_trace_id: str


def failures(
    ask: Ask, *, service: str | None = None, within: TimeRange = ALWAYS, limit: int = 100
) -> list[Failure]:
    """Group failed spans by service, operation, message and type, the most frequent first."""
    failed = where([*within.conditions(), "status_code = 'ERROR'"])
    # Each failed span, and the parent of each failed span. `lower` changes no value: it converts
    # both columns to plain text, which the engine needs for the UNION.
    reported = (
        "SELECT trace_id, lower(span_id) AS span_id, service_name AS service, name AS operation, "
        "status_message AS message, attributes['error.type'] AS error_type, time, 0 AS is_parent "
        f"FROM spans {failed} UNION ALL SELECT trace_id, lower(parent_span_id), NULL, NULL, NULL, "
        f"NULL, NULL, 1 FROM spans {failed} AND parent_span_id IS NOT NULL"
    )
    columns = ("service", "operation", "message", "error_type", "time", "is_parent")
    spans = (
        f"SELECT trace_id, {', '.join(f'max({name}) AS {name}' for name in columns)} "
        f"FROM ({reported}) GROUP BY trace_id, span_id"
    )
    is_selected = "service IS NOT NULL" if service is None else f"service = {text(service)}"
    rows = ask(
        "SELECT service, operation, message, error_type, count(*) AS count, "
        "sum(1 - is_parent) AS origin_count, "
        # Of the spans where the failure began, if there are any: the trace shows its cause.
        "last_value(trace_id ORDER BY is_parent DESC, time) AS last_trace_id "
        f"FROM ({spans}) WHERE {is_selected} GROUP BY service, operation, message, error_type "
        f"ORDER BY count DESC, service, operation, message, error_type "
        f"LIMIT {bounded(limit, 'limit', LIMIT_MAX)}"
    )
    return [Failure(**row) for row in rows.to_pylist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """Calls from one service to another, direct or by messages."""

    caller: str
    callee: str
    is_linked: Annotated[bool, doc("By span links: the caller does not wait.")]
    call_count: int
    error_count: int
    p95_nano: int
    p99_nano: int


def dependencies(ask: Ask, *, within: TimeRange = ALWAYS) -> list[Dependency]:
    """List calls between services, the most frequent first: spans whose parent or linked span
    belongs to another service."""
    columns = "service_name, status_code, duration_nano"
    conditions = within.conditions()
    called = f"SELECT trace_id, parent_span_id AS span_id, {columns} FROM spans {where(conditions)}"
    calls = _between(ask, called, within, is_linked=False)
    # Usually there are no links, which saves the second join.
    linked = where([*conditions, "cardinality(links) > 0"])
    if ask(f"SELECT 1 FROM spans {linked} LIMIT 1").num_rows:
        links = f"SELECT unnest(links) AS link, {columns} FROM spans {linked}"
        left = f"SELECT link['trace_id'] AS trace_id, link['span_id'] AS span_id, {columns}"
        calls += _between(ask, f"{left} FROM ({links})", within, is_linked=True)
    calls.sort(key=lambda call: (-call.call_count, call.caller, call.callee, call.is_linked))
    return calls[:LIMIT_MAX]


def _between(ask: Ask, called: str, within: TimeRange, *, is_linked: bool) -> list[Dependency]:
    """Calls whose callees are the rows of `called`, with the span id of the caller."""
    conditions = ["callee.service_name <> caller.service_name", *within.conditions("caller.time")]
    rows = ask(
        "SELECT caller.service_name AS caller, callee.service_name AS callee, "
        f"count(*) AS call_count, {ERRORS.format('callee.')} AS error_count, "
        f"{_percentile(0.95, 'callee.duration_nano')} AS p95_nano, "
        f"{_percentile(0.99, 'callee.duration_nano')} AS p99_nano "
        f"FROM ({called}) AS callee JOIN spans AS caller ON callee.trace_id = caller.trace_id "
        f"AND callee.span_id = caller.span_id {where(conditions)} "
        "GROUP BY caller.service_name, callee.service_name "
        f"ORDER BY call_count DESC, caller, callee LIMIT {LIMIT_MAX}"
    )
    return [Dependency(**row, is_linked=is_linked) for row in rows.to_pylist()]
