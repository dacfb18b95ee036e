"""MetricDirectory: which metrics have points in a time range, remembered for a short time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from frazil.languages.prometheus.families import MetricFamily, families_of
from frazil.model import NS_PER_MS, Clock
from frazil.query import Ask

AGE_MS = 15_000
"""How long a metric that has just arrived may be missing in a selection by pattern."""
AGE_MISSING_MS = 1_000
"""How soon a name that was not found is looked up again."""
COST_KEEP, COST_AGAIN = 20, 5
"""What was read is kept at least this many times as long as reading it took; before a missing name
is looked up again, this many times as long pass."""
MARGIN_MS = 600_000
"""How much more than asked for is read, for the next one who looks back a little further."""
KEPT_MAX = 16
MS_PER_US = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """The metrics of a time range."""

    after_ms: int
    until_ms: int
    read_ms: int
    cost_ms: int
    families: tuple[MetricFamily, ...]

    @property
    def keep_ms(self) -> int:
        return max(AGE_MS, COST_KEEP * self.cost_ms)

    def covers(self, after_ms: int, until_ms: int, age_ms: int) -> bool:
        """Return whether it has what a range has. Points newer than it are of known metrics."""
        return self.after_ms <= after_ms and until_ms <= self.until_ms + age_ms


class MetricDirectory:
    """Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._reads: deque[_Read] = deque(maxlen=KEPT_MAX)

    def families(
        self,
        ask: Ask,
        after_ms: int,
        until_ms: int,
        has_wanted: Callable[[Sequence[MetricFamily]], bool],
    ) -> tuple[MetricFamily, ...]:
        """Return the metrics with points in (after_ms, until_ms], and maybe some without. Reads
        again if what is remembered lacks what is wanted."""
        known = self._known(after_ms, until_ms)
        now_ms = self._clock.monotonic_ns() // NS_PER_MS
        if known is not None:
            is_young = now_ms - known.read_ms < max(AGE_MISSING_MS, COST_AGAIN * known.cost_ms)
            if is_young or has_wanted(known.families):
                return known.families
        return self._read(ask, after_ms, until_ms, now_ms).families

    def _known(self, after_ms: int, until_ms: int) -> _Read | None:
        now_ms = self._clock.monotonic_ns() // NS_PER_MS
        with self._lock:
            while self._reads and now_ms - self._reads[0].read_ms > self._reads[0].keep_ms:
                self._reads.popleft()
            found = [
                read
                for read in self._reads
                if now_ms - read.read_ms <= read.keep_ms
                and read.covers(after_ms, until_ms, now_ms - read.read_ms)
            ]
        return found[-1] if found else None

    def _read(self, ask: Ask, after_ms: int, until_ms: int, begin_ms: int) -> _Read:
        after_ms -= MARGIN_MS
        rows = ask(
            "SELECT metric_name, metric_type, unit, is_monotonic, aggregation_temporality, "
            "count(*) AS point_count FROM metrics "
            f"WHERE {time_condition(after_ms, until_ms)} GROUP BY metric_name, metric_type, unit, "
            "is_monotonic, aggregation_temporality"
        )
        now_ms = self._clock.monotonic_ns() // NS_PER_MS
        read = _Read(
            after_ms=after_ms,
            until_ms=until_ms,
            read_ms=begin_ms,
            cost_ms=now_ms - begin_ms,
            families=tuple(families_of(rows.to_pylist())),
        )
        with self._lock:
            self._reads.append(read)
        return read


def time_condition(after_ms: int, until_ms: int) -> str:
    """SQL of the points in (after_ms, until_ms], whose times are cut to milliseconds."""
    since_us, before_us = (after_ms + 1) * MS_PER_US, (until_ms + 1) * MS_PER_US
    return f"time >= to_timestamp_micros({since_us}) AND time < to_timestamp_micros({before_us})"
