"""Compaction: small sorted files of one day become one, by our tasks on Spark and, in the same run,
by Iceberg's procedure with its sort. Rows/s, bytes, memory of the tasks.

    python bench/compact.py --rows 1000000

The bar: our tasks are at least as fast as the procedure.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from random import SystemRandom
from typing import Any

from bench.log import scratch_folder
from bench.shop import Shop
from frazil.disk import RealDisk
from frazil.lake import Lake
from frazil.log import Log, Record, append_of_records
from frazil.model import GiB, SystemClock
from frazil.settings import LakeConfig, LogConfig, TopicConfig

ROUNDS = 24
"""Commits, and so files per table, before compaction."""
BAR = 1.0
"""Rows/s relative to Iceberg's procedure."""
TABLE = "logs"
HEAP_BYTES = 3 * GiB
"""Memory the procedure needs for its sort; our tasks use the default."""


def fill(log: Log, lake: Lake, shop: Shop) -> None:
    """Append the rows in many commits."""
    requests = [(topic, body) for topic, body in shop.requests() if topic == "otlp_logs"]
    step = -(-len(requests) // ROUNDS)
    for begin in range(0, len(requests), step):
        answers = []
        for topic, body in requests[begin : begin + step]:
            now_ms = time.time_ns() // 1_000_000
            record = Record(offset=0, timestamp_ms=now_ms, key=None, value=body)
            answers.append(log.append(topic, append_of_records([record])))
        for answer in answers:
            answer.result()
        lake.flush()


def procedure(lake: Lake) -> dict[str, Any]:
    """Run Iceberg's procedure, then restore the table."""

    def work() -> dict[str, Any]:
        table = lake.catalog.load_table(f"frazil.{TABLE}")
        before = table.current_snapshot()
        assert before is not None
        spark = lake.session.spark()
        begin = time.perf_counter()
        spark.sql(
            f"CALL frazil.system.rewrite_data_files(table => 'frazil.frazil.{TABLE}', "
            "strategy => 'sort', options => map('rewrite-all', 'true', "
            "'max-concurrent-file-group-rewrites', '1'))"
        ).collect()
        took_s = time.perf_counter() - begin
        found = state(lake)
        table = lake.catalog.load_table(f"frazil.{TABLE}")
        table.manage_snapshots().set_current_snapshot(snapshot_id=before.snapshot_id).commit()
        return {"took_s": took_s, **found}

    return lake.run(work)


def ours(lake: Lake) -> dict[str, Any]:
    """Run everything `frazil maintain` runs."""
    begin = time.perf_counter()
    done = {each.table: each for each in lake.maintain()}
    took_s = time.perf_counter() - begin
    assert not done[TABLE].trouble, done
    return {"took_s": took_s, **lake.run(lambda: state(lake))}


def state(lake: Lake) -> dict[str, Any]:
    table = lake.catalog.load_table(f"frazil.{TABLE}")
    files = [task.file for task in table.scan().plan_files()]
    return {
        "files": len(files),
        "rows": sum(file.record_count for file in files),
        "megabytes": round(sum(file.file_size_in_bytes for file in files) / 1e6, 1),
    }


def main(rows: int) -> int:
    clock, rand = SystemClock(), SystemRandom()
    with scratch_folder() as folder:
        data = Path(folder) / "data"
        config = LogConfig(disk_bytes_max=64 * GiB)
        settings = LakeConfig(driver_memory_bytes=HEAP_BYTES)
        with (
            Log.open(RealDisk(data), config, clock=clock, rand=rand) as log,
            Lake.open(log, data, settings, clock=clock, rand=rand, auto_flush=False) as lake,
        ):
            log.create_topic("otlp_logs", TopicConfig(retention_ms=0))
            fill(log, lake, Shop(logs=rows, spans=1))
            before = lake.run(lambda: state(lake))
            theirs, found = procedure(lake), ours(lake)
    assert found["rows"] == theirs["rows"] == before["rows"], (before, theirs, found)
    ratio = theirs["took_s"] / found["took_s"]
    case = {
        "case": f"{before['files']} files of logs, {before['megabytes']} MB, become one",
        "ours": round(rows / found["took_s"]),
        "peer": round(rows / theirs["took_s"]),
        "unit": "rows/s",
        "ratio": round(ratio, 2),
        "bar": BAR,
        "ok": ratio >= BAR,
        "megabytes": found["megabytes"],
        "peer_megabytes": theirs["megabytes"],
    }
    print(json.dumps({"bench": "compact", "cases": [case]}))
    return 0 if case["ok"] else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000, help="log records")
    sys.exit(main(parser.parse_args().rows))
