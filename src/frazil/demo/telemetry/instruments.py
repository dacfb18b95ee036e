"""The metrics of the shop and all their series."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from frazil.demo import protobuf
from frazil.demo.services import Pod
from frazil.demo.telemetry.points import (
    AmountSeries,
    CounterSeries,
    DeltaCounterSeries,
    ExponentialSeries,
    GaugeSeries,
    HistogramSeries,
    Measurement,
    PointSeries,
    SummarySeries,
)

DELTA, CUMULATIVE = protobuf.whole(2, 1), protobuf.whole(2, 2)
MONOTONIC = protobuf.whole(3, 1)

Labels = tuple[tuple[str, str | bool | int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class PointKind:
    """How the points of a metric are aggregated and encoded."""

    series: Callable[[], PointSeries]
    number: int
    """Field number of the points in a Metric."""
    ending: bytes
    """Encoded temporality and monotonicity."""
    attributes: int
    """Field number of the attributes in a point."""


HISTOGRAM = PointKind(HistogramSeries, 9, CUMULATIVE, 9)
EXPONENTIAL = PointKind(ExponentialSeries, 10, CUMULATIVE, 1)
SUMMARY = PointKind(SummarySeries, 11, b"", 7)
GAUGE = PointKind(GaugeSeries, 5, b"", 7)
COUNTER = PointKind(CounterSeries, 7, CUMULATIVE + MONOTONIC, 7)
AMOUNT = PointKind(AmountSeries, 7, CUMULATIVE + MONOTONIC, 7)
UP_DOWN_COUNTER = PointKind(CounterSeries, 7, CUMULATIVE, 7)
DELTA_COUNTER = PointKind(DeltaCounterSeries, 7, DELTA + MONOTONIC, 7)


@dataclass(frozen=True, slots=True, eq=False)
class Instrument:
    """A metric."""

    name: str
    unit: str
    description: str
    kind: PointKind


HTTP_DURATION = Instrument(
    "http.server.request.duration", "s", "Duration of HTTP server requests.", HISTOGRAM
)
RPC_DURATION = Instrument("rpc.server.call.duration", "s", "Duration of inbound calls.", HISTOGRAM)
DB_DURATION = Instrument(
    "db.client.operation.duration", "s", "Duration of database client operations.", EXPONENTIAL
)
PROVIDER_LATENCY = Instrument(
    "payment_provider_latency_seconds",
    "s",
    "Calls of the payment provider, as a Prometheus client sees them.",
    SUMMARY,
)
ORDERS = Instrument("shop.orders", "{order}", "Orders placed.", COUNTER)
REVENUE = Instrument("shop.revenue", "EUR", "Value of orders.", AMOUNT)
MAILS = Instrument("shop.mails.sent", "{mail}", "Emails sent.", DELTA_COUNTER)
CARTS_OPEN = Instrument("shop.carts.open", "{cart}", "Carts that are not empty.", UP_DOWN_COUNTER)
QUEUE_LENGTH = Instrument("shop.mail.queue.length", "{message}", "Emails queued.", UP_DOWN_COUNTER)
CPU = Instrument("process.cpu.utilization", "1", "Share of a core in use.", GAUGE)
MEMORY = Instrument("process.memory.usage", "By", "Memory in use.", GAUGE)


class Measured(NamedTuple):
    """A measurement and its series."""

    pod: Pod
    metric: Instrument
    labels: Labels
    measurement: Measurement


class InstrumentSet:
    """All series of all pods. Owned by Traffic."""

    def __init__(self) -> None:
        self._series: dict[Pod, dict[tuple[Instrument, Labels], PointSeries]] = {}
        self._collected_ns: dict[Pod, int] = {}

    def add(self, measured: Measured) -> None:
        pod_series = self._series.setdefault(measured.pod, {})
        key = measured.metric, measured.labels
        series = pod_series.get(key)
        if series is None:
            series = pod_series[key] = measured.metric.kind.series()
        series.add(measured.measurement)

    def collect(self, at_ns: int) -> Iterator[tuple[Pod, bytes, int]]:
        """Yield for each pod its encoded metrics and their number of points."""
        for pod, pod_series in self._series.items():
            points: dict[Instrument, list[bytes]] = {}
            delta_start_ns = self._collected_ns.get(pod, pod.started_ns)
            for (metric, labels), series in pod_series.items():
                start_ns = delta_start_ns if metric.kind is DELTA_COUNTER else pod.started_ns
                content = (
                    protobuf.attributes(metric.kind.attributes, dict(labels))
                    + protobuf.fixed64(2, start_ns)
                    + series.point(at_ns)
                )
                points.setdefault(metric, []).append(protobuf.field(1, content))
            metrics = b"".join(_metric(metric, encoded) for metric, encoded in points.items())
            yield pod, metrics, len(pod_series)
            self._collected_ns[pod] = at_ns

    def forget(self, pod: Pod) -> None:
        """Stop reporting a pod that is gone."""
        self._series.pop(pod, None)
        self._collected_ns.pop(pod, None)


def _metric(metric: Instrument, points: list[bytes]) -> bytes:
    content = (
        protobuf.text(1, metric.name)
        + protobuf.text(2, metric.description)
        + protobuf.text(3, metric.unit)
        + protobuf.field(metric.kind.number, b"".join(points) + metric.kind.ending)
    )
    return protobuf.field(2, content)
