"""The run: send rows, remove some, kill the node in the middle, start it again and compare.

In turn retention and an erasure run; each is killed once, at a random moment, and then repeated
until it succeeds. After each start every row that must be there is there once, and no row that was
gone is back. `ROWS` in the environment is the number of rows, 10 million for the full run.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pyarrow as pa

import frazil
from frazil.client import Client
from frazil.errors import FrazilError, Unavailable
from tests.clients.node import Node
from tests.torture.removal.judge import (
    judge_bytes,
    judge_sums,
    sums_by_duckdb,
    sums_by_pyiceberg,
    sums_by_spark,
    sums_by_sql,
    sums_of,
)
from tests.torture.removal.load import RULES, Rows, marker_of, send
from tests.torture.report import Report

ROWS_VARIABLE = "ROWS"
ROWS = 100_000
SETTINGS = (
    """
[log]
segment_bytes_max = 4194304
[hot]
seal_age_ms = 2000
[lake]
driver_memory_bytes = 805306368
flush_age_ms = 15000
maintain_interval_ms = 20000
[query]
timeout_ms = 120000
"""
    + RULES
)
REMOVAL_S_MAX = 10.0
"""Of the first removal, which nobody has timed yet."""


class RemovalRun:
    """One node, its rows, and what was removed so far."""

    def __init__(self, scratch: Path, report: Report) -> None:
        settings = scratch / "frazil.toml"
        settings.write_text(SETTINGS)
        self.report = report
        self.chance = Random(report.seed)
        self.rows = Rows()
        self.erased_below = 0
        self.node = Node(scratch / "data", "--config", str(settings))
        self._seconds = {"retention": REMOVAL_S_MAX, "erase": REMOVAL_S_MAX}

    def cycle(self, number: int, row_count: int) -> None:
        send(self.node.http_port, self.rows, row_count, number, time.time_ns())
        wanted = sums_of(self.rows.kept(self.erased_below))
        self._expect("all rows arrive", wanted)
        kind = ("retention", "erase")[number % 2]
        self._kill_amid(kind, number)
        self._judge_life(f"cycle {number}, after the kill amid {kind}", number)
        for what in ("retention", "erase"):
            begun = time.monotonic()
            self._remove(what, number)
            self._seconds[what] = time.monotonic() - begun
        self.erased_below = number + 1
        self._expect(f"cycle {number} is over", sums_of(self.rows.kept(self.erased_below)))
        gone = sums_by_sql(self._client().ask, "body LIKE 'GONE%'")
        judge_sums(self.report.verdict, f"cycle {number}, expired rows", gone, (0, 0, 0))
        self.report.cycles += 1

    def _kill_amid(self, kind: str, number: int) -> None:
        """Start a removal, and kill the node before, during or just after it."""
        removal = threading.Thread(target=self._try_remove, args=(kind, number))
        removal.start()
        time.sleep(self.chance.random() * self._seconds[kind])
        self.report.faults["killed_amid" if removal.is_alive() else "killed_after"] += 1
        self.node.kill()
        removal.join()
        self.node.start()

    def _try_remove(self, kind: str, number: int) -> None:
        with suppress(FrazilError):
            self._remove(kind, number)

    def _remove(self, kind: str, person: int) -> None:
        client = self._client()
        if kind == "retention":
            report = client.apply_retention()
        else:
            report = client.erase(f"body LIKE '%{marker_of(person).decode()}%'")
        if not report.is_complete:
            self.report.verdict.add("untrue", f"{kind} is not complete: {report}")

    def _judge_life(self, when: str, person: int) -> None:
        """Rows that must stay are all there. Of the others each is there or not, but not twice."""
        marker = marker_of(person).decode()
        where = f"body LIKE 'KEPT%' AND body NOT LIKE '%{marker}%'"
        wanted = sums_of(self.rows.kept(person + 1))
        judge_sums(self.report.verdict, when, self._settled(wanted, where), wanted)
        left = sums_by_sql(self._client().ask, f"body LIKE 'KEPT%' AND body LIKE '%{marker}%'")
        if left[0] not in (0, len(self.rows.of_person(person))):
            self.report.faults["erased_partly"] += 1
        self.report.faults["rows_left" if left[0] else "rows_gone"] += 1

    def _expect(self, when: str, wanted: tuple[int, int, int]) -> None:
        where = "body LIKE 'KEPT%'"
        judge_sums(self.report.verdict, when, self._settled(wanted, where), wanted)

    def _settled(self, wanted: tuple[int, int, int], where: str) -> tuple[int, int, int]:
        """Return the sums by SQL. New rows take a moment to become visible."""
        until = time.monotonic() + 120
        while True:
            found = (0, 0, 0)
            with suppress(Unavailable):  # the hot tier is being rebuilt
                found = sums_by_sql(self._client().ask, where)
            if found == wanted or found[0] > wanted[0] or time.monotonic() > until:
                return found
            time.sleep(0.5)

    def judge(self) -> None:
        """Compare all readers, then every byte, with the node running and after its end."""
        verdict, wanted = self.report.verdict, sums_of(self.rows.kept(self.erased_below))
        client = self._client()
        judge_sums(verdict, "SQL", sums_by_sql(client.ask), wanted)
        client.flush()

        def spark(text: str) -> pa.Table:
            return client.sql(text, engine="spark").arrow()

        judge_sums(verdict, "Spark", sums_by_spark(spark), wanted)
        folder = self.node.folder
        found, files = sums_by_pyiceberg(folder)
        judge_sums(verdict, "PyIceberg", found, wanted)
        judge_sums(verdict, "DuckDB", sums_by_duckdb(files), wanted)
        markers = [b"GONE", *(marker_of(person) for person in range(self.erased_below))]
        size = judge_bytes(verdict, folder, markers)
        print(f"{size} bytes searched for {len(markers)} markers", file=sys.stderr)
        self.report.faults["bytes_searched"] = size
        self.node.stop()
        judge_bytes(verdict, folder, markers)

    def _client(self) -> Client:
        return frazil.connect(self.node.url)


def run(cycles: int, seed: int, row_count: int | None = None) -> Report:
    """Kill a node `cycles` times while it removes rows."""
    report = Report("retention", seed, must_fire=("killed_amid",))
    row_count = row_count or int(os.environ.get(ROWS_VARIABLE, ROWS))
    with tempfile.TemporaryDirectory(prefix="frazil-removal-") as scratch:
        removal = RemovalRun(Path(scratch), report)
        try:
            for number in range(cycles):
                begun = time.monotonic()
                removal.cycle(number, row_count // cycles)
                took_s = time.monotonic() - begun
                print(f"cycle {number}: {len(removal.rows)} rows, {took_s:.0f} s", file=sys.stderr)
            removal.judge()
        finally:
            removal.node.kill()
    report.faults["rows_sent"] = len(removal.rows)
    return report
