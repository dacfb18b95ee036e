"""Restart with 5 million rows: time until all of them are visible, each once.

A process with a log and a hot tier is killed with -9 when 5 million rows are acknowledged: most
sealed, some only in memory, one file half written. The folder is then opened three times: as left,
after a clean close, and with every sealed file deleted, so that all rows come from the log. SQL
counts them each time. Prints one JSON line last; exits 1 when a bar, or a row, is missed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import frazil
from bench.freshness import peak_mb
from bench.ingest import Bodies
from bench.log import scratch_folder
from frazil.config import load
from frazil.disk import RealDisk
from frazil.embedded import Embedded
from frazil.log import Log, Record, append_of_records
from frazil.model import SystemClock, SystemRand
from frazil.settings import TopicConfig

TOPIC = "otlp_logs"
REQUESTS = 5_000
RECORDS = 1_000
ROWS = REQUESTS * RECORDS
AHEAD = 64
"""Requests in flight."""
LAG_MAX = 400
"""Requests the hot tier may lag behind, so that most rows get sealed."""
START_S_MAX = 10.0
"""As left: sealed rows are mapped, only the rest is decoded again."""
REBUILD_S_MAX = 60.0

Case = dict[str, object]


def fill(folder: str) -> None:
    """Append all rows, report it, and keep sealing until killed."""
    clock = SystemClock()
    config = load(None, {"data": folder, "log": {"disk_bytes_max": 1 << 36}})
    disk = RealDisk(folder)
    log = Log.open(disk, config.log, clock=clock, rand=SystemRand(), holder="the bench")
    log.create_topic(TOPIC, TopicConfig(awaits_lake=True))
    embedded = Embedded.over(log, disk, config, clock=clock)
    bodies, waiting = Bodies(RECORDS, 1), []
    for _ in range(REQUESTS):
        record = Record(offset=0, timestamp_ms=clock.wall_ms(), key=None, value=bodies.next())
        waiting.append(log.append(TOPIC, append_of_records([record])))
        if len(waiting) == AHEAD:
            waiting.pop(0).result()
        while embedded.tier.lag > LAG_MAX:
            clock.sleep(0.005)
    for answer in waiting:
        answer.result()
    print(json.dumps({"lag": embedded.tier.lag}), flush=True)
    clock.sleep(60)


def open_and_count(folder: str) -> None:
    """Open a folder; print how long it took and whether every row is there once."""
    begin = time.perf_counter()
    with frazil.open(folder) as opened:
        took = time.perf_counter() - begin
        ((rows, places),) = opened.sql(
            f"SELECT count(*), count(DISTINCT _offset * {RECORDS} + _row) FROM logs"
        ).fetchall()
        ((low, high),) = opened.sql("SELECT min(_offset), max(_offset) FROM logs").fetchall()
    is_whole = (rows, places, low, high) == (ROWS, ROWS, 0, REQUESTS - 1)
    print(
        json.dumps(
            {"took": took, "rows": rows, "is_whole": is_whole, "rss_mb": peak_mb([os.getpid()])}
        )
    )


def measure(name: str, folder: Path, bar: float) -> Case:
    done = subprocess.run(
        [sys.executable, __file__, "open", str(folder)], check=True, capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    case: Case = {
        "case": name,
        "ours": round(found["took"], 2),
        "peer": None,
        "unit": "s until all is visible",
        "ratio": round(found["took"] / bar, 3),
        "bar": bar,
        "ok": found["is_whole"] and found["took"] <= bar,
        "rows": found["rows"],
        "each_once": found["is_whole"],
        "peak_rss_mb": round(found["rss_mb"]),
    }
    print(json.dumps(case), flush=True)
    return case


def main() -> int:
    cases = []
    with scratch_folder() as scratch:
        folder = scratch / "data"
        command = [sys.executable, __file__, "fill", str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as filling:
            assert filling.stdout is not None
            lag = json.loads(filling.stdout.readline())["lag"]
            filling.kill()
        files = sorted(folder.glob("hot/**/*.arrow"))
        print(f"killed {lag} requests behind the log, with {len(files)} sealed files")
        cases.append(measure("after kill -9, sealed and unsealed", folder, START_S_MAX))
        cases.append(measure("after a clean close", folder, START_S_MAX))
        shutil.rmtree(folder / "hot")
        cases.append(measure("all files gone", folder, REBUILD_S_MAX))
    print(json.dumps({"bench": "restart", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["fill", folder]:
            fill(folder)
        case ["open", folder]:
            open_and_count(folder)
        case _:
            sys.exit(main())
