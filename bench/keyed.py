"""Keyed tables: memory of the index, look-ups, fold, rebuild; SQLite and DuckDB in the same run.

KEYED_KEYS is the number of keys (1,000,000; the bars are for 10,000,000). Figures are CPU time of
this process where they say so: the box may be busy. Prints one JSON line last; exits 1 when a bar
is missed at 10 M keys.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom

import numpy as np
import pyarrow as pa

from frazil.disk import RealDisk
from frazil.log import Log
from frazil.model import GiB, SystemClock
from frazil.settings import LogConfig, TablesConfig
from frazil.tables import (
    KeyedTable,
    KeyedWriter,
    LogChanges,
    create_table,
    find_table,
    new_definition,
    warm,
)
from frazil.tables.keys.key_block import block_of

KEYS = int(os.environ.get("KEYED_KEYS", "1000000"))
WHOLE_KEYS = 10_000_000
BATCH_ROWS = 20_000
GETS = 5_000
DURABLE_WRITES = 200
CHANGES = 500_000
COLUMNS = (
    ("id", "int64"),
    ("customer", "string"),
    ("status", "string"),
    ("amount", "float64"),
    ("quantity", "int32"),
    ("created", "timestamptz"),
    ("region", "string"),
    ("note", "string"),
)
BARS = {
    "index_mb": 130.0,
    "process_mb": 300.0,
    "get_p50_us": 50.0,
    "get_p99_us": 300.0,
    "rebuild_s": 5.0,
}
"""At most."""
FOLD_BAR = 1_000_000
"""Changes per second and core, at least."""

Figures = dict[str, float]


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder on the disk of this repository; /tmp may be another disk."""
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir="."))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def rows_of(ids: np.ndarray[tuple[int], np.dtype[np.int64]], version: int = 0) -> pa.Table:
    """Rows of about 90 bytes."""
    count = len(ids)
    regions = pa.array(["eu-west", "eu-north", "us-east", "ap-south"])
    texts = pa.array(ids + version).cast(pa.string())
    return pa.table(
        {
            "id": ids,
            "customer": texts,
            "status": regions.take(pa.array((ids + version) % 4)),
            "amount": ids * 0.5 + version,
            "quantity": (ids % 1000).astype(np.int32),
            "created": pa.array(ids + 1_700_000_000_000_000, pa.timestamp("us", tz="UTC")),
            "region": regions.take(pa.array(ids % 4)),
            "note": pa.nulls(count, pa.string()),
        }
    )


def percentiles(samples_ns: list[int]) -> tuple[float, float]:
    """p50 and p99 in microseconds."""
    cuts = statistics.quantiles(samples_ns, n=100)
    return cuts[49] / 1000, cuts[98] / 1000


def timed_each(calls: int, call: Callable[[int], object]) -> tuple[float, float]:
    samples = []
    for number in range(calls):
        begin = time.perf_counter_ns()
        call(number)
        samples.append(time.perf_counter_ns() - begin)
    return percentiles(samples)


def open_log(folder: Path) -> Log:
    config = LogConfig(disk_bytes_max=64 * GiB)
    return Log.open(
        RealDisk(folder), config, clock=SystemClock(), rand=SystemRandom(), holder="the bench"
    )


def ours(folder: Path) -> Figures:
    """One partition: fill, change, look up, save, rebuild."""
    warm()
    rand = np.random.default_rng(1)
    ids = rand.permutation(KEYS).astype(np.int64) * 7919
    disk, log = RealDisk(folder), open_log(folder)
    definition = new_definition("bench", COLUMNS, ["id"], rand=SystemRandom())
    create_table(disk, log, definition)
    writer = KeyedWriter(log, definition, clock=SystemClock())
    for begin in range(0, KEYS, BATCH_ROWS):
        writer.upsert(rows_of(ids[begin : begin + BATCH_ROWS]))
    figures: Figures = {}
    table = KeyedTable(disk, LogChanges(log), definition, TablesConfig())
    cpu = time.process_time()
    table.catch_up()
    figures["fold_inserts_per_cpu_s"] = KEYS / (time.process_time() - cpu)
    count = min(CHANGES, KEYS)
    changed = rand.permutation(ids)[:count]
    for begin in range(0, count, BATCH_ROWS):
        writer.upsert(rows_of(changed[begin : begin + BATCH_ROWS], 1))
    cpu = time.process_time()
    table.catch_up()
    figures["fold_upserts_per_cpu_s"] = count / (time.process_time() - cpu)
    partial = pa.table({"id": changed[: count // 4], "quantity": np.full(count // 4, 7)})
    for begin in range(0, partial.num_rows, BATCH_ROWS):
        writer.update(partial.slice(begin, BATCH_ROWS))
    cpu = time.process_time()
    table.catch_up()
    figures["fold_updates_per_cpu_s"] = partial.num_rows / (time.process_time() - cpu)
    figures["index_mb"] = table.key_bytes / 1e6
    view = table.view()
    assert view.live_count == KEYS
    wanted = [int(key) for key in rand.permutation(ids)[:GETS]]
    figures["get_p50_us"], figures["get_p99_us"] = timed_each(
        len(wanted), lambda number: view.get(wanted[number])
    )
    hundred = [wanted[begin : begin + 100] for begin in range(0, len(wanted), 100)]
    figures["get_100_p50_us"], _ = timed_each(
        len(hundred), lambda number: view.get_many(hundred[number])
    )
    figures |= look_ups(table, ids, rand)
    begin_s = time.perf_counter()
    bounds = (0, 7919 * min(95_000, KEYS))
    found = sum(batch.num_rows for batch in view.scan(*bounds))
    figures["range_ms"] = (time.perf_counter() - begin_s) * 1000
    assert found == min(95_000, KEYS)
    begin_s = time.perf_counter()
    _ = view.as_of({0: view.offsets[0] // 2}).partitions[0].live
    figures["as_of_bitmap_ms"] = (time.perf_counter() - begin_s) * 1000
    small = [rows_of(ids[number : number + 1], 2) for number in range(DURABLE_WRITES)]
    figures["durable_upsert_p50_us"], figures["durable_upsert_p99_us"] = timed_each(
        min(DURABLE_WRITES, KEYS), lambda number: writer.upsert(small[number])
    )
    table.catch_up()
    begin_s = time.perf_counter()
    table.checkpoint()
    figures["checkpoint_s"] = time.perf_counter() - begin_s
    figures |= compaction(table, wanted)
    table.checkpoint()
    table.close()
    figures |= starts(disk, log, table)
    log.close()
    figures["process_mb"] = process_mb(folder)
    return figures


def compaction(table: KeyedTable, wanted: list[int]) -> Figures:
    """Remove what is dead; then look up rows whose numbers have gaps, and read all of them."""
    figures: Figures = {"files_mb": table.file_bytes / 1e6}
    horizons = table.view().offsets
    begin_s = time.perf_counter()
    cpu = time.process_time()
    while table.compact(horizons):
        pass
    figures["compact_s"] = time.perf_counter() - begin_s
    figures["compact_cpu_s"] = time.process_time() - cpu
    figures["files_compacted_mb"] = table.file_bytes / 1e6
    view = table.view()
    figures["get_compacted_p50_us"], _ = timed_each(
        len(wanted), lambda number: view.get(wanted[number])
    )
    table.release_memory()
    before = resident_bytes()
    figures["resident_mb"] = before / 1e6
    assert sum(batch.num_rows for batch in view.batches(["id"])) == KEYS
    figures["scan_resident_mb"] = (resident_bytes() - before) / 1e6
    table.release_memory()
    figures["released_resident_mb"] = (resident_bytes() - before) / 1e6
    return figures


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def process_mb(folder: Path) -> float:
    """Return the memory that the table takes in a process of its own, above what that has before.
    Mapped files are not counted: the kernel takes their pages back when it needs them."""
    command = [sys.executable, __file__, "opened", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def opened_mb(folder: Path) -> float:
    """Open the table, look rows up, and return by how much the process has grown, in MB."""
    warm()
    disk = RealDisk(folder)
    before = private_bytes()
    log = open_log(folder)
    table = KeyedTable(disk, LogChanges(log), find_table(disk, "bench"))
    view, rand = table.view(), np.random.default_rng(2)
    for key in rand.integers(0, KEYS, GETS).tolist():
        assert view.get(7919 * key) is not None
    grown = private_bytes() - before
    table.close()
    log.close()
    return grown / 1e6


def private_bytes() -> int:
    resident, shared = map(int, Path("/proc/self/statm").read_text().split()[1:3])
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def look_ups(
    table: KeyedTable, ids: np.ndarray[tuple[int], np.dtype[np.int64]], rand: np.random.Generator
) -> Figures:
    """Nanoseconds of CPU per key, without the rows."""
    index, figures = table.folds[0].state.index, Figures()
    sample = rand.permutation(ids)[: min(KEYS, 1_000_000)]
    for name, keys in (("hit", sample), ("miss", sample + 1)):
        block = block_of(pa.array(keys))
        cpu = time.process_time_ns()
        rows = index.find(block)
        figures[f"index_{name}_ns"] = (time.process_time_ns() - cpu) / len(keys)
        assert (rows >= 0).all() == (name == "hit")
    return figures


def starts(disk: RealDisk, log: Log, table: KeyedTable) -> Figures:
    """Open with the saved index, and without it."""
    figures: Figures = {}
    for name in ("open_s", "rebuild_s"):
        if name == "rebuild_s":
            disk.unlink(f"tables/{table.definition.name}/0/keys.index")
        begin = time.perf_counter()
        again = KeyedTable(disk, LogChanges(log), table.definition)
        figures[name] = time.perf_counter() - begin
        assert again.folds[0].is_index_loaded == (name == "open_s")
        assert again.view().live_count == KEYS
        again.close()
    return figures


def sqlite(folder: Path) -> Figures:
    """WAL, synchronous FULL: as durable as ours."""
    database = sqlite3.connect(folder / "peer.sqlite", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    names = ", ".join(name for name, _ in COLUMNS)
    database.execute(f"CREATE TABLE t ({names.replace('id,', 'id INTEGER PRIMARY KEY,', 1)})")
    marks = ", ".join("?" * len(COLUMNS))
    statement = f"INSERT OR REPLACE INTO t VALUES ({marks})"
    rand = np.random.default_rng(1)
    ids = rand.permutation(KEYS).astype(np.int64) * 7919

    def put(rows: pa.Table) -> None:
        plain = rows.set_column(5, "created", rows["created"].cast(pa.int64()))
        values = zip(*(column.to_pylist() for column in plain.columns), strict=True)
        database.execute("BEGIN")
        database.executemany(statement, values)
        database.execute("COMMIT")

    for begin in range(0, KEYS, BATCH_ROWS):
        put(rows_of(ids[begin : begin + BATCH_ROWS]))
    wanted = [int(key) for key in rand.permutation(ids)[:GETS]]
    select = "SELECT * FROM t WHERE id = ?"
    p50, p99 = timed_each(
        len(wanted), lambda number: database.execute(select, (wanted[number],)).fetchone()
    )
    small = [rows_of(ids[number : number + 1], 2) for number in range(DURABLE_WRITES)]
    durable, _ = timed_each(min(DURABLE_WRITES, KEYS), lambda number: put(small[number]))
    changed = rows_of(rand.permutation(ids)[: min(100_000, KEYS)], 3)
    cpu = time.process_time()
    put(changed)
    rate = changed.num_rows / (time.process_time() - cpu)
    database.close()
    return {
        "get_p50_us": p50,
        "get_p99_us": p99,
        "durable_upsert_p50_us": durable,
        "upserts_per_cpu_s": rate,
    }


def duckdb(folder: Path) -> Figures | None:
    """None if it is not installed: it is no dependency of ours."""
    try:
        import duckdb as library
    except ImportError:
        return None
    database = library.connect(str(folder / "peer.duckdb"))
    database.execute("SET threads = 1")
    kinds = {"int64": "BIGINT", "string": "TEXT", "float64": "DOUBLE", "int32": "INT"}
    columns = ", ".join(f"{name} {kinds.get(kind, 'TIMESTAMP')}" for name, kind in COLUMNS)
    database.execute(f"CREATE TABLE t ({columns}, PRIMARY KEY (id))")
    rand = np.random.default_rng(1)
    ids = rand.permutation(KEYS).astype(np.int64) * 7919

    def put(rows: pa.Table) -> None:
        plain = rows.set_column(5, "created", rows["created"].cast(pa.timestamp("us")))
        database.register("given", plain)
        database.execute("INSERT OR REPLACE INTO t SELECT * FROM given")
        database.unregister("given")

    for begin in range(0, KEYS, 10 * BATCH_ROWS):
        put(rows_of(ids[begin : begin + 10 * BATCH_ROWS]))
    wanted = [int(key) for key in rand.permutation(ids)[: GETS // 10]]
    select = "SELECT * FROM t WHERE id = ?"
    p50, p99 = timed_each(
        len(wanted), lambda number: database.execute(select, [wanted[number]]).fetchall()
    )
    changed = rows_of(rand.permutation(ids)[: min(100_000, KEYS)], 3)
    cpu = time.process_time()
    put(changed)
    rate = changed.num_rows / (time.process_time() - cpu)
    database.close()
    return {"get_p50_us": p50, "get_p99_us": p99, "upserts_per_cpu_s": rate}


def main() -> int:
    result: dict[str, object] = {"keys": KEYS, "load_before": os.getloadavg()[0]}
    with scratch_folder() as folder:
        figures = ours(folder / "ours")
    for name, run in (("sqlite", sqlite), ("duckdb", duckdb)):
        with scratch_folder() as folder:
            peer = run(folder)
        result[name] = peer and {key: round(value, 1) for key, value in peer.items()}
    result["frazil"] = {key: round(value, 3) for key, value in figures.items()}
    missed = [name for name, bar in BARS.items() if figures[name] > bar]
    missed += ["fold"] if figures["fold_upserts_per_cpu_s"] < FOLD_BAR else []
    result["missed"] = missed
    for name, value in figures.items():
        print(f"{name:28} {value:14,.1f}", file=sys.stderr)
    print(json.dumps(result))
    return 1 if missed and KEYS >= WHOLE_KEYS else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["opened", name]:
            print(opened_mb(Path(name)))
        case _:
            sys.exit(main())
