"""A run: one node on one folder, and one act after the other.

Requests, queries, sealing, eviction, commits and compaction go on all the time. An act strikes
before, during or after a flush, which starts Spark if needed. At the end every reader must return
all acknowledged rows.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from random import Random
from signal import SIGTERM

import frazil
from frazil.model import Signal
from frazil.settings import LakeConfig
from tests.clients.node import Node
from tests.torture.checker import Verdict
from tests.torture.node import remains
from tests.torture.node.acts import ACTS, draw_acts
from tests.torture.node.asking import Asking, Lives
from tests.torture.node.judge import judge, judge_tables, rows_by_sql
from tests.torture.node.load import Load
from tests.torture.report import Report

SETTINGS = """
[log]
segment_bytes_max = 4194304
[hot]
seal_age_ms = 2000
seal_bytes = 1048576
memory_bytes_max = 8388608
disk_bytes_max = 2097152
[lake]
driver_memory_bytes = 805306368
flush_age_ms = 20000
maintain_interval_ms = 30000
"""
"""Seal, merge and evict files in every life, with some automatic flushes and maintenance."""
WORK = ("nothing", "nothing", "amid", "amid", "amid", "after", "maintain")
"""What runs when an act strikes: nothing, a flush ("amid" or "after" it), or maintenance.
Repeated by relative frequency."""
AMID_S_MAX = 20.0
FLUSH_WAITS_S_MAX = 240.0
SURE_CYCLES = 40
"""From this many cycles on, every act must occur."""
LITTER_MAX = 20
"""Allowed leftovers: half-written files, and Spark's scratch files of its last start."""
BAD_LINE = re.compile(
    r"(?!.*files kept above the disk limit)"
    r"(?:.*\b(?:ERROR|CRITICAL)\b|.*\"(?:error|critical)\"|Traceback)"
)
"""Log lines of a node that need attention. The hot tier exceeds its small disk limit here."""

LINES_SHOWN = 25
LINE_CHARS_MAX = 500


class NodeRun:
    """One run with its node, load and queries. Owned by one thread. Acts use it as `Tortured`."""

    def __init__(self, scratch: Path, seed: int, stack: ExitStack, more: str) -> None:
        self.chance = Random(seed)
        self.verdict, self.fired = Verdict(), Counter[str]()
        self.start_ms: list[int] = []
        self.stop_ms: list[int] = []
        self._name = f"{seed}-{os.getpid()}"
        settings = scratch / "frazil.toml"
        settings.write_text(SETTINGS + more)
        self._settings = settings
        self._watch = remains.Watch()
        stack.callback(self._watch.close)
        self._launched_at = time.monotonic()
        environment = {remains.MARK: f"{self._name}-1"}
        self.node = Node(scratch / "data", "--config", str(settings), environment=environment)
        stack.callback(self.node.kill)
        self._lives = Lives(self.node.url)
        self._lives.number = 1
        self._load = Load(self.node, seed)
        stack.callback(self._load.stop)
        self._asking = Asking(self._lives, self._load.ledger, seed)
        stack.callback(self._asking.stop)
        self._flushing: Future[None] | None = None

    @property
    def mark(self) -> str:
        return f"{self._name}-{self._lives.number}"

    def launch(self) -> None:
        self._lives.number += 1
        self.node.environment[remains.MARK] = self.mark
        self._launched_at = time.monotonic()
        self.node.launch()

    def await_ready(self) -> None:
        self.node.await_ready()
        self.start_ms.append(_ms_since(self._launched_at))

    def kill(self) -> None:
        self.node.kill()
        self._ended()

    def signal(self, number: int) -> None:
        self.node.process.send_signal(number)

    def wait(self) -> int:
        begun = time.monotonic()
        code = self.node.wait()
        self.stop_ms.append(_ms_since(begun))
        self._ended()
        return code

    def _ended(self) -> None:
        self._watch.note_end(self.mark)
        lines = self.node.errors().splitlines()
        for at, line in enumerate(lines):
            if BAD_LINE.match(line):
                self.fired["errors_logged"] += 1
                excerpt = lines[at : at + LINES_SHOWN]
                text = "\n".join(logged[:LINE_CHARS_MAX] for logged in excerpt)
                print(f"life {self._lives.number}: {text}", file=sys.stderr)

    def flush(self) -> None:
        if self._flushing is None or self._flushing.done():
            self._flushing = self._asking.flush()

    def note(self, fault: str) -> None:
        self.fired[fault] += 1

    def complain(self, problem: str) -> None:
        self.verdict.add("untrue", f"{problem}: {self.node.errors()[-2000:]}")

    def cycle(self, name: str, work: str) -> None:
        """Start the work, wait a random time, then run the act."""
        if work != "nothing":
            self.flush()
        if work in ("after", "maintain"):
            assert self._flushing is not None
            self._flushing.result(FLUSH_WAITS_S_MAX)
        if work == "maintain":
            self._flushing = self._asking.maintain()
        longest_s = min(AMID_S_MAX, 1.2 * self._asking.flush_s) if work == "amid" else 3.0
        time.sleep(self.chance.uniform(0, longest_s))
        self.note(f"{name}_{work}")
        self._lives.harm_count += 1
        ACTS[name][0](self)
        self.note(name)
        self._lives.harm_count += 1
        self._take_problems()

    def _take_problems(self) -> None:
        while self._asking.problems:
            self.verdict.add(*self._asking.problems.popleft())
        while self._load.ledger.problems:
            self.verdict.add("untrue", self._load.ledger.problems.popleft())

    def end(self) -> None:
        """Stop the load, flush, and check that three readers agree with the ledger."""
        ledger = self._load.ledger
        self._load.stop()
        self._asking.flush().result(FLUSH_WAITS_S_MAX)
        remote = frazil.connect(self.node.url)
        remote.flush()
        config = LakeConfig()
        for signal in Signal:
            self.verdict.merge(judge(ledger, signal, rows_by_sql(remote.ask, signal)), "SQL:")
        self.verdict.merge(judge_tables(ledger, self.node.folder, config, self.chance), "")
        self._asking.stop()
        self._lives.harm_count += 1
        self.signal(SIGTERM)
        if (code := self.wait()) != 0:
            self.complain(f"the last stop ended with {code}")
        with frazil.open(self.node.folder, config=self._settings) as opened:
            for signal in Signal:
                rows = rows_by_sql(opened.ask, signal)
                self.verdict.merge(judge(ledger, signal, rows), "frazil.open:")
        self._take_problems()
        self._judge_remains()
        self._sum_up()

    def _judge_remains(self) -> None:
        self._watch.close()
        for process in sorted(self._watch.leftover):
            self.verdict.add("untrue", f"a process outlived its node: {process}")
        ports = [self.node.grpc_port, self.node.http_port, self.node.api_port]
        for port in remains.taken_ports(ports):
            self.verdict.add("untrue", f"port {port} is still taken")
        left = remains.litter(self.node.folder)
        self.fired["litter"] = len(left)
        if len(left) > LITTER_MAX:
            self.verdict.add("untrue", f"{len(left)} files left behind, such as {left[:10]}")

    def _sum_up(self) -> None:
        ledger = self._load.ledger
        self.fired += self._asking.fired + ledger.fired
        for signal in Signal:
            rows = ledger.acknowledged_rows(signal)
            self.fired[f"acknowledged_{signal.name.lower()}"] = rows
            self.fired[f"acknowledged_demo_{signal.name.lower()}"] = ledger.demo[signal]
            self.fired["acknowledged"] += rows + ledger.demo[signal]
        self.fired["maybe"] = sum(len(sent.maybe) for sent in ledger.senders.values())
        self.fired["lives"] = self._lives.number
        for kind, seconds in self._watch.stayed_s.items():
            self.fired[f"stayed_ms_max_{kind}"] = int(seconds * 1000)
        starts = sorted(self.start_ms) or [0]
        self.fired["start_ms_min"], self.fired["start_ms_max"] = starts[0], starts[-1]
        self.fired["start_ms_median"] = int(statistics.median(starts))
        self.fired["stop_ms_max"] = max(self.stop_ms, default=0)
        for text, count in self._asking.refusals.most_common():
            self.fired["refused_while_calm"] += count
            print(f"refused {count} times outside an act: {text}", file=sys.stderr)


def _ms_since(begun: float) -> int:
    return int((time.monotonic() - begun) * 1000)


def run(cycles: int, seed: int, *, acts: Sequence[tuple[str, str]] = (), more: str = "") -> Report:
    """Run `cycles` random acts, or the given (act, work) pairs.

    `more` is appended to the node's settings, for example to test that a bad node is detected.
    """
    chance = Random(f"{seed} acts")
    chosen = list(acts) or [(name, chance.choice(WORK)) for name in draw_acts(chance, cycles)]
    must_fire = {"acknowledged", "asked", "flushes", "commits", *(name for name, _ in chosen)}
    if len(chosen) >= SURE_CYCLES:
        must_fire |= {*ACTS, "again", "maybe", "repeated", "maintained", "asked_snapshot"}
        must_fire |= {"killed_reader", "killed_spark", "killed_worker", "killed_starting", "forced"}
    report = Report("node", seed, must_fire=tuple(sorted(must_fire)))
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        node_run = NodeRun(Path(scratch), seed, stack, more)
        for number, (name, work) in enumerate(chosen):
            begun = time.monotonic()
            node_run.cycle(name, work)
            report.cycles += 1
            seconds = time.monotonic() - begun
            facts = {"cycle": number, "act": name, "work": work, "s": round(seconds, 1)}
            print(json.dumps({**facts, **node_run.verdict.counts}), file=sys.stderr)
        node_run.end()
        report.verdict.merge(node_run.verdict, "")
        report.faults += node_run.fired
    return report
