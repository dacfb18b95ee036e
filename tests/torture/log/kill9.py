"""SIGKILL of a real process on a real disk at random moments, also during recovery."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from frazil.model import Rand
from tests.torture.checker import Verdict
from tests.torture.history import Recorder, Sent, history_of
from tests.torture.log import workload
from tests.torture.report import Report

CYCLES_PER_FOLDER = 20
"""Start an empty folder this often, so that reading all records stays cheap."""


def run(cycles: int, seed: int) -> Report:
    report = Report("kill9", seed, must_fire=("kill_recovering", "kill_running", "acknowledged"))
    with tempfile.TemporaryDirectory() as scratch:
        recorder = Recorder(Path(scratch) / "history")
        torture = Torture(Path(scratch), "data", recorder, Rand(seed))
        for cycle in range(cycles):
            if cycle % CYCLES_PER_FOLDER == 0:
                torture.start_over()
            report.take(*torture.cycle(kill), f"cycle {cycle}:")
        recorder.close()
    return report


def kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)


class Torture:
    """One data folder and its history, used by one process at a time."""

    def __init__(self, scratch: Path, name: str, recorder: Recorder, rand: Rand) -> None:
        self.folder = scratch / name
        self.rand = rand
        self._errors = scratch / "errors"
        self._recorder = recorder
        self._seen: dict[int, dict[int, tuple[int, int]]] = {}
        self._acknowledged = 0

    def start_over(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._recorder.forget()
        self._seen = {}
        self._acknowledged = 0

    def history(self) -> list[Sent]:
        return history_of(self._recorder.read())

    def cycle(
        self, end: Callable[[int], None], *, is_powercut: bool = False
    ) -> tuple[Verdict, Counter[str]]:
        """Start the process, end it, and check the records it left behind."""
        rand, fired, verdict = self.rand, Counter[str](), Verdict()
        actors = workload.actors_of(self.history(), rand)
        phases, phases_in = os.pipe()
        child = workload.fork(
            self.folder, actors, self._recorder.events, phases_in, 5.0, self._errors
        )
        os.close(phases_in)
        os.read(phases, 1)
        if rand.random() < 0.3:
            time.sleep(rand.uniform(0, 0.015))
            fired["kill_recovering"] += 1
        else:
            os.read(phases, 1)
            time.sleep(rand.uniform(0, 0.12))
            fired["kill_running"] += 1
        end(child)
        _, status = os.waitpid(child, 0)
        os.close(phases)
        errors = self._errors.read_text() if self._errors.exists() else ""
        if (os.WIFEXITED(status) or errors) and not is_powercut:  # a power cut causes errors
            verdict.add("untrue", f"the process failed before it was killed: {errors}")
        events = self._recorder.read()
        for event in events:
            if event[0] == "untrue":
                verdict.add("untrue", f"a repeat by producer {event[1]} was not recognised")
        # Checking opens the log. Skip it at times, so that a killed recovery is recovered again.
        if is_powercut or rand.random() < 0.6:
            history = history_of(events)
            verdict.merge(workload.judge(self.folder, history, self._seen), "")
            acknowledged = sum(s.outcome == "ok" for s in history)
            fired["acknowledged"] += acknowledged - self._acknowledged
            self._acknowledged = acknowledged
        return verdict, fired
