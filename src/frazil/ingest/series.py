"""SeriesLimit: refuses data points of new metric series of a service that has too many.

Series are remembered in memory, as hashes, for one to two hours after their last data point. After
a restart none are known, and each service may send as many as the limit again. Data points of known
series are always accepted.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter as Tally
from dataclasses import dataclass

import numpy as np

from frazil.ingest.otlp.scan import without_records
from frazil.ingest.otlp.scan_walk import Positions
from frazil.ingest.otlp.series_walk import (
    POINT_BEGIN,
    POINT_HASH,
    POINT_METRIC,
    POINT_METRIC_END,
    POINT_RESOURCE,
    POINT_RESOURCE_END,
    POINT_WORDS,
    find_name,
    find_service,
    identify,
)
from frazil.metrics import Counter, Gauge
from frazil.model import NS_PER_MS, Clock, Signal

logger = logging.getLogger(__name__)

WINDOW_MS = 3_600_000
"""A series is forgotten when it had no data point in one whole window."""
TRACKED_MAX = 1_000_000
"""Series remembered, of all services; about 100 bytes each. Beyond it, series are not limited."""
NAME_BYTES_MAX = 200
"""Of a service or metric in memory and in messages."""
LISTED_MAX = 20
"""Services listed in the status."""

TRACKED = Gauge("frazil.ingest.series.tracked", "Metric series remembered for the series limit.")
UNTRACKED = Counter(
    "frazil.ingest.series.untracked",
    "Data points of new series accepted beyond what is remembered.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesResult:
    """A request without data points of refused series."""

    body: bytes
    rejected_count: int
    message: str


class SeriesLimit:
    """The series of every service. Any thread may call it."""

    def __init__(self, per_service_max: int, clock: Clock) -> None:
        self._max = per_service_max
        self._clock = clock
        self._lock = threading.Lock()
        self._window_ns = clock.monotonic_ns()
        self._recent: dict[bytes, set[int]] = {}
        self._older: dict[bytes, set[int]] = {}
        self._counts: Tally[bytes] = Tally()
        """Series of each service in either set."""
        self._tracked = 0
        self._full: dict[bytes, int] = {}
        """Services that reached the limit, and data points refused."""
        warm()

    def enforce(self, body: bytes) -> SeriesResult:
        """Return a valid metrics request without data points of series beyond the limit."""
        source = np.frombuffer(body, np.uint8)
        points: Positions = np.empty((0, POINT_WORDS), np.int64)
        points = np.empty((identify(source, points), POINT_WORDS), np.int64)
        identify(source, points)
        services = _services(body, points)
        with self._lock:
            self._turn()
            refused = [
                index
                for index, (service, series) in enumerate(
                    zip(services, points[:, POINT_HASH].tolist(), strict=True)
                )
                if not self._admit(service, series)
            ]
            TRACKED.set(self._tracked)
        if not refused:
            return SeriesResult(body=body, rejected_count=0, message="")
        starts = points[refused, POINT_BEGIN]
        return SeriesResult(
            body=without_records(Signal.METRICS, body, starts),
            rejected_count=len(refused),
            message=self._message(body, points[refused[0]], services[refused[0]], len(refused)),
        )

    def full_services(self) -> list[str]:
        """Return services whose new series are refused, at most LISTED_MAX."""
        with self._lock:
            return [_shown(name) for name in list(self._full)[:LISTED_MAX]]

    def _admit(self, service: bytes, series: int) -> bool:
        recent = self._recent.get(service)
        if recent is not None and series in recent:
            return True
        older = self._older.get(service)
        is_known = older is not None and series in older
        if not is_known and self._counts[service] >= self._max:
            self._full[service] = self._full.get(service, 0) + 1
            return False
        if self._tracked >= TRACKED_MAX:
            UNTRACKED.add()
            return True
        if recent is None:
            recent = self._recent[service] = set()
        recent.add(series)
        self._tracked += 1
        self._counts[service] += not is_known
        return True

    def _turn(self) -> None:
        """Forget series that had no data point in the last whole window."""
        now_ns = self._clock.monotonic_ns()
        passed = (now_ns - self._window_ns) // (WINDOW_MS * NS_PER_MS)
        if not passed:
            return
        self._window_ns += passed * WINDOW_MS * NS_PER_MS
        self._older = self._recent if passed == 1 else {}
        self._recent = {}
        self._counts = Tally({name: len(series) for name, series in self._older.items()})
        self._tracked = self._counts.total()
        self._full = {}

    def _message(self, body: bytes, point: Positions, service: bytes, count: int) -> str:
        begin, end = find_name(
            np.frombuffer(body, np.uint8), int(point[POINT_METRIC]), int(point[POINT_METRIC_END])
        )
        metric = _shown(body[begin:end][:NAME_BYTES_MAX])
        if self._full.get(service, 0) <= count:
            logger.warning(
                "a service has too many metric series; new ones are rejected",
                extra={"service": _shown(service), "metric": metric, "series_max": self._max},
            )
        return (
            f"{count} data points of new series were rejected: service {_shown(service)!r} has "
            f"reached ingest.limits.series_per_service_max ({self._max}), the first with metric "
            f"{metric!r}; remove attributes with many values, or raise the limit"
        )


def _services(body: bytes, points: Positions) -> list[bytes]:
    """Return the service of each data point."""
    source = np.frombuffer(body, np.uint8)
    names: dict[int, bytes] = {}
    resources = points[:, POINT_RESOURCE].tolist()
    for resource, end in zip(resources, points[:, POINT_RESOURCE_END].tolist(), strict=True):
        if resource not in names:
            begin, after = find_service(source, resource, end)
            names[resource] = body[begin:after][:NAME_BYTES_MAX]
    return [names[resource] for resource in resources]


def _shown(name: bytes) -> str:
    return name.decode(errors="replace") or "unknown_service"


def warm() -> None:
    """Compile the loops, or load them from disk, so that no request waits."""
    nothing = np.empty(0, np.uint8)
    identify(nothing, np.empty((0, POINT_WORDS), np.int64))
    find_service(nothing, 0, 0)
    find_name(nothing, 0, 0)
