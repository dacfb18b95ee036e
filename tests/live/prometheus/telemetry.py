"""OTLP requests with every type of metric: counters that restart, gaps, ends of series."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Metric,
    ScopeMetrics,
)

STEP_MS = 15_000
STEPS = 240
NS_PER_MS = 1_000_000
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
NO_RECORDED_VALUE = 1
SERVICES = ("cart", "gateway", "search")
ROUTES = ("/", "/api/items", "/api/items/{id}")
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
MERGED_ABOVE = 8
"""Prometheus merges buckets of a finer scale."""
RESTART_ODDS, GAP_ODDS, END_ODDS = 0.01, 0.05, 0.02


def requests(begin_ms: int, seed: int = 24) -> Iterator[bytes]:
    """Yield a request per step."""
    rand = Random(seed)
    senders = [_Sender(service, number, rand) for service in SERVICES for number in range(2)]
    for step in range(STEPS):
        request = ExportMetricsServiceRequest()
        for sender in senders:
            time_ms = begin_ms + step * STEP_MS + rand.randrange(50)
            if rand.random() >= GAP_ODDS:
                sender.add_to(request, time_ms * NS_PER_MS)
        yield request.SerializeToString()


def _pairs(**values: str) -> list[KeyValue]:
    return [
        KeyValue(key=key.replace("__", "."), value=AnyValue(string_value=value))
        for key, value in sorted(values.items())
    ]


class _Sender:
    """A service instance. It restarts now and then: then its counters begin again."""

    def __init__(self, service: str, number: int, rand: Random) -> None:
        self._service, self._number, self._rand = service, number, rand
        self._start()

    def _start(self) -> None:
        self._counts = dict.fromkeys(ROUTES, 0)
        self._buckets = {route: [0] * (len(BOUNDS) + 1) for route in ROUTES}
        self._sums = dict.fromkeys(ROUTES, 0.0)
        self._exponential = [0] * 40
        self._zeros = 0

    def add_to(self, request: ExportMetricsServiceRequest, time_ns: int) -> None:
        if self._rand.random() < RESTART_ODDS:
            self._start()
        owner = request.resource_metrics.add()
        identity = {"service__name": self._service, "host__name": f"node-{self._number}"}
        identity |= {"service__instance__id": f"{self._service}-{self._number}"}
        if self._service != "search":
            identity |= {"service__namespace": "shop"}
        owner.resource.attributes.extend(_pairs(**identity))
        scope = owner.scope_metrics.add()
        self._add_requests(scope, time_ns)
        self._add_gauges(scope, time_ns)
        self._add_exponential(scope, time_ns)
        self._add_summary(scope, time_ns)

    def _add_requests(self, scope: ScopeMetrics, time_ns: int) -> None:
        counter = scope.metrics.add(name="http.requests", unit="{request}")
        counter.sum.is_monotonic = True
        counter.sum.aggregation_temporality = CUMULATIVE
        durations = scope.metrics.add(name="http.server.duration", unit="s")
        durations.histogram.aggregation_temporality = CUMULATIVE
        for route in ROUTES:
            self._measure(route)
            attributes = _pairs(http__route=route, method=self._rand.choice(("GET",)))
            counter.sum.data_points.add(
                attributes=attributes, time_unix_nano=time_ns, as_int=self._counts[route]
            )
            durations.histogram.data_points.add(
                attributes=attributes,
                time_unix_nano=time_ns,
                count=self._counts[route],
                sum=self._sums[route],
                explicit_bounds=BOUNDS,
                bucket_counts=self._buckets[route],
            )

    def _measure(self, route: str) -> None:
        for _ in range(self._rand.randrange(20)):
            seconds = self._rand.lognormvariate(-3.0, 1.2)
            self._counts[route] += 1
            self._sums[route] += seconds
            self._buckets[route][sum(bound < seconds for bound in BOUNDS)] += 1

    def _add_gauges(self, scope: ScopeMetrics, time_ns: int) -> None:
        for name, unit in (("cpu.utilization", "1"), ("memory.usage", "By")):
            metric = scope.metrics.add(name=name, unit=unit)
            is_end = self._rand.random() < END_ODDS
            metric.gauge.data_points.add(
                time_unix_nano=time_ns,
                as_double=self._rand.gauss(0.5, 0.1),
                flags=NO_RECORDED_VALUE if is_end else 0,
            )
        connections: Metric = scope.metrics.add(name="connections", unit="{connection}")
        connections.sum.aggregation_temporality = CUMULATIVE
        connections.sum.data_points.add(time_unix_nano=time_ns, as_int=self._rand.randrange(-5, 50))

    def _add_exponential(self, scope: ScopeMetrics, time_ns: int) -> None:
        for _ in range(self._rand.randrange(10)):
            self._exponential[self._rand.randrange(10, 30)] += 1
        self._zeros += self._rand.randrange(2)
        for name, scale in (("db.latency", 2), ("db.fine.latency", 10)):
            metric = scope.metrics.add(name=name, unit="ms")
            metric.exponential_histogram.aggregation_temporality = CUMULATIVE
            point = metric.exponential_histogram.data_points.add(
                time_unix_nano=time_ns,
                count=sum(self._exponential) + self._zeros,
                sum=sum(self._exponential) * 1.5,
                scale=scale,
                zero_count=self._zeros,
            )
            point.positive.offset = -7
            # Where Prometheus merges buckets, it puts what follows an empty one elsewhere.
            empty = 0 if scale <= MERGED_ABOVE else 1
            point.count += empty * len(self._exponential)
            point.positive.bucket_counts.extend(count + empty for count in self._exponential)

    def _add_summary(self, scope: ScopeMetrics, time_ns: int) -> None:
        metric = scope.metrics.add(name="gc.pause", unit="ms")
        point = metric.summary.data_points.add(
            time_unix_nano=time_ns, count=self._counts["/"], sum=self._sums["/"]
        )
        for quantile in (0.0, 0.5, 0.99, 1.0):
            point.quantile_values.add(quantile=quantile, value=self._rand.random() + quantile)
