"""Life: since when a node runs, what it does now, and how fast data comes in."""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

from frazil.ingest import Signal, Totals, totals_of
from frazil.metrics import Counter, find
from frazil.model import NS_PER_MS, Clock

WINDOW_S = 10
"""Rates are over so many seconds, or since the start."""
QUERIES = "frazil.query.queries"
NS_PER_S = 1000 * NS_PER_MS

State = Literal["starting", "running", "stopping"]


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """What came in of one signal, and was stored, per second."""

    signal: str
    requests_per_s: float
    records_per_s: float
    bytes_per_s: float


class Rates:
    """Looks at the counters about once a second. Belongs to the event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: deque[tuple[int, dict[Signal, Totals], float]] = deque(maxlen=WINDOW_S + 1)
        self.step()

    def step(self) -> None:
        """Remember what was counted up to now."""
        totals = {signal: totals_of(signal) for signal in Signal}
        queries = find(QUERIES)
        asked = queries.total() if isinstance(queries, Counter) else 0
        self._seen.append((self._clock.monotonic_ns(), totals, asked))

    def now(self) -> list[Rate]:
        """Between the oldest look that is remembered, and the last one."""
        (begin_ns, before, _), (end_ns, after, _) = self._seen[0], self._seen[-1]
        seconds = (end_ns - begin_ns) / NS_PER_S
        return [_rate(signal, before[signal], after[signal], seconds) for signal in Signal]

    @property
    def queries_per_s(self) -> float:
        """Queries that ended."""
        (begin_ns, _, before), (end_ns, _, after) = self._seen[0], self._seen[-1]
        return (after - before) * NS_PER_S / (end_ns - begin_ns) if end_ns > begin_ns else 0.0


def _rate(signal: Signal, before: Totals, after: Totals, seconds: float) -> Rate:
    def per_s(name: str) -> float:
        risen: int = getattr(after, name) - getattr(before, name)
        return round(risen / seconds, 1) if seconds else 0.0

    return Rate(
        signal=signal.value,
        requests_per_s=per_s("accepted_requests"),
        records_per_s=per_s("accepted_records"),
        bytes_per_s=per_s("accepted_bytes"),
    )


class Life:
    """What a node knows of itself. Belongs to the event loop; others may look."""

    def __init__(self, clock: Clock) -> None:
        self.state: State = "starting"
        self.started_ms = clock.wall_ms()
        self.rates = Rates(clock)
        self._clock = clock
        self._started_ns = clock.monotonic_ns()

    @property
    def uptime_s(self) -> float:
        return (self._clock.monotonic_ns() - self._started_ns) / NS_PER_S
