"""Copies into the log: positions and records agree after every crash, and the run would notice if
not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from frazil.log import SourcePosition, SourceStep
from frazil.log.dedup.source_positions import SourcePositions
from frazil.log.partition_sources import PartitionSources
from tests.torture.__main__ import run_steps
from tests.torture.log import steps

MUTANT_SEEDS = 400


def test_steps() -> None:
    report = run_steps(600, 1)
    assert report.is_valid, report.as_json()


def greater_is_newer(self: SourcePositions, step: SourceStep) -> SourcePosition | None:
    """A high-watermark rule: what is not above the position was there before."""
    known = self.get(step.source)
    if known is None or int(step.position) > int(known.position or 0):
        return None
    return known


def no_duplicates(self: SourcePositions, step: SourceStep) -> SourcePosition | None:
    return None


def nothing(*_: object) -> None:
    pass


MUTANTS: dict[str, tuple[type, str, Callable[..., object]]] = {
    "the position is compared by size": (SourcePositions, "find_duplicate", greater_is_newer),
    "steps are not compared": (SourcePositions, "find_duplicate", no_duplicates),
    "an undone step is remembered": (SourcePositions, "restore", nothing),
    "positions are not saved": (PartitionSources, "save", nothing),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, method, mutant = MUTANTS[name]
    monkeypatch.setattr(owner, method, mutant)
    assert any(not steps.run_seed(seed)[0].is_valid for seed in range(MUTANT_SEEDS))
