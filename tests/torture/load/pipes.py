"""The run: files come while two pipes load them into one table, and their process is killed.

After each kill the table has every row of each file once or not at all, as its ledger says; at the
end every row once, and the history has told of the interruptions.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

from frazil.definitions import PipeHistory
from frazil.disk import RealDisk
from frazil.lake.loaded.ledger import LEDGER, read_ledger
from frazil.model.arrow import loaded_keys
from tests.load.loading import CONFIG, Loading
from tests.torture.checker import Verdict
from tests.torture.report import Report

FILES_MAX = 3
ROWS_MAX = 2000
RUN_S = 4.0
"""A kill comes within this time."""
DRAIN_S = 120.0
FOLDERS = ("every", "fresh")


class PipesTorture:
    """A folder, and what was put into it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._rand = Random(seed)
        self._folder = folder
        self._loading = Loading(folder)
        self._rows: dict[str, range] = {}
        self._next = 0

    def add_files(self) -> None:
        for _ in range(self._rand.randint(1, FILES_MAX)):
            numbers = range(self._next, self._next + self._rand.randint(1, ROWS_MAX))
            self._next = numbers.stop
            name = f"{self._rand.choice(FOLDERS)}/{len(self._rows):06d}.ndjson"
            scratch = self._folder / "scratch.ndjson"
            scratch.write_bytes(b"".join(b'{"n":%d}\n' % number for number in numbers))
            target = self._folder / "in" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            scratch.rename(target)  # as a whole: a file that grows is two files
            self._rows[name] = numbers

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.torture.load.pipes_child", str(self._folder)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        return child

    def run_and_kill(self) -> None:
        child = self.start()
        deadline = time.monotonic() + self._rand.uniform(0, RUN_S)
        while time.monotonic() < deadline:
            self.add_files()
            time.sleep(self._rand.uniform(0, RUN_S / 2))
        child.kill()
        child.communicate()

    def drain(self) -> None:
        """Let the pipes load everything."""
        child = self.start()
        deadline = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline and len(self._loaded()[1]) < len(self._rows):
            time.sleep(0.5)
        child.kill()
        child.communicate()

    def _loaded(self) -> tuple[Counter[int], set[str]]:
        """Return the rows of the table, and the files in its ledger."""
        name = f"{CONFIG.namespace}.t"
        if not self._loading.catalog.table_exists(name):
            return Counter(), set()
        table = self._loading.catalog.load_table(name)
        rows = table.scan().to_arrow()
        assert rows["twice"].to_pylist() == [2 * n for n in rows["n"].to_pylist()]
        ledger = read_ledger(table.properties.get(LEDGER), table.io)
        keys = loaded_keys(ledger)
        return Counter(rows["n"].to_pylist()), {"/".join(u.split("/")[-2:]) for u, _ in keys}

    def judge(self, verdict: Verdict, *, is_complete: bool) -> None:
        found, names = self._loaded()
        for number, count in found.items():
            if count > 1:
                verdict.add("duplicate", f"row {number} is there {count} times")
        for file, rows in self._rows.items():
            there = sum(number in found for number in rows)
            expected = len(rows) if is_complete or file in names else 0
            if there != expected:
                verdict.add(
                    "lost", f"{file}: {there} of {len(rows)} rows, in ledger: {file in names}"
                )

    def judge_history(self, verdict: Verdict, events: Counter[str]) -> None:
        runs = PipeHistory(RealDisk(self._folder / "data")).runs()
        events.update(run.outcome for run in runs)
        keys = Counter((run.pipe, run.run_id, run.attempt) for run in runs)
        for key, count in keys.items():
            if count > 1:
                verdict.add("untrue", f"attempt {key} is {count} times in the history")
        for pipe in FOLDERS:
            own = [run for run in runs if run.pipe == pipe]
            for before, after in pairwise(own):
                if before.ended_at is None or before.ended_at > after.started_at:
                    verdict.add("untrue", f"{pipe}: runs {before} and {after} overlap")


def run(cycles: int, seed: int) -> Report:
    """Kill the process so many times."""
    verdict, events = Verdict(), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        torture = PipesTorture(Path(folder), seed)
        for _ in range(cycles):
            torture.run_and_kill()
            torture.judge(verdict, is_complete=False)
        torture.drain()
        torture.judge(verdict, is_complete=True)
        torture.judge_history(verdict, events)
    return Report(
        kind="pipes",
        cycles=cycles,
        seed=seed,
        verdict=verdict,
        faults=events,
        must_fire=("ok", "interrupted") if cycles >= 10 else ("ok",),
    )
