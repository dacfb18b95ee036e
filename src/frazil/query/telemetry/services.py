"""Questions about services: which there are, how fast, how broken, and who calls whom."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import Annotated

from frazil.errors import TooLarge
from frazil.model import doc
from frazil.query.search.filters import ALWAYS, Ask, TimeRange, micros_of, text, where, whole
from frazil.query.search.severity import least_number

LIMIT_MAX = 1000
STEPS_MAX = 20_000
"""Two hundred services in a hundred steps."""

ERRORS = "sum(CASE WHEN {0}status_code = 'ERROR' THEN 1 ELSE 0 END)"
"""How many of some spans failed; `{0}` is the table's name and a point, or nothing."""


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
    """Every service over time, oldest first. Steps begin at whole multiples since 1970, and those
    without spans are left out."""
    rows = ask(
        f"SELECT date_bin(INTERVAL '{micros_of(step)} microseconds', time) AS time, "
        f"service_name AS service, count(*) AS span_count, {ERRORS.format('')} AS error_count, "
        f"{_percentile(0.95)} AS p95_nano FROM spans {where(within.conditions())} "
        f"GROUP BY 1, 2 LIMIT {STEPS_MAX + 1}"
    ).to_pylist()
    if len(rows) > STEPS_MAX:
        raise TooLarge(
            f"steps of {step} are more than {STEPS_MAX} lines; take longer ones, or a shorter time"
        )
    return sorted((ServiceStep(**row) for row in rows), key=lambda each: (each.time, each.service))


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
    """Failed spans by service, operation, message and type, the most frequent first."""
    failed = where([*within.conditions(), "status_code = 'ERROR'"])
    # Each failed span, and each that one says is above it. `lower` changes nothing: it makes plain
    # texts of two columns that the engine would not put below each other otherwise.
    told = (
        "SELECT trace_id, lower(span_id) AS span_id, service_name AS service, name AS operation, "
        "status_message AS message, attributes['error.type'] AS error_type, time, 0 AS is_above "
        f"FROM spans {failed} UNION ALL SELECT trace_id, lower(parent_span_id), NULL, NULL, NULL, "
        f"NULL, NULL, 1 FROM spans {failed} AND parent_span_id IS NOT NULL"
    )
    columns = ("service", "operation", "message", "error_type", "time", "is_above")
    spans = (
        f"SELECT trace_id, {', '.join(f'max({name}) AS {name}' for name in columns)} "
        f"FROM ({told}) GROUP BY trace_id, span_id"
    )
    chosen = "service IS NOT NULL" if service is None else f"service = {text(service)}"
    rows = ask(
        "SELECT service, operation, message, error_type, count(*) AS count, "
        "sum(1 - is_above) AS origin_count, last_value(trace_id ORDER BY time) AS last_trace_id "
        f"FROM ({spans}) WHERE {chosen} GROUP BY service, operation, message, error_type "
        f"ORDER BY count DESC, service, operation, message, error_type "
        f"LIMIT {whole(limit, 'limit', LIMIT_MAX)}"
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
    """Who calls whom: spans whose parent, or a span that they are linked to, belongs to another
    service. The most frequent come first."""
    facts = "service_name, status_code, duration_nano"
    fitting = within.conditions()
    called = f"SELECT trace_id, parent_span_id AS span_id, {facts} FROM spans {where(fitting)}"
    found = _between(ask, called, within, is_linked=False)
    # Most have none: then the spans need not be joined once more.
    linked = where([*fitting, "cardinality(links) > 0"])
    if ask(f"SELECT 1 FROM spans {linked} LIMIT 1").num_rows:
        links = f"SELECT unnest(links) AS link, {facts} FROM spans {linked}"
        left = f"SELECT link['trace_id'] AS trace_id, link['span_id'] AS span_id, {facts}"
        found += _between(ask, f"{left} FROM ({links})", within, is_linked=True)
    found.sort(key=lambda each: (-each.call_count, each.caller, each.callee, each.is_linked))
    return found[:LIMIT_MAX]


def _between(ask: Ask, called: str, within: TimeRange, *, is_linked: bool) -> list[Dependency]:
    """`called` gives facts of spans, and which span each of them has to do with."""
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
