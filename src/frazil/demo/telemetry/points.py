"""PointSeries: aggregates the measurements of one series into OTLP data points."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple, Protocol

from frazil.demo import protobuf

SECONDS_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Bounds of the semantic conventions for durations."""
SCALE = 4
"""Of exponential histograms: 16 buckets per power of two."""
QUANTILES = (0.0, 0.5, 0.9, 0.99, 1.0)
WINDOW_COUNT_MAX = 512
"""Newest values that the quantiles of a summary cover."""


class Measurement(NamedTuple):
    """A value and the span it was measured in."""

    value: float
    at_ns: int
    trace_id: bytes
    span_id: bytes

    def exemplar(self, number: int) -> bytes:
        content = (
            protobuf.fixed64(2, self.at_ns)
            + protobuf.double(3, self.value)
            + protobuf.field(4, self.span_id)
            + protobuf.field(5, self.trace_id)
        )
        return protobuf.field(number, content)


class PointSeries(Protocol):
    """Aggregates measurements into a data point, without attributes and start time."""

    def add(self, measured: Measurement) -> None:
        """Add one measurement."""

    def point(self, at_ns: int) -> bytes:
        """Return the encoded point; of delta series, since the last point."""


class HistogramSeries:
    """Fixed buckets. The newest measurement of each is its exemplar."""

    def __init__(self) -> None:
        self._counts = [0] * (len(SECONDS_BOUNDS) + 1)
        self._sum = 0.0
        self._min, self._max = math.inf, -math.inf
        self._exemplars: dict[int, Measurement] = {}

    def add(self, measured: Measurement) -> None:
        value = measured.value
        bucket = bisect_left(SECONDS_BOUNDS, value)
        self._counts[bucket] += 1
        self._sum += value
        self._min, self._max = min(self._min, value), max(self._max, value)
        self._exemplars[bucket] = measured

    def point(self, at_ns: int) -> bytes:
        exemplars = [self._exemplars[bucket].exemplar(8) for bucket in sorted(self._exemplars)]
        self._exemplars.clear()
        return b"".join(
            (
                protobuf.fixed64(3, at_ns),
                protobuf.fixed64(4, sum(self._counts)),
                protobuf.double(5, self._sum),
                protobuf.packed_fixed64(6, self._counts),
                protobuf.packed_doubles(7, SECONDS_BOUNDS),
                *exemplars,
                protobuf.double(11, self._min),
                protobuf.double(12, self._max),
            )
        )


class ExponentialSeries:
    """Exponential buckets. The newest measurement is the exemplar."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._zero_count = 0
        self._sum = 0.0
        self._min, self._max = math.inf, -math.inf
        self._newest: Measurement | None = None

    def add(self, measured: Measurement) -> None:
        value = measured.value
        if value > 0:
            bucket = math.ceil(math.log2(value) * 2**SCALE) - 1
            self._counts[bucket] = self._counts.get(bucket, 0) + 1
        else:
            self._zero_count += 1
        self._sum += value
        self._min, self._max = min(self._min, value), max(self._max, value)
        self._newest = measured

    def point(self, at_ns: int) -> bytes:
        exemplar = b"" if self._newest is None else self._newest.exemplar(11)
        self._newest = None
        positive = b""
        if self._counts:
            first, last = min(self._counts), max(self._counts)
            counts = [self._counts.get(bucket, 0) for bucket in range(first, last + 1)]
            positive = protobuf.signed(1, first) + protobuf.packed_varints(2, counts)
        return b"".join(
            (
                protobuf.fixed64(3, at_ns),
                protobuf.fixed64(4, sum(self._counts.values()) + self._zero_count),
                protobuf.double(5, self._sum),
                protobuf.signed(6, SCALE),
                protobuf.fixed64(7, self._zero_count),
                protobuf.field(8, positive),
                exemplar,
                protobuf.double(12, self._min),
                protobuf.double(13, self._max),
            )
        )


class CounterSeries:
    """A cumulative integer sum."""

    def __init__(self) -> None:
        self._value = 0

    def add(self, measured: Measurement) -> None:
        self._value += int(measured.value)

    def point(self, at_ns: int) -> bytes:
        return protobuf.fixed64(3, at_ns) + protobuf.fixed64(6, self._value)


class DeltaCounterSeries(CounterSeries):
    """A delta integer sum."""

    def point(self, at_ns: int) -> bytes:
        point = super().point(at_ns)
        self._value = 0
        return point


class AmountSeries:
    """A sum of amounts. The newest one is the exemplar."""

    def __init__(self) -> None:
        self._value = 0.0
        self._newest: Measurement | None = None

    def add(self, measured: Measurement) -> None:
        self._value += measured.value
        self._newest = measured

    def point(self, at_ns: int) -> bytes:
        exemplar = b"" if self._newest is None else self._newest.exemplar(5)
        self._newest = None
        return protobuf.fixed64(3, at_ns) + protobuf.double(4, round(self._value, 2)) + exemplar


class GaugeSeries:
    """The last value."""

    def __init__(self) -> None:
        self._value = 0.0

    def add(self, measured: Measurement) -> None:
        self._value = measured.value

    def point(self, at_ns: int) -> bytes:
        return protobuf.fixed64(3, at_ns) + protobuf.double(4, self._value)


class SummarySeries:
    """Count, sum, and quantiles of the newest values, like Prometheus clients."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0.0
        self._window: list[float] = []

    def add(self, measured: Measurement) -> None:
        if len(self._window) == WINDOW_COUNT_MAX:
            self._window[self._count % WINDOW_COUNT_MAX] = measured.value
        else:
            self._window.append(measured.value)
        self._count += 1
        self._sum += measured.value

    def point(self, at_ns: int) -> bytes:
        values = sorted(self._window)
        quantiles = [
            protobuf.double(1, item) + protobuf.double(2, values[round(item * (len(values) - 1))])
            for item in QUANTILES
        ]
        return b"".join(
            (
                protobuf.fixed64(3, at_ns),
                protobuf.fixed64(4, self._count),
                protobuf.double(5, self._sum),
                *(protobuf.field(6, item) for item in quantiles),
            )
        )
