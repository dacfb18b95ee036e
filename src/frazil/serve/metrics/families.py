"""Families: every metric under the name that Prometheus knows it by.

Names are fixed by one rule. `frazil.log.appended.batches` is `frazil_log_appended_batches`, with
`_total` behind it for a counter. Milliseconds become seconds, in name and value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from frazil import metrics
from frazil.metrics import Counter, Histogram, Labels, Metric

Kind = Literal["counter", "gauge", "histogram", "info", "summary"]
MS = ".ms"
MS_PER_S = 1000
UNITS = ("bytes", "seconds")
"""Words at the end of a name that are units to Prometheus; others are things that are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One line: what is behind the family's name, labels, value."""

    value: float
    suffix: str = ""
    labels: Labels = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """All lines of one name. The name of a counter is without `_total`."""

    name: str
    kind: Kind
    help_text: str
    points: tuple[Point, ...] = field(default=())

    @property
    def shown_name(self) -> str:
        """As it is asked for."""
        return self.name + {"counter": "_total", "info": "_info"}.get(self.kind, "")

    @property
    def unit(self) -> str:
        last = self.name.rpartition("_")[2]
        return last if last in UNITS else ""


def name_of(metric: Metric) -> str:
    """Without `_total`."""
    name = metric.name.removesuffix(MS)
    return name.replace(".", "_") + ("_seconds" if metric.name.endswith(MS) else "")


def family_of(metric: Metric) -> Family:
    """A metric of ours as it is shown."""
    if isinstance(metric, Histogram):
        return _histogram(metric)
    points = tuple(Point(value=s.value, labels=s.labels) for s in metric.samples())
    kind: Kind = "counter" if isinstance(metric, Counter) else "gauge"
    return Family(name=name_of(metric), kind=kind, help_text=metric.help_text, points=points)


def _histogram(metric: Histogram) -> Family:
    scale = MS_PER_S if metric.name.endswith(MS) else 1
    points = []
    for sample in metric.samples():
        part = sample.name.removeprefix(metric.name)
        if part == ".bucket":
            bound = float(dict(sample.labels)["le"]) / scale
            shown = "+Inf" if bound == float("inf") else str(bound)
            points.append(Point(suffix="_bucket", labels=(("le", shown),), value=sample.value))
        elif part == ".sum":
            points.append(Point(suffix="_sum", value=sample.value / scale))
        else:
            points.append(Point(suffix="_count", value=sample.value))
    return Family(
        name=name_of(metric), kind="histogram", help_text=metric.help_text, points=tuple(points)
    )


def counter(name: str, help_text: str, points: Iterable[Point]) -> Family:
    return Family(name=name, kind="counter", help_text=help_text, points=tuple(points))


def gauge(name: str, help_text: str, points: Iterable[Point] | float | None) -> Family:
    """`None` is a value that nobody knows: the family is there, and has no line."""
    if points is None:
        points = ()
    elif isinstance(points, int | float):
        points = (Point(value=points),)
    return Family(name=name, kind="gauge", help_text=help_text, points=tuple(points))


def points_by(values: Mapping[str, float], label: str) -> Iterator[Point]:
    """A point for each value of one label."""
    for name, value in values.items():
        yield Point(value=value, labels=((label, name),))


def quantile(metric: Histogram, share: float) -> float | None:
    """Of all values since the start; None while there are none."""
    return metrics.quantile(metric.bounds, metric.counts(), share)
