"""The command behind `make torture KIND=... CYCLES=... SEED=...`.

Prints a JSON verdict as its last line. Exits with 1 unless the run is valid or skipped.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from multiprocessing.context import BaseContext
from typing import get_args

from tests.sim.disk import PowerCut, Rot
from tests.torture.checker import Verdict
from tests.torture.connectors import run as connectors
from tests.torture.kafka import live as kafka_live
from tests.torture.kafka import mutants as kafka_mutants
from tests.torture.kafka import sim as kafka_sim
from tests.torture.kafka import tables as kafka_tables
from tests.torture.keyed_lake import engines as keyed_engines
from tests.torture.keyed_lake import run as keyed_lake
from tests.torture.lake import run as lake
from tests.torture.load import keyed as keyed_copy
from tests.torture.load import log_files, pipes
from tests.torture.load import run as load
from tests.torture.log import kill9, powercut, rot, sim, steps, syscall
from tests.torture.log.mutants import MUTANTS, mutated
from tests.torture.node import full_disk
from tests.torture.node import run as node
from tests.torture.postgres import run as postgres
from tests.torture.processes import run as processes
from tests.torture.registry import run as registry
from tests.torture.removal import run as removal
from tests.torture.report import ANSWER_S_MAX, Report
from tests.torture.serving import lost_answer, overload, rows, tiers
from tests.torture.sql import run as sql
from tests.torture.tables import mutants as keyed_mutants
from tests.torture.tables import sim as keyed_sim
from tests.torture.tables import soak as keyed_soak

Seeded = Callable[[int], tuple[Verdict, Counter[str]]]

SIM_MUST_FIRE = (
    "acknowledged",
    "cut",
    "end_close",
    "end_cut",
    "end_kill",
    "fail",
    "fail_sync",
    "full",
    "garbage_write",
    "lost_name",
    "lost_write",
    "short_write",
    "torn_write",
)
ROT_MUST_FIRE = (
    "noticed",
    "harmless",
    *(f"rot_{kind}" for kind in get_args(Rot)),
    "cut_promised",
    "cut_torn",
    "flip_noticed",
)
KAFKA_MUST_FIRE = (
    *(f"{how}_at_{what}" for how in ("cut", "kill") for what in (*kafka_sim.TARGETS, "markers")),
    "aborted",
    "checked",
    "committed",
    "cut_at_start",
    "end_close",
    "fail_sync",
    "fenced",
    "full",
    "late_request",
    "lost_request",
    "lost_response",
    "made",
    "rotated",
    "trimmed",
)
EVERYWHERE_SEEDS = 3
MUTANT_SEEDS = 4000
"""A mutant that survives this many seeds counts as undetected."""


def run_sim(cycles: int, seed: int) -> Report:
    report = Report("sim", seed, must_fire=SIM_MUST_FIRE)
    return seeded(report, sim.run_seed, range(seed, seed + cycles))


def run_steps(cycles: int, seed: int) -> Report:
    report = Report("steps", seed, must_fire=steps.MUST_FIRE)
    return seeded(report, steps.run_seed, range(seed, seed + cycles))


def run_keyed(cycles: int, seed: int) -> Report:
    report = Report("keyed", seed, must_fire=keyed_sim.MUST_FIRE)
    return seeded(report, keyed_sim.run_seed, range(seed, seed + cycles))


def run_kafka(cycles: int, seed: int, *, is_short: bool = False) -> Report:
    """Run seeds of the Kafka port. A short run need not meet every fault."""
    must_fire = ("checked", "committed", "aborted") if is_short else KAFKA_MUST_FIRE
    report = Report("kafka", seed, must_fire=must_fire)
    return seeded(report, kafka_sim.run_seed, range(seed, seed + cycles))


def run_rot(cycles: int, seed: int) -> Report:
    report = Report("rot", seed, must_fire=ROT_MUST_FIRE)
    seeded(report, rot.run_seed, range(seed, seed + cycles))
    for number in range(seed, seed + EVERYWHERE_SEEDS):
        report.take(*rot.cut_everywhere(number), f"cut everywhere, seed {number}:")
        report.take(*rot.flip_everywhere(number), f"flip everywhere, seed {number}:")
    return report


def seeded(report: Report, story: Seeded, seeds: range) -> Report:
    """Run the seeds on all cores. Each example names its seed."""
    context = _context()
    begin = time.monotonic()
    with context.Pool(os.cpu_count(), _quiet) as pool:
        results = pool.imap(_Numbered(story), seeds)
        for seed in seeds:
            report.take(*results.next(ANSWER_S_MAX), f"seed {seed}:")
            if report.cycles % 2000 == 0:
                rate = report.cycles / (time.monotonic() - begin)
                print(f"{report.cycles} of {len(seeds)}, {rate:.0f}/s", file=sys.stderr)
    return report


class _Numbered:
    """A picklable wrapper of a seeded run."""

    def __init__(self, story: Seeded) -> None:
        self._story = story

    def __call__(self, seed: int) -> tuple[Verdict, Counter[str]]:
        try:
            return self._story(seed)
        except PowerCut as error:  # a BaseException: it would silently end the worker process
            raise AssertionError(f"seed {seed}: unplanned power cut: {error}") from error


def _context() -> BaseContext:
    """Fork, unless a thread of this process, such as a test runner's, may hold a lock."""
    is_alone = threading.active_count() == 1
    return multiprocessing.get_context("fork" if is_alone else "forkserver")


def _quiet() -> None:
    logging.disable(logging.CRITICAL)


def run_mutants(cycles: int, seed: int) -> Report:
    """Run every mutant of the log until a seed detects it, for at most `cycles` seeds."""
    return _kill_all(Report("mutants", seed), MUTANTS, kill_mutant, cycles)


def run_kafka_mutants(cycles: int, seed: int) -> Report:
    """Run every mutant of the Kafka port until a seed detects it."""
    return _kill_all(Report("kafka_mutants", seed), kafka_mutants.MUTANTS, kill_kafka, cycles)


def run_keyed_mutants(cycles: int, seed: int) -> Report:
    """Run every mutant of keyed tables until a seed detects it."""
    return _kill_all(Report("keyed_mutants", seed), keyed_mutants.MUTANTS, kill_keyed, cycles)


def _kill_all(
    report: Report,
    names: Iterable[str],
    kill: Callable[[tuple[str, int, int]], tuple[str, int]],
    cycles: int,
) -> Report:
    report.must_fire = tuple(f"killed_{name}" for name in names)
    context = _context()
    tasks = [(name, report.seed, cycles or MUTANT_SEEDS) for name in names]
    with context.Pool(os.cpu_count(), _quiet) as pool:
        results = pool.imap(kill, tasks)
        for _ in tasks:
            name, stories = results.next(ANSWER_S_MAX)
            report.cycles += stories
            if stories:
                report.faults[f"killed_{name}"] += 1
                print(f"{name}: detected after {stories} seeds", file=sys.stderr)
            else:
                report.verdict.add("untrue", f"mutant {name} was not detected")
    return report


def kill_mutant(task: tuple[str, int, int]) -> tuple[str, int]:
    """Return (name, number of seeds until the mutant was detected); 0 when it was not."""
    name, seed, cycles = task
    story = {"sim": sim.run_seed, "rot": rot.run_seed, "flip": rot.flip_everywhere}[
        MUTANTS[name][0]
    ]
    with mutated(name):
        for number in range(cycles):
            verdict = story(seed + number)[0]
            # A mutant that no longer fits the log's code raises by itself, which proves nothing.
            assert not any("mutants.py" in text for text in verdict.examples), verdict.examples
            if not verdict.is_valid:
                return name, number + 1
    return name, 0


def kill_kafka(task: tuple[str, int, int]) -> tuple[str, int]:
    """As `kill_mutant`, for a mutant of the Kafka port."""
    name, seed, cycles = task
    with kafka_mutants.mutated(name):
        for number in range(cycles):
            verdict = kafka_sim.run_seed(seed + number)[0]
            assert not any("mutants.py" in text for text in verdict.examples), verdict.examples
            if not verdict.is_valid:
                return name, number + 1
    return name, 0


def kill_keyed(task: tuple[str, int, int]) -> tuple[str, int]:
    """As `kill_mutant`, for a mutant of keyed tables."""
    name, seed, cycles = task
    with keyed_mutants.mutated(name):
        for number in range(cycles):
            verdict = keyed_sim.run_seed(seed + number)[0]
            assert not any("mutants.py" in text for text in verdict.examples), verdict.examples
            if not verdict.is_valid:
                return name, number + 1
    return name, 0


KINDS: dict[str, tuple[Callable[[int, int], Report], int]] = {
    "sim": (run_sim, 2000),
    "rot": (run_rot, 500),
    "steps": (run_steps, 2000),
    "keyed": (run_keyed, 1000),
    "keyed_mutants": (run_keyed_mutants, 0),
    "keyed_lake": (keyed_lake.run, 27),
    "keyed_lake_mutants": (keyed_lake.run_mutants, 0),
    "keyed_soak": (keyed_soak.run, 20_000),
    "keyed_engines": (keyed_engines.run, 100),
    "kill9": (kill9.run, 20),
    "powercut": (powercut.run, 20),
    "syscall": (syscall.run, 0),
    "mutants": (run_mutants, 0),
    "kafka": (run_kafka, 500),
    "kafka_mutants": (run_kafka_mutants, 0),
    "kafka_live": (kafka_live.run, 10),
    "kafka_tables": (kafka_tables.run, 40),
    "lost_answer": (lost_answer.run, 100),
    "overload": (overload.run, 10),
    "rows": (rows.run, 20),
    "lake": (lake.run, 35),
    "tiers": (tiers.run, 200),
    "node": (node.run, 50),
    "processes": (processes.run, 200),
    "sql": (sql.run, 500),
    "full_disk": (full_disk.run, 2),
    "registry": (registry.run, 60),
    "retention": (removal.run, 20),
    "copy": (load.run, 100),
    "keyed_copy": (keyed_copy.run, 100),
    "pipes": (pipes.run, 200),
    "log_files": (log_files.run, 200),
    "postgres": (postgres.run, 50),
    "connect": (connectors.run, 200),
}
"""Name -> (function to run, default number of cycles)."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make torture")
    parser.add_argument("--kind", choices=KINDS, default="sim")
    parser.add_argument("--cycles", type=int)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    run, cycles = KINDS[arguments.kind]
    report = run(arguments.cycles if arguments.cycles is not None else cycles, arguments.seed)
    print(report.as_json())
    return 0 if report.is_valid or report.skipped else 1


if __name__ == "__main__":
    sys.exit(main())
