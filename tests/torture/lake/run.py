"""Cycles: a life with a fault at a step, a check, a life without faults, a check."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from frazil.model import Rand
from tests.torture.checker import Verdict
from tests.torture.lake import life, outside, spark
from tests.torture.lake.breaks import STEPS
from tests.torture.lake.folder import Folder
from tests.torture.log import powercut
from tests.torture.report import Report

CYCLES_PER_FOLDER = 8
"""Start an empty folder this often, so that reading all rows stays cheap."""
AT_MAX = 3
NEW = frozenset({"making_tables"})
"""Steps that occur only in a new folder."""
ONCE = frozenset({"catalog_locked_early", "log_trimmed", "log_damaged"})
"""Steps that may occur only once in a life."""


def run(cycles: int, seed: int, *, mutant: str = "", steps: tuple[str, ...] = ()) -> Report:
    """Run the steps in turn, several per folder."""
    chosen = steps or tuple(possible())
    rand = Rand(seed)
    report = Report("lake", seed, must_fire=chosen[:cycles])
    for begin in range(0, cycles, CYCLES_PER_FOLDER):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Folder(Path(scratch), mutant)
            for cycle in range(begin, min(cycles, begin + CYCLES_PER_FOLDER)):
                step = chosen[cycle % len(chosen)]
                begun = time.monotonic()
                report.take(*BREAKS[step](folder, step, rand), f"cycle {cycle}, {step}:")
                print(f"{step}: {time.monotonic() - begun:.1f} s", file=sys.stderr)
    return report


def possible() -> list[str]:
    """Return the steps that are possible on this machine."""
    has_disks = not powercut.skip_reason()
    return [step for step in BREAKS if has_disks or step not in ON_DISKS]


def killed(folder: Folder, step: str, rand: Rand) -> tuple[Verdict, Counter[str]]:
    """Run a life that is killed or fails at a step in its own process."""
    if step in NEW:
        folder.start_over()
    at = 1 if step in ONCE else rand.randint(1, AT_MAX)
    job = folder.job(step, at, is_loaded=rand.random() < 0.5)
    return folder.finished(life.start(job), job, step)


Break = Callable[[Folder, str, Rand], tuple[Verdict, Counter[str]]]
ON_DISKS: dict[str, Break] = {
    "warehouse_full_in_task": outside.full,
    "warehouse_full_in_commit": outside.full,
    "catalog_full": outside.full,
    "power_cut": outside.power_cut,
}
BREAKS: dict[str, Break] = {
    **dict.fromkeys(STEPS, killed),
    "log_damaged": outside.damaged,
    **{step: outside.zombie for step in STEPS if step.startswith("zombie")},
    **ON_DISKS,
    **dict.fromkeys(spark.STEPS, spark.on_spark),
}
"""Step -> function that runs a cycle with a fault at that step."""
