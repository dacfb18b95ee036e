"""Questions about services: how fast, how broken, and who calls whom."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.query.ask import ALWAYS, Ask, Range, text, where, whole

LIMIT_MAX = 1000

ERRORS = "sum(CASE WHEN {0}status_code = 'ERROR' THEN 1 ELSE 0 END)"
"""How many of some spans failed; `{0}` is the table's name and a point, or nothing."""


def _percentile(share: float, column: str = "duration_nano") -> str:
    return f"CAST(approx_percentile_cont({share}) WITHIN GROUP (ORDER BY {column}) AS BIGINT)"


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
