"""Decoding requests into rows: records per second on one core, beside protobuf objects in Python.

The peer is the tests' reference: protobuf's parser, plain Python over its objects, the same columns
built by pyarrow. Both decode the same requests in turns; CPU time is measured, so other processes
do not count. Also the time to the first rows, in a process that must compile and in one that loads
compiled code from disk. Prints one JSON line last; exits 1 when a bar is missed.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bench.ingest import request_of as log_request_of
from frazil.model import Signal
from frazil.model.arrow.decoder.decode import decode
from frazil.model.arrow.schemas import TABLES
from frazil.model.arrow.types import ExportRequest
from tests.model.arrow.decoder.reference import reference

SPAN_KIND_SERVER = Span.SpanKind.SPAN_KIND_SERVER
ROUNDS = 7
SIZES = (1000, 10)
"""Records per request."""
RECORDS = 10_000
"""Records per call."""
PEER_RECORDS = 1_000
"""Records per call of the peer, which does not get faster with more."""
BAR = 6.0
"""Records/s relative to the peer."""
COLD_S_MAX = 30.0
WARM_S_MAX = 3.0
"""Seconds until the first rows of each signal. `frazil warm` compiles at installation, so users
do not wait for the cold case."""

Case = dict[str, object]


def add_attributes(attributes: Any, pairs: Mapping[str, str | int]) -> None:
    for key, value in pairs.items():
        target = attributes.add(key=key).value
        if isinstance(value, str):
            target.string_value = value
        else:
            target.int_value = value


RESOURCE = {
    "service.name": "checkout",
    "service.namespace": "shop",
    "service.instance.id": "627cc493-f310-47de-96bd-71410b7dec09",
    "deployment.environment.name": "production",
    "host.name": "node-7",
    "k8s.pod.name": "checkout-6f7d9c5b9-x2x4q",
}


def span_request_of(records: int) -> bytes:
    """Spans of a web shop: 8 attributes each, an event in every fourth."""
    chance = random.Random(records)
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    add_attributes(resource_spans.resource.attributes, RESOURCE)
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = "io.opentelemetry.http"
    for number in range(records):
        span = scope_spans.spans.add()
        span.trace_id = chance.randbytes(16)
        span.span_id = chance.randbytes(8)
        span.parent_span_id = chance.randbytes(8)
        span.name = "GET /api/v1/products/:id"
        span.kind = SPAN_KIND_SERVER
        span.start_time_unix_nano = 1_790_000_000_000_000_000 + number * 1000
        span.end_time_unix_nano = span.start_time_unix_nano + chance.randint(10_000, 90_000_000)
        pairs: dict[str, str | int] = {
            "http.request.method": "GET",
            "http.route": "/api/v1/products/:id",
            "http.response.status_code": 200,
            "url.path": f"/api/v1/products/{chance.randint(0, 99999)}",
            "server.address": "shop.example.org",
            "server.port": 443,
            "user_agent.original": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101",
            "client.address": f"10.0.{chance.randint(0, 255)}.{chance.randint(0, 255)}",
        }
        add_attributes(span.attributes, pairs)
        if number % 4 == 0:
            event = span.events.add(name="cache miss")
            event.time_unix_nano = span.start_time_unix_nano + 500
            add_attributes(event.attributes, {"cache.key": f"product-{number}"})
    return request.SerializeToString()


def metric_request_of(records: int) -> bytes:
    """Data points: half sums, a quarter gauges, a quarter histograms with 16 buckets."""
    chance = random.Random(records)
    request: Any = ExportMetricsServiceRequest()
    resource_metrics = request.resource_metrics.add()
    add_attributes(resource_metrics.resource.attributes, RESOURCE)
    scope_metrics = resource_metrics.scope_metrics.add()
    scope_metrics.scope.name = "io.opentelemetry.runtime"
    written = 0
    while written < records:
        metric = scope_metrics.metrics.add(name=f"http.server.metric.{written}", unit="By")
        for _ in range(min(5, records - written)):
            if written % 20 < 10:
                metric.sum.is_monotonic = True
                metric.sum.aggregation_temporality = 2
                point = metric.sum.data_points.add(as_int=chance.randint(0, 1 << 30))
            elif written % 20 < 15:
                point = metric.gauge.data_points.add(as_double=round(chance.random() * 100, 3))
            else:
                metric.histogram.aggregation_temporality = 2
                point = metric.histogram.data_points.add(count=chance.randint(1, 1000), sum=12.5)
                point.bucket_counts.extend(chance.randint(0, 99) for _ in range(16))
                point.explicit_bounds.extend(float(1 << bound) for bound in range(15))
            point.start_time_unix_nano = 1_790_000_000_000_000_000
            point.time_unix_nano = 1_790_000_060_000_000_000
            pairs: dict[str, str | int] = {
                "http.request.method": "GET",
                "http.route": f"/api/v1/products/{written % 50}",
                "http.response.status_code": 200,
            }
            add_attributes(point.attributes, pairs)
            written += 1
    body: bytes = request.SerializeToString()
    return body


REQUESTS: dict[str, Callable[[int], bytes]] = {
    "logs": log_request_of,
    "traces": span_request_of,
    "metrics": metric_request_of,
}


def requests_of(signal: str, size: int, records: int) -> list[ExportRequest]:
    body = REQUESTS[signal](size)
    return [
        ExportRequest(partition=0, offset=offset, ingest_time_ms=1_790_000_000_000, body=body)
        for offset in range(records // size)
    ]


def decode_peer(signal: str, requests: list[ExportRequest]) -> pa.RecordBatch:
    rows, _ = reference(signal, requests, plain=frozenset(range(len(requests))))
    return pa.RecordBatch.from_pylist(rows, TABLES[Signal(signal).table])


def rate_of(work: Callable[[], object], records: int) -> float:
    begin = time.thread_time()
    work()
    return records / (time.thread_time() - begin)


def bench_rates() -> Iterator[Case]:
    for signal in REQUESTS:
        for size in SIZES:
            mine = requests_of(signal, size, RECORDS)
            theirs = requests_of(signal, size, PEER_RECORDS)
            assert decode(signal, theirs).batch.num_rows == PEER_RECORDS
            ours, peers = [], []
            for _ in range(ROUNDS):
                ours.append(rate_of(lambda: decode(signal, mine), RECORDS))  # noqa: B023
                peers.append(rate_of(lambda: decode_peer(signal, theirs), PEER_RECORDS))  # noqa: B023
            ratio = statistics.median(one / other for one, other in zip(ours, peers, strict=True))
            rate = statistics.median(ours)
            yield case(
                f"{signal}, {size} records a request",
                ours=round(rate),
                peer=round(statistics.median(peers)),
                unit="records/s/core",
                ratio=round(ratio, 1),
                bar=BAR,
                ok=ratio >= BAR,
                record_bytes=len(mine[0].body) // size,
                mb_per_s=round(rate * len(mine[0].body) / size / 1e6, 1),
            )


START = """
import json, sys, time
begin = time.perf_counter()
from frazil.model.arrow import decode
from frazil.model.arrow.types import Request
imported = time.perf_counter()
for signal, body in json.loads(sys.argv[1]).items():
    decode(signal, [Request(partition=0, offset=0, ingest_time_ms=0, body=bytes.fromhex(body))])
print(json.dumps({"import_s": imported - begin, "first_s": time.perf_counter() - imported}))
"""


def bench_start() -> Iterator[Case]:
    bodies = json.dumps({signal: request_of(10).hex() for signal, request_of in REQUESTS.items()})
    with tempfile.TemporaryDirectory() as folder:
        for name, limit in (("cold", COLD_S_MAX), ("warm", WARM_S_MAX)):
            done = subprocess.run(
                [sys.executable, "-c", START, bodies],
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
                check=True,
                capture_output=True,
                text=True,
            )
            took: dict[str, float] = json.loads(done.stdout)
            total = took["import_s"] + took["first_s"]
            rounded = {part: round(value, 3) for part, value in took.items()}
            yield case(
                f"{name} start",
                ours=round(total, 3),
                unit="s",
                bar=limit,
                ok=total <= limit,
                **rounded,
            )


def case(name: str, **facts: object) -> Case:
    found: Case = {"case": name, **facts}
    print(json.dumps(found), file=sys.stderr)
    return found


def main() -> int:
    cases = [*bench_rates(), *bench_start()]
    print(json.dumps({"bench": "decode", "cases": cases}))
    return 0 if all(each["ok"] for each in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
