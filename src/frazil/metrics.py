"""Counters, gauges and histograms. Each is declared beside the code that moves it and named
`frazil.<room>.<noun>.<unit>`; `collect()` gives all of them to whoever shows them.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Labels = tuple[tuple[str, str], ...]

LATENCY_BOUNDS_MS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value to show: the metric's name, its labels, its number."""

    name: str
    labels: Labels
    value: float


class Counter:
    """Only rises. Safe to move from any thread."""

    def __init__(self, name: str, help_text: str) -> None:
        self.name = name
        self.help_text = help_text
        self._lock = threading.Lock()
        self._values: dict[Labels, float] = {}
        _declare(self)

    def add(self, amount: float = 1, **labels: str) -> None:
        key = tuple(sorted(labels.items())) if labels else ()
        with self._lock:
            self._values[key] = self._values.get(key, 0) + amount

    def value(self, **labels: str) -> float:
        return self._values.get(tuple(sorted(labels.items())), 0)

    def total(self, **labels: str) -> float:
        """The sum over all sets of labels that have these."""
        wanted = labels.items()
        return sum(each.value for each in self.samples() if wanted <= dict(each.labels).items())

    def samples(self) -> Iterator[Sample]:
        with self._lock:
            values = list(self._values.items())
        for labels, value in values:
            yield Sample(name=self.name, labels=labels, value=value)


class Gauge:
    """The newest value. Safe to set from any thread."""

    def __init__(self, name: str, help_text: str) -> None:
        self.name = name
        self.help_text = help_text
        self._values: dict[Labels, float] = {}
        _declare(self)

    def set(self, value: float, **labels: str) -> None:
        self._values[tuple(sorted(labels.items()))] = value

    def value(self, **labels: str) -> float:
        return self._values.get(tuple(sorted(labels.items())), 0)

    def samples(self) -> Iterator[Sample]:
        for labels, value in list(self._values.items()):
            yield Sample(name=self.name, labels=labels, value=value)


class Histogram:
    """How values spread over fixed bounds. Safe to move from any thread."""

    def __init__(
        self, name: str, help_text: str, bounds: tuple[float, ...] = LATENCY_BOUNDS_MS
    ) -> None:
        self.name = name
        self.help_text = help_text
        self.bounds = bounds
        self._lock = threading.Lock()
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        _declare(self)

    def record(self, value: float) -> None:
        with self._lock:
            self._counts[bisect_left(self.bounds, value)] += 1
            self._sum += value

    def counts(self) -> tuple[int, ...]:
        """How many values there were up to each bound, and above the last one; not summed up."""
        with self._lock:
            return tuple(self._counts)

    def samples(self) -> Iterator[Sample]:
        with self._lock:
            counts, total = list(self._counts), self._sum
        running = 0
        for bound, count in zip((*self.bounds, float("inf")), counts, strict=True):
            running += count
            yield Sample(name=f"{self.name}.bucket", labels=(("le", str(bound)),), value=running)
        yield Sample(name=f"{self.name}.count", labels=(), value=running)
        yield Sample(name=f"{self.name}.sum", labels=(), value=total)


def quantile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float | None:
    """The value that this share of all is at or below, to the resolution of the bounds; None while
    there are none. What is above the last bound counts as that."""
    wanted = share * sum(counts)
    low, below = 0.0, 0
    for bound, count in zip(bounds, counts, strict=False):
        if count and below + count >= wanted:
            return low + (bound - low) * (wanted - below) / count
        low, below = bound, below + count
    return low if sum(counts) else None


Metric = Counter | Gauge | Histogram
_DECLARED: dict[str, Metric] = {}


def _declare(metric: Metric) -> None:
    assert metric.name not in _DECLARED, f"{metric.name} is declared twice"
    _DECLARED[metric.name] = metric


def declared() -> list[Metric]:
    """Every metric, by name, with or without a value."""
    return [_DECLARED[name] for name in sorted(_DECLARED)]


def find(name: str) -> Metric | None:
    """The metric of a name; None when nobody has declared it."""
    return _DECLARED.get(name)


def collect() -> Iterator[Sample]:
    """Every sample of every metric, by name."""
    for name in sorted(_DECLARED):
        yield from _DECLARED[name].samples()
