"""Short runs of the tortures of the Kafka port; `make torture` runs the long ones."""

from __future__ import annotations

import pytest

from tests.fuzz import kafka as fuzz_kafka
from tests.torture.__main__ import kill_kafka, run_kafka
from tests.torture.kafka import live
from tests.torture.kafka.mutants import MUTANTS, mutated
from tests.torture.report import Report


def assert_valid(report: Report) -> None:
    assert report.is_valid, report.as_json()


def test_sim() -> None:
    """Kills, power cuts and a bad network lose, repeat and tear nothing."""
    assert_valid(run_kafka(40, 1, is_short=True))


@pytest.mark.parametrize(
    "name", ["undecided_visible", "forgotten_open", "same_epoch", "offsets_at_once"]
)
def test_bugs_are_detected(name: str) -> None:
    """A bug put in on purpose is found within a few seeds."""
    _, seeds = kill_kafka((name, 1, 8))
    assert seeds > 0


def test_every_bug_can_be_put_in() -> None:
    """What it patches is still there."""
    for name in MUTANTS:
        with mutated(name):
            pass


def test_live() -> None:
    """librdkafka copies exactly once, through kills and lost responses."""
    report = live.run(2, 1, has_lake=False)
    assert report.verdict.is_valid, report.as_json()
    assert report.faults["committed"] and report.faults["acknowledged"]


def test_hostile_frames() -> None:
    """The port survives malformed and hostile requests, and honest clients notice nothing."""
    result = fuzz_kafka.run(2_000, 1)
    assert result["disagreements"] == []
