"""A run: one node under load, and one signal after the other to what reads.

After each signal the API must be back within seconds. No request may fail, and at the end SQL must
return every log once and in order.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from tests.clients.node import Node
from tests.torture.checker import Verdict
from tests.torture.processes.acts import ACTS, act, draw_acts, readers_of
from tests.torture.processes.asking import Asking, Refused, ask, seconds_until_back
from tests.torture.processes.load import BASE_NS, Load
from tests.torture.report import Report

SETTINGS = ("--set", "lake.enabled=false")
BACK_S_MAX = 5.0
"""The API must answer again within this time after a signal."""
GIVE_UP_S = 60.0
PAUSE_S_MAX = 1.0
"""Before an act: a random time of calm."""
TRIES_MAX = 50
"""Tries to find a process that an act needs."""
VISIBLE_S_MAX = 60.0
CHECK_TIMEOUT_MS = 30_000
SURE_CYCLES = 40
"""From this many cycles on, every act must occur."""


class ProcessesRun:
    """One run with its node, load and queries. Owned by one thread."""

    def __init__(self, folder: Path, seed: int, stack: ExitStack, report: Report) -> None:
        self._chance = Random(f"{seed} processes")
        self._report = report
        self.back_s: list[float] = []
        self._node = stack.enter_context(Node(folder, *SETTINGS))
        self._writer = self._node.process.pid
        seconds_until_back(self._node, time.monotonic(), GIVE_UP_S)
        self._load = Load(self._node)
        stack.callback(self._load.stop)
        self._asking = Asking(self._node, seed)
        stack.callback(self._asking.stop)

    def cycle(self, name: str, *, is_timed: bool) -> float:
        """Run one act at a random moment and wait until the API is back. Returns the seconds."""
        time.sleep(self._chance.uniform(0, PAUSE_S_MAX))
        before = readers_of(self._writer)
        begin = time.monotonic()
        for _ in range(TRIES_MAX):
            sent_at = act(self._writer, name, self._chance)
            if sent_at is not None:
                self._report.faults[name] += 1
                begin = sent_at
                break
            time.sleep(0.02)
        back_s = seconds_until_back(self._node, begin, GIVE_UP_S)
        if back_s is None:
            self._complain(f"{name}: the API was not back after {GIVE_UP_S:g} s")
        elif back_s > BACK_S_MAX and is_timed:
            self._complain(f"{name}: the API was back after {back_s:.1f} s")
        self.back_s.append(GIVE_UP_S if back_s is None else back_s)
        now = readers_of(self._writer)
        if name.startswith("reader") and name != "reader_stop" and now.reader == before.reader:
            self._complain(f"{name}: the reader is still {now.reader}")
        if name.startswith(("server", "worker")) and now.reader != before.reader:
            self._complain(f"{name}: the reader ended, too")
        self._check()
        return self.back_s[-1]

    def _check(self) -> None:
        """Take what clients have found so far."""
        if self._node.process.poll() is not None:
            self._complain(f"the writer ended with {self._node.process.returncode}")
        while self._asking.problems:
            self._report.verdict.add(*self._asking.problems.popleft())
        while self._load.failures:
            self._complain(self._load.failures.pop())

    def end(self) -> None:
        """Stop the load, and compare what SQL returns with what was acknowledged."""
        self._load.stop()
        self._asking.stop()
        self._check()
        for sender, count in self._load.row_counts.items():
            self._report.verdict.merge(self._judge(sender, count), f"{sender}:")
            self._report.faults["acknowledged"] += count
        self._report.faults += self._asking.fired
        self._report.faults["ack_ms_max"] = int(self._load.slowest_ack_s * 1000)
        self._report.faults["back_ms_median"] = int(statistics.median(self.back_s) * 1000)
        self._report.faults["back_ms_max"] = int(max(self.back_s) * 1000)
        if (code := self._node.stop()) != 0:
            self._complain(f"the node stopped with {code}")

    def _judge(self, sender: str, count: int) -> Verdict:
        """Check that SQL returns the logs of a client once and in order."""
        verdict = Verdict()
        deadline = time.monotonic() + VISIBLE_S_MAX
        while (found := self._facts(sender))[0] < count and time.monotonic() < deadline:
            time.sleep(0.1)  # the last ones may not be visible yet
        rows, distinct, first, last, disorder = found
        if rows < count or (count and (first, last) != (0, count - 1)):
            verdict.add("lost", f"{rows} of {count} logs, from {first} to {last}")
        if rows > distinct:
            verdict.add("duplicate", f"{rows} logs, {distinct} distinct")
        if rows > count:
            verdict.add("foreign", f"{rows} logs, {count} acknowledged")
        if disorder:
            verdict.add("order", f"{disorder} logs are before an earlier one")
        return verdict

    def _facts(self, sender: str) -> tuple[int, int, int, int, int]:
        """Return rows, distinct rows, first and last number, and rows out of order."""
        of_sender = f"FROM logs WHERE service_name = '{sender}'"
        numbers = f"time_unix_nano - {BASE_NS}"
        rows, distinct, first, last = self._ask(
            f"SELECT count(*), count(DISTINCT time_unix_nano), min({numbers}), max({numbers}) "
            f"{of_sender}"
        )
        (disorder,) = self._ask(
            "SELECT count(*) FROM (SELECT time_unix_nano AS n, lag(time_unix_nano) OVER (ORDER BY "
            f"_log_partition, _offset, _row) AS before {of_sender}) WHERE n <= before"
        )
        return rows, distinct, first or 0, last or 0, disorder

    def _ask(self, text: str) -> tuple[int, ...]:
        try:
            (row,) = ask(self._node, text, CHECK_TIMEOUT_MS)
        except Refused as refused:
            raise AssertionError(f"{refused} for {text}") from refused
        return tuple(row)

    def _complain(self, problem: str) -> None:
        self._report.verdict.add("untrue", problem)


def run(cycles: int, seed: int, *, acts: Sequence[str] = (), is_timed: bool = True) -> Report:
    """Run `cycles` random acts, or these. `is_timed`: an API that is back late is an anomaly; it
    says nothing on a machine that is busy with other work."""
    chosen = list(acts) or draw_acts(Random(f"{seed} acts"), cycles)
    must_fire = {"acknowledged", "asked", *chosen}
    if len(chosen) >= SURE_CYCLES:
        must_fire |= {*ACTS, "refused_413", "refused_503"}
    report = Report("processes", seed, must_fire=tuple(sorted(must_fire)))
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        processes = ProcessesRun(Path(scratch) / "data", seed, stack, report)
        for number, name in enumerate(chosen):
            begin = time.monotonic()
            back_s = processes.cycle(name, is_timed=is_timed)
            report.cycles += 1
            facts = {"cycle": number, "act": name, "back_s": round(back_s, 2)}
            facts["s"] = round(time.monotonic() - begin, 1)
            print(json.dumps({**facts, **report.verdict.counts}), file=sys.stderr)
        processes.end()
    return report
