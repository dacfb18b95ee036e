"""Cycles: a life with a fault at a step, a check, a life without faults, a check."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from frazil.model import Rand
from tests.torture.checker import Verdict
from tests.torture.keyed_lake import life
from tests.torture.keyed_lake.breaks import STEPS
from tests.torture.keyed_lake.judge import judge
from tests.torture.keyed_lake.life import Job
from tests.torture.keyed_lake.mutants import MUTANTS
from tests.torture.report import Report

CYCLES_PER_FOLDER = 6
"""Start an empty folder this often, so that reading all snapshots stays cheap."""
LIFE_S_MAX = 300
AT_MAX = 3
ONCE = frozenset({"creating", "taking_over", "merged", "expired", "expired_half"}) | {
    step for step in STEPS if step.startswith("merge_")
}
"""Steps that may occur only once in a life."""
NEW = frozenset({"creating"})
"""Steps that occur only in a new folder."""
MUTANT_CYCLES = 6


def run(cycles: int, seed: int, *, steps: tuple[str, ...] = ()) -> Report:
    """Run the steps in turn, several per folder."""
    chosen = steps or tuple(STEPS)
    rand = Rand(seed)
    report = Report("keyed_lake", seed, must_fire=chosen[:cycles])
    scratch = tempfile.TemporaryDirectory()
    for cycle in range(cycles):
        step = chosen[cycle % len(chosen)]
        if cycle % CYCLES_PER_FOLDER == 0 or step in NEW:
            scratch.cleanup()
            scratch = tempfile.TemporaryDirectory()
        begun = time.monotonic()
        done = run_cycle(Path(scratch.name), step, rand)
        report.take(*done, f"cycle {cycle}, {step}:")
        print(f"{step}: {time.monotonic() - begun:.1f} s", file=sys.stderr)
        if not done[0].is_valid:
            scratch.cleanup()
            scratch = tempfile.TemporaryDirectory()
    scratch.cleanup()
    return report


def run_cycle(
    scratch: Path, step: str, rand: Rand, mutant: str = ""
) -> tuple[Verdict, Counter[str]]:
    """Run a life with a fault, check the table, run one without, and check it again."""
    at = 1 if step in ONCE else rand.randint(1, AT_MAX)
    if mutant:
        at = AT_MAX  # when there are several files, and dead rows
    job = Job(scratch=scratch, seed=rand.getrandbits(32), step=step, at=at, mutant=mutant)
    verdict = Verdict()
    code = _finished(job)
    is_broken = job.broken.exists()
    if code not in ({0, -signal.SIGKILL} if is_broken else {0}):
        verdict.add("untrue", f"the life ended with {code}: {_met(job)}")
    verdict.merge(judge(job.folder, is_whole=code == 0), "at once:")
    if verdict.is_valid:
        job = Job(scratch=scratch, seed=rand.getrandbits(32), mutant=mutant)
        code = _finished(job)
        if code != 0:
            verdict.add("untrue", f"the next life ended with {code}: {_met(job)}")
        verdict.merge(judge(job.folder, is_whole=True), "afterwards:")
    return verdict, Counter({step: int(is_broken), "lives": 2})


def run_mutants(cycles: int, seed: int) -> Report:
    """Run every mutant until a cycle detects it."""
    report = Report(
        "keyed_lake_mutants", seed, must_fire=tuple(f"killed_{name}" for name in MUTANTS)
    )
    for name, (_, step) in MUTANTS.items():
        rand = Rand(seed)
        for number in range(cycles or MUTANT_CYCLES):
            with tempfile.TemporaryDirectory() as scratch:
                verdict, _ = run_cycle(Path(scratch), step, rand, mutant=name)
            report.cycles += 1
            if not verdict.is_valid:
                report.faults[f"killed_{name}"] += 1
                print(f"{name}: {number + 1}: {verdict.examples[:1]}", file=sys.stderr)
                break
        else:
            report.verdict.add("untrue", f"mutant {name} was not detected")
    return report


def _finished(job: Job) -> int:
    for path in (job.broken, job.met):
        path.unlink(missing_ok=True)
    process = life.start(job)
    process.join(LIFE_S_MAX)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise AssertionError(f"a life did not end within {LIFE_S_MAX} s")
    assert process.exitcode != life.SETUP_CODE, f"a step or mutant does not fit: {_met(job)}"
    return process.exitcode


def _met(job: Job) -> str:
    return job.met.read_text() if job.met.exists() else "nothing"
