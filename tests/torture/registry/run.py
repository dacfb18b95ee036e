"""The run: a registry is killed again and again, and what was acknowledged is compared.

An id stands for one schema in all lives, also if every record of it was deleted and compacted away
since. What was acknowledged last of a subject is there.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from frazil.disk import RealDisk
from frazil.log import Log
from frazil.model import SystemClock
from frazil.registry import Registry, RegistryState
from tests.torture.checker import Verdict
from tests.torture.registry.child import SMALL, STEPS
from tests.torture.report import Report

RUN_S = 0.5
"""A kill at any moment comes within this time."""
LIFE_S = 60.0


class RegistryTorture:
    """A folder, and what its lives have acknowledged."""

    def __init__(self, folder: Path, seed: int, *, is_mutant: bool = False) -> None:
        self._folder = folder
        self._rand = random.Random(seed)
        self._mutant = ["mutant"] if is_mutant else []
        self._texts: dict[int, str] = {}
        self.verdict = Verdict()
        self.events: Counter[str] = Counter()

    def live(self, step: str) -> None:
        """Run a process until it is killed, and compare what it has said and what it left."""
        seed = str(self._rand.randrange(2**31))
        command = [sys.executable, "-m", "tests.torture.registry.child", str(self._folder)]
        child = subprocess.Popen(
            [*command, seed, step, *self._mutant], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert child.stdout is not None
        first = child.stdout.readline()
        if step == "any":
            time.sleep(self._rand.uniform(0, RUN_S))
            child.kill()
            self.events["killed_any"] += 1
        said, errors = child.communicate(timeout=LIFE_S)
        assert child.returncode < 0, errors.decode()
        last: dict[str, dict[str, object]] = {}
        for line in (first + said).splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break  # the kill came while it spoke
            fact = json.loads(line)
            if "killed" in fact:
                self.events[f"killed_{fact['killed']}"] += 1
            if "deleting" in fact:
                last.pop(fact["deleting"], None)
            if "id" in fact:
                self.events["acknowledged"] += 1
                self._acknowledged(int(fact["id"]), str(fact["text"]))
                last[fact["subject"]] = fact
        self._look(list(last.values()))

    def _acknowledged(self, schema_id: int, text: str) -> None:
        known = self._texts.setdefault(schema_id, text)
        if known != text:
            self.verdict.add("duplicate", f"id {schema_id} was {known}, and is {text}")

    def _look(self, last: list[dict[str, object]]) -> None:
        """Open the registry of the killed process."""
        disk, clock = RealDisk(self._folder), SystemClock()
        with Log.open(disk, SMALL, clock=clock, rand=random.SystemRandom()) as log:
            registry = Registry.open(disk, log, clock=clock)
            registry.read(lambda state: self._compare(state, last))
            registry.close()

    def _compare(self, state: RegistryState, last: list[dict[str, object]]) -> None:
        for subject in state.subjects(deleted=True):
            for version in state.versions(subject, deleted=True):
                self._acknowledged(version.schema_id, version.content.text)
        for fact in last:
            there = state.version(str(fact["subject"]), int(str(fact["version"])))
            if there is None or there.is_deleted or there.schema_id != fact["id"]:
                self.verdict.add("lost", f"{fact} was acknowledged, there is {there}")


def run(cycles: int, seed: int, *, is_mutant: bool = False) -> Report:
    """Kill the process so many times, at each step in turn."""
    with tempfile.TemporaryDirectory() as folder:
        torture = RegistryTorture(Path(folder) / "data", seed, is_mutant=is_mutant)
        for number in range(cycles):
            torture.live(STEPS[number % len(STEPS)])
    return Report(
        kind="registry",
        seed=seed,
        cycles=cycles,
        verdict=torture.verdict,
        faults=torture.events,
        must_fire=("acknowledged", *(f"killed_{step}" for step in STEPS)),
    )
