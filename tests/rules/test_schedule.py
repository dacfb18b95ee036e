"""When groups are evaluated, and what a stopped clock, a slow query or a jump does to that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from frazil.rules.schedule import EvaluationTimes

INTERVAL_MS = 60_000
NOW_MS = 1_700_000_000_000


@given(st.lists(st.integers(0, 5 * INTERVAL_MS), max_size=20), st.text(max_size=5))
def test_every_time_is_taken_once_or_counted_as_missed(waits: list[int], name: str) -> None:
    times = EvaluationTimes("f.yml", name, INTERVAL_MS, NOW_MS)
    first = times.next_ms
    assert NOW_MS < first <= NOW_MS + INTERVAL_MS
    now_ms, taken, missed_count, last = NOW_MS, 0, 0, first - INTERVAL_MS
    for wait_ms in waits:
        now_ms += wait_ms
        due = times.take(now_ms)
        if due is None:
            assert now_ms < last + INTERVAL_MS
            continue
        at_ms, missed = due
        taken += 1
        missed_count += missed
        assert now_ms - INTERVAL_MS < at_ms <= now_ms
        assert (at_ms - first) % INTERVAL_MS == 0
        last = at_ms
    assert taken + missed_count == (last - first) // INTERVAL_MS + 1


def test_a_clock_that_is_set_back_begins_anew() -> None:
    times = EvaluationTimes("f.yml", "g", INTERVAL_MS, NOW_MS)
    assert times.take(NOW_MS - 10 * INTERVAL_MS) is None
    assert times.take(NOW_MS - 9 * INTERVAL_MS) is not None
    assert times.take(NOW_MS - 9 * INTERVAL_MS) is None


def test_groups_are_spread_and_keep_their_times() -> None:
    def phase(name: str, now_ms: int = NOW_MS) -> int:
        return EvaluationTimes("f.yml", name, INTERVAL_MS, now_ms).next_ms % INTERVAL_MS

    assert len({phase(f"group {number}") for number in range(50)}) > 40
    assert phase("g") == phase("g", NOW_MS + 12_345)
