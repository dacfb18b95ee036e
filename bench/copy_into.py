"""COPY INTO beside stock Spark and DuckDB: rows per CPU second, columns inferred by each.

    PYTHONPATH=. python bench/copy_into.py [ROWS]

The same files, the same Spark session: once by our tasks, once by Spark's reader and Iceberg's
writer. CPU seconds are those of this process, of Spark, and of its Python workers.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
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

ROWS = 5_000_000
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


def cpu_s() -> float:
    """CPU seconds of this process and all processes below it, also of those that ended."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            fields = text.rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15]))
    total = 0
    for process in parents:
        at = process
        while at in parents and at != os.getpid():
            at = parents[at]
        total += used[process] if at == os.getpid() else 0
    return total / TICKS


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

            def copy(table: str, kind: str) -> None:
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
                cases.append(
                    {
                        "case": f"COPY INTO, {kind}",
                        "ours": round(ours),
                        "peer": round(theirs),
                        "unit": "rows per CPU second",
                        "duckdb": round(duck),
                        "ratio": round(ours / theirs, 2),
                        "bar": BAR,
                        "ok": ours >= BAR * theirs,
                    }
                )
            catalog.close()
    print(json.dumps({"bench": "copy_into", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
