"""A short run of the torture of frozen keyed tables; `make torture KIND=keyed_lake` breaks at every
step."""

from __future__ import annotations

from tests.torture.keyed_lake import run

STEPS = ("swapped", "raced", "merge_swapped")


def test_keyed_lake() -> None:
    """Kill a freeze and a compaction after their commits, and compact while a freeze runs."""
    report = run.run(len(STEPS), 5, steps=STEPS)
    assert report.is_valid, report.as_json()
