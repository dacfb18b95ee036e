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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Instrument:
    """A metric."""

    name: str
    unit: str
    description: str
    series: Callable[[], PointSeries]
    number: int
    """Field number of the points in a Metric."""
    ending: bytes
    """Encoded temporality and monotonicity."""
    attributes: int
    """Field number of the attributes in a point."""
    is_delta: bool = False


def _histogram(name: str, description: str) -> Instrument:
    return Instrument(
        name=name,
        unit="s",
        description=description,
        series=HistogramSeries,
        number=9,
        ending=CUMULATIVE,
        attributes=9,
    )


def _sum(
    name: str, unit: str, description: str, series: type[PointSeries], ending: bytes
) -> Instrument:
    return Instrument(
        name=name,
        unit=unit,
        description=description,
        series=series,
        number=7,
        ending=ending,
        attributes=7,
        is_delta=series is DeltaCounterSeries,
    )


def _gauge(name: str, unit: str, description: str) -> Instrument:
    return Instrument(
        name=name,
        unit=unit,
        description=description,
        series=GaugeSeries,
        number=5,
        ending=b"",
        attributes=7,
    )


HTTP_DURATION = _histogram("http.server.request.duration", "Duration of HTTP server requests.")
RPC_DURATION = _histogram("rpc.server.call.duration", "Duration of inbound calls.")
DB_DURATION = Instrument(
    name="db.client.operation.duration",
    unit="s",
    description="Duration of database client operations.",
    series=ExponentialSeries,
    number=10,
    ending=CUMULATIVE,
    attributes=1,
)
PROVIDER_LATENCY = Instrument(
    name="payment_provider_latency_seconds",
    unit="s",
    description="Calls of the payment provider, as a Prometheus client sees them.",
    series=SummarySeries,
    number=11,
    ending=b"",
    attributes=7,
)
RISING = CUMULATIVE + MONOTONIC
ORDERS = _sum("shop.orders", "{order}", "Orders placed.", CounterSeries, RISING)
REVENUE = _sum("shop.revenue", "EUR", "What orders are worth.", AmountSeries, RISING)
MAILS = _sum("shop.mails.sent", "{mail}", "Mails sent.", DeltaCounterSeries, DELTA + MONOTONIC)
CARTS_OPEN = _sum(
    "shop.carts.open", "{cart}", "Carts with something in.", CounterSeries, CUMULATIVE
)
QUEUE_LENGTH = _sum(
    "shop.mail.queue.length", "{message}", "Mails to send.", CounterSeries, CUMULATIVE
)
CPU = _gauge("process.cpu.utilization", "1", "Share of a core in use.")
MEMORY = _gauge("process.memory.usage", "By", "Memory in use.")


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
            series = pod_series[key] = measured.metric.series()
        series.add(measured.measurement)

    def collect(self, at_ns: int) -> Iterator[tuple[Pod, bytes, int]]:
        """Yield for each pod its encoded metrics and their number of points."""
        for pod, pod_series in self._series.items():
            points: dict[Instrument, list[bytes]] = {}
            delta_start_ns = self._collected_ns.get(pod, pod.started_ns)
            for (metric, labels), series in pod_series.items():
                start_ns = delta_start_ns if metric.is_delta else pod.started_ns
                content = (
                    protobuf.attributes(metric.attributes, dict(labels))
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
        + protobuf.field(metric.number, b"".join(points) + metric.ending)
    )
    return protobuf.field(2, content)
