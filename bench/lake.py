"""From the log to Iceberg on Spark: rows and bytes per second, beside stock Spark and no Spark.

A log holds an hour of a web shop. Three ways load all of it into a new table, in turns, on two
cores: ours on `local[2]`; stock, where Spark reads the same requests from Parquet (as it would from
Kafka), decodes them with the same decoder in `mapInArrow`, and Iceberg's Spark writer writes the
rows; and our tasks in two plain processes. All tables have the same columns, order and properties
and must hold the same rows. Each way runs once before it is measured.

Also: commit time once the files exist, bytes per row, and peak memory of the Spark process and its
Python processes beside their limits. Prints one JSON line last; exits 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.pool import Pool
from pathlib import Path
from random import SystemRandom
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.log import scratch_folder
from bench.shop import Shop
from frazil.disk import RealDisk
from frazil.lake import Appender, Session
from frazil.lake.append.appender import Run, Work
from frazil.lake.append.log_source import LogSource, bytes_behind
from frazil.lake.append.slice import SourcePartition, requests_of
from frazil.lake.append.task import WrittenSlice, run_slice
from frazil.lake.catalog.catalog import open_catalog, spark_settings
from frazil.lake.spark.jobs import run_on
from frazil.lake.tables.tables import ensure_table
from frazil.log import Log, Record, append_of_records
from frazil.model import GiB, MiB, Signal, SystemClock
from frazil.model.arrow import TABLES, ExportRequest, decode
from frazil.settings import LakeConfig, TopicConfig

ROWS = {"logs": 1_600_000, "spans": 800_000}
WARM_ROWS = 200_000
"""One task per core."""
ROUNDS = 3
CORES = 2
BAR_STOCK = 4.5
"""Rows/s relative to stock."""
BAR_PLAIN = 0.6
"""Rows/s relative to two processes without Spark."""
STOCK_FILES = 8
SAMPLE_S = 0.25
WORKERS = b"-m\0frazil.lake.spark.fork_server"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CLOCK = SystemClock()

Case = dict[str, object]


@dataclass(slots=True)
class Taken:
    """Seconds per round of one way."""

    seconds: list[float] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)

    def rate(self, rows: int) -> float:
        return rows / statistics.median(self.seconds)


@dataclass(slots=True)
class Memory:
    """Peak memory of the Spark process and of any of its Python processes."""

    jvm_bytes: int = 0
    worker_bytes: int = 0


def fill(log: Log, topic: str, rows: int) -> int:
    """Append requests with this many rows to the topic. Returns the bytes of their bodies."""
    shop = Shop(logs=rows, spans=rows)
    total, last = 0, None
    for name, body in shop.requests():
        if name == topic:
            total += len(body)
            record = Record(offset=0, timestamp_ms=CLOCK.wall_ms(), key=None, value=body)
            last = log.append(topic, append_of_records([record]))
            if total % (64 * MiB) < len(body):
                last.result()
    assert last is not None, topic
    last.result()
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A log with one topic, and a catalog."""

    folder: Path
    log: Log
    table: str
    topic: str
    signal: str

    def config(self, namespace: str) -> LakeConfig:
        return LakeConfig(namespace=namespace, slice_bytes=32 * MiB)

    def append(self, namespace: str, run: Run, taken: Taken) -> int:
        """Load the whole log into a new table. Returns its row count."""
        config = self.config(namespace)
        catalog = open_catalog(config, self.folder)
        ended: list[float] = []

        def timed(work: Sequence[Work]) -> list[WrittenSlice]:
            written = run(work)
            ended.append(time.perf_counter())
            return written

        appender = Appender.open(
            LogSource(self.log, self.folder),
            catalog,
            config,
            run=timed,
            clock=CLOCK,
            rand=SystemRandom(),
        )
        begin = time.perf_counter()
        rows = 0
        while done := appender.append():
            taken.commits.append(time.perf_counter() - ended[-1])
            rows += sum(each.row_count for each in done)
        taken.seconds.append(time.perf_counter() - begin)
        catalog.close()
        return rows

    def write_raw(self, folder: Path) -> None:
        """The requests as Parquet rows, as a Spark source would deliver them."""
        folder.mkdir()
        source = SourcePartition(
            table=self.table, signal=self.signal, topic=self.topic, partition=0
        )
        records = LogSource(self.log, self.folder)
        size = bytes_behind(self.log.partition(self.topic, 0).view, 0)
        for number, each in enumerate(records.plan(source, 0, None, size // STOCK_FILES + 1)):
            found = [one for some in requests_of(each, each.origin.read()) for one in some]
            rows = pa.table(
                {
                    "offset": pa.array([one.offset for one in found], pa.int64()),
                    "time_ms": pa.array([one.ingest_time_ms for one in found], pa.int64()),
                    "value": pa.array([one.body for one in found], pa.binary()),
                }
            )
            pq.write_table(rows, folder / f"{number}.parquet", compression="none")

    def append_stock(self, namespace: str, session: Session, raw: Path, taken: Taken) -> int:
        """The same rows by Spark's and Iceberg's own means."""
        config = self.config(namespace)
        catalog = open_catalog(config, self.folder)
        ensure_table(catalog, config, self.table)
        name = f"{config.catalog_name}.{namespace}.{self.table}"
        with session.use() as spark:
            rows = spark.table(name)
            begin = time.perf_counter()
            read = spark.read.parquet(str(raw))
            made = read.mapInArrow(decoder(self.signal, self.table), rows.schema)
            made.writeTo(name).append()
            taken.seconds.append(time.perf_counter() - begin)
            count: int = spark.table(name).count()
        catalog.close()
        return count


def decoder(signal: str, table: str) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """The function stock Spark maps requests to rows with."""

    def decoded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            offsets, times = batch["offset"].to_pylist(), batch["time_ms"].to_pylist()
            bodies = batch["value"].to_pylist()
            # The batch size of our own tasks.
            for begin in range(0, len(bodies), 16):
                requests = [
                    ExportRequest(partition=0, offset=offset, ingest_time_ms=time_ms, body=body)
                    for offset, time_ms, body in zip(
                        offsets[begin : begin + 16],
                        times[begin : begin + 16],
                        bodies[begin : begin + 16],
                        strict=True,
                    )
                ]
                yield decode(signal, requests).batch.cast(TABLES[table])

    return decoded


def run_in(pool: Pool) -> Run:
    """Run tasks in plain processes."""

    def run(work: Sequence[Work]) -> list[WrittenSlice]:
        return pool.starmap(run_slice, work, chunksize=1)

    return run


@contextmanager
def watched(session: Session) -> Iterator[Memory]:
    """Sample the memory of Spark and its children."""
    memory, stop = Memory(), threading.Event()

    def watch() -> None:
        while not stop.wait(SAMPLE_S):
            root = session.pid
            if root is not None:
                memory.jvm_bytes = max(memory.jvm_bytes, resident_bytes(root))
                for pid in filter(is_worker, descendants(root)):
                    memory.worker_bytes = max(memory.worker_bytes, resident_bytes(pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield memory
    finally:
        stop.set()
        thread.join()


def is_worker(pid: int) -> bool:
    """Is it one of ours? A process just forked by Java still shows Java's memory."""
    try:
        return WORKERS in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except (FileNotFoundError, ProcessLookupError):
        return 0


def descendants(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                children = [int(text) for text in path.read_text().split()]
            except (FileNotFoundError, ProcessLookupError):
                continue
            found += children
            waiting += children
    return found


def case(name: str, **facts: object) -> Case:
    line = {"case": name, **facts}
    print(json.dumps(line), file=sys.stderr, flush=True)
    return line


def bench(folder: Path, table: str, rows: int, rounds: int) -> Iterator[Case]:
    topic, signal = next((each.topic, each) for each in Signal if each.table == table)
    data = (folder / table).absolute()
    config = LakeConfig()
    session = Session(config, spark_settings(config, data), data / "scratch")
    with (
        Log.open(RealDisk(data), clock=CLOCK, rand=SystemRandom(), holder="the bench") as log,
        multiprocessing.get_context("spawn").Pool(CORES) as pool,
        watched(session) as memory,
    ):
        log.create_topic(topic, TopicConfig(awaits_lake=True))
        place = Place(folder=data, log=log, table=table, topic=topic, signal=signal)
        ours, stock, plain = Taken(), Taken(), Taken()
        fill(log, topic, WARM_ROWS)
        place.write_raw(folder / f"{table}-warm")
        place.append("warm_ours", run_on(session), Taken())
        place.append("warm_plain", run_in(pool), Taken())
        place.append_stock("warm_stock", session, folder / f"{table}-warm", Taken())
        payload = fill(log, topic, rows)
        place.write_raw(folder / f"{table}-raw")
        counts = []
        raw = folder / f"{table}-raw"
        for number in range(rounds):
            # Sync what others wrote before the next measurement.
            os.sync()
            counts.append(place.append(f"ours{number}", run_on(session), ours))
            os.sync()
            counts.append(place.append(f"plain{number}", run_in(pool), plain))
            os.sync()
            counts.append(place.append_stock(f"stock{number}", session, raw, stock))
        session.close()
    assert set(counts) == {rows + WARM_ROWS}, counts
    yield from cases_of(table, rows, payload, data, ours, stock, plain, memory)


def cases_of(
    table: str,
    rows: int,
    payload: int,
    data: Path,
    ours: Taken,
    stock: Taken,
    plain: Taken,
    memory: Memory,
) -> Iterator[Case]:
    count = rows + WARM_ROWS
    rate = ours.rate(count)
    record_bytes = payload / rows
    for name, peer, bar in (
        ("mapInArrow and Iceberg's writer", stock, BAR_STOCK),
        ("two processes without Spark", plain, BAR_PLAIN),
    ):
        ratio = rate / peer.rate(count)
        yield case(
            f"{table} on local[2] beside {name}",
            ours=round(rate),
            peer=round(peer.rate(count)),
            unit="rows/s",
            ratio=round(ratio, 2),
            bar=bar,
            ok=ratio >= bar,
            mb_per_s=round(rate * record_bytes / 1e6, 1),
        )
    written = (data / "lake/warehouse/ours0" / table / "data").rglob("*.parquet")
    row_bytes = sum(path.stat().st_size for path in written) / count
    yield case(
        f"{table}: a row in Parquet beside its bytes of OTLP",
        ours=round(row_bytes, 1),
        peer=round(record_bytes, 1),
        unit="bytes",
        ratio=round(row_bytes / record_bytes, 3),
        bar=None,
        ok=True,
    )
    yield case(
        f"{table}: commit, read back and told to the log",
        ours=round(1000 * statistics.median(ours.commits), 1),
        peer=None,
        unit="ms",
        ratio=None,
        bar=None,
        ok=True,
    )
    config = LakeConfig()
    for name, found, limit in (
        ("Spark's process", memory.jvm_bytes, config.driver_memory_bytes + GiB),
        ("a Python process of a task", memory.worker_bytes, config.worker_memory_bytes),
    ):
        yield case(
            f"{table}: memory of {name}, at most",
            ours=round(found / MiB),
            peer=round(limit / MiB),
            unit="MiB",
            ratio=round(found / limit, 2),
            bar=1.0,
            ok=found <= limit,
        )


def main(scale: float, rounds: int) -> int:
    cases: list[Case] = []
    with scratch_folder() as folder:
        for table, rows in ROWS.items():
            cases += bench(folder, table, int(rows * scale), rounds)
    print(json.dumps({"bench": "lake", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the rows")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    sys.exit(main(options.scale, options.rounds))
