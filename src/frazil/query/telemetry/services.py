"""Services: requests, errors, latencies, failures and dependencies.

A request is an entry span (sql/entry_spans.py) that starts in the time range. An error is a request
with status ERROR. Percentiles are exact: interpolated linearly between the two nearest latencies,
as `quantile_cont` of DuckDB and `percentile_cont` of PostgreSQL do, in whole nanoseconds.
"""

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
from frazil.query.sql.entry_spans import is_entry

LIMIT_MAX = 1000
STEPS_MAX = 20_000
"""200 services in 100 steps."""

CALLER_AGE_MAX = datetime.timedelta(minutes=10)
"""How long before the time range a caller may have started."""

ERRORS = "sum(CASE WHEN status_code = 'ERROR' THEN 1 ELSE 0 END)"
"""SQL of the number of failed spans."""


def percentile(share: float, column: str = "duration_nano") -> str:
    """SQL of a percentile in whole nanoseconds."""
    return f"CAST(percentile_cont({share}) WITHIN GROUP (ORDER BY {column}) AS BIGINT)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Health of one service across all signals. Latencies need requests."""

    name: str
    request_count: Annotated[int, doc("Entry spans.")] = 0
    error_count: Annotated[int, doc("Requests with status ERROR.")] = 0
    p50_nano: int | None = None
    p95_nano: int | None = None
    p99_nano: int | None = None
    span_count: Annotated[int, doc("All spans, of requests and inside of them.")] = 0
    log_count: int = 0
    error_log_count: int = 0
    point_count: int = 0
    last_seen: datetime.datetime


def services(ask: Ask, *, within: TimeRange = ALWAYS, limit: int = LIMIT_MAX) -> list[Service]:
    """List services by name; above `limit`, the busiest ones of each signal."""
    latency = f"CASE WHEN {is_entry()} THEN duration_nano END"
    selected = {
        "spans": f"count(*) AS span_count, count({latency}) AS request_count, "
        f"count(CASE WHEN status_code = 'ERROR' THEN {latency} END) AS error_count, "
        f"{percentile(0.5, latency)} AS p50_nano, {percentile(0.95, latency)} AS p95_nano, "
        f"{percentile(0.99, latency)} AS p99_nano",
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
    """Requests, errors and latencies of one service in one time step."""

    service: str
    time: Annotated[datetime.datetime, doc("Start of the step.")]
    request_count: int
    error_count: int
    p50_nano: int
    p95_nano: int
    p99_nano: int


def service_steps(
    ask: Ask,
    step: datetime.timedelta,
    *,
    service: str | None = None,
    within: TimeRange = ALWAYS,
) -> list[ServiceStep]:
    """Return services over time, oldest first. Steps are aligned to 1970; empty ones are
    omitted."""
    conditions = [*within.conditions(), *if_set("service_name = {}", service, text), is_entry()]
    rows = ask(
        f"SELECT date_bin(INTERVAL '{micros_of(step)} microseconds', time) AS time, "
        f"service_name AS service, count(*) AS request_count, {ERRORS} AS error_count, "
        f"{percentile(0.5)} AS p50_nano, {percentile(0.95)} AS p95_nano, "
        f"{percentile(0.99)} AS p99_nano FROM spans {where(conditions)} "
        f"GROUP BY 1, 2 LIMIT {STEPS_MAX + 1}"
    ).to_pylist()
    if len(rows) > STEPS_MAX:
        raise TooLarge(
            f"steps of {step} give more than {STEPS_MAX} rows; use longer ones or a shorter range"
        )
    return sorted((ServiceStep(**row) for row in rows), key=lambda row: (row.time, row.service))


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Requests, errors and latencies of one operation."""

    service: str
    operation: str
    request_count: int
    error_count: int
    p50_nano: int
    p95_nano: int
    p99_nano: int
    max_nano: int


def latencies(
    ask: Ask, *, service: str | None = None, within: TimeRange = ALWAYS, limit: int = 100
) -> list[Latency]:
    """List the operations of requests, the busiest first."""
    conditions = [*within.conditions(), *if_set("service_name = {}", service, text), is_entry()]
    rows = ask(
        "SELECT service_name AS service, name AS operation, count(*) AS request_count, "
        f"{ERRORS} AS error_count, {percentile(0.5)} AS p50_nano, "
        f"{percentile(0.95)} AS p95_nano, {percentile(0.99)} AS p99_nano, "
        f"max(duration_nano) AS max_nano FROM spans {where(conditions)} "
        "GROUP BY service_name, name ORDER BY request_count DESC, service, operation "
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
    call_count: Annotated[int, doc("Requests of the callee that come from the caller.")]
    error_count: int
    p95_nano: int
    p99_nano: int


def dependencies(ask: Ask, *, within: TimeRange = ALWAYS) -> list[Dependency]:
    """List calls between services, the most frequent first: requests in the time range whose
    parent or linked span belongs to another service."""
    columns = "service_name, status_code, duration_nano"
    conditions = [*within.conditions(), is_entry()]
    called = (
        f"SELECT trace_id, parent_span_id AS span_id, span_id AS callee_id, {columns} "
        f"FROM spans {where(conditions)}"
    )
    calls = _between(ask, called, within, is_linked=False)
    # Usually there are no links, which saves the second join.
    linked = where([*conditions, "cardinality(links) > 0"])
    if ask(f"SELECT 1 FROM spans {linked} LIMIT 1").num_rows:
        links = f"SELECT unnest(links) AS link, span_id AS callee_id, {columns} FROM spans {linked}"
        left = "SELECT link['trace_id'] AS trace_id, link['span_id'] AS span_id, callee_id"
        calls += _between(ask, f"{left}, {columns} FROM ({links})", within, is_linked=True)
    calls.sort(key=lambda call: (-call.call_count, call.caller, call.callee, call.is_linked))
    return calls[:LIMIT_MAX]


def _between(ask: Ask, called: str, within: TimeRange, *, is_linked: bool) -> list[Dependency]:
    """Calls whose callees are the rows of `called`, with the span id of the caller. A callee counts
    once for each service that calls it, however many of its spans do."""
    conditions = ["callee.service_name <> caller.service_name", *_callers(within)]
    calls = (
        "SELECT DISTINCT caller.service_name AS caller, callee.service_name AS callee, "
        "callee.callee_id, callee.status_code AS status_code, "
        "callee.duration_nano AS duration_nano "
        f"FROM ({called}) AS callee JOIN spans AS caller ON callee.trace_id = caller.trace_id "
        f"AND callee.span_id = caller.span_id {where(conditions)}"
    )
    rows = ask(
        f"SELECT caller, callee, count(*) AS call_count, {ERRORS} AS error_count, "
        f"{percentile(0.95)} AS p95_nano, {percentile(0.99)} AS p99_nano FROM ({calls}) "
        f"GROUP BY caller, callee ORDER BY call_count DESC, caller, callee LIMIT {LIMIT_MAX}"
    )
    return [Dependency(**row, is_linked=is_linked) for row in rows.to_pylist()]


def _callers(within: TimeRange) -> list[str]:
    """Conditions on the time of callers: they start earlier than what they call, or a little later
    by their own clock."""
    since = None if within.since is None else within.since - CALLER_AGE_MAX
    until = None if within.until is None else within.until + CALLER_AGE_MAX
    return TimeRange(since=since, until=until).conditions("caller.time")
