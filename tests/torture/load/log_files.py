"""The run: files come and are loaded into `logs`, and the process is killed at random moments.

After each kill every file that the ledger has is in the log, once and in order; of at most one load
there is a part, its first lines. After a load that succeeds, every line is there once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from frazil.disk import RealDisk
from frazil.lake import LogLedger
from tests.load.into_log.log_loading import opened_loading
from tests.torture.checker import Verdict
from tests.torture.load.log_files_child import TEXT
from tests.torture.report import Report

FILES_MAX = 6
LINES_MAX = 3000
COPY_S = 2.0
"""A kill comes within this time, which is about how long a load takes,"""
APPENDING_SHARE = 0.7
"""or, this often, once rows are being appended,"""
APPEND_S = 0.3
"""within this time."""
WAIT_S = 30.0


class LogFilesTorture:
    """A folder, and what was put into it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._rand = Random(seed)
        self._folder = folder
        self._lines: dict[str, list[str]] = {}
        (folder / "in").mkdir()

    def add_files(self) -> None:
        for _ in range(self._rand.randint(1, FILES_MAX)):
            name = f"{len(self._lines):06d}.txt"
            count = self._rand.randint(1, LINES_MAX)
            self._lines[name] = [f"{name} {number}" for number in range(count)]
            (self._folder / "in" / name).write_text("\n".join(self._lines[name]))

    def copy_and_kill(self, events: Counter[str]) -> None:
        command = [sys.executable, "-m", "tests.torture.load.log_files_child", str(self._folder)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.stdin.write(b"copy\n")
        child.stdin.flush()
        if self._rand.random() < APPENDING_SHARE:
            deadline = time.monotonic() + WAIT_S
            while not self._staged() and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(self._rand.uniform(0, APPEND_S))
        else:
            time.sleep(self._rand.uniform(0, COPY_S))
        child.kill()
        output, _ = child.communicate()
        outcome = "after" if output else "appending" if self._staged() else "staging"
        events[f"killed_{outcome}"] += 1

    def _staged(self) -> bool:
        """Return whether a load is being appended."""
        return any((self._folder / "data").glob("loads/logs/*.staged/load.ckpt"))

    def judge(self, verdict: Verdict, *, is_complete: bool) -> None:
        with opened_loading(self._folder) as loading:
            if is_complete:
                loading.copy(TEXT)
            found = loading.bodies()
            ledger = LogLedger(RealDisk(loading.data), "logs").read().to_pylist()
        for body, count in Counter(found).items():
            if count > 1:
                verdict.add("duplicate", f"{body} is there {count} times")
        by_file: dict[str, list[str]] = {}
        for body in found:
            by_file.setdefault(body.split(" ")[0], []).append(body)
        known = {entry["uri"].rpartition("/")[2] for entry in ledger}
        for name, lines in self._lines.items():
            there = by_file.get(name, [])
            if there != lines[: len(there)]:
                verdict.add("order", f"{name}: its lines are not in order")
            if (name in known or is_complete) and len(there) != len(lines):
                verdict.add(
                    "lost", f"{name}: {len(there)} of {len(lines)}, in ledger: {name in known}"
                )
        parts = [
            name
            for name, lines in self._lines.items()
            if name not in known and 0 < len(by_file.get(name, [])) < len(lines)
        ]
        if len(parts) > 1:
            verdict.add("order", f"there are parts of {parts}")


def run(cycles: int, seed: int) -> Report:
    """Kill so many loads."""
    verdict, events = Verdict(), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        torture = LogFilesTorture(Path(folder), seed)
        for cycle in range(cycles):
            torture.add_files()
            torture.copy_and_kill(events)
            torture.judge(verdict, is_complete=cycle % 4 == 3)
        torture.judge(verdict, is_complete=True)
    return Report(
        kind="log_files",
        cycles=cycles,
        seed=seed,
        verdict=verdict,
        faults=events,
        must_fire=("killed_appending",) if cycles >= 10 else (),
    )
