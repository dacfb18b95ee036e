"""Uptime: start time, state and recent rates of a node."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

import msgspec

from frazil.ingest import Totals, totals_of
from frazil.metrics import Counter, Histogram, find, quantile
from frazil.model import NS_PER_MS, Clock, Signal

WINDOW_S = 10
"""Window of rates, in seconds."""
QUERIES = "frazil.query.queries"
ACKNOWLEDGED, SYNCED, ANSWERED = (
    "frazil.ingest.ack.ms",
    "frazil.log.sync.ms",
    "frazil.query.duration.ms",
)
LATENCIES = (ACKNOWLEDGED, SYNCED, ANSWERED)
"""Histograms kept for the window."""
NS_PER_S = 1000 * NS_PER_MS

State = Literal["starting", "running", "stopping"]


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """Ingest rate of one signal."""

    signal: str
    requests_per_s: float
    records_per_s: float
    bytes_per_s: float


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Durations, to the resolution of the histogram."""

    count: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Counters at one time."""

    at_ns: int
    totals: dict[Signal, Totals]
    query_count: float
    counts: dict[str, tuple[int, ...]]


class Rates:
    """Rates over the window; `step` runs once a second. Owned by the event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._readings: deque[_Reading] = deque(maxlen=WINDOW_S + 1)
        self.step()

    def step(self) -> None:
        """Record the counters."""
        queries = find(QUERIES)
        self._readings.append(
            _Reading(
                at_ns=self._clock.monotonic_ns(),
                totals={signal: totals_of(signal) for signal in Signal},
                query_count=queries.total() if isinstance(queries, Counter) else 0,
                counts={
                    name: metric.counts()
                    for name in LATENCIES
                    if isinstance(metric := find(name), Histogram)
                },
            )
        )

    def now(self) -> list[Rate]:
        """Ingest rates over the window."""
        before, after, seconds = self._window()
        return [
            _rate(signal, before.totals[signal], after.totals[signal], seconds) for signal in Signal
        ]

    @property
    def queries_per_s(self) -> float:
        """Finished queries per second."""
        before, after, seconds = self._window()
        return (after.query_count - before.query_count) / seconds if seconds else 0.0

    def latency(self, name: str) -> Timing | None:
        """Durations of one of `LATENCIES` in the window; None if there were none."""
        before, after, _ = self._window()
        metric = find(name)
        if not isinstance(metric, Histogram) or name not in before.counts:
            return None
        counts = [
            new - old for old, new in zip(before.counts[name], after.counts[name], strict=True)
        ]
        p50, p99 = (quantile(metric.bounds, counts, share) for share in (0.5, 0.99))
        if p50 is None or p99 is None:
            return None
        return Timing(count=sum(counts), p50_ms=round(p50, 3), p99_ms=round(p99, 3))

    def _window(self) -> tuple[_Reading, _Reading, float]:
        before, after = self._readings[0], self._readings[-1]
        return before, after, (after.at_ns - before.at_ns) / NS_PER_S


def _rate(signal: Signal, before: Totals, after: Totals, seconds: float) -> Rate:
    def per_s(name: str) -> float:
        increase: int = getattr(after, name) - getattr(before, name)
        return round(increase / seconds, 1) if seconds else 0.0

    return Rate(
        signal=signal.value,
        requests_per_s=per_s("accepted_requests"),
        records_per_s=per_s("accepted_records"),
        bytes_per_s=per_s("accepted_bytes"),
    )


class Uptime:
    """State and rates of a node. Written by the event loop, read by any thread."""

    def __init__(self, clock: Clock) -> None:
        self.state: State = "starting"
        self.started_ms = clock.wall_ms()
        self.rates = Rates(clock)
        self._clock = clock
        self._started_ns = clock.monotonic_ns()

    @property
    def uptime_s(self) -> float:
        return (self._clock.monotonic_ns() - self._started_ns) / NS_PER_S
