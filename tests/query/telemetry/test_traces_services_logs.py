"""Questions about traces, services and logs, on a small shop whose answers can be counted."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import datafusion
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.model.arrow import LOGS, METRICS, SPANS
from frazil.query.search.filters import Ask, TimeRange, text, timestamp_sql
from frazil.query.telemetry.deployments import deployments
from frazil.query.telemetry.logs import facets, histogram
from frazil.query.telemetry.services import (
    dependencies,
    failures,
    latencies,
    service_steps,
    services,
)
from frazil.query.telemetry.trace_durations import trace_dots
from frazil.query.telemetry.traces import Order as TraceOrder
from frazil.query.telemetry.traces import find_traces, trace, tree_of
from frazil.query.telemetry.volume import volumes

BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
BEGIN_NS = int(BEGIN.timestamp()) * 1_000_000_000
MS = 1_000_000
REMOTE, LOCAL = 0x301, 0x101
"""Flags of a span whose parent is in another process, or in its own."""


def span(number: int, at_ms: int, ms: int, service: str, name: str, **more: Any) -> dict[str, Any]:
    return {
        "trace_id": f"{more.pop('of', 1):032x}",
        "span_id": f"{number:016x}",
        "time": BEGIN + datetime.timedelta(milliseconds=at_ms),
        "time_unix_nano": BEGIN_NS + at_ms * MS,
        "end_time_unix_nano": BEGIN_NS + (at_ms + ms) * MS,
        "duration_nano": ms * MS,
        "service_name": service,
        "name": name,
        "status_code": "UNSET",
        **more,
    }


def under(number: int) -> str:
    return f"{number:016x}"


SHOP = [
    span(1, 0, 100, "web", "GET /", attributes=[("user", "ann")]),
    span(2, 10, 50, "cart", "load", parent_span_id=under(1), kind="SERVER"),
    span(3, 20, 10, "db", "select", parent_span_id=under(2), flags=REMOTE),
    span(4, 70, 20, "cart", "price", parent_span_id=under(1), kind="CONSUMER"),
    span(5, 1000, 300, "web", "GET /", of=2, attributes=[("user", "bob")]),
    span(
        6,
        1010,
        250,
        "cart",
        "load",
        of=2,
        parent_span_id=under(5),
        kind="SERVER",
        status_code="ERROR",
        status_message="it's gone",
    ),
    span(7, 2000, 5, "web", "GET /health", of=3),
]


def log(at_ms: int, severity: int, service: str, body: str) -> dict[str, Any]:
    return {
        "time": BEGIN + datetime.timedelta(milliseconds=at_ms),
        "service_name": service,
        "severity_number": severity,
        "body": body,
        "attributes": [("user", "ann")] if service == "web" else [],
    }


LINES = [
    log(0, 9, "web", "one"),
    log(400, 9, "web", "two"),
    log(900, 17, "cart", "three"),
    log(1100, 13, "cart", "four"),
    log(1200, 0, "db", "five"),
]


POINTS = [
    {"time": BEGIN + datetime.timedelta(seconds=at), "service_name": service, "metric_name": "m"}
    for at, service in ((0, "web"), (3, "web"), (3, "clock"))
]


def table_of(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    loose = pa.schema([field.with_nullable(True) for field in schema])
    return pa.Table.from_pylist(rows, loose)


@pytest.fixture(scope="module")
def ask() -> Ask:
    context = datafusion.SessionContext()
    tables = (("spans", SHOP, SPANS), ("logs", LINES, LOGS), ("metrics", POINTS, METRICS))
    for name, rows, schema in tables:
        table = table_of(rows, schema)
        context.register_record_batches(name, [table.to_batches()])

    def run(sql: str) -> pa.Table:
        return context.sql(sql).to_arrow_table()

    return run


def ids(found: list[Any]) -> list[int]:
    return [int(summary.trace_id, 16) for summary in found]


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ({}, [3, 2, 1]),
        ({"limit": 2}, [3, 2]),
        ({"service": "cart"}, [2, 1]),
        ({"service": "db"}, [1]),
        ({"operation": "GET /"}, [2, 1]),
        ({"min_duration_nano": 100 * MS}, [2, 1]),
        ({"max_duration_nano": 5 * MS}, [3]),
        ({"tags": {"user": "ann"}}, [1]),
        ({"tags": {"status_code": "ERROR"}}, [2]),
        ({"only_errors": True}, [2]),
        ({"only_roots": True, "operation": "load"}, []),
        ({"only_roots": True, "min_duration_nano": 100 * MS}, [2, 1]),
        ({"exclude": {"service_name": ["web", "db"]}, "max_duration_nano": 20 * MS}, [1]),
        ({"service": "nobody"}, []),
        ({"service": "x' OR '1'='1"}, []),
        ({"within": TimeRange(since=BEGIN + datetime.timedelta(seconds=1))}, [3, 2]),
        ({"within": TimeRange(until=BEGIN + datetime.timedelta(seconds=1))}, [1]),
        ({"through": ["web", "db"]}, [1]),
        ({"through": ["cart"], "service": "web"}, [2, 1]),
        ({"through": ["cart"], "operation": "GET /health"}, []),
        ({"through": ["x' OR '1'='1"]}, []),
        ({"min_trace_nano": 100 * MS}, [2, 1]),
        ({"max_trace_nano": 100 * MS}, [3, 1]),
        ({"min_trace_nano": 6 * MS, "max_trace_nano": 299 * MS, "service": "db"}, [1]),
        ({"order": "longest"}, [2, 1, 3]),
        ({"order": "longest", "service": "db"}, [1]),
        ({"order": "spans"}, [1, 2, 3]),
        ({"order": "errors", "limit": 1}, [2]),
    ],
)
def test_traces_are_found_by(question: Mapping[str, Any], wanted: list[int], ask: Ask) -> None:
    """By service, operation, duration, tags and time; a quote in a value is only a quote."""
    assert ids(find_traces(ask, **question)) == wanted


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ("newest", [3, 2, 20, 21, 22, 23, 24, 1]),
        ("longest", [2, 1, 3, 20, 21, 22, 23, 24]),
        ("spans", [1, 2, 3, 20, 21, 22, 23, 24]),
        ("errors", [2, 1, 3, 20, 21, 22, 23, 24]),
    ],
)
def test_traces_page_by_page(size: int, order: TraceOrder, wanted: list[int], ask: Ask) -> None:
    """Each is on one page, also of those that are as new, or as long, as another."""
    same = [span(n, 50, 1, "web", "tick", of=n) for n in range(20, 25)]
    context = datafusion.SessionContext()
    context.register_record_batches("spans", [table_of([*SHOP, *same], SPANS).to_batches()])

    def run(sql: str) -> pa.Table:
        return context.sql(sql).to_arrow_table()

    seen: list[int] = []
    after = None
    while page := find_traces(run, order=order, limit=size, after=after):
        seen += ids(page)
        after = page[-1].cursor
    assert seen == ids(find_traces(run, order=order, limit=100)) == wanted
    with pytest.raises(Malformed, match="not a cursor"):
        find_traces(ask, after="1-' OR 1=1")


def test_a_summary_covers_the_whole_trace(ask: Ask) -> None:
    """Also the spans that did not fit the question."""
    (found,) = find_traces(ask, only_errors=True)
    assert (found.root_service, found.root_name) == ("web", "GET /")
    assert (found.span_count, found.error_count) == (2, 1)
    assert (found.start_unix_nano, found.duration_nano) == (BEGIN_NS + 1000 * MS, 300 * MS)
    assert found.services == ("cart", "web")
    assert [(one.service, one.span_count, one.error_count) for one in found.shares] == [
        ("cart", 1, 1),
        ("web", 1, 0),
    ]


def test_traces_as_dots(ask: Ask) -> None:
    """Those of one step and about one duration are one dot, apart from those that failed."""
    second = datetime.timedelta(seconds=1)
    shown = [
        (int(dot.trace_id, 16), dot.duration_nano // MS, dot.root_name, dot.is_failed)
        for dot in trace_dots(ask, second)
    ]
    assert shown == [
        (1, 100, "GET /", False),
        (2, 300, "GET /", True),
        (3, 5, "GET /health", False),
    ]
    twins = [span(n, n, 100 + n, "web", "tick", of=n) for n in range(20, 25)]
    context = datafusion.SessionContext()
    context.register_record_batches("spans", [table_of(twins, SPANS).to_batches()])
    (dot,) = trace_dots(lambda sql: context.sql(sql).to_arrow_table(), second)
    assert (int(dot.trace_id, 16), dot.trace_count) == (24, 5)
    assert (dot.time - BEGIN, dot.root_service) == (datetime.timedelta(milliseconds=24), "web")
    narrow = trace_dots(ask, second, service="db", within=TimeRange(until=BEGIN + second))
    assert [int(dot.trace_id, 16) for dot in narrow] == [1]
    assert narrow[0].duration_nano == 100 * MS, "of the whole trace, and not of what fits"
    assert trace_dots(ask, second, min_trace_nano=301 * MS) == []


def test_a_trace_is_a_tree(ask: Ask) -> None:
    """In the order of a waterfall; an id may be asked for in either case."""
    found = trace(ask, f"{1:032X}")
    assert found is not None
    (root,) = found.roots
    shown = [(depth, node.span["name"]) for depth, node in root.walk()]
    assert shown == [(0, "GET /"), (1, "load"), (2, "select"), (1, "price")]
    assert (found.span_count, found.is_cut) == (4, False)
    assert trace(ask, "ff" * 16) is None


@given(st.lists(st.integers(0, 6), max_size=7))
def test_every_span_is_in_the_tree_once(parents: list[int]) -> None:
    """Whatever the ids say: lost parents, spans that are each other's ancestors, or their own."""
    spans = [
        {"span_id": str(place), "parent_span_id": str(parent)}
        for place, parent in enumerate(parents)
    ]
    shown = [node.span["span_id"] for root in tree_of(list(spans)) for _, node in root.walk()]
    assert sorted(shown) == [str(place) for place in range(len(parents))]


def test_a_deep_trace_does_not_recurse() -> None:
    """A chain of 50,000 spans is a tree like any other."""
    chain = [{"span_id": str(n), "parent_span_id": str(n - 1)} for n in range(50_000)]
    (root,) = tree_of(list(chain))
    assert max(depth for depth, _ in root.walk()) == 49_999


def test_latencies_by_operation(ask: Ask) -> None:
    """The busiest first, with their share of failures."""
    found = latencies(ask)
    assert (found[0].service, found[0].operation, found[0].request_count) == ("cart", "load", 2)
    assert (found[0].error_count, found[0].max_nano) == (1, 250 * MS)
    percentiles = (found[0].p50_nano, found[0].p95_nano, found[0].p99_nano)
    assert percentiles == pytest.approx((150 * MS, 240 * MS, 248 * MS), rel=1e-6)
    assert {one.service for one in latencies(ask, service="web")} == {"web"}


def test_services_by_all_signals(ask: Ask) -> None:
    """One line each, also of those that send one signal only."""
    found = {one.name: one for one in services(ask)}
    assert sorted(found) == ["cart", "clock", "db", "web"]
    cart = found["cart"]
    assert (cart.request_count, cart.error_count, cart.log_count, cart.error_log_count) == (
        3,
        1,
        2,
        1,
    )
    percentiles = (cart.p50_nano, cart.p95_nano, cart.p99_nano)
    assert percentiles == pytest.approx((50 * MS, 230 * MS, 246 * MS), rel=1e-6)
    assert cart.last_seen == BEGIN + datetime.timedelta(milliseconds=1100)
    clock = found["clock"]
    assert (clock.span_count, clock.p99_nano, clock.log_count, clock.point_count) == (0, None, 0, 1)
    early = services(ask, within=TimeRange(until=BEGIN + datetime.timedelta(seconds=1)))
    assert [one.name for one in early] == ["cart", "db", "web"]


@pytest.mark.parametrize(
    ("more", "is_request"),
    [
        ({"kind": "SERVER"}, True),
        ({"kind": "CONSUMER"}, True),
        ({"kind": "INTERNAL"}, False),
        ({"kind": "CLIENT"}, False),
        ({"kind": "UNSPECIFIED"}, False),
        ({"kind": "INTERNAL", "flags": LOCAL}, False),
        ({"kind": "INTERNAL", "flags": REMOTE}, True),
        ({"kind": "UNSPECIFIED", "flags": 0x200}, False),
        ({"kind": "INTERNAL", "parent_span_id": None}, True),
        ({"kind": "CLIENT", "parent_span_id": None}, True),
    ],
)
def test_requests_are_entry_spans(more: dict[str, Any], is_request: bool) -> None:
    """By kind, parent and the flag of a remote parent, which counts only if it is said to be set;
    by every function alike."""
    given = {"parent_span_id": under(1), "flags": 0, **more}
    rows = [span(1, 0, 9, "web", "GET /", kind="SERVER"), span(2, 1, 5, "cart", "load", **given)]
    context = datafusion.SessionContext()
    tables = (("spans", rows, SPANS), ("logs", LINES[:1], LOGS), ("metrics", POINTS[:1], METRICS))
    for name, some, schema in tables:
        context.register_record_batches(name, [table_of(some, schema).to_batches()])

    def run(sql: str) -> pa.Table:
        return context.sql(sql).to_arrow_table()

    cart, _ = services(run)
    assert (cart.span_count, cart.request_count) == (1, is_request)
    steps = service_steps(run, datetime.timedelta(seconds=1), service="cart")
    assert [one.request_count for one in steps] == [1] * is_request
    assert [one.operation for one in latencies(run, service="cart")] == ["load"] * is_request
    has_parent = given["parent_span_id"] is not None
    assert [one.call_count for one in dependencies(run)] == [1] * (is_request and has_parent)


def test_a_call_counts_where_the_callee_starts(ask: Ask) -> None:
    """Its caller may have started before the time range."""
    late = TimeRange(since=BEGIN + datetime.timedelta(milliseconds=5))
    assert sum(one.call_count for one in dependencies(ask, within=late)) == 4


def test_deployments_are_versions_that_were_not_seen_before() -> None:
    """Neither the first known version, nor one that was seen before the time range."""
    hour = 3_600_000
    seen = [(0, "web", "1"), (hour, "web", "2"), (hour + 1, "web", "1"), (2 * hour, "cart", "7")]
    rows = [
        span(n, at, 5, service, "GET /", of=n, resource_attributes=[("service.version", version)])
        for n, (at, service, version) in enumerate(seen)
    ]
    rows += [span(9, 5, 5, "web", "GET /", of=9)]
    context = datafusion.SessionContext()
    context.register_record_batches("spans", [table_of(rows, SPANS).to_batches()])

    def found(**more: Any) -> list[tuple[str, str, str, datetime.datetime]]:
        return [
            (one.service, one.previous_version, one.version, one.time)
            for one in deployments(lambda sql: context.sql(sql).to_arrow_table(), **more)
        ]

    deployed = ("web", "1", "2", BEGIN + datetime.timedelta(hours=1))
    assert found() == found(service="web") == [deployed]
    assert found(within=TimeRange(since=BEGIN + datetime.timedelta(minutes=50))) == [deployed]
    assert found(within=TimeRange(since=BEGIN + datetime.timedelta(minutes=61))) == []
    assert found(service="cart") == []


def test_volumes_by_service(ask: Ask) -> None:
    """In all, and over time."""
    found = volumes(ask)
    assert (found[0].service, found[0].signal, found[0].row_count) == ("cart", "spans", 3)
    assert sum(one.row_count for one in found) == len(SHOP) + len(LINES) + len(POINTS)
    steps = volumes(ask, step=datetime.timedelta(seconds=2))
    assert sum(one.row_count for one in steps) == sum(one.row_count for one in found)
    shown = [
        ((one.time - BEGIN).seconds, one.service, one.row_count)
        for one in steps
        if one.signal == "metrics" and one.time is not None
    ]
    assert shown == [(0, "web", 1), (2, "clock", 1), (2, "web", 1)]


def test_services_over_time(ask: Ask) -> None:
    """One line for each step that a service has requests in."""
    found = [
        ((one.time - BEGIN).seconds, one.service, one.request_count, one.error_count)
        for one in service_steps(ask, datetime.timedelta(seconds=1))
    ]
    assert found == [
        (0, "cart", 2, 0),
        (0, "db", 1, 0),
        (0, "web", 1, 0),
        (1, "cart", 1, 1),
        (1, "web", 1, 0),
        (2, "web", 1, 0),
    ]
    late = service_steps(
        ask,
        datetime.timedelta(seconds=1),
        within=TimeRange(since=BEGIN + datetime.timedelta(seconds=2)),
    )
    assert [(one.service, one.p95_nano) for one in late] == [("web", 5 * MS)]


def test_origins_of_failures() -> None:
    """A failure above another one did not begin there, whatever service is asked for."""
    broken = {"status_code": "ERROR"}
    timeout = {**broken, "status_message": "too late", "attributes": [("error.type", "timeout")]}
    rows = [
        span(1, 0, 100, "web", "GET /", **broken),
        span(2, 10, 50, "cart", "load", parent_span_id=under(1), **timeout),
        span(3, 200, 10, "web", "GET /", of=2, **broken),
        span(4, 201, 5, "cart", "load", of=2, parent_span_id=under(3)),
    ]
    context = datafusion.SessionContext()
    context.register_record_batches("spans", [table_of(rows, SPANS).to_batches()])

    def run(sql: str) -> pa.Table:
        return context.sql(sql).to_arrow_table()

    shown = [
        (one.service, one.message, one.error_type, one.count, one.origin_count)
        for one in failures(run)
    ]
    assert shown == [("web", None, None, 2, 1), ("cart", "too late", "timeout", 1, 1)]
    (web,) = failures(run, service="web")
    assert (web.count, web.origin_count, int(web.last_trace_id, 16)) == (2, 1, 2)


def test_failures_by_message(ask: Ask) -> None:
    (found,) = failures(ask)
    assert (found.service, found.operation, found.count) == ("cart", "load", 1)
    assert (found.message, int(found.last_trace_id, 16)) == ("it's gone", 2)
    assert failures(ask, service="web") == []


def test_dependencies_by_parent_spans(ask: Ask) -> None:
    """Spans whose parent is of another service; a service's own calls are not shown."""
    found = [(one.caller, one.callee, one.call_count, one.error_count) for one in dependencies(ask)]
    assert found == [("web", "cart", 3, 1), ("cart", "db", 1, 0)]
    slowest = dependencies(ask)[0]
    assert 20 * MS <= slowest.p95_nano <= slowest.p99_nano <= 250 * MS
    assert not any(one.is_linked for one in dependencies(ask))


def test_dependencies_by_span_links() -> None:
    """Messages: a span is linked to those that sent what it works on. It counts once per sender."""
    empty = {"trace_state": "", "attributes": [], "dropped_attributes_count": 0, "flags": 0}
    sent = {
        number: {"trace_id": f"{1:032x}", "span_id": under(number), **empty} for number in (1, 2, 9)
    }
    rows = [
        span(1, 0, 10, "shop", "send", kind="PRODUCER"),
        span(2, 5, 10, "shop", "send", kind="PRODUCER"),
        span(3, 500, 40, "mailer", "process", of=2, links=[sent[1], sent[2], sent[9]]),
        span(4, 600, 60, "mailer", "process", of=3, links=[sent[2]], status_code="ERROR"),
        span(5, 700, 10, "shop", "look again", of=4, links=[sent[1]]),
        span(6, 6, 1, "bank", "pay", parent_span_id=under(1), kind="SERVER"),
        span(7, 6, 1, "bank", "look up", parent_span_id=under(6), kind="INTERNAL"),
    ]
    context = datafusion.SessionContext()
    context.register_record_batches("spans", [table_of(rows, SPANS).to_batches()])
    found = dependencies(lambda sql: context.sql(sql).to_arrow_table())
    shown = [(one.caller, one.callee, one.is_linked, one.call_count) for one in found]
    assert shown == [("shop", "mailer", True, 2), ("shop", "bank", False, 1)]
    assert found[0].error_count == 1
    assert 40 * MS <= found[0].p95_nano <= 60 * MS


def test_a_histogram_by_severity(ask: Ask) -> None:
    """Buckets begin at whole multiples; every record is in one."""
    bars = histogram(ask, datetime.timedelta(seconds=1))
    shown = [((bar.time - BEGIN).seconds, bar.severity, bar.count) for bar in bars]
    assert shown == [
        (0, "ERROR", 1),
        (0, "INFO", 2),
        (1, "UNSPECIFIED", 1),
        (1, "WARN", 1),
    ]
    only = histogram(ask, datetime.timedelta(seconds=1), filters={"service_name": "web"})
    assert [bar.count for bar in only] == [2]


def test_facets_of_columns_and_attributes(ask: Ask) -> None:
    """The most frequent first; an attribute is one when no column has its name."""
    found = facets(ask, ["service_name", "user"], limit=2)
    assert found[0].values == (("cart", 2), ("web", 2))
    assert dict(found[1].values) == {None: 3, "ann": 2}


def test_invalid_queries_are_refused(ask: Ask) -> None:
    """A limit out of bounds, a bucket without length, a time without a zone."""
    for limit in (0, -1, 1001):
        with pytest.raises(Malformed, match="limit"):
            find_traces(ask, limit=limit)
    with pytest.raises(Malformed, match="too short"):
        histogram(ask, datetime.timedelta(0))
    with pytest.raises(Malformed, match="time zone"):
        timestamp_sql(datetime.datetime(2026, 1, 1))  # noqa: DTZ001 - that is the fault


@given(st.text())
def test_text_values_cannot_inject_sql(value: str) -> None:
    """Nothing in a value can end the literal it is in."""
    literal = text(value)
    assert literal[0] == literal[-1] == "'"
    assert literal[1:-1].replace("''", "") == value.replace("'", "")
    assert literal[1:-1].count("'") == 2 * value.count("'")
