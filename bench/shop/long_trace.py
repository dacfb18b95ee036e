"""One trace of any number of spans: what a batch job over a shop's orders would send."""

from __future__ import annotations

import random
from collections.abc import Iterator

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

SERVICES = ("batch", "orders", "payment", "stock", "mail", "postgres", "cache", "bank")
OPERATIONS = ("run", "read order", "charge", "reserve", "send", "SELECT orders", "GET", "POST /pay")
CHILDREN_MAX = 6
CALLING_SHARE = (0.9, 0.7, 0.5, 0.25)
"""How many spans of a depth call others; further down as many as at the last one."""
DEPTH_MAX = 14
FAILED_SHARE = 0.01
SPANS_PER_REQUEST = 2000
SECOND_NS = 1_000_000_000


def long_trace(
    trace_id: bytes, count: int, begin_ns: int, seed: int = 7
) -> Iterator[ExportTraceServiceRequest]:
    """Requests with all of its spans: a root with many orders below it, each a small tree."""
    rand = random.Random(seed)
    spans = [(0, _span(trace_id, 1, b"", begin_ns, 30 * SECOND_NS, 0))]
    waiting: list[tuple[Span, int]] = []
    while len(spans) < count:
        root = spans[0][1]
        above, depth = waiting.pop() if waiting else (root, 0)
        for _ in range(rand.randint(1, CHILDREN_MAX)):
            if len(spans) == count:
                break
            usual = min(depth + 1, len(SERVICES) - 1)
            number = usual if rand.random() < 0.8 else rand.randrange(1, len(SERVICES))
            whole = above.end_time_unix_nano - above.start_time_unix_nano
            length = int(whole * rand.uniform(0.05, 0.9)) if depth else rand.randint(1, 200) * 10**6
            start = above.start_time_unix_nano + int(rand.random() * (whole - length))
            span = _span(trace_id, len(spans) + 1, above.span_id, start, length, number)
            if rand.random() < FAILED_SHARE:
                span.status.code = Status.STATUS_CODE_ERROR
                span.status.message = "the bank does not answer"
            spans.append((number, span))
            calling = CALLING_SHARE[min(depth, len(CALLING_SHARE) - 1)]
            if depth < DEPTH_MAX and rand.random() < calling:
                waiting.append((span, depth + 1))
    for first in range(0, count, SPANS_PER_REQUEST):
        yield _request(spans[first : first + SPANS_PER_REQUEST])


def _span(
    trace_id: bytes, number: int, parent: bytes, start: int, length: int, service: int
) -> Span:
    span = Span(
        trace_id=trace_id,
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent,
        name=OPERATIONS[service],
        kind=Span.SPAN_KIND_SERVER,
        start_time_unix_nano=start,
        end_time_unix_nano=start + max(length, 1000),
    )
    for key, text in (
        ("order.id", f"order-{number // 20}"),
        ("http.request.method", "POST"),
        ("http.route", f"/orders/{number % 50}"),
        ("server.address", f"host-{number % 9}.example"),
        ("db.query.text", f"SELECT * FROM orders WHERE id = {number}"),
        ("user.id", f"user-{number % 1000}"),
    ):
        span.attributes.add(key=key).value.string_value = text
    return span


def _request(spans: list[tuple[int, Span]]) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    for number, service in enumerate(SERVICES):
        those = [span for which, span in spans if which == number]
        if those:
            resource = request.resource_spans.add()
            resource.resource.attributes.add(key="service.name").value.string_value = service
            resource.scope_spans.add().spans.extend(those)
    return request
