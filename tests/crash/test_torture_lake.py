"""A short run of the lake's torture; `make torture KIND=lake` breaks at every step."""

from __future__ import annotations

import pytest

from tests.torture.lake import run
from tests.torture.lake.mutants import MUTANTS
from tests.torture.log import powercut

STEPS = ("half_written", "in_swap", "zombie_before_swap")
MUTANT_SEEDS = 3
"""A mutant that survives this many seeds counts as undetected."""


def test_lake() -> None:
    """The tables hold every row once, and every snapshot is a prefix of the log."""
    report = run.run(len(STEPS), 1, steps=STEPS)
    assert report.is_valid, report.as_json()


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str) -> None:
    """The torture detects an appender with this bug."""
    step = MUTANTS[name][1]
    if step in run.ON_DISKS and (reason := powercut.skip_reason()):
        pytest.skip(reason)
    assert any(
        not run.run(1, seed, mutant=name, steps=(step,)).verdict.is_valid
        for seed in range(1, MUTANT_SEEDS + 1)
    )
