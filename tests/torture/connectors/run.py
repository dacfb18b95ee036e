"""The run: files grow and are rotated, a source reads them into a topic, a sink writes it to a
file; connectors, reader and node are killed at random.

At the end the topic has every line once and in the order of its file, and the sink was given every
record at least once: none before the one in front of it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import frazil
from frazil.disk import RealDisk
from frazil.errors import FrazilError
from frazil.log import Log
from frazil.model import SystemClock, SystemRand
from tests.clients.node import Node
from tests.connectors.installing import install
from tests.torture.checker import Verdict
from tests.torture.report import Report

NASTY = Path(__file__).parents[2] / "connectors" / "nasty.py"
SETTINGS = """
[stages]
roots = ["{files}"]
[lake]
enabled = false
[connectors]
backoff_ms = 20
backoff_ms_max = 200
"""
LIFE_S = 1.5
"""A kill comes within this time."""
DRAIN_S = 120.0
ROTATE_LINES = 5_000
ACTS = ("source", "sink", "reader", "node")
DELIVERED = re.compile(rb"(\d+) (\d+) (\d+) (\d+)")


class LineWriter:
    """Appends numbered lines to a file that it rotates, in pieces that end anywhere."""

    def __init__(self, folder: Path, rand: Random) -> None:
        self._folder = folder
        self._rand = rand
        self._stop = threading.Event()
        self.count = 0
        self.files = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            current = self._folder / "app.log"
            with current.open("ab", buffering=0) as file:
                end = self.count + self._rand.randint(1, ROTATE_LINES)
                while self.count < end and not self._stop.is_set():
                    self._write_some(file)
            if not self._stop.is_set():
                current.rename(self._folder / f"app.log.{self.files}")
                self.files += 1

    def _write_some(self, file: Any) -> None:
        count = self._rand.randint(1, 500)
        numbers = range(self.count, self.count + count)
        data = b"".join(b"%d %d\n" % (self.files, number) for number in numbers)
        cut = self._rand.randrange(len(data))
        file.write(data[:cut])
        time.sleep(self._rand.uniform(0, 0.02))
        file.write(data[cut:])
        self.count += count

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


class ConnectTorture:
    """A node with a source and a sink, and the files on both sides."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._rand = Random(seed)
        self._folder = folder
        self._files, self._out = folder / "in", folder / "out"
        self._files.mkdir()
        settings = folder / "frazil.toml"
        settings.write_text(SETTINGS.format(files=self._files))
        site = install(folder / "site", NASTY, {"writer": "WRITER"})
        self.node = Node(
            folder / "data", "--config", str(settings), environment={"PYTHONPATH": site}
        )
        self._client = frazil.connect(self.node.url)
        self.writer = LineWriter(self._files, Random(seed))
        self._say(
            f"CREATE SOURCE lines TYPE files FOLDER='{self._files}' PATTERN='app.log*' "
            "POLL_INTERVAL_MS=20 INTO TOPIC 'lines'"
        )
        self._until(lambda: self._count("source") > 0)
        self._say(f"CREATE SINK copy TYPE writer PATH='{self._out}' FROM TOPIC 'lines'")

    def _say(self, statement: str) -> None:
        self._client.execute(statement).fetchall()

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except FrazilError:  # the reader starts
                pass
            time.sleep(0.05)
        raise AssertionError(f"it did not happen: {self.node.errors()[-4000:]}")

    def _connector(self, role: str) -> dict[str, Any]:
        found = self._client.get("/api/v1/connectors")["connectors"]
        return next((each for each in found if each["role"] == role), {})

    def _count(self, role: str) -> int:
        return int(self._connector(role).get("records", 0))

    def act(self) -> str:
        time.sleep(self._rand.uniform(0, LIFE_S))
        act = self._rand.choice(ACTS)
        if act == "node":
            self.node.kill()
            self.node.start()
            return act
        try:
            if act == "reader":
                processes = self._client.get("/api/v1/status")["processes"]
                pid = next(each["pid"] for each in processes if each["process"] == "reader")
            else:
                pid = self._connector(act).get("pid")
        except (FrazilError, StopIteration):
            return "missed"  # the reader starts
        if pid is None:
            return "missed"
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return "missed"
        return act

    def end(self) -> None:
        """Let everything come through, and end the node."""
        self.writer.stop()
        self._until(lambda: self._stored() >= self.writer.count)
        self._until(lambda: self._connector("sink")["lag_offsets"] == 0)
        self._until(lambda: self._connector("source")["state"] == "running")
        self.node.kill()

    def _stored(self) -> int:
        topics = self._client.get("/api/v1/status")["log"]["topics"]
        found = next(each for each in topics if each["topic"] == "lines")
        return int(found["partitions"][0]["durable_watermark"])

    def judge(self, verdict: Verdict) -> None:
        disk = RealDisk(str(self._folder / "data"))
        with Log.open(disk, clock=SystemClock(), rand=SystemRand()) as log:
            reader = log.reader("lines", "earliest")
            values = []
            while batches := reader.read():
                values += [r.value or b"" for batch in batches for r in batch.records()]
        self._judge_lines(verdict, values)
        self._judge_sink(verdict, values)

    def _judge_lines(self, verdict: Verdict, values: list[bytes]) -> None:
        last: dict[int, int] = {}
        seen: Counter[int] = Counter()
        for value in values:
            file, number = map(int, value.split())
            seen[number] += 1
            if number < last.get(file, -1):
                verdict.add("order", f"line {number} of file {file} after {last[file]}")
            last[file] = number
        for number in range(self.writer.count):
            if seen[number] != 1:
                verdict.add(
                    "lost" if not seen[number] else "duplicate", f"line {number}: {seen[number]}"
                )
        if len(values) != self.writer.count:
            verdict.add("foreign", f"{len(values)} records of {self.writer.count} lines")

    def _judge_sink(self, verdict: Verdict, values: list[bytes]) -> None:
        next_offset = 0
        for line in self._out.read_bytes().split(b"\n"):
            found = DELIVERED.fullmatch(line)
            if found is None:
                continue  # cut by a kill
            offset, value = int(found[2]), found[3] + b" " + found[4]
            if offset >= len(values) or values[offset] != value:
                verdict.add("foreign", f"the sink has {line!r}")
            elif offset > next_offset:
                verdict.add("order", f"the sink got {offset} before {next_offset}")
                next_offset = offset + 1
            next_offset = max(next_offset, offset + 1)
        if next_offset != len(values):
            verdict.add("lost", f"the sink got {next_offset} of {len(values)} records")


def run(cycles: int, seed: int) -> Report:
    """Kill something so many times."""
    report = Report("connect", seed, must_fire=ACTS if cycles >= 40 else ())
    with tempfile.TemporaryDirectory() as folder:
        torture = ConnectTorture(Path(folder), seed)
        try:
            for _ in range(cycles):
                report.faults[torture.act()] += 1
                report.cycles += 1
            torture.end()
            torture.judge(report.verdict)
            report.faults["lines"] = torture.writer.count
            report.faults["files"] = torture.writer.files
        finally:
            torture.writer.stop()
            torture.node.kill()
        if report.verdict.examples:
            print(json.dumps(torture.node.errors()[-4000:]))
    return report
