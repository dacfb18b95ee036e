"""Questions about services: which there are, how fast, how broken, and who calls whom."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace

from frazil.query.ask import ALWAYS, Ask, Range, text, where, whole
from frazil.query.logs import least_number

LIMIT_MAX = 1000

ERRORS = "sum(CASE WHEN {0}status_code = 'ERROR' THEN 1 ELSE 0 END)"
"""How many of some spans failed; `{0}` is the table's name and a point, or nothing."""


def _percentile(share: float, column: str = "duration_nano") -> str:
    return f"CAST(approx_percentile_cont({share}) WITHIN GROUP (ORDER BY {column}) AS BIGINT)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How one service does, by all of its signals. Without spans it has no durations."""

    name: str
    span_count: int = 0
    error_count: int = 0
    """Of its spans."""
    p50_nano: int | None = None
    p95_nano: int | None = None
    p99_nano: int | None = None
    log_count: int = 0
    error_log_count: int = 0
    point_count: int = 0
    last_seen: datetime.datetime


def services(ask: Ask, *, within: Range = ALWAYS, limit: int = LIMIT_MAX) -> list[Service]:
    """Every service that sent something, by name; the busiest ones of each signal where there are
    more than `limit`. Durations are estimates, about a percent off."""
    selected = {
        "spans": f"count(*) AS span_count, {ERRORS.format('')} AS error_count, "
        f"{_percentile(0.5)} AS p50_nano, {_percentile(0.95)} AS p95_nano, "
        f"{_percentile(0.99)} AS p99_nano",
        "logs": "count(*) AS log_count, sum(CASE WHEN severity_number >= "
        f"{least_number('ERROR')} THEN 1 ELSE 0 END) AS error_log_count",
        "metrics": "count(*) AS point_count",
    }
    found: dict[str, Service] = {}
    for table, columns in selected.items():
        rows = ask(
            f"SELECT service_name AS name, max(time) AS last_seen, {columns} FROM {table} "
            f"{where(within.conditions())} GROUP BY 1 ORDER BY 3 DESC, 1 "
            f"LIMIT {whole(limit, 'limit', LIMIT_MAX)}"
        )
        for row in rows.to_pylist():
            known = found.get(row["name"]) or Service(name=row["name"], last_seen=row["last_seen"])
            row["last_seen"] = max(row["last_seen"], known.last_seen)
            found[row["name"]] = replace(known, **row)
    return [found[name] for name in sorted(found)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How one operation of a service does."""

    service: str
    operation: str
    span_count: int
    error_count: int
    p50_nano: int
    p90_nano: int
    p99_nano: int
    max_nano: int


def latencies(
    ask: Ask, *, service: str | None = None, within: Range = ALWAYS, limit: int = 100
) -> list[Latency]:
    """Durations of operations, the busiest first."""
    conditions = within.conditions()
    if service is not None:
        conditions.append(f"service_name = {text(service)}")
    rows = ask(
        "SELECT service_name AS service, name AS operation, count(*) AS span_count, "
        f"{ERRORS.format('')} AS error_count, {_percentile(0.5)} AS p50_nano, "
        f"{_percentile(0.9)} AS p90_nano, {_percentile(0.99)} AS p99_nano, "
        f"max(duration_nano) AS max_nano FROM spans {where(conditions)} "
        "GROUP BY service_name, name ORDER BY span_count DESC, service, operation "
        f"LIMIT {whole(limit, 'limit', LIMIT_MAX)}"
    )
    return [Latency(**row) for row in rows.to_pylist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Spans that failed in the same way."""

    service: str
    operation: str
    message: str | None
    count: int
    last_trace_id: str


def failures(
    ask: Ask, *, service: str | None = None, within: Range = ALWAYS, limit: int = 100
) -> list[Failure]:
    """Failed spans by service, operation and message, the most frequent first."""
    conditions = [*within.conditions(), "status_code = 'ERROR'"]
    if service is not None:
        conditions.append(f"service_name = {text(service)}")
    rows = ask(
        "SELECT service_name AS service, name AS operation, status_message AS message, "
        "count(*) AS count, last_value(trace_id ORDER BY time) AS last_trace_id "
        f"FROM spans {where(conditions)} GROUP BY service_name, name, status_message "
        f"ORDER BY count DESC, service, operation LIMIT {whole(limit, 'limit', LIMIT_MAX)}"
    )
    return [Failure(**row) for row in rows.to_pylist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One service calls another."""

    caller: str
    callee: str
    call_count: int
    error_count: int
    p99_nano: int


def dependencies(ask: Ask, *, within: Range = ALWAYS) -> list[Dependency]:
    """Who calls whom: spans whose parent belongs to another service."""
    conditions = [*within.conditions("child.time"), *within.conditions("parent.time")]
    rows = ask(
        "SELECT parent.service_name AS caller, child.service_name AS callee, "
        f"count(*) AS call_count, {ERRORS.format('child.')} AS error_count, "
        f"{_percentile(0.99, 'child.duration_nano')} AS p99_nano "
        "FROM spans AS child JOIN spans AS parent ON child.trace_id = parent.trace_id "
        "AND child.parent_span_id = parent.span_id "
        f"{where(['child.service_name <> parent.service_name', *conditions])} "
        "GROUP BY parent.service_name, child.service_name "
        f"ORDER BY call_count DESC, caller, callee LIMIT {LIMIT_MAX}"
    )
    return [Dependency(**row) for row in rows.to_pylist()]
