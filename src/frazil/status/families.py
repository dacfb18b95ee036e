"""Families: our metrics under their Prometheus names.

`frazil.log.appended.batches` becomes `frazil_log_appended_batches`, plus `_total` for a counter.
Milliseconds become seconds, in name and value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from frazil.metrics import Counter, Histogram, Labels, Metric, declared

Kind = Literal["counter", "gauge", "histogram", "info"]
MS = ".ms"
MS_PER_S = 1000
UNITS = ("bytes", "seconds")
"""Last words of a name that OpenMetrics declares as `# UNIT`."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One sample line: suffix of the family's name, labels, value."""

    value: float
    suffix: str = ""
    labels: Labels = ()


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """All samples of one name. `name` excludes `_total` and `_info`."""

    name: str
    kind: Kind
    help_text: str
    points: tuple[Point, ...] = ()

    @property
    def full_name(self) -> str:
        """The name that PromQL uses."""
        return self.name + {"counter": "_total", "info": "_info"}.get(self.kind, "")

    @property
    def unit(self) -> str:
        last = self.name.rpartition("_")[2]
        return last if last in UNITS else ""


def own_families() -> list[Family]:
    """Return all metrics of this process."""
    return [family_of(metric) for metric in declared()]


def merged(families: Iterable[Family]) -> Iterator[Family]:
    """Join the families of several processes: each name once, equal samples added up."""
    by_name: dict[str, list[Family]] = {}
    for family in families:
        by_name.setdefault(family.name, []).append(family)
    for same in by_name.values():
        values: dict[tuple[str, Labels], float] = {}
        for point in (point for family in same for point in family.points):
            key = (point.suffix, point.labels)
            values[key] = values.get(key, 0) + point.value
        points = tuple(
            Point(value=value, suffix=suffix, labels=labels)
            for (suffix, labels), value in values.items()
        )
        yield msgspec.structs.replace(same[0], points=points)


def name_of(metric: Metric) -> str:
    """Return the Prometheus name, without `_total`."""
    name = metric.name.removesuffix(MS)
    return name.replace(".", "_") + ("_seconds" if metric.name.endswith(MS) else "")


def family_of(metric: Metric) -> Family:
    """Convert one of our metrics."""
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
            text = "+Inf" if bound == float("inf") else str(bound)
            points.append(Point(suffix="_bucket", labels=(("le", text),), value=sample.value))
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
    """Build a gauge. `None` is an unknown value: the family has no sample."""
    if points is None:
        points = ()
    elif isinstance(points, int | float):
        points = (Point(value=points),)
    return Family(name=name, kind="gauge", help_text=help_text, points=tuple(points))
