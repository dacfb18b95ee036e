"""The run: new files come, two processes copy them at once, and are killed at random moments.

After each kill, and at the end, the table has every row of each file once or not at all, as its
ledger says; after a copy that succeeds, every row once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from frazil.lake.loaded.ledger import LEDGER, read_ledger
from frazil.model.arrow import loaded_keys
from tests.load.loading import CONFIG, Loading
from tests.torture.checker import Verdict
from tests.torture.load.child import TEXT
from tests.torture.report import Report

FILES_MAX = 6
ROWS_MAX = 2000
COPY_S = 3.0
"""About how long a copy takes; a kill comes within twice that time."""


class CopyTorture:
    """A folder, and what was put into it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._rand = Random(seed)
        self._folder = folder
        self._loading = Loading(folder)
        self._rows: dict[str, set[int]] = {}
        self._next = 0

    def add_files(self) -> None:
        for _ in range(self._rand.randint(1, FILES_MAX)):
            count = self._rand.randint(1, ROWS_MAX)
            numbers = range(self._next, self._next + count)
            self._next += count
            name = f"{len(self._rows):06d}.ndjson"
            body = b"".join(b'{"n":%d}\n' % number for number in numbers)
            self._loading.put(name, body)
            self._rows[name] = set(numbers)

    def copy_and_kill(self, events: Counter[str]) -> None:
        """Copy in two processes at once; kill both, the second later."""
        command = [sys.executable, "-m", "tests.torture.load.child", str(self._folder)]
        children = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        for child in children:
            assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write(b"copy\n")
            child.stdin.flush()
        for child in children:
            time.sleep(self._rand.uniform(0, COPY_S))
            child.kill()
            output, _ = child.communicate()
            events["killed_after" if output else "killed_during"] += 1

    def copy(self) -> None:
        self._loading.copy(TEXT)

    def judge(self, verdict: Verdict, *, is_complete: bool) -> None:
        name = f"{CONFIG.namespace}.t"
        found: Counter[int] = Counter()
        names: set[str] = set()
        if self._loading.catalog.table_exists(name):
            table = self._loading.catalog.load_table(name)
            found.update(table.scan().to_arrow()["n"].to_pylist())
            ledger = read_ledger(table.properties.get(LEDGER), table.io)
            names = {uri.rpartition("/")[2] for uri, _ in loaded_keys(ledger)}
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


def run(cycles: int, seed: int) -> Report:
    """Kill so many pairs of copies."""
    verdict, events = Verdict(), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        torture = CopyTorture(Path(folder), seed)
        for cycle in range(cycles):
            torture.add_files()
            torture.copy_and_kill(events)
            torture.judge(verdict, is_complete=False)
            if cycle % 3 == 2:
                torture.copy()
                torture.judge(verdict, is_complete=True)
        torture.copy()
        torture.judge(verdict, is_complete=True)
    return Report(
        kind="copy",
        cycles=cycles,
        seed=seed,
        verdict=verdict,
        faults=events,
        must_fire=("killed_during",),
    )
