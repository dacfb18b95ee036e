"""Shop: requests of logs and spans, many millions of records, the same ones every time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

BEGIN_NS = 1_790_000_000_000_000_000
HOUR_NS = 3_600_000_000_000
LATE_NS = 5_000_000_000
"""A record is sent at most so long after it happened: senders gather."""
RECORDS = 500
"""Of one request, as SDKs send them."""
ROWS_PER_TRACE = 10
LOGS_PER_SPAN = 4
"""One trace in so many is sampled, and has spans; all have logs."""
USERS = 1_000_000
TEMPLATES_PER_SERVICE = 5
SKEW = 1.5
"""The n-th service sends as much as the first one divided by n to the power of this."""

NAMES = (
    "checkout cart payment catalogue search frontend gateway session user profile address basket "
    "inventory warehouse shipping label tracking returns refund invoice tax currency fraud risk "
    "review rating image thumbnail recommend advert coupon loyalty mail sms push audit report "
    "export import scheduler"
)
SERVICES = tuple(NAMES.split())
"""The busiest first."""
ROUTES = tuple(
    f"/api/v{version}/{noun}{tail}"
    for version in (1, 2)
    for noun in ("products", "orders", "users", "carts", "payments", "searches", "images")
    for tail in ("", "/:id", "/:id/history", "/bulk")
)
SEVERITIES = ((5, "DEBUG", 15), (9, "INFO", 70), (13, "WARN", 10), (17, "ERROR", 5))
"""Number, text, and how many of a hundred."""
BODIES = {
    "DEBUG": (
        "cache lookup for key product:{} took 3 ms, 2 of 16 shards asked",
        "entering handler, request {} with 3 headers and a body of 512 bytes",
        "connection {} taken from the pool, 7 idle and 9 in use",
    ),
    "INFO": (
        "GET /api/v1/products/{} HTTP/1.1 200 12ms",
        "order {} accepted, 3 items, paid by card, delivery in 2 days",
        "user logged in from a known device, session {} opened",
        "message {} consumed from topic orders, partition 4, lag 17",
        "payment {} captured by the provider after 1 attempt",
    ),
    "WARN": (
        "slow query: SELECT * FROM orders WHERE id = {} took 1830 ms",
        "retrying request {} to inventory after connection reset by peer",
        "payment {} is pending for more than 30 s, asking the provider again",
    ),
    "ERROR": (
        "payment {} failed: timeout while waiting for the provider, giving up after 3 attempts",
        "order {} refused: stock of product is 0, reservation rolled back",
        "unhandled exception in request {}: NullPointerException at CartService.java:218",
    ),
}

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Template:
    """A request, and where in each of its records the bytes are that change."""

    body: Bytes
    places: dict[str, Longs]


def trace_id_of(number: int) -> str:
    """The id of the trace with this number, as tables show it."""
    return bytes(_ids(np.array([number]), 16)[0]).hex()


class Shop:
    """An hour of telemetry: so many log records and spans, spread over the hour."""

    def __init__(self, *, logs: int, spans: int, seed: int = 5) -> None:
        self._logs = logs
        self._spans = spans
        self._chance = np.random.default_rng(seed)
        self.trace_count = max(LOGS_PER_SPAN, logs // ROWS_PER_TRACE)
        weights = np.arange(1, len(SERVICES) + 1, dtype=np.float64) ** -SKEW
        self._weights = weights / weights.sum()

    def requests(self) -> Iterator[tuple[str, bytes]]:
        """Topic and body of each request. Logs and spans come side by side, in order of time."""
        logs, spans = _templates(_log_request), _templates(_span_request)
        log_count, span_count = self._logs // RECORDS, self._spans // RECORDS
        written = 0
        for number in range(log_count):
            sent_ns = LATE_NS + (HOUR_NS - LATE_NS) * (number + 1) // log_count
            yield "otlp_logs", self._filled(self._choose(logs), sent_ns, one_in=1)
            while written * log_count < span_count * (number + 1):
                written += 1
                yield "otlp_spans", self._filled(self._choose(spans), sent_ns, LOGS_PER_SPAN)

    def current_requests(self) -> Iterator[tuple[str, bytes]]:
        """Requests without end, whose records happened in the seconds before they are asked for."""
        logs, spans = _templates(_log_request), _templates(_span_request)
        begin_ns = time.time_ns() - LATE_NS
        span_share = self._spans / (self._logs + self._spans)
        while True:
            sent_ns = time.time_ns() - begin_ns
            if self._chance.random() < span_share:
                template = self._choose(spans)
                yield "otlp_spans", self._filled(template, sent_ns, LOGS_PER_SPAN, begin_ns)
            else:
                yield "otlp_logs", self._filled(self._choose(logs), sent_ns, 1, begin_ns)

    def _choose(self, templates: list[list[Template]]) -> Template:
        some = templates[self._chance.choice(len(SERVICES), p=self._weights)]
        return some[self._chance.integers(len(some))]

    def _filled(
        self, template: Template, sent_ns: int, one_in: int, begin_ns: int = BEGIN_NS
    ) -> bytes:
        """The request with other times, ids and numbers."""
        chance, places = self._chance, template.places
        body = template.body.copy()
        times = np.sort(sent_ns - chance.integers(0, LATE_NS, RECORDS))
        traces = times * self.trace_count // HOUR_NS // one_in * one_in
        _put(body, places["time"], _little(begin_ns + times))
        _put(body, places["trace_id"], _ids(traces, 16))
        _put(body, places["span_id"], _ids(chance.integers(0, 1 << 62, RECORDS), 8))
        _put(body, places["user"], _digits(chance.integers(0, USERS, RECORDS), 7))
        if "number" in places:
            _put(body, places["number"], _digits(chance.integers(0, 10**8, RECORDS), 8))
            _put(body, places["observed"], _little(begin_ns + times + 5_000))
        if "end" in places:
            took = chance.lognormal(16, 1, RECORDS).astype(np.int64)
            _put(body, places["end"], _little(begin_ns + times + took))
        return body.tobytes()


def _little(values: Longs) -> Bytes:
    return values.astype("<u8").view(np.uint8).reshape(-1, 8)


def _digits(values: Longs, count: int) -> Bytes:
    digits = values[:, None] // 10 ** np.arange(count - 1, -1, -1) % 10
    return (digits + ord("0")).astype(np.uint8)


def _ids(numbers: Longs, length: int) -> Bytes:
    """Ids that look random (splitmix64) and are the same for the same number."""
    words = np.arange(length // 8, dtype=np.uint64)
    mixed: Any = (numbers.astype(np.uint64)[:, None] << 1) + words + 1
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> 30) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> 27) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> 31
    ids: Bytes = mixed.view(np.uint8).reshape(len(numbers), length)
    return ids


def _put(body: Bytes, places: Longs, values: Bytes) -> None:
    body[places[:, None] + np.arange(values.shape[1])] = values


Make = Callable[[str, random.Random], tuple[Any, list[dict[str, bytes]]]]
"""Makes the request of a service; says what bytes stand where something will be written."""


def _templates(make: Make) -> list[list[Template]]:
    return [
        [
            _template(*make(service, random.Random(f"{service} {n}")))
            for n in range(TEMPLATES_PER_SERVICE)
        ]
        for service in SERVICES
    ]


def _template(request: Any, marks: list[dict[str, bytes]]) -> Template:
    """Find the marks, which come in this order."""
    body = request.SerializeToString()
    places: dict[str, list[int]] = {name: [] for name in marks[0]}
    at = 0
    for mark in marks:
        for name, written in mark.items():
            at = body.index(written, at)
            places[name].append(at)
    return Template(
        body=np.frombuffer(body, np.uint8),
        places={name: np.array(found) for name, found in places.items()},
    )


def _describe(resource: Any, service: str, chance: random.Random) -> None:
    pod = f"{service}-{chance.getrandbits(32):08x}-{chance.getrandbits(20):05x}"
    pairs = {
        "service.name": service,
        "service.namespace": "shop",
        "service.instance.id": f"{chance.getrandbits(128):032x}",
        "deployment.environment.name": "production",
        "host.name": f"node-{chance.randint(1, 24)}",
        "k8s.pod.name": pod,
    }
    _add(resource.attributes, pairs)


def _add(attributes: Any, pairs: Mapping[str, str | int]) -> None:
    for key, value in pairs.items():
        target = attributes.add(key=key).value
        if isinstance(value, str):
            target.string_value = value
        else:
            target.int_value = value


def _mark(number: int) -> dict[str, int]:
    """Numbers that stand for what will be written, and for nothing else."""
    return {"time": 0x7E57_0000_0000_0000 + number, "number": 90_000_000 + number}


def _log_request(service: str, chance: random.Random) -> tuple[Any, list[dict[str, bytes]]]:
    request = ExportLogsServiceRequest()
    resource_logs = request.resource_logs.add()
    _describe(resource_logs.resource, service, chance)
    scope_logs = resource_logs.scope_logs.add()
    scope_logs.scope.name = f"shop.{service}"
    marks = []
    for number in range(RECORDS):
        mark = _mark(number)
        record = scope_logs.log_records.add()
        record.time_unix_nano = mark["time"]
        record.observed_time_unix_nano = mark["time"] + RECORDS
        level = chance.choices(SEVERITIES, [share for _, _, share in SEVERITIES])[0]
        record.severity_number = level[0]  # type: ignore[assignment]
        record.severity_text = level[1]
        record.body.string_value = chance.choice(BODIES[level[1]]).format(mark["number"])
        record.trace_id = chance.randbytes(16)
        record.span_id = chance.randbytes(8)
        user = f"{9_000_000 + number}"
        pairs: dict[str, str | int] = {
            "http.request.method": chance.choice(("GET", "GET", "GET", "POST", "PUT")),
            "http.route": chance.choice(ROUTES),
            "http.response.status_code": 500 if level[0] >= 17 else 200,
            "http.response.body.size": chance.randint(10_000, 99_999),
            "client.address": f"10.0.{chance.randint(0, 255)}.{chance.randint(0, 255)}",
            "thread.name": f"worker-{chance.randint(0, 16)}",
            "user.id": f"u{user}",
        }
        _add(record.attributes, pairs)
        marks.append(
            {
                "time": mark["time"].to_bytes(8, "little"),
                "number": str(mark["number"]).encode(),
                "user": user.encode(),
                "trace_id": record.trace_id,
                "span_id": record.span_id,
                "observed": (mark["time"] + RECORDS).to_bytes(8, "little"),
            }
        )
    return request, marks


def _span_request(service: str, chance: random.Random) -> tuple[Any, list[dict[str, bytes]]]:
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    _describe(resource_spans.resource, service, chance)
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = "io.opentelemetry.http"
    marks = []
    for number in range(RECORDS):
        mark = _mark(number)
        route, method = chance.choice(ROUTES), chance.choice(("GET", "GET", "POST"))
        is_error = chance.random() < 0.03
        span = scope_spans.spans.add()
        span.trace_id = chance.randbytes(16)
        span.span_id = chance.randbytes(8)
        span.parent_span_id = chance.randbytes(8)
        span.name = f"{method} {route}"
        span.kind = chance.choice((2, 3))  # type: ignore[assignment]
        span.start_time_unix_nano = mark["time"]
        span.end_time_unix_nano = mark["time"] + RECORDS
        if is_error:
            span.status.code = 2  # type: ignore[assignment]
            span.status.message = "the provider did not answer"
        user = f"{9_000_000 + number}"
        pairs: dict[str, str | int] = {
            "http.request.method": method,
            "http.response.status_code": 500 if is_error else 200,
            "http.route": route,
            "server.address": "shop.example.org",
            "server.port": 443,
            "url.path": route.replace(":id", str(chance.randint(0, 99_999))),
            "user.id": f"u{user}",
        }
        _add(span.attributes, pairs)
        if number % 4 == 0:
            event = span.events.add(name="cache miss")
            event.time_unix_nano = BEGIN_NS
            _add(event.attributes, {"cache.key": f"product-{number}"})
        marks.append(
            {
                "trace_id": span.trace_id,
                "span_id": span.span_id,
                "time": mark["time"].to_bytes(8, "little"),
                "end": (mark["time"] + RECORDS).to_bytes(8, "little"),
                "user": user.encode(),
            }
        )
    return request, marks
