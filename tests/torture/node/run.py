"""A story: a node on one folder, and one act against it after the other.

Requests come, questions are asked, rows are sealed, evicted, committed and compacted all the time.
An act comes at any moment of that: before, amid or after a flush, which starts Spark where it is
not there. In the end all must be there, by every reader.
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
from frazil.lake.config import LakeConfig
from frazil.model import Signal
from tests.clients.node import Node
from tests.torture.checker import Verdict
from tests.torture.node import remains
from tests.torture.node.acts import ACTS, dealt
from tests.torture.node.asking import Asking, Lives
from tests.torture.node.judge import judge, judge_tables, shown_by_sql
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
"""Files are sealed, merged and evicted in every life, and some rounds come by themselves."""
WORK = ("nothing", "nothing", "amid", "amid", "amid", "after", "maintain")
"""Is there a flush, and does an act come amid it or after? Twice each for what is quick."""
AMID_S_MAX = 20.0
FLUSH_WAITS_S_MAX = 240.0
SURE_CYCLES = 40
"""With so many, each act comes at least once."""
LITTER_MAX = 20
"""Half-written files and what lies in Spark's folder after its last start."""
BAD_LINE = re.compile(
    r"(?!.*files kept above the disk limit)"
    r"(?:.*\b(?:ERROR|CRITICAL)\b|.*\"(?:error|critical)\"|Traceback)"
)
"""Log lines of a node that need attention. The disk limit of the hot tier is small here."""

LINES_TOLD = 25
LINE_CHARS_MAX = 500


class Story:
    """Owned by one thread. What acts see of a node is here."""

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
                said = "\n".join(each[:LINE_CHARS_MAX] for each in lines[at : at + LINES_TOLD])
                print(f"life {self._lives.number}: {said}", file=sys.stderr)

    def flush(self) -> None:
        if self._flushing is None or self._flushing.done():
            self._flushing = self._asking.flush()

    def note(self, fault: str) -> None:
        self.fired[fault] += 1

    def complain(self, problem: str) -> None:
        self.verdict.add("untrue", f"{problem}: {self.node.errors()[-2000:]}")

    def cycle(self, name: str, work: str) -> None:
        """Some time passes, with or without a flush, and then comes an act."""
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
        """Nothing comes any more, everything is in the tables: three readers must agree."""
        ledger = self._load.ledger
        self._load.stop()
        self._asking.flush().result(FLUSH_WAITS_S_MAX)
        remote = frazil.connect(self.node.url)
        remote.flush()
        config = LakeConfig()
        for signal in Signal:
            self.verdict.merge(judge(ledger, signal, shown_by_sql(remote.ask, signal)), "SQL:")
        self.verdict.merge(judge_tables(ledger, self.node.folder, config, self.chance), "")
        self._asking.stop()
        self._lives.harm_count += 1
        self.signal(SIGTERM)
        if (code := self.wait()) != 0:
            self.complain(f"the last stop ended with {code}")
        with frazil.open(self.node.folder, config=self._settings) as opened:
            for signal in Signal:
                shown = shown_by_sql(opened.ask, signal)
                self.verdict.merge(judge(ledger, signal, shown), "frazil.open:")
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
            self.verdict.add("untrue", f"{len(left)} files are left, such as {left[:10]}")

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
            print(f"refused {count} times while calm: {text}", file=sys.stderr)


def _ms_since(begun: float) -> int:
    return int((time.monotonic() - begun) * 1000)


def run(cycles: int, seed: int, *, acts: Sequence[tuple[str, str]] = (), more: str = "") -> Report:
    """So many acts, or these; each with what goes on when it comes. A node with `more` settings
    is another one, perhaps one that must not be found well."""
    chance = Random(f"{seed} acts")
    chosen = list(acts) or [(name, chance.choice(WORK)) for name in dealt(chance, cycles)]
    must_fire = {"acknowledged", "asked", "flushes", "commits", *(name for name, _ in chosen)}
    if len(chosen) >= SURE_CYCLES:
        must_fire |= {*ACTS, "again", "maybe", "repeated", "maintained", "asked_snapshot"}
        must_fire |= {"killed_spark", "killed_worker", "killed_starting", "forced"}
    report = Report("node", seed, must_fire=tuple(sorted(must_fire)))
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        story = Story(Path(scratch), seed, stack, more)
        for number, (name, work) in enumerate(chosen):
            begun = time.monotonic()
            story.cycle(name, work)
            report.cycles += 1
            seconds = time.monotonic() - begun
            facts = {"cycle": number, "act": name, "work": work, "s": round(seconds, 1)}
            print(json.dumps({**facts, **story.verdict.counts}), file=sys.stderr)
        story.end()
        report.verdict.merge(story.verdict, "")
        report.faults += story.fired
    return report
