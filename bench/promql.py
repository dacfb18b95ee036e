"""PromQL over a metric of 1,000 and one of 10,000 series, 240 steps of 15 s, beside Prometheus.

The points take the real path: OTLP into the log, the hot tier, HTTP. Prometheus receives the same
requests; both are asked in turns over HTTP, answers are read whole, and the sums of both must be
the same. Warm: the first round does not count. Prints one JSON line last; exits 1 when a bar is
missed.

    python -m bench.promql [--series 1000] [--steps 240]
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from bench.log import scratch_folder
from frazil.model import SystemClock
from tests.live.prometheus.server import real_prometheus
from tests.serve.served import Served, served

SERIES, STEPS, STEP_MS = 1000, 240, 15_000
LARGER = 10
"""The second metric has as many times the series."""
BAR_MS, LARGER_BAR_MS = 200.0, 1000.0
ROUNDS = 7
ANSWER_S = 120
NS_PER_MS = 1_000_000
LOOKS_MAX = 3000
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def bodies(series: int, steps: int, begin_ms: int) -> Iterator[bytes]:
    """Yield a request per step with a point of each series."""
    request = ExportMetricsServiceRequest()
    owner = request.resource_metrics.add()
    for key, value in (("service.name", "bench"), ("service.instance.id", "bench-1")):
        owner.resource.attributes.add(key=key).value.string_value = value
    scope = owner.scope_metrics.add()
    points = []
    for name, count in (("bench.small", series), ("bench.large", LARGER * series)):
        total = scope.metrics.add(name=name).sum
        total.is_monotonic = True
        total.aggregation_temporality = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
        for number in range(count):
            point = total.data_points.add()
            for key, value in (("http.route", f"/{number % 50}"), ("id", f"{number}")):
                point.attributes.add(key=key).value.string_value = value
            points.append(point)
    for step in range(steps):
        time_ns = (begin_ms + step * STEP_MS) * NS_PER_MS
        for number, point in enumerate(points):
            point.time_unix_nano = time_ns
            point.as_int = step * (number % 17 + 1)
        yield request.SerializeToString()


def post(url: str, body: bytes, headers: dict[str, str]) -> bytes:
    with urlopen(Request(url, body, headers), timeout=ANSWER_S) as said:
        content: bytes = said.read()
        return content


def ask(url: str, query: str, range_s: tuple[float, float]) -> tuple[float, bytes]:
    """Return the milliseconds that a range query takes, and the answer."""
    fields = {"query": query, "start": range_s[0], "end": range_s[1], "step": STEP_MS / 1000}
    body = urlencode(fields).encode()
    begin = time.perf_counter()
    answer = post(f"{url}/api/v1/query_range", body, FORM)
    return (time.perf_counter() - begin) * 1000, answer


def total_of(answer: bytes) -> tuple[int, float]:
    """Return how many values an answer has, and their sum."""
    result = json.loads(answer)["data"]["result"]
    values = [float(value) for series in result for _, value in series["values"]]
    return len(values), math.fsum(values)


def wait_for(node: Served, count: int) -> None:
    for _ in range(LOOKS_MAX):
        if node.embedded.sql("SELECT count(*) FROM metrics").fetchall() == [(count,)]:
            return
        time.sleep(0.1)
    raise AssertionError(f"{count} points did not become visible")


def measure(
    case: str, query: str, bar_ms: float | None, urls: tuple[str, str], range_s: tuple[float, float]
) -> dict[str, Any]:
    """Ask both in turns."""
    took: tuple[list[float], list[float]] = ([], [])
    answers = [b"", b""]
    for _ in range(ROUNDS + 1):
        for place, url in enumerate(urls):
            ms, answers[place] = ask(url, query, range_s)
            took[place].append(ms)
    (count, ours_sum), (peer_count, peer_sum) = map(total_of, answers)
    assert count == peer_count and math.isclose(ours_sum, peer_sum, rel_tol=1e-9), case
    ours, peer = (statistics.median(each[1:]) for each in took)
    return {
        "case": case,
        "ours": round(ours, 1),
        "peer": round(peer, 1),
        "ratio": round(ours / peer, 2),
        "bar": bar_ms,
        "ok": bar_ms is None or ours <= bar_ms,
    }


def run(folder: Path, series: int, steps: int) -> list[dict[str, Any]]:
    begin_ms = SystemClock().wall_ms() // STEP_MS * STEP_MS - steps * STEP_MS
    end_ms = begin_ms + (steps - 1) * STEP_MS
    range_s = (begin_ms / 1000, end_ms / 1000)
    with served(folder / "data") as node, real_prometheus(folder / "peer") as peer:
        for body in bodies(series, steps, begin_ms):
            headers = {"Content-Type": "application/x-protobuf"}
            post(f"http://127.0.0.1:{node.rooms.otlp.http_port}/v1/metrics", body, headers)
            peer.send(body)
        wait_for(node, series * (LARGER + 1) * steps)
        urls = (f"{node.url}/prometheus", peer.url)

        def ask_case(case: str, query: str, bar_ms: float | None) -> dict[str, Any]:
            return measure(case, query, bar_ms, urls, range_s)

        return [
            ask_case(f"{series} series, rate", "rate(bench_small_total[5m])", BAR_MS),
            ask_case(
                f"{LARGER * series} series, sum of rate",
                "sum by (http_route) (rate(bench_large_total[5m]))",
                LARGER_BAR_MS,
            ),
            ask_case(f"{LARGER * series} series, rate", "rate(bench_large_total[5m])", None),
            ask_case(f"{series} series, newest", "bench_small_total", None),
        ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=SERIES)
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    with scratch_folder() as folder:
        cases = run(folder, given.series, given.steps)
    print(json.dumps({"bench": "promql", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
