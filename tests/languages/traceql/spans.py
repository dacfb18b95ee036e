"""A few traces with all that a query can name, and plain Python to look at them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from frazil.languages.traceql.parser import parse_traceql
from frazil.languages.traceql.search import FoundTrace, find_by_traceql
from frazil.query.search.filters import ALWAYS, Ask, TimeRange
from tests.query.build import BEGIN_US, part_of
from tests.query.in_process import InProcess

MS = 1_000_000
Value = str | int | float | bool
WORDS: dict[type, str] = {str: "s", int: "i", float: "d", bool: "b"}
ALL = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An event of a span."""

    name: str
    at_ms: int = 0
    tags: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """A link of a span."""

    trace: int
    span: int
    tags: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSpan:
    """A span as a test sees it."""

    id: int
    trace: int
    name: str
    service: str
    parent: int | None = None
    at_ms: int = 0
    ms: float = 1
    kind: str = "INTERNAL"
    status: str = "UNSET"
    message: str | None = None
    scope: str | None = None
    version: str | None = None
    tags: Mapping[str, Value] = field(default_factory=dict)
    resource: Mapping[str, Value] = field(default_factory=dict)
    scope_tags: Mapping[str, Value] = field(default_factory=dict)
    events: Sequence[Happening] = ()
    links: Sequence[Pointer] = ()

    @property
    def nanos(self) -> int:
        return round(self.ms * MS)

    def any(self, key: str) -> Value | None:
        """The attribute of the span, else of its resource."""
        return self.tags.get(key, self.of_resource.get(key))

    @property
    def of_resource(self) -> Mapping[str, Value]:
        return {"service.name": self.service, **self.resource}


def text_of(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def pairs(values: Mapping[str, Value]) -> list[tuple[str, str]]:
    return [(key, text_of(values[key])) for key in sorted(values)]


def words(*maps: Mapping[str, Value]) -> str:
    found = "".join(WORDS[type(values[key])] for values in maps for key in sorted(values))
    return found if set(found) - {"s"} else ""


def row_of(span: OneSpan, number: int) -> dict[str, Any]:
    """The span as a row of the table."""
    start = BEGIN_US * 1000 + span.at_ms * MS
    parts = (
        words(span.of_resource),
        words(span.scope_tags),
        words(span.tags, *(e.tags for e in span.events), *(link.tags for link in span.links)),
    )
    promoted = {
        "http_request_method": span.tags.get("http.request.method"),
        "http_route": span.tags.get("http.route"),
        "host_name": span.resource.get("host.name"),
    }
    return {
        "_offset": number,
        "time": start // 1000,
        "time_unix_nano": start,
        "end_time_unix_nano": start + span.nanos,
        "duration_nano": span.nanos,
        "service_name": span.service,
        "trace_id": f"{span.trace:032x}",
        "span_id": f"{span.id:016x}",
        "parent_span_id": None if span.parent is None else f"{span.parent:016x}",
        "name": span.name,
        "kind": span.kind,
        "status_code": span.status,
        "status_message": span.message,
        "scope_name": span.scope,
        "scope_version": span.version,
        "attributes": pairs(span.tags),
        "resource_attributes": pairs(span.of_resource),
        "scope_attributes": pairs(span.scope_tags),
        "events": [
            {
                "time_unix_nano": start + event.at_ms * MS,
                "name": event.name,
                "attributes": pairs(event.tags),
                "dropped_attributes_count": 0,
            }
            for event in span.events
        ],
        "links": [
            {
                "trace_id": f"{link.trace:032x}",
                "span_id": f"{link.span:016x}",
                "trace_state": "",
                "attributes": pairs(link.tags),
                "dropped_attributes_count": 0,
                "flags": 0,
            }
            for link in span.links
        ],
        "_value_types": "|".join(parts) if any(parts) else None,
        **promoted,
    }


WEB: Mapping[str, Value] = {"host.name": "node-a", "replica": 1}
CART: Mapping[str, Value] = {"host.name": "node-b", "replica": 2, "k8s.pod": "cart-0"}
CRASH = Happening(
    name="exception",
    at_ms=3,
    tags={"exception.type": "IOError", "exception.message": "disk full", "attempt": 2},
)
RETRY = Happening(name="retry", at_ms=1, tags={"attempt": 1})

SPANS = (
    # A request with two calls, one of which fails below.
    OneSpan(
        id=1,
        trace=1,
        name="GET /",
        service="web",
        ms=100,
        kind="SERVER",
        resource=WEB,
        scope="http",
        version="1.2",
        tags={"http.request.method": "GET", "http.route": "/", "http.status": 200, "user": "ann"},
    ),
    OneSpan(
        id=2,
        trace=1,
        parent=1,
        at_ms=10,
        ms=50,
        name="call cart",
        service="web",
        kind="CLIENT",
        resource=WEB,
        tags={"peer": "cart", "retries": 2, "ratio": 0.5},
    ),
    OneSpan(
        id=3,
        trace=1,
        parent=2,
        at_ms=15,
        ms=40,
        name="load",
        service="cart",
        kind="SERVER",
        status="ERROR",
        message="it's gone",
        resource=CART,
        events=[RETRY, CRASH],
        tags={"http.status": 500, "cached": False, "replica": 9},
        scope="grpc",
        scope_tags={"build": "a7"},
    ),
    OneSpan(
        id=4,
        trace=1,
        parent=3,
        at_ms=20,
        ms=5.5,
        name="select",
        service="cart",
        kind="CLIENT",
        resource=CART,
        tags={"db.system": "sqlite", "rows": 12},
    ),
    OneSpan(
        id=5,
        trace=1,
        parent=1,
        at_ms=70,
        ms=20,
        name="render",
        service="web",
        resource=WEB,
        status="OK",
        tags={"cached": True, "ratio": 1.5, "note": 'a "b"\nc'},
    ),
    # The same route, without errors, with two equal siblings.
    OneSpan(
        id=11,
        trace=2,
        at_ms=1000,
        ms=30,
        name="GET /",
        service="web",
        kind="SERVER",
        resource=WEB,
        tags={"http.request.method": "GET", "http.route": "/", "http.status": 200, "user": "bob"},
    ),
    OneSpan(
        id=12,
        trace=2,
        parent=11,
        at_ms=1001,
        ms=3,
        name="load",
        service="cart",
        kind="SERVER",
        resource=CART,
        tags={"http.status": 200, "cached": True},
    ),
    OneSpan(
        id=13,
        trace=2,
        parent=11,
        at_ms=1005,
        ms=4,
        name="load",
        service="cart",
        kind="SERVER",
        resource=CART,
        tags={"http.status": 404, "cached": False},
    ),
    # A message, linked with the first trace; its root did not arrive.
    OneSpan(
        id=21,
        trace=3,
        parent=99,
        at_ms=2000,
        ms=250,
        name="send mail",
        service="mailer",
        kind="CONSUMER",
        links=[Pointer(trace=1, span=4, tags={"queue": "mails"})],
        tags={"user": "ann", "size": 12.0, "text-code": "7"},
    ),
    OneSpan(
        id=22,
        trace=3,
        parent=21,
        at_ms=2010,
        ms=200,
        name="connect",
        service="mailer",
        kind="PRODUCER",
        status="ERROR",
        message="refused",
        events=[CRASH],
        tags={"peer": "cart", "retries": 5},
    ),
    # One span alone.
    OneSpan(
        id=31,
        trace=4,
        at_ms=3000,
        ms=0.25,
        name="tick",
        service="clock",
        kind="UNSPECIFIED",
        tags={"n": 7, "weird key": "yes", "ratio": -2.0},
    ),
)
BY_ID = {span.id: span for span in SPANS}


def children(span: OneSpan) -> list[OneSpan]:
    return [each for each in SPANS if each.parent == span.id and each.trace == span.trace]


def parent(span: OneSpan) -> OneSpan | None:
    found = BY_ID.get(span.parent or 0)
    return found if found is not None and found.trace == span.trace else None


def ancestors(span: OneSpan) -> Iterator[OneSpan]:
    above = parent(span)
    while above is not None:
        yield above
        above = parent(above)


def siblings(span: OneSpan) -> list[OneSpan]:
    above = parent(span)
    return [] if above is None else [each for each in children(above) if each is not span]


def trace_of(span: OneSpan) -> list[OneSpan]:
    return [each for each in SPANS if each.trace == span.trace]


def root_of(span: OneSpan) -> OneSpan:
    return min(trace_of(span), key=lambda each: (each.parent is not None, each.at_ms))


def trace_nanos(span: OneSpan) -> int:
    spans = trace_of(span)
    end = max(each.at_ms * MS + each.nanos for each in spans)
    return end - min(each.at_ms for each in spans) * MS


@pytest.fixture(scope="module")
def ask() -> Ask:
    """Queries over the spans; two pieces, whose rows are in another order than their times."""
    rows = [row_of(span, number) for number, span in enumerate(SPANS)]
    worker = InProcess({"spans": [part_of("spans", rows[4:]), part_of("spans", rows[:4])]})

    def run(text: str) -> pa.Table:
        return worker.sql(text)

    return run


def find(ask: Ask, query: str, within: TimeRange = ALWAYS) -> list[FoundTrace]:
    """All traces of a query with all of their spans."""
    pipeline = parse_traceql(query).pipeline
    return find_by_traceql(ask, pipeline, within=within, limit=ALL, spans_per_spanset=ALL)


def spansets(found: Sequence[FoundTrace]) -> list[list[int]]:
    """The ids of the spans of each spanset."""
    return sorted(
        [int(span.span_id, 16) for span in spanset.spans]
        for trace in found
        for spanset in trace.spansets
    )


def ids(found: Sequence[FoundTrace]) -> list[int]:
    return sorted(set(itertools.chain.from_iterable(spansets(found))))
