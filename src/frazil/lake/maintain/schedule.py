"""Schedule: when each kind of maintenance is due. It runs in small steps, so that an appender round
that becomes due does not wait for long."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from frazil.lake.maintain.maintained import Maintained
from frazil.model import NS_PER_MS, Clock

HOUR_MS = 3_600_000
RETAIN_INTERVAL_MS = HOUR_MS
EXPIRE_INTERVAL_MS = HOUR_MS
ORPHANS_INTERVAL_MS = 24 * HOUR_MS
ORPHANS_FIRST_MS = HOUR_MS
"""Delay of the first orphan removal after the start; not every node runs for a day."""


class MaintenanceSteps(Protocol):
    """The kinds of maintenance, each for one table. Implemented by `Maintenance`."""

    def tables(self) -> list[str]: ...

    def retain(self, name: str, /) -> Maintained: ...

    def compact(self, name: str, /) -> Maintained: ...

    def join_manifests(self, name: str, /) -> Maintained: ...

    def expire(self, name: str, /) -> Maintained: ...

    def remove_orphans(self, name: str, /) -> Maintained: ...


@dataclass(slots=True, kw_only=True)
class _Work:
    """One kind of maintenance, repeated for every table."""

    do: Callable[[str], Maintained]
    due_ms: int
    interval_ms: int
    is_repeated: bool = False
    """Run again at once until nothing is left to do."""
    needs_space: bool = False
    """Its old files stay for hours: it waits while the disk is short."""
    needs_spark: bool = True
    """It waits until Spark has been started for something else."""


class Schedule:
    """Owned by the lake's thread."""

    def __init__(
        self,
        maintenance: MaintenanceSteps,
        interval_ms: int,
        clock: Clock,
        *,
        is_disk_short: Callable[[], bool] = lambda: False,
    ) -> None:
        """Files are not compacted while `is_disk_short`: the old ones stay for hours."""
        self._maintenance = maintenance
        self._clock = clock
        self._is_disk_short = is_disk_short
        now_ms = clock.monotonic_ns() // NS_PER_MS
        due_ms = now_ms + interval_ms
        self._works = [
            _Work(
                do=maintenance.retain,
                due_ms=due_ms,
                interval_ms=RETAIN_INTERVAL_MS,
                is_repeated=True,
                needs_spark=False,
            ),
            _Work(
                do=maintenance.compact,
                due_ms=due_ms,
                interval_ms=interval_ms,
                is_repeated=True,
                needs_space=True,
            ),
            _Work(do=maintenance.join_manifests, due_ms=due_ms, interval_ms=interval_ms),
            _Work(do=maintenance.expire, due_ms=due_ms, interval_ms=EXPIRE_INTERVAL_MS),
            _Work(
                do=maintenance.remove_orphans,
                due_ms=now_ms + ORPHANS_FIRST_MS,
                interval_ms=ORPHANS_INTERVAL_MS,
            ),
        ]
        self._waiting: deque[tuple[_Work, str]] = deque()

    def step(self, *, has_spark: bool = True) -> Maintained | None:
        """Run the next step that is due. Returns None if nothing is. A failed step is not retried
        before its next interval. Without Spark, only expired rows are removed: that starts it if
        there are any."""
        if not self._waiting:
            self._gather(has_spark)
        if not self._waiting:
            return None
        work, table = self._waiting.popleft()
        if work.needs_space and self._is_disk_short():
            return None
        done = work.do(table)
        if work.is_repeated and not done.is_nothing:
            self._waiting.appendleft((work, table))
        return done

    def _gather(self, has_spark: bool) -> None:
        now_ms = self._clock.monotonic_ns() // NS_PER_MS
        due = [
            work
            for work in self._works
            if now_ms >= work.due_ms and (has_spark or not work.needs_spark)
        ]
        for work in due:
            work.due_ms = now_ms + work.interval_ms
        if due:
            tables = self._maintenance.tables()
            self._waiting.extend((work, table) for work in due for table in tables)
