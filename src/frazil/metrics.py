"""Counters, gauges and histograms. Each is declared in the module that changes it and named
`frazil.<room>.<noun>.<unit>`; `collect()` yields all samples."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Labels = tuple[tuple[str, str], ...]

LATENCY_BOUNDS_MS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value: name, labels and number."""

    name: str
    labels: Labels
    value: float


def _key(labels: dict[str, str]) -> Labels:
    return tuple(labels.items()) if len(labels) < 2 else tuple(sorted(labels.items()))


class Counter:
    """A value that only increases. Thread-safe."""

    def __init__(self, name: str, help_text: str) -> None:
        self.name = name
        self.help_text = help_text
        self._lock = threading.Lock()
        self._values: dict[Labels, float] = {}
        _declare(self)

    def add(self, amount: float = 1, **labels: str) -> None:
        key = _key(labels)
        with self._lock:
            self._values[key] = self._values.get(key, 0) + amount

    def value(self, **labels: str) -> float:
        return self._values.get(_key(labels), 0)

    def total(self, **labels: str) -> float:
        """Return the sum over all label sets that contain these labels."""
        subset = labels.items()
        return sum(s.value for s in self.samples() if subset <= dict(s.labels).items())

    def samples(self) -> Iterator[Sample]:
        with self._lock:
            values = list(self._values.items())
        for labels, value in values:
            yield Sample(name=self.name, labels=labels, value=value)


class Gauge:
    """The latest value. Thread-safe."""

    def __init__(self, name: str, help_text: str) -> None:
        self.name = name
        self.help_text = help_text
        self._values: dict[Labels, float] = {}
        _declare(self)

    def set(self, value: float, **labels: str) -> None:
        self._values[_key(labels)] = value

    def value(self, **labels: str) -> float:
        return self._values.get(_key(labels), 0)

    def samples(self) -> Iterator[Sample]:
        for labels, value in list(self._values.items()):
            yield Sample(name=self.name, labels=labels, value=value)


class Histogram:
    """Distribution of values over fixed buckets. Thread-safe."""

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
        """Return the count of each bucket, the last one for values above all bounds; not
        cumulative."""
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
    """Return the value at quantile `share`, interpolated within its bucket; None without values.
    Values above the last bound count as that bound."""
    rank = share * sum(counts)
    low, below = 0.0, 0
    for bound, count in zip(bounds, counts, strict=False):
        if count and below + count >= rank:
            return low + (bound - low) * (rank - below) / count
        low, below = bound, below + count
    return low if sum(counts) else None


Metric = Counter | Gauge | Histogram
_DECLARED: dict[str, Metric] = {}


def _declare(metric: Metric) -> None:
    assert metric.name not in _DECLARED, f"{metric.name} is declared twice"
    _DECLARED[metric.name] = metric


def declared() -> list[Metric]:
    """Return all metrics by name, with or without values."""
    return [_DECLARED[name] for name in sorted(_DECLARED)]


def find(name: str) -> Metric | None:
    """Return the metric of that name, None if there is none."""
    return _DECLARED.get(name)


def collect() -> Iterator[Sample]:
    """Yield all samples of all metrics, by name."""
    for name in sorted(_DECLARED):
        yield from _DECLARED[name].samples()
