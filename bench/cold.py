"""Queries over an hour of telemetry in Iceberg: 10 million log records and 2 million spans, as the
appender wrote them and then compacted by Spark.

The rows take the real path: requests in a log, tasks on Spark, commits. The queries are those of
bench/query.py, over hot tier and lake together; the hot tier is empty here. The peer is DuckDB on
the files of the same snapshots, in its own process, with as many threads. Both run in turns and
must return the same rows. Prints one JSON line last; exits 1 when a bar is missed.

As in bench/query.py, the cases "with nothing kept from earlier" have no bar.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import duckdb
import pyarrow as pa

from bench.log import scratch_folder
from bench.query import (
    ANSWER,
    IN_FLIGHT,
    LOGS_PER_SPAN,
    PEER_TABLES,
    ROUNDS_BARRED,
    ROWS,
    Case,
    Peer,
    Question,
    ask,
    check_same,
    forget_peak,
    memory,
    questions,
)
from bench.shop import Shop
from frazil.disk import RealDisk
from frazil.lake import Lake, LakeView
from frazil.log import Log, Record, append_of_records
from frazil.model import SystemClock
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.query.plan.session import processors
from frazil.settings import LakeConfig, LogConfig, QueryConfig, TopicConfig

BAR_AFTER = 2.0
"""Times DuckDB's time, after compaction."""
FILES = "files.json"
COMPACT = (
    "CALL frazil.system.rewrite_data_files(table => 'frazil.frazil.{}', strategy => 'sort', "
    "options => map('rewrite-all', 'true'))"
)


def fill(log: Log, shop: Shop) -> None:
    """Append all requests to the log."""
    waiting: deque[Future[Any]] = deque()
    for topic, body in shop.requests():
        record = Record(offset=0, timestamp_ms=time.time_ns() // 1_000_000, key=None, value=body)
        waiting.append(log.append(topic, append_of_records([record])))
        if len(waiting) >= IN_FLIGHT:
            waiting.popleft().result()
    for answer in waiting:
        answer.result()


@contextmanager
def filled(folder: Path, shop: Shop) -> Iterator[Lake]:
    """Fill a lake with all rows by the appender."""
    clock, rand = SystemClock(), SystemRandom()
    config = LogConfig(disk_bytes_max=1 << 40)
    with Log.open(RealDisk(folder), config, clock=clock, rand=rand, holder="the bench") as log:
        for topic in ("otlp_logs", "otlp_spans"):
            log.create_topic(topic, TopicConfig(awaits_lake=True))
        fill(log, shop)
        lake = Lake.open(log, folder, LakeConfig(), clock=clock, rand=rand, auto_flush=False)
        with lake:
            begin = time.perf_counter()
            lake.flush()
            told = {"flush_s": round(time.perf_counter() - begin, 1), **sizes(lake.view)}
            print(json.dumps(told), file=sys.stderr, flush=True)
            yield lake


def compact(lake: Lake) -> None:
    def run() -> None:
        with lake.session.use() as spark:
            for table in PEER_TABLES:
                spark.sql(COMPACT.format(table)).collect()

    begin = time.perf_counter()
    lake.run(run)
    told = {"compact_s": round(time.perf_counter() - begin, 1), **sizes(lake.view)}
    print(json.dumps(told), file=sys.stderr, flush=True)


def sizes(view: LakeView) -> Case:
    tables = {name: view.pin().tables[name] for name in PEER_TABLES}
    return {
        "rows": {name: table.row_count for name, table in tables.items()},
        "files": {name: len(table.files) for name, table in tables.items()},
        "megabytes": {
            name: sum(file.size_bytes for file in table.files) >> 20
            for name, table in tables.items()
        },
    }


@contextmanager
def peer_over(view: LakeView, folder: Path) -> Iterator[Peer]:
    """DuckDB on the files of the view's snapshots."""
    tables = view.pin().tables
    files = {
        name: [tables[name].root + file.path for file in tables[name].files] for name in PEER_TABLES
    }
    folder.mkdir(exist_ok=True)
    (folder / FILES).write_text(json.dumps(files), encoding="utf-8")
    command = [sys.executable, __file__, "peer", str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Peer(folder, process)
        assert process.stdin is not None
        process.stdin.close()


def serve_peer(folder: Path) -> None:
    """DuckDB process: reads one query per line, prints its time, writes its rows to a file."""
    connection = duckdb.connect(config={"threads": processors()})
    connection.execute("SET TimeZone = 'UTC'")
    files = json.loads((folder / FILES).read_text(encoding="utf-8"))
    for table, paths in files.items():
        listed = ", ".join(f"'{path}'" for path in paths)
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet([{listed}])")
    for line in sys.stdin:
        begin, begin_cpu = time.perf_counter(), time.process_time()
        rows = connection.sql(json.loads(line)).to_arrow_table()
        took = [time.perf_counter() - begin, time.process_time() - begin_cpu]
        with pa.ipc.new_file(folder / ANSWER, rows.schema) as writer:
            writer.write_table(rows)
        print(json.dumps(took), flush=True)


def measure(
    question: Question, engine: Engine, view: LakeView, peer: Peer, when: str, bar: float | None
) -> Case:
    """Run both in turns: once to load caches, then measured rounds."""
    chance = Random(question.name)
    forget_peak()
    ours, peers = [], []
    for _ in range(1 + ROUNDS_BARRED):
        value = question.values(chance)
        text = question.ours.replace("{}", value)
        if question.is_fresh:
            with open_engine(view) as fresh:
                took, rows = ask(fresh, text)
        else:
            took, rows = ask(engine, text)
        peer_took, peer_rows = peer.ask((question.peer or question.ours).replace("{}", value))
        check_same(question, rows, peer_rows)
        ours.append(took.wall_s)
        peers.append(peer_took.wall_s)
    ratio = statistics.median(one / other for one, other in zip(ours[1:], peers[1:], strict=True))
    found: Case = {
        "case": f"{question.name}, {when}",
        "ours": round(1000 * statistics.median(ours[1:]), 2),
        "peer": round(1000 * statistics.median(peers[1:]), 2),
        "unit": "ms",
        "ratio": round(ratio, 3),
        "bar": bar,
        "ok": bar is None or ratio <= bar,
        "first_ms": round(1000 * ours[0], 1),
        "peer_first_ms": round(1000 * peers[0], 1),
        "row_count": rows.num_rows,
        **memory(),
    }
    print(json.dumps(found), file=sys.stderr, flush=True)
    return found


def open_engine(view: LakeView) -> Engine:
    return Engine.open(dict, TABLES, QueryConfig(), SystemClock(), view)


def measure_all(
    shop: Shop, view: LakeView, folder: Path, when: str, bar: float | None
) -> list[Case]:
    with open_engine(view) as engine, peer_over(view, folder) as peer:
        return [
            measure(one, engine, view, peer, when, None if one.is_fresh else bar)
            for one in questions(shop)
        ]


def main(rows: int) -> int:
    shop = Shop(logs=rows, spans=rows // LOGS_PER_SPAN)
    with scratch_folder() as folder, filled(folder / "data", shop) as lake:
        cases = measure_all(shop, lake.view, folder / "peer", "as appended", None)
        compact(lake)
        cases += measure_all(shop, lake.view, folder / "peer", "compacted", BAR_AFTER)
    print(json.dumps({"bench": "cold", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["peer"]:
        serve_peer(Path(sys.argv[2]))
        sys.exit()
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS, help="log records; spans are a fifth")
    sys.exit(main(parser.parse_args().rows))
