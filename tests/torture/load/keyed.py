"""The run: new files come, two threads copy them into a keyed table while another one changes the
same keys, and their process is killed at random moments.

After each kill the log has all rows of the files in the ledger, once and in order, a beginning of
the load that has begun, and nothing else of a file; after a copy that succeeds, all rows. What
others wrote is never undone by a row that is written again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from frazil.model.arrow import loaded_keys
from tests.load.keyed_loading import KeyedLoading
from tests.torture.checker import Verdict
from tests.torture.load.keyed_child import KEYS, OTHER, open_keyed
from tests.torture.report import Report

FILES_MAX = 4
ROWS_MAX = 1000
RUN_S = 0.6
"""A kill comes within this time."""


class KeyedCopyTorture:
    """A folder, and what was put into it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._rand = Random(seed)
        self._folder = folder
        (folder / "in").mkdir()
        self._rows: dict[str, list[str]] = {}
        """The names of the rows of each file: `<file>-<number>`."""

    def add_files(self) -> None:
        for _ in range(self._rand.randint(1, FILES_MAX)):
            file = f"{len(self._rows):06d}"
            names = [f"{file}-{n}" for n in range(self._rand.randint(1, ROWS_MAX))]
            rows = [{"id": self._rand.randrange(KEYS), "name": name} for name in names]
            body = "".join(json.dumps(row) + "\n" for row in rows)
            (self._folder / "in" / f"{file}.ndjson").write_text(body)
            self._rows[file] = names

    def copy_and_kill(self, events: Counter[str]) -> None:
        command = [sys.executable, "-m", "tests.torture.load.keyed_child", str(self._folder)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        time.sleep(self._rand.uniform(0, RUN_S))
        child.kill()
        output, _ = child.communicate()
        events["killed_after" if output.count(b"copied") == 2 else "killed_during"] += 1

    def judge(self, verdict: Verdict, events: Counter[str], *, copies: bool) -> None:
        there = open_keyed(self._folder)
        try:
            if there.tables.loads("t").pending() is not None:
                events["begun"] += 1
            if copies:
                there.copy()
            self._judge(verdict, there, is_complete=copies)
        finally:
            there.close()

    def _judge(self, verdict: Verdict, there: KeyedLoading, *, is_complete: bool) -> None:
        pending = there.tables.loads("t").pending()
        begun = {} if pending is None else {e.uri[-13:-7]: e for e in pending.entries}
        loaded = {uri[-13:-7] for uri, _ in loaded_keys(there.loads.ledger("t"))}
        found: Counter[str] = Counter()
        last: dict[int, str] = {}
        for part in there.written():
            before = ("", -1)
            for row in part:
                last[row["id"]] = row["name"]
                if row["name"] == OTHER:
                    continue
                found[row["name"]] += 1
                file, _, number = row["name"].partition("-")
                place = (file, int(number))
                if place <= before:
                    verdict.add("untrue", f"{place} comes after {before}")
                before = place
        for name, count in found.items():
            if count > 1:
                verdict.add("duplicate", f"row {name} is there {count} times")
        for file, names in self._rows.items():
            count = sum(name in found for name in names)
            is_loaded = file in loaded
            if is_complete and not is_loaded:
                verdict.add("lost", f"{file} was not loaded")
            if is_loaded and count != len(names):
                verdict.add("lost", f"{file}: {count} of {len(names)} rows, and in the ledger")
            if not is_loaded and file not in begun and count:
                verdict.add("untrue", f"{file}: {count} rows of a load that never began")
        if {row["id"]: row["name"] for row in there.rows()} != last:
            verdict.add("untrue", "the table is not the fold of its log")


def run(cycles: int, seed: int) -> Report:
    """Kill the process so many times."""
    verdict, events = Verdict(), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        torture = KeyedCopyTorture(Path(folder), seed)
        for cycle in range(cycles):
            torture.add_files()
            torture.copy_and_kill(events)
            torture.judge(verdict, events, copies=cycle % 4 == 3)
        torture.judge(verdict, events, copies=True)
    return Report(
        kind="keyed_copy",
        cycles=cycles,
        seed=seed,
        verdict=verdict,
        faults=events,
        must_fire=("killed_during", "begun") if cycles >= 20 else (),
    )
