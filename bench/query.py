"""Queries over an hour of telemetry: 10 million log records and 2 million spans, all sealed.

The rows take the real path: appended to a log, decoded by the hot tier, sealed, queried by SQL. The
peer is DuckDB over the same rows as Parquet, in its own process, with as many threads; both run in
turns and must return the same rows. Memory is that of our process: peak, and without mapped files.
Prints one JSON line last; exits 1 when a bar is missed.

The engine caches counts of sealed rows, so after the first round a count by one column reads
little. The cases "with nothing kept from earlier" use an engine with an empty cache; they have no
bar.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.log import maintained, scratch_folder
from bench.shop import BEGIN_NS, HOUR_NS, SERVICES, Shop, trace_id_of
from frazil.disk import RealDisk
from frazil.hot import HotTier, HotWorker, Piece
from frazil.log import Log, Record, append_of_records
from frazil.model import GiB, SystemClock
from frazil.model.arrow import TABLES, decode
from frazil.query import Engine
from frazil.query.plan.session import processors
from frazil.settings import HotConfig, LogConfig, QueryConfig, TopicConfig

ROWS = 10_000_000
LOGS_PER_SPAN = 5
ROUNDS = 3
ROUNDS_BARRED = 9
"""Rounds where there is a bar. The peer runs as often only if the bar is a ratio: it takes seconds
for what must be found within milliseconds."""
IN_FLIGHT = 32
"""Requests in flight."""
FILE_ROWS = 1_000_000
"""Rows per Parquet file."""
GROUP_ROWS = 122_880
"""Rows per row group: DuckDB's default."""
PEER_TABLES = ("logs", "spans")
ANSWER = "answer.arrow"

BAR_GROUPS = 1.2
"""Times DuckDB's time."""
BAR_TRACE_MS = 25.0
BAR_LAST_MS = 50.0

Case = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The query; `{}` is replaced by another value in every round."""

    name: str
    ours: str
    peer: str | None = None
    """DuckDB's dialect, if different."""
    values: Callable[[Random], str] = lambda _: ""
    is_fresh: bool = False
    """Run by an engine with an empty cache in every round."""
    bar_ratio: float | None = None
    bar_ms: float | None = None


def questions(shop: Shop) -> list[Question]:
    def trace(chance: Random) -> str:
        return trace_id_of(chance.randrange(shop.trace_count // 4) * 4)

    late = _moment(HOUR_NS * 3 // 4)
    return [
        Question(
            name="count by service",
            ours="SELECT service_name, count(*) AS n FROM logs GROUP BY 1 ORDER BY 1",
            bar_ratio=BAR_GROUPS,
        ),
        Question(
            name="count by service, with nothing kept from earlier",
            ours="SELECT service_name, count(*) AS n FROM logs GROUP BY 1 ORDER BY 1",
            is_fresh=True,
        ),
        Question(
            name="count by severity",
            ours="SELECT severity_text, count(*) AS n FROM logs GROUP BY 1 ORDER BY 1",
            bar_ratio=BAR_GROUPS,
        ),
        Question(
            name="count by severity, with nothing kept from earlier",
            ours="SELECT severity_text, count(*) AS n FROM logs GROUP BY 1 ORDER BY 1",
            is_fresh=True,
        ),
        Question(
            name="severity histogram by minute",
            ours="SELECT time_bucket('1 minute', time) AS minute, severity_text, count(*) AS n "
            "FROM logs GROUP BY 1, 2 ORDER BY 1, 2",
            bar_ratio=BAR_GROUPS,
        ),
        Question(
            name="last 100 of a busy service",
            ours="SELECT * FROM logs WHERE service_name = '{}' ORDER BY time DESC LIMIT 100",
            values=lambda chance: SERVICES[chance.randrange(4)],
            bar_ms=BAR_LAST_MS,
        ),
        Question(
            name="last 100 of a rare service",
            ours="SELECT * FROM logs WHERE service_name = '{}' ORDER BY time DESC LIMIT 100",
            values=lambda chance: SERVICES[-1 - chance.randrange(8)],
            bar_ms=BAR_LAST_MS,
        ),
        Question(
            name="trace by id, its spans",
            ours="SELECT * FROM spans WHERE trace_id = '{}' ORDER BY time_unix_nano, span_id",
            values=trace,
            bar_ms=BAR_TRACE_MS,
        ),
        Question(
            name="trace by id, its logs",
            ours="SELECT * FROM logs WHERE trace_id = '{}' ORDER BY time_unix_nano, span_id",
            values=trace,
            bar_ms=BAR_TRACE_MS,
        ),
        Question(
            name="attribute equality",
            ours="SELECT time, service_name, body FROM logs "
            "WHERE attributes['user.id'] = 'u{}' ORDER BY time, body",
            values=lambda chance: f"{chance.randrange(1_000_000):07d}",
        ),
        Question(
            name="text search",
            ours="SELECT service_name, count(*) AS n FROM logs "
            "WHERE matches(body, 'payment AND timeout') GROUP BY 1 ORDER BY 1",
            peer="SELECT service_name, count(*) AS n FROM logs "
            r"WHERE regexp_matches(body, '(?i)\bpayment\b') "
            r"AND regexp_matches(body, '(?i)\btimeout\b') GROUP BY 1 ORDER BY 1",
        ),
        Question(
            name="text search, DuckDB by parts of words",
            ours="SELECT count(*) AS n FROM logs WHERE matches(body, 'timeout')",
            peer="SELECT count(*) AS n FROM logs WHERE body ILIKE '%timeout%'",
        ),
        Question(
            name="p50 and p99 of durations by service",
            ours="SELECT service_name, percentile(CAST(duration_nano AS DOUBLE), 0.5) AS p50, "
            "percentile(CAST(duration_nano AS DOUBLE), 0.99) AS p99 "
            "FROM spans GROUP BY 1 ORDER BY 1",
            peer="SELECT service_name, quantile_cont(CAST(duration_nano AS DOUBLE), 0.5) AS p50, "
            "quantile_cont(CAST(duration_nano AS DOUBLE), 0.99) AS p99 "
            "FROM spans GROUP BY 1 ORDER BY 1",
        ),
        Question(
            name="errors by service, last 15 minutes",
            ours="SELECT service_name, count(*) AS n FROM logs "
            f"WHERE time >= TIMESTAMP '{late}' AND severity_number >= 17 GROUP BY 1 ORDER BY 1",
            peer="SELECT service_name, count(*) AS n FROM logs "
            f"WHERE time >= TIMESTAMPTZ '{late}' AND severity_number >= 17 GROUP BY 1 ORDER BY 1",
        ),
        Question(
            name="top 10 routes by attribute",
            ours="SELECT attributes['http.route'] AS route, count(*) AS n FROM logs "
            "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
        ),
    ]


def _moment(after_ns: int) -> str:
    """A time within the hour, as SQL writes it."""
    seconds = (BEGIN_NS + after_ns) // 1_000_000_000
    return time.strftime("%Y-%m-%d %H:%M:%S+00:00", time.gmtime(seconds))


# The rows.


@contextmanager
def filled(folder: Path, shop: Shop) -> Iterator[HotTier]:
    """A hot tier that has read everything from a log and sealed it."""
    clock = SystemClock()
    config = LogConfig(disk_bytes_max=1 << 40)
    log = Log.open(RealDisk(folder), config, clock=clock, rand=SystemRandom(), holder="the bench")
    with log:
        for topic in ("otlp_logs", "otlp_spans"):
            log.create_topic(topic, TopicConfig(retention_ms=0))
        tier = HotTier(
            RealDisk(folder),
            log,
            HotConfig(disk_bytes_max=64 * GiB),
            decode=decode,
            schemas=TABLES,
            clock=clock,
        )
        try:
            with maintained(log):
                send(log, tier, shop)
            yield tier
        finally:
            tier.close()


def send(log: Log, tier: HotTier, shop: Shop) -> None:
    dead: list[BaseException] = []
    worker = HotWorker(tier, clock=SystemClock(), fatal=dead.append)
    worker.start()
    waiting: deque[Future[Any]] = deque()
    for topic, body in shop.requests():
        record = Record(offset=0, timestamp_ms=time.time_ns() // 1_000_000, key=None, value=body)
        waiting.append(log.append(topic, append_of_records([record])))
        if len(waiting) >= IN_FLIGHT:
            waiting.popleft().result()
    for answer in waiting:
        answer.result()
    while tier.lag and not dead:
        time.sleep(0.05)
    worker.close()
    assert not dead, dead
    tier.freeze()
    while tier.has_frozen:
        tier.seal()


def write_parquet(tier: HotTier, folder: Path) -> None:
    """The same rows for the peer, in files of about a million."""

    def write(path: Path, pieces: list[Piece]) -> None:
        rows = pa.Table.from_batches([batch for piece in pieces for batch in piece.batches])
        pq.write_table(rows, path, compression="zstd", row_group_size=GROUP_ROWS)

    with ThreadPoolExecutor(processors()) as pool:
        written = []
        for table in PEER_TABLES:
            (folder / table).mkdir(parents=True)
            for number, pieces in enumerate(_by_file(tier.pieces(table))):
                path = folder / table / f"{number:04d}.parquet"
                written.append(pool.submit(write, path, pieces))
        for one in written:
            one.result()
    tier.release_memory()


def _by_file(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    some: list[Piece] = []
    for piece in pieces:
        some.append(piece)
        if sum(one.row_count for one in some) >= FILE_ROWS:
            yield some
            some = []
    if some:
        yield some


# The peer.


def serve_peer(folder: Path) -> None:
    """DuckDB process: reads one query per line, prints its time, writes its rows to a file."""
    connection = duckdb.connect(config={"threads": processors()})
    connection.execute("SET TimeZone = 'UTC'")
    for table in PEER_TABLES:
        files = folder / table / "*.parquet"
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{files}')")
    for line in sys.stdin:
        begin, begin_cpu = time.perf_counter(), time.process_time()
        rows = connection.sql(json.loads(line)).to_arrow_table()
        took = [time.perf_counter() - begin, time.process_time() - begin_cpu]
        with pa.ipc.new_file(folder / ANSWER, rows.schema) as writer:
            writer.write_table(rows)
        print(json.dumps(took), flush=True)


class Peer:
    """Handle of the DuckDB process."""

    def __init__(self, folder: Path, process: subprocess.Popen[str]) -> None:
        self._folder = folder
        self._process = process

    @classmethod
    @contextmanager
    def open(cls, folder: Path) -> Iterator[Peer]:
        command = [sys.executable, __file__, "peer", str(folder)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            yield cls(folder, process)
            assert process.stdin is not None
            process.stdin.close()

    def ask(self, text: str) -> tuple[Took, pa.Table]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        wall_s, processor_s = json.loads(self._process.stdout.readline())
        with pa.OSFile(str(self._folder / ANSWER)) as file:
            rows = pa.ipc.open_file(file).read_all()
        return Took(wall_s=wall_s, processor_s=processor_s), rows


# The measuring.


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    wall_s: float
    processor_s: float


def ask(engine: Engine, text: str) -> tuple[Took, pa.Table]:
    begin, begin_cpu = time.perf_counter(), time.process_time()
    rows = engine.sql(text).arrow()
    wall_s, processor_s = time.perf_counter() - begin, time.process_time() - begin_cpu
    return Took(wall_s=wall_s, processor_s=processor_s), rows


def open_engine(tier: HotTier) -> Engine:
    return Engine.open(tier.visible_pieces, TABLES, QueryConfig(), SystemClock())


def ask_fresh(tier: HotTier, text: str) -> tuple[Took, pa.Table]:
    with open_engine(tier) as engine:
        return ask(engine, text)


def measure(question: Question, engine: Engine, tier: HotTier, peer: Peer) -> Case:
    """Run both in turns: once to load caches, then measured rounds."""
    chance = Random(question.name)
    tier.release_memory()
    forget_peak()
    ours, peers = [], []
    rounds = ROUNDS if question.bar_ms is question.bar_ratio is None else ROUNDS_BARRED
    peer_rounds = ROUNDS if question.bar_ratio is None else rounds
    for number in range(1 + rounds):
        value = question.values(chance)
        text = question.ours.replace("{}", value)
        took, rows = ask_fresh(tier, text) if question.is_fresh else ask(engine, text)
        ours.append(took)
        if number <= peer_rounds:
            peer_took, peer_rows = peer.ask((question.peer or question.ours).replace("{}", value))
            check_same(question, rows, peer_rows)
            peers.append(peer_took)
    wall, peer_wall = _median_ms(ours[1:]), _median_ms(peers[1:])
    ratio = statistics.median(
        one.wall_s / other.wall_s for one, other in zip(ours[1:], peers[1:], strict=False)
    )
    is_quick = question.bar_ms is None or wall <= question.bar_ms
    found: Case = {
        "case": question.name,
        "ours": wall,
        "peer": peer_wall,
        "unit": "ms",
        "ratio": round(ratio, 3),
        "bar": question.bar_ratio or question.bar_ms,
        "ok": is_quick and (question.bar_ratio is None or ratio <= question.bar_ratio),
        "first_ms": round(1000 * ours[0].wall_s, 1),
        "peer_first_ms": round(1000 * peers[0].wall_s, 1),
        "slowest_ms": round(1000 * max(took.wall_s for took in ours[1:]), 1),
        "processor_ms": round(1000 * statistics.median(t.processor_s for t in ours[1:]), 1),
        "peer_processor_ms": round(1000 * statistics.median(t.processor_s for t in peers[1:]), 1),
        "row_count": rows.num_rows,
        **memory(),
    }
    print(json.dumps(found), file=sys.stderr, flush=True)
    return found


def _median_ms(took: list[Took]) -> float:
    return round(1000 * statistics.median(one.wall_s for one in took), 2)


def check_same(question: Question, ours: pa.Table, peers: pa.Table) -> None:
    """Compare value by value; names and types of columns may differ."""
    mine, theirs = ([list(row.values()) for row in rows.to_pylist()] for rows in (ours, peers))
    assert len(mine) == len(theirs), f"{question.name}: {len(mine)} rows, {len(theirs)} of DuckDB"
    for one, other in zip(mine, theirs, strict=True):
        same = all(map(_is_same, one, other))
        assert same, f"{question.name}: {one}, DuckDB has {other}"


def _is_same(one: object, other: object) -> bool:
    """Percentiles may differ by a millionth."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6)
    return one == other


def forget_peak() -> None:
    """Reset the peak memory of our process."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def memory() -> dict[str, int]:
    """Memory of our process: peak since the reset, and current, in megabytes."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    found = {name: int(size) // 1024 for name, size in re.findall(r"(\w+):\s+(\d+) kB", text)}
    return {"rss_peak_mb": found["VmHWM"], "rss_mb": found["VmRSS"], "own_mb": found["RssAnon"]}


def main(rows: int) -> int:
    shop = Shop(logs=rows, spans=rows // LOGS_PER_SPAN)
    with scratch_folder() as folder:
        begin = time.perf_counter()
        with filled(folder / "data", shop) as tier:
            sealed = time.perf_counter()
            write_parquet(tier, folder / "parquet")
            print(json.dumps(set_up(tier, folder, sealed - begin)), file=sys.stderr, flush=True)
            with (
                open_engine(tier) as engine,
                Peer.open(folder / "parquet") as peer,
            ):
                cases = [measure(one, engine, tier, peer) for one in questions(shop)]
    print(json.dumps({"bench": "query", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


def set_up(tier: HotTier, folder: Path, took_s: float) -> Case:
    pieces = {table: tier.pieces(table) for table in PEER_TABLES}
    sizes = {
        name: sum(path.stat().st_size for path in (folder / where).rglob(f"*.{name}"))
        for name, where in (("arrow", "data/hot"), ("parquet", "parquet"))
    }
    return {
        "rows": {table: sum(one.row_count for one in some) for table, some in pieces.items()},
        "segments": {table: len(some) for table, some in pieces.items()},
        "log_to_sealed_s": round(took_s, 1),
        "megabytes": {name: size >> 20 for name, size in sizes.items()},
        **memory(),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["peer"]:
        serve_peer(Path(sys.argv[2]))
        sys.exit()
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS, help="log records; spans are a fifth")
    sys.exit(main(parser.parse_args().rows))
