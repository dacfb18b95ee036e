"""A registry under SIGKILL between id, append and answer: `make torture KIND=registry`, briefly."""

from __future__ import annotations

from tests.torture.registry.child import STEPS
from tests.torture.registry.run import run

SEED = 7
MUTANT_SEEDS = range(8, 16)


def test_no_id_is_reused_and_nothing_acknowledged_is_lost() -> None:
    report = run(len(STEPS), SEED)
    assert report.verdict.is_valid, report.as_json()
    assert report.faults["acknowledged"]


def test_the_judge_finds_ids_that_are_reused() -> None:
    """Ids that are counted by what the log knows come back once the log forgets."""
    found = (run(len(STEPS) - 1, seed, is_mutant=True) for seed in MUTANT_SEEDS)
    assert any(not report.verdict.is_valid for report in found)
