"""Tiers: queries return every row once while rows move from the hot tier to the lake.

One log, a hot tier with a tiny disk limit, and a lake on a real Spark. Requests arrive
continuously; each cycle flushes, and every second one compacts, rewrites manifests or expires
snapshots. Several threads query counts all the time. Every request has the same number of rows and
offsets have no gaps, so each result can be checked alone: the row count follows from the last
offset, each offset occurs once, and no row seen earlier is missing.
"""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from random import Random, SystemRandom

from frazil.config import Config
from frazil.disk import RealDisk
from frazil.embedded import Embedded
from frazil.lake import Lake
from frazil.log import Log, Record, append_of_records
from frazil.model import SystemClock
from frazil.settings import HotConfig, LakeConfig, TopicConfig
from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs, span, spans
from tests.torture.checker import Verdict
from tests.torture.report import Report

KiB, MiB = 1024, 1024 * 1024
ROWS = 5
"""Rows per request."""
ASKING = 3
ASK_PAUSE_S = 0.02
INGEST_PAUSE_S = 0.02
HOT = HotConfig(
    seal_age_ms=200, seal_bytes=64 * KiB, memory_bytes_max=MiB, disk_bytes_max=256 * KiB
)
"""Seal, merge and evict files many times in each cycle."""
LAKE = LakeConfig(driver_memory_bytes=768 * MiB)
TABLES = {"logs": "otlp_logs", "spans": "otlp_spans"}
MAINTENANCE = {
    "compact": "CALL frazil.system.rewrite_data_files(table => 'frazil.frazil.{}', "
    "options => map('rewrite-all', 'true'))",
    "manifests": "CALL frazil.system.rewrite_manifests('frazil.frazil.{}')",
    "expire": "CALL frazil.system.expire_snapshots(table => 'frazil.frazil.{}', retain_last => 3, "
    "older_than => TIMESTAMP '2100-01-01 00:00:00')",
}
QUESTIONS = (
    "SELECT count(*), count(DISTINCT _offset), min(_offset), max(_offset) + 1 FROM {}",
    "SELECT sum(n), count(*), min(_offset), max(_offset) + 1 FROM "
    "(SELECT _offset, count(*) AS n FROM {} GROUP BY _offset)",
    "SELECT count(*), count(*) / {rows}, 0, max(_offset) + 1 FROM {} WHERE service_name <> ''",
)


def run(cycles: int, seed: int) -> Report:
    report = Report("tiers", seed, must_fire=("flush", *MAINTENANCE, "evicted", "asked"))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        tiers = _Run(Path(folder), Random(seed), stack)
        try:
            for number in range(cycles):
                verdict, faults = Verdict(), Counter[str]()
                try:
                    tiers.cycle(number, faults)
                finally:
                    for problem in tiers.take_problems():
                        verdict.add("untrue", problem)
                faults["asked"] += tiers.take_asked()
                report.take(verdict, faults, f"cycle {number}:")
        finally:
            tiers.stop()
        faults = Counter({"evicted": tiers.evicted()})
        report.faults += faults
    return report


class _Run:
    """One data folder with its log, tiers and threads."""

    def __init__(self, folder: Path, chance: Random, stack: ExitStack) -> None:
        self._chance = chance
        self._clock = SystemClock()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._problems: list[str] = []
        self._asked = 0
        disk, rand = RealDisk(folder), SystemRandom()
        self._log = stack.enter_context(Log.open(disk, clock=self._clock, rand=rand))
        for topic in TABLES.values():
            self._log.create_topic(topic, TopicConfig(awaits_lake=True))
        lake = Lake.open(self._log, folder, LAKE, clock=self._clock, rand=rand, auto_flush=False)
        self._lake = stack.enter_context(lake)
        config = Config(hot=HOT, lake=LAKE)
        over = Embedded.over(self._log, disk, config, clock=self._clock, lake=lake)
        self._embedded = stack.enter_context(over)
        self._pool = stack.enter_context(ThreadPoolExecutor(ASKING + 1))
        self._work: list[Future[None]] = [
            self._pool.submit(self._ingest),
            *(self._pool.submit(self._ask, number) for number in range(ASKING)),
        ]

    def cycle(self, number: int, faults: Counter[str]) -> None:
        self._lake.flush()
        faults["flush"] += 1
        if number % 2:
            what = self._chance.choice(sorted(MAINTENANCE))
            self._lake.run(lambda: self._maintain(MAINTENANCE[what]))
            faults[what] += 1

    def _maintain(self, text: str) -> None:
        with self._lake.session.use() as spark:
            for table in TABLES:
                spark.sql(text.format(table)).collect()

    def _ingest(self) -> None:
        number = 0
        while not self._stop.is_set():
            named = [log_record(number, event_name=f"{number}-{row}") for row in range(ROWS)]
            self._append("otlp_logs", logs(*named))
            self._append("otlp_spans", spans(*(span(number) for _ in range(ROWS))))
            number += 1
            self._stop.wait(INGEST_PAUSE_S)

    def _append(self, topic: str, body: bytes) -> None:
        record = Record(offset=0, timestamp_ms=self._clock.wall_ms(), key=None, value=body)
        self._log.append(topic, append_of_records([record])).result()

    def _ask(self, number: int) -> None:
        chance = Random(number)
        seen = dict.fromkeys(TABLES, 0)
        while not self._stop.is_set():
            table = chance.choice(sorted(TABLES))
            text = chance.choice(QUESTIONS).replace("{}", table).replace("{rows}", str(ROWS))
            try:
                ((rows, offsets, first, end),) = self._embedded.sql(text).fetchall()
            except Exception as error:  # noqa: BLE001 # no query may fail
                self._note(f"{text}: {type(error).__name__}: {error}", 0)
                continue
            if end is None:
                continue
            is_right = (rows, offsets, first) == (ROWS * end, end, 0) and end >= seen[table]
            if not is_right:
                self._note(f"{text}: {(rows, offsets, first, end)}, before {seen[table]}", 1)
            seen[table] = max(seen[table], end)
            with self._lock:
                self._asked += 1
            self._stop.wait(ASK_PAUSE_S)

    def _note(self, problem: str, asked: int) -> None:
        with self._lock:
            self._problems.append(problem)
            self._asked += asked

    def take_problems(self) -> list[str]:
        with self._lock:
            found, self._problems = self._problems, []
            return found

    def take_asked(self) -> int:
        with self._lock:
            found, self._asked = self._asked, 0
            return found

    def evicted(self) -> int:
        """Return the number of offsets evicted from the hot tier."""
        pieces = self._embedded.tier.pieces("logs")
        return min((piece.offset_begin for piece in pieces), default=0)

    def stop(self) -> None:
        self._stop.set()
        for work in self._work:
            work.result()
