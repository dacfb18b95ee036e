"""Uptime: start time, state and recent rates of a process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from frazil.metrics import Histogram, find, quantile
from frazil.model import NS_PER_MS, Clock

WINDOW_S = 10
"""Window of rates, in seconds."""
NS_PER_S = 1000 * NS_PER_MS

State = Literal["starting", "running", "stopping"]


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Durations, to the resolution of the histogram."""

    count: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Counters at one time."""

    at_ns: int
    values: dict[str, float]
    counts: dict[str, tuple[int, ...]]


class Rates:
    """Rates over the window; `step` runs once a second. Owned by the event loop."""

    def __init__(
        self,
        clock: Clock,
        counters: Mapping[str, Callable[[], float]],
        latencies: Sequence[str],
    ) -> None:
        """`counters` by any name; `latencies` are names of histograms."""
        self._clock = clock
        self._counters = counters
        self._latencies = latencies
        self._readings: deque[_Reading] = deque(maxlen=WINDOW_S + 1)
        self.step()

    def step(self) -> None:
        """Record the counters."""
        self._readings.append(
            _Reading(
                at_ns=self._clock.monotonic_ns(),
                values={name: read() for name, read in self._counters.items()},
                counts={
                    name: metric.counts()
                    for name in self._latencies
                    if isinstance(metric := find(name), Histogram)
                },
            )
        )

    def per_s(self, name: str) -> float:
        """The increase of a counter per second."""
        before, after, seconds = self._window()
        return (after.values[name] - before.values[name]) / seconds if seconds else 0.0

    def latency(self, name: str) -> Timing | None:
        """Durations of a histogram in the window; None if there were none."""
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


class Uptime:
    """State and rates of a process. Written by the event loop, read by any thread."""

    def __init__(self, clock: Clock, rates: Rates) -> None:
        self.state: State = "starting"
        self.started_ms = clock.wall_ms()
        self.rates = rates
        self._clock = clock
        self._started_ns = clock.monotonic_ns()

    @property
    def uptime_s(self) -> float:
        return (self._clock.monotonic_ns() - self._started_ns) / NS_PER_S
