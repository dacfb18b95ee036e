"""When maintenance is due: each work at its time, one bit at a time."""

from __future__ import annotations

from frazil.lake.maintain.maintained import Maintained
from frazil.lake.maintain.schedule import Schedule
from tests.sim.clock import SimClock

TEN_MINUTES_MS = 600_000


class Recorded:
    """A maintenance that has two bits of compaction to do, each time."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def tables(self) -> list[str]:
        return ["logs"]

    def compact(self, table: str) -> Maintained:
        self.calls.append("compact")
        is_more = self.calls.count("compact") % 3 != 0
        return Maintained(table=table, files_joined=2 if is_more else 0)

    def retain(self, table: str) -> Maintained:
        return self._note("retain", table)

    def join_manifests(self, table: str) -> Maintained:
        return self._note("manifests", table)

    def expire(self, table: str) -> Maintained:
        return self._note("expire", table)

    def remove_orphans(self, table: str) -> Maintained:
        return self._note("orphans", table)

    def _note(self, work: str, table: str) -> Maintained:
        self.calls.append(work)
        return Maintained(table=table)


def steps(schedule: Schedule) -> int:
    count = 0
    while schedule.step() is not None:
        count += 1
    return count


def test_files_are_not_compacted_while_the_disk_is_short() -> None:
    """Compaction needs space, and frees it only hours later; the rest of maintenance goes on."""
    clock, made = SimClock(), Recorded()
    is_short = True
    schedule = Schedule(made, TEN_MINUTES_MS, clock, is_disk_short=lambda: is_short)
    clock.advance(TEN_MINUTES_MS)
    for _ in range(4):
        schedule.step()
    assert made.calls == ["retain", "manifests", "expire"]
    is_short = False
    clock.advance(TEN_MINUTES_MS)
    steps(schedule)
    assert "compact" in made.calls


def test_each_kind_of_maintenance_runs_at_its_interval() -> None:
    """Compaction in steps, every ten minutes; expiry every hour; orphans once a day."""
    clock, made = SimClock(), Recorded()
    schedule = Schedule(made, TEN_MINUTES_MS, clock)
    assert steps(schedule) == 0
    clock.advance(TEN_MINUTES_MS)
    assert steps(schedule) == 6
    assert made.calls == ["retain", "compact", "compact", "compact", "manifests", "expire"]
    made.calls.clear()
    for _ in range(6 * 24):
        clock.advance(TEN_MINUTES_MS)
        steps(schedule)
    assert made.calls.count("manifests") == 6 * 24
    assert made.calls.count("expire") == 24
    assert made.calls.count("retain") == 24
    assert made.calls.count("orphans") == 1


def test_without_spark_only_expired_rows_are_removed() -> None:
    """An idle node does not start Spark to compact, but its rows go when they are old."""
    clock, made = SimClock(), Recorded()
    schedule = Schedule(made, TEN_MINUTES_MS, clock)
    clock.advance(TEN_MINUTES_MS)
    while schedule.step(has_spark=False) is not None:
        continue
    assert made.calls == ["retain"]
    steps(schedule)
    assert "compact" in made.calls


def test_a_failed_step_is_due_again_later() -> None:
    """It does not delay the others."""

    class Failing(Recorded):
        def join_manifests(self, table: str) -> Maintained:
            super().join_manifests(table)
            raise OSError("no")

    clock, made = SimClock(), Failing()
    schedule = Schedule(made, TEN_MINUTES_MS, clock)
    for _ in range(2):
        clock.advance(TEN_MINUTES_MS)
        for _ in range(10):
            try:
                schedule.step()
            except OSError:
                continue
    assert made.calls.count("manifests") == 2
    assert made.calls.count("expire") == 1
