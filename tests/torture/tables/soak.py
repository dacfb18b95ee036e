"""A keyed table that is changed for hours, on a real disk: rows stay right, memory and files flat.

Random upserts, updates and deletes of the same keys; compaction after each seal, the log trimmed,
restarts now and then. Views are held across compactions and compared with a dictionary when they
are given up. SOAK_KEYS is the number of keys.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from frazil.disk import RealDisk
from frazil.log import Log
from frazil.model import KiB, MiB, Rand, SystemClock
from frazil.settings import LogConfig, TablesConfig
from frazil.tables import (
    KeyedTable,
    KeyedView,
    KeyedWriter,
    LogChanges,
    Operation,
    create_table,
    new_definition,
    warm,
)
from tests.torture.report import Report

KEYS = int(os.environ.get("SOAK_KEYS", "20000"))
COLUMNS = (("id", "int64"), ("amount", "int64"), ("name", "string"))
CONFIG = TablesConfig(
    seal_bytes=512 * KiB, read_bytes=256 * KiB, checkpoint_bytes=4 * MiB, mapped_bytes_max=4 * MiB
)
LOG = LogConfig(segment_bytes_max=4 * MiB, batch_bytes_max=1 * MiB)
ROWS_MAX = 1000
"""Of one write."""
HELD_MAX = 5
SAMPLES = 20
"""Rows of a held view that are looked up one by one."""
WARM_SHARE = 0.3
"""Of the run; what is resident then may grow by `GROWTH_BYTES` until the end."""
GROWTH_BYTES = 48 * MiB
FILES_SHARE = 4
"""Row files may be this many times larger than what is live, plus what is not compacted yet."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

Expected = tuple[int, int, int]
"""Rows, sum of amounts, sum of products of amount and key."""


@dataclass(slots=True)
class HeldView:
    view: KeyedView
    expected: Expected
    samples: dict[int, int | None]


@dataclass(slots=True)
class Soak:
    """One run."""

    rand: Rand
    report: Report
    log: Log
    disk: RealDisk
    writer: KeyedWriter
    table: KeyedTable
    amounts: dict[int, int] = field(default_factory=dict)
    held: deque[HeldView] = field(default_factory=deque)

    def write(self, number: int) -> None:
        rand = self.rand
        operation = rand.choice((Operation.UPSERT, Operation.UPSERT, *Operation))
        first = rand.randrange(KEYS)
        count = rand.choice((1, 10, ROWS_MAX))
        ids = list({(first + rand.randrange(1, 50) * n) % KEYS for n in range(count)})
        keys = pa.array(ids, pa.int64())
        if operation is Operation.DELETE:
            ids = ids[: len(ids) // 2 or 1]
            self.writer.delete(pa.table({"id": keys[: len(ids)]}))
            for key in ids:
                self.amounts.pop(key, None)
            return
        amounts = pa.array([number] * len(ids), pa.int64())
        if operation is Operation.UPDATE:
            self.writer.update(pa.table({"id": keys, "amount": amounts}))
            self.amounts |= {key: number for key in ids if key in self.amounts}
            return
        names = pa.array([f"name of {key} in {number}" for key in ids])
        self.writer.upsert(pa.table({"id": keys, "amount": amounts, "name": names}))
        self.amounts |= dict.fromkeys(ids, number)

    def expected(self) -> Expected:
        amounts = self.amounts
        return len(amounts), sum(amounts.values()), sum(k * a for k, a in amounts.items())

    def hold(self) -> None:
        keys = [self.rand.randrange(KEYS) for _ in range(SAMPLES)]
        samples = {key: self.amounts.get(key) for key in keys}
        self.held.append(HeldView(self.table.view(), self.expected(), samples))
        self.report.faults["held"] += 1
        if len(self.held) > HELD_MAX:
            self.check(self.held.popleft())

    def check(self, held: HeldView) -> None:
        count, total, products = 0, 0, 0
        for batch in held.view.batches(["id", "amount"]):
            count += batch.num_rows
            total += pc.sum(batch["amount"]).as_py() or 0
            products += pc.sum(pc.multiply(batch["id"], batch["amount"])).as_py() or 0
        if (count, total, products) != held.expected:
            self.report.verdict.add("untrue", f"{(count, total, products)} != {held.expected}")
        for key, amount in held.samples.items():
            row = held.view.get(key)
            if (row and row["amount"]) != amount:
                self.report.verdict.add("untrue", f"get {key}: {row}, not {amount}")
        self.report.faults["checked"] += 1

    def work(self) -> None:
        """Do what the owner of a table does."""
        self.table.catch_up()
        view = self.table.view()
        horizon = max(view.first_offsets[0], view.offsets[0] - 200)
        while self.table.compact({0: horizon}):
            self.report.faults["compacted"] += 1
        if self.rand.random() < 0.01:
            self.table.checkpoint()
            self.log.delete_records(self.writer.definition.topic, 0, horizon)
            self.report.faults["trimmed"] += 1
        if self.rand.random() < 0.002:
            self.table.checkpoint()
            self.table.close()
            self.table = KeyedTable(self.disk, LogChanges(self.log), self.writer.definition, CONFIG)
            self.table.catch_up()
            self.report.faults["restarted"] += 1


def run(cycles: int, seed: int) -> Report:
    """Make this many writes; memory and files must not grow after the first part."""
    must_fire = ("checked", "compacted", "held", "restarted", "trimmed")
    report = Report("keyed_soak", seed, must_fire=must_fire)
    warm()
    rand = Rand(seed)
    folder = Path(tempfile.mkdtemp(prefix="soak-", dir="."))
    try:
        disk = RealDisk(folder)
        log = Log.open(disk, LOG, clock=SystemClock(), rand=rand, holder="the soak")
        definition = new_definition("soak", COLUMNS, ["id"], rand=rand)
        create_table(disk, log, definition)
        writer = KeyedWriter(log, definition, clock=SystemClock())
        soak = Soak(
            rand, report, log, disk, writer, KeyedTable(disk, LogChanges(log), definition, CONFIG)
        )
        run_all(soak, cycles)
        soak.table.close()
        log.close()
    finally:
        shutil.rmtree(folder)
    return report


def run_all(soak: Soak, cycles: int) -> None:
    report, begin = soak.report, time.monotonic()
    warm_bytes = 0
    for number in range(1, cycles + 1):
        soak.write(number)
        soak.work()
        if soak.rand.random() < 0.05:
            soak.hold()
        report.cycles += 1
        if number == int(cycles * WARM_SHARE):
            warm_bytes = resident_bytes()
        if number % max(1, cycles // 10) == 0:
            print(describe(soak, number, time.monotonic() - begin), file=sys.stderr)
    grown = resident_bytes() - warm_bytes
    if grown > GROWTH_BYTES:
        report.verdict.add("untrue", f"{grown} bytes more are resident than at {warm_bytes}")
    live = sum(batch.nbytes for batch in soak.table.view().batches())
    if soak.table.file_bytes > FILES_SHARE * live + 8 * CONFIG.seal_bytes:
        report.verdict.add("untrue", f"{soak.table.file_bytes} bytes of files, {live} are live")
    while soak.held:
        soak.check(soak.held.popleft())


def describe(soak: Soak, number: int, seconds: float) -> str:
    (view,) = soak.table.view().partitions
    fold = soak.table.folds[0]
    return (
        f"{number} writes in {seconds:.0f} s: {view.live_count} rows, {view.row_count} versions; "
        f"{fold.file_count} files of {fold.file_bytes / 1e6:.1f} MB; "
        f"resident {resident_bytes() / 1e6:.0f} MB, mapped {soak.table.mapped_bytes / 1e6:.1f} MB, "
        f"index {fold.key_bytes / 1e6:.2f} MB"
    )


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
