"""Range queries over the metrics of `telemetry`, made from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.live.prometheus.telemetry import ROUTES, STEP_MS, STEPS

COUNTERS = (
    "http_requests_total",
    "http_server_duration_seconds_count",
    "gc_pause_milliseconds_sum",
)
GAUGES = ("cpu_utilization_ratio", "memory_usage_bytes", "connections")
NATIVE = ("db_latency_milliseconds", "db_fine_latency_milliseconds")
BUCKETS = "http_server_duration_seconds_bucket"
RANGES = ("40s", "1m", "2m", "5m", "12m")
MATCHERS = (
    *("", "", '{job="shop/cart"}', '{job=~"shop/.*"}', '{instance!~"cart-.*"}', '{job!="search"}'),
    *('{instance="search-1"}', '{http_route=""}'),
)
GROUPS = ("by (job)", "by (instance, job)", "without (instance)", "by (http_route)", "")
COUNTER_FUNCTIONS = ("rate", "increase", "irate", "resets", "changes")
GAUGE_FUNCTIONS = (
    *("avg_over_time", "min_over_time", "max_over_time", "sum_over_time", "count_over_time"),
    *("stddev_over_time", "last_over_time", "delta", "idelta", "deriv", "changes"),
    *("present_over_time", "stdvar_over_time"),
)
AGGREGATES = ("sum", "avg", "min", "max", "count", "stddev", "group")


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeQuery:
    """A query and the steps of its range."""

    text: str
    start_ms: int
    end_ms: int
    step_ms: int


def range_queries(begin_ms: int, count: int, seed: int = 24) -> list[RangeQuery]:
    """Return queries. Same arguments, same queries."""
    rand = Random(seed)
    whole_ms = STEP_MS * STEPS
    found = []
    for number in range(count):
        start = begin_ms + rand.randrange(whole_ms // 2)
        step = rand.choice((15_000, 17_123, 30_000, 60_000))
        steps = rand.randint(1, 60)
        make = MAKERS[number % len(MAKERS)]
        found.append(
            RangeQuery(text=make(rand), start_ms=start, end_ms=start + steps * step, step_ms=step)
        )
    return found


def _counter(rand: Random) -> str:
    name, matchers = rand.choice(COUNTERS), rand.choice(MATCHERS)
    offset = rand.choice(("", "", " offset 3m", " offset -1m"))
    return f"{rand.choice(COUNTER_FUNCTIONS)}({name}{matchers}[{rand.choice(RANGES)}]{offset})"


def _gauge(rand: Random) -> str:
    name, matchers = rand.choice(GAUGES), rand.choice(MATCHERS)
    if rand.random() < 0.3:
        return f"{name}{matchers}"
    return f"{rand.choice(GAUGE_FUNCTIONS)}({name}{matchers}[{rand.choice(RANGES)}])"


def _aggregate(rand: Random) -> str:
    inner = rand.choice((_counter, _gauge))(rand)
    if rand.random() < 0.2:
        return f"quantile {rand.choice(GROUPS)} (0.{rand.randrange(1, 10)}, {inner})"
    return f"{rand.choice(AGGREGATES)} {rand.choice(GROUPS)} ({inner})"


def _classic(rand: Random) -> str:
    groups = rand.choice(("by (le)", "by (le, job)", "by (le, http_route)"))
    rates = f"rate({BUCKETS}{rand.choice(MATCHERS[:6])}[{rand.choice(RANGES)}])"
    return f"histogram_quantile(0.{rand.randrange(1, 100)}, sum {groups} ({rates}))"


def _native(rand: Random) -> str:
    name = rand.choice(NATIVE)
    rates = f"rate({name}{rand.choice(MATCHERS[:6])}[{rand.choice(RANGES[1:])}])"
    return rand.choice(
        (
            f"histogram_quantile(0.{rand.randrange(1, 100)}, {rates})",
            f"histogram_count({rates})",
            f"histogram_sum(sum {rand.choice(GROUPS[:3])} ({rates}))",
            f"histogram_avg({name})",
            f"histogram_fraction(0, 2, {rates})",
            f"sum by (job) ({name})",
        )
    )


def _binary(rand: Random) -> str:
    operator = rand.choice(("+", "-", "*", "/", "%", "^", "atan2", "> bool", "<", ">=", "!="))
    return rand.choice(
        (
            f"{_counter(rand)} {operator} {rand.randrange(1, 9)}.5",
            f"{rand.choice(GAUGES)} {operator} on (instance) {rand.choice(GAUGES)}",
            f"http_requests_total / ignoring (http_route, method) group_left {GAUGES[0]}",
            f"{GAUGES[0]} and on (instance) ({GAUGES[2]} > {rand.randrange(30)})",
            f"{GAUGES[0]} unless on (instance) ({GAUGES[2]} > {rand.randrange(30)})",
            f"{GAUGES[0]} or {GAUGES[1]}",
            f"sum by (job) ({_counter(rand)}) {operator} sum by (job) ({_counter(rand)})",
            f"{GAUGES[0]} * on (job, instance) group_left (host_name) target_info",
        )
    )


def _other(rand: Random) -> str:
    name, matchers = rand.choice(GAUGES), rand.choice(MATCHERS)
    route = rand.choice(ROUTES)
    return rand.choice(
        (
            f"max_over_time(rate(http_requests_total{matchers}[2m])[10m:1m])",
            f"absent({name}{{job='none'}})",
            f"clamp(-{name}{matchers}, -0.5, 10)",
            f"predict_linear({name}[5m], 600)",
            f"quantile_over_time(0.{rand.randrange(1, 10)}, {name}{matchers}[5m])",
            f"label_replace({name}{matchers}, 'team', '$1', 'job', '(?:shop/)?(.*)')",
            f"http_requests_total{{http_route='{route}'}} @ end()",
            f"gc_pause_milliseconds{{quantile='0.5'}}{' offset 1m'}",
            f"count_values('value', {GAUGES[2]})",
            f"timestamp({name}{matchers}) - time()",
            f"sum({{__name__=~'{name}|http_requests_total'}}) by (job)",
            f"topk(2, {GAUGES[0]})",
            f"abs(sqrt(ln({name}{matchers})))",
        )
    )


MAKERS: tuple[Callable[[Random], str], ...] = (
    *(_counter, _gauge, _aggregate, _aggregate, _classic, _native, _binary, _other),
)
