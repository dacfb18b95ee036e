"""COPY INTO beside stock Spark, DuckDB and ClickHouse: rows per CPU second, columns inferred.

    PYTHONPATH=. python bench/copy_into.py [ROWS]
    COPY_GB=5 PYTHONPATH=. python bench/copy_into.py     # also one file of 5 GB: memory of tasks

The same files, the same Spark session: once by our tasks, once by Spark's reader and Iceberg's
writer. CPU seconds are those of this process, of Spark, and of its Python workers. DuckDB and
ClickHouse (chdb, in an environment of its own, made on first use) write Parquet, no table.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import duckdb

from frazil.definitions import CopyIntoTable, CreateStage, parse_statement
from frazil.disk import RealDisk
from frazil.lake import JobGroup, Lake, do_on, open_catalog
from frazil.load.copy.copy_into import CopyContext, copy_into
from frazil.load.copy.progress import LoadProgress
from frazil.load.stages.stage import open_stage
from frazil.log import Log
from frazil.model import SystemClock, SystemRand
from frazil.settings import LakeConfig, LogConfig, StagesConfig
from tests.clients.environments import python_with

ROWS = 5_000_000
LARGE_GB = float(os.environ.get("COPY_GB", "0"))
"""Size of the large file; none by default."""
LARGE_TEXT = 160
LARGE_BLOCK_ROWS = 200_000
TASK_MB_MAX = 1024
"""A task of the large file may have this much resident."""
CLICKHOUSE = ("chdb==4.4.0",)
CLICKHOUSE_COPY = """
import sys, time
import chdb
chdb.query("SELECT 1")
begin = time.process_time()
chdb.query(
    f"INSERT INTO FUNCTION file('{sys.argv[2]}', Parquet) SELECT * FROM file('{sys.argv[1]}')"
    " SETTINGS output_format_parquet_compression_method = 'zstd'"
)
print(time.process_time() - begin)
"""
FILES = 4
BAR = 1.8
"""Rows per CPU second, as a multiple of stock Spark's."""
TICKS = os.sysconf("SC_CLK_TCK")


def write_files(folder: Path, rows: int) -> None:
    """Write the same rows as NDJSON.gz and as CSV."""
    rand = random.Random(1)
    for index in range(FILES):
        lines, table = [], ["id,name,value,ok,city,count\n"]
        for number in range(index * rows // FILES, (index + 1) * rows // FILES):
            name, value = f"user-{number % 10_000}", round(rand.random() * 1000, 6)
            is_ok, city, count = number % 2 == 0, f"city {number % 100}", rand.randrange(1000)
            row = {"id": number, "name": name, "value": value, "ok": is_ok, "city": city}
            lines.append(json.dumps({**row, "count": count}) + "\n")
            table.append(f"{number},{name},{value},{str(is_ok).lower()},{city},{count}\n")
        (folder / "ndjson").mkdir(exist_ok=True)
        (folder / "csv").mkdir(exist_ok=True)
        body = gzip.compress("".join(lines).encode(), 1)
        (folder / "ndjson" / f"{index}.ndjson.gz").write_bytes(body)
        (folder / "csv" / f"{index}.csv").write_text("".join(table), encoding="utf-8")


def write_large(path: Path) -> int:
    """Write one NDJSON file of `LARGE_GB`. Returns its rows, which repeat after some time."""
    rand = random.Random(2)
    lines = []
    for number in range(LARGE_BLOCK_ROWS):
        text = "".join(rand.choices("abcdefgh ", k=LARGE_TEXT))
        lines.append(json.dumps({"id": number, "value": rand.random(), "text": text}) + "\n")
    block = "".join(lines).encode()
    blocks = max(1, round(LARGE_GB * 1e9 / len(block)))
    with path.open("wb") as file:
        for _ in range(blocks):
            file.write(block)
    return blocks * LARGE_BLOCK_ROWS


def own_processes() -> Iterator[tuple[Path, list[str]]]:
    """This process and all below it: its folder in /proc, and the fields of `stat` after the
    name."""
    found: dict[int, tuple[Path, list[str]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            found[int(entry.name)] = (entry, text.rpartition(")")[2].split())
    for process, (entry, fields) in found.items():
        at = process
        while at in found and at != os.getpid():
            at = int(found[at][1][1])
        if at == os.getpid():
            yield entry, fields


def cpu_s() -> float:
    """CPU seconds of this process and all processes below it, also of those that ended."""
    return sum(sum(map(int, fields[11:15])) for _, fields in own_processes()) / TICKS


@contextmanager
def task_memory() -> Iterator[Callable[[], float]]:
    """Watch the Python workers of Spark. The function returns the most that one had resident, in
    MB."""
    peaks = [0.0]
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(0.1):
            for entry, fields in own_processes():
                try:
                    command = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if b"frazil.lake.spark.fork_server" in command:
                    peaks.append(int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: max(peaks)
    finally:
        is_over.set()
        watcher.join()


def clickhouse(files: str, to: Path, rows: int) -> float:
    """Rows per CPU second of ClickHouse, without its start."""
    command = [str(python_with("clickhouse", CLICKHOUSE)), "-c", CLICKHOUSE_COPY, files, str(to)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rate = rows / float(done.stdout)
    print(f"{'ClickHouse to Parquet':32} {rate:12,.0f} rows per CPU second")
    return rate


def measured(what: str, rows: int, run: Callable[[], object]) -> float:
    begin, begin_s = cpu_s(), time.perf_counter()
    run()
    took, wall_s = cpu_s() - begin, time.perf_counter() - begin_s
    rate = rows / took
    print(f"{what:32} {rate:12,.0f} rows per CPU second  {took:7.1f} s CPU  {wall_s:6.1f} s")
    return rate


def main() -> int:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    clock, rand = SystemClock(), SystemRand()
    cases: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, rows)
        data = folder / "data"
        data.mkdir()
        config = LakeConfig()
        log = Log.open(RealDisk(data), LogConfig(), clock=clock, rand=rand, holder="bench")
        with log, Lake.open(log, data, config, clock=clock, rand=rand, auto_flush=False) as lake:
            catalog = open_catalog(config, data)

            def copy(table: str, kind: str, rows: int = rows) -> None:
                statement = parse_statement(f"COPY INTO {table} FROM @s/{kind}/").statement
                assert isinstance(statement, CopyIntoTable)
                stage = open_stage(
                    CreateStage(name="s", url=f"file://{folder}"),
                    StagesConfig(roots=[str(folder)]),
                    {},
                )
                group = JobGroup(table)
                context = CopyContext(
                    catalog=catalog,
                    lake=config,
                    do=do_on(lake.session, group),
                    clock=clock,
                    rand=rand,
                    files_max=100,
                    progress=LoadProgress(group=group),
                )
                assert copy_into(statement, stage, context).row_count == rows

            def stock(table: str, kind: str) -> None:
                with lake.session.use() as spark:
                    reader = spark.read.option("header", True).option("inferSchema", True)
                    path = str(folder / kind)
                    frame = reader.json(path) if kind == "ndjson" else reader.csv(path)
                    frame.writeTo(f"{config.catalog_name}.{config.namespace}.{table}").create()

            for kind in ("ndjson", "csv"):
                copy(f"warm_{kind}", kind)
                stock(f"warm_stock_{kind}", kind)
                ours = measured(f"{kind}: COPY INTO", rows, partial(copy, f"t_{kind}", kind))
                spark = partial(stock, f"stock_{kind}", kind)
                theirs = measured(f"{kind}: Spark and Iceberg", rows, spark)
                read = "read_json_auto" if kind == "ndjson" else "read_csv_auto"
                text = f"COPY (SELECT * FROM {read}('{folder}/{kind}/*')) TO '{folder}/{kind}.pq'"
                text += " (FORMAT parquet, COMPRESSION zstd)"
                duck = measured(f"{kind}: DuckDB to Parquet", rows, partial(duckdb.sql, text))
                house = clickhouse(f"{folder}/{kind}/*", folder / f"{kind}.house.parquet", rows)
                cases.append(
                    {
                        "case": f"COPY INTO, {kind}",
                        "ours": round(ours),
                        "peer": round(theirs),
                        "unit": "rows per CPU second",
                        "duckdb": round(duck),
                        "clickhouse": round(house),
                        "ratio": round(ours / theirs, 2),
                        "bar": BAR,
                        "ok": ours >= BAR * theirs,
                    }
                )
            if LARGE_GB:
                (folder / "large").mkdir()
                count = write_large(folder / "large" / "large.ndjson")
                with task_memory() as peak_mb:
                    measured("one large file", count, partial(copy, "large", "large", count))
                cases.append(
                    {
                        "case": f"one file of {LARGE_GB:g} GB",
                        "ours": round(peak_mb()),
                        "unit": "MB resident of a task",
                        "bar": TASK_MB_MAX,
                        "ok": 0 < peak_mb() <= TASK_MB_MAX,
                    }
                )
            catalog.close()
    print(json.dumps({"bench": "copy_into", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
