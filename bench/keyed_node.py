"""Keyed tables of a running node: look-ups and durable upserts, alone and by 64 writers.

Through the channel between two processes' ends in this process, and over HTTP to a node; SQLite,
RocksDB and Postgres in the same run where they are there. Prints one JSON line last.
"""

from __future__ import annotations

import http.client
import importlib
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom

import pyarrow as pa

from bench.keyed import percentiles, scratch_folder, timed_each
from frazil.disk import RealDisk
from frazil.log import (
    AppendChannel,
    CommitSignal,
    CommitWaiter,
    Log,
    LogOwner,
    ObservedLog,
    serve_appends,
    serve_observer,
)
from frazil.model import SystemClock
from frazil.tables import KeyedTables, Operation, new_definition, warm
from tests.clients.node import Node

ROWS = 100_000
CALLS = 300
"""Of one writer."""
WRITERS = 64
CALLS_EACH = 30
"""Of each of many writers."""
COLUMNS = (("id", "int64"), ("name", "string"), ("amount", "float64"))

Figures = dict[str, float]
Call = Callable[[int], object]


def row(number: int) -> dict[str, object]:
    return {"id": number % ROWS, "name": f"row {number}", "amount": number * 0.5}


def crowd(open_call: Callable[[], Call]) -> tuple[float, float, float]:
    """Many writers at once: p50 and p99 in microseconds, and writes per second."""
    samples: list[list[int]] = [[] for _ in range(WRITERS)]
    ready = threading.Barrier(WRITERS + 1)

    def write(number: int) -> None:
        call = open_call()
        ready.wait()
        for each in range(CALLS_EACH):
            begin = time.perf_counter_ns()
            call(number * CALLS_EACH + each)
            samples[number].append(time.perf_counter_ns() - begin)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    ready.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begin
    p50, p99 = percentiles([each for some in samples for each in some])
    return p50, p99, WRITERS * CALLS_EACH / seconds


def measured(prefix: str, open_call: Callable[[], Call]) -> Figures:
    figures: Figures = {}
    alone = open_call()
    figures[f"{prefix}_p50_us"], figures[f"{prefix}_p99_us"] = timed_each(CALLS, alone)
    p50, p99, rate = crowd(open_call)
    figures |= {f"{prefix}_64_p50_us": p50, f"{prefix}_64_p99_us": p99}
    figures[f"{prefix}_64_per_s"] = rate
    return figures


def in_process(folder: Path) -> Figures:
    """A log, and tables over it, through the channel and without."""
    warm()
    disk, clock = RealDisk(folder), SystemClock()
    figures: Figures = {}
    with Log.open(disk, clock=clock, rand=SystemRandom()) as log:
        signal = CommitSignal()
        log.writer.listen(signal.notify)
        pairs = [socket.socketpair() for _ in range(2)]
        for serve, (ours, _) in zip((serve_observer, serve_appends), pairs, strict=True):
            threading.Thread(target=serve, args=(log, ours), daemon=True).start()
        observed = ObservedLog(
            disk,
            LogOwner(pairs[0][1]),
            CommitWaiter(os.dup(signal.descriptor), clock),
            AppendChannel(pairs[1][1]),
        )
        for prefix, owner in (("direct", log), ("channel", observed)):
            tables = KeyedTables(disk, owner, clock=clock)
            tables.start()
            tables.create(new_definition(prefix, COLUMNS, ["id"], rand=SystemRandom()))

            def upsert(number: int, tables: KeyedTables = tables, name: str = prefix) -> object:
                return tables.write(name, Operation.UPSERT, pa.Table.from_pylist([row(number)]))

            figures |= measured(f"{prefix}_upsert", lambda call=upsert: call)  # type: ignore[misc]
            tables.close()
        observed.close()
        log.writer.unlisten(signal.notify)
    return figures


def over_http(folder: Path) -> Figures:
    """A node of two processes; every writer has a connection."""
    with Node(folder, "--set", "lake.enabled=false") as node:
        path = "/api/v1/tables/bench"

        def connect() -> http.client.HTTPConnection:
            return http.client.HTTPConnection("127.0.0.1", node.api_port, timeout=60)

        def ask(
            connection: http.client.HTTPConnection, method: str, target: str, body: str
        ) -> None:
            kind = "application/x-ndjson" if target.endswith("/rows") else "application/json"
            connection.request(method, target, body or None, {"Content-Type": kind})
            response = connection.getresponse()
            answer = response.read()
            assert response.status == 200, answer

        def writer() -> Call:
            connection = connect()
            return lambda number: ask(connection, "POST", f"{path}/rows", json.dumps(row(number)))

        columns = [{"name": name, "type": kind} for name, kind in COLUMNS]
        first = connect()
        ask(first, "PUT", path, json.dumps({"columns": columns, "key": ["id"]}))
        for begin in range(0, ROWS, 20_000):
            lines = "\n".join(json.dumps(row(n)) for n in range(begin, begin + 20_000))
            ask(first, "POST", f"{path}/rows", lines)
        figures = measured("http_upsert", writer)
        rand = SystemRandom()
        figures["http_get_p50_us"], figures["http_get_p99_us"] = timed_each(
            1000, lambda _: ask(first, "GET", f"{path}/rows/{rand.randrange(ROWS)}", "")
        )
    return figures


def sqlite(folder: Path) -> Figures:
    """WAL, synchronous FULL, one connection per writer."""
    folder.mkdir()
    file = str(folder / "peer.sqlite")

    def open_call() -> Call:
        database = sqlite3.connect(file, isolation_level=None, timeout=60, check_same_thread=False)
        database.execute("PRAGMA synchronous=FULL")
        statement = "INSERT OR REPLACE INTO t VALUES (?, ?, ?)"
        return lambda number: database.execute(statement, tuple(row(number).values()))

    with sqlite3.connect(file) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name, amount)")
    return measured("upsert", open_call)


def rocksdb(folder: Path) -> Figures | None:
    """Synchronous writes. None if rocksdict is not installed: it is no dependency of ours."""
    try:
        library = importlib.import_module("rocksdict")
    except ImportError:
        return None
    database = library.Rdict(str(folder))
    options = library.WriteOptions()
    options.sync = True

    def put(number: int) -> object:
        key, value = number.to_bytes(8, "big"), json.dumps(row(number)).encode()
        return database.put(key, value, write_opt=options)

    figures = measured("upsert", lambda: put)
    database.close()
    return figures


@contextmanager
def postgres_server(folder: Path, port: int) -> Iterator[None]:
    """A server of our own over a new folder."""
    tools = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    run = ["setpriv", "--reuid=postgres", "--clear-groups"] if os.getuid() == 0 else []
    subprocess.run(
        [*run, tools / "initdb", "-D", folder, "-A", "trust", "-U", "bench"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    options = ["-k", "", "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=100"]
    server = subprocess.Popen(
        [*run, tools / "postgres", "-D", folder, "-p", str(port), *options],
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        server.terminate()
        server.wait()


def postgres() -> Figures | None:
    """Over TCP, each write a commit. None without a server or psycopg."""
    try:
        psycopg = importlib.import_module("psycopg")
    except ImportError:
        return None
    if not Path("/usr/lib/postgresql").is_dir():
        return None
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    folder = Path(tempfile.mkdtemp(prefix="bench-postgres-"))
    try:
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
        with postgres_server(folder, port):

            def open_call() -> Call:
                address = f"host=127.0.0.1 port={port} user=bench dbname=postgres"
                database = psycopg.connect(address, autocommit=True)
                statement = (
                    "INSERT INTO t VALUES (%s, %s, %s) ON CONFLICT (id) "
                    "DO UPDATE SET name = excluded.name, amount = excluded.amount"
                )
                return lambda number: database.execute(statement, tuple(row(number).values()))

            for _ in range(100):
                with suppress(psycopg.OperationalError):
                    address = f"host=127.0.0.1 port={port} user=bench dbname=postgres"
                    with psycopg.connect(address) as database:
                        database.execute(
                            "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, amount FLOAT8)"
                        )
                    break
                time.sleep(0.1)
            return measured("upsert", open_call)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    result: dict[str, object] = {"load_before": os.getloadavg()[0]}
    with scratch_folder() as folder:
        ours = in_process(folder / "channel") | over_http(folder / "node")
        peers = {"sqlite": sqlite(folder / "sqlite"), "rocksdb": rocksdb(folder / "rocksdb")}
    peers["postgres"] = postgres()
    result["frazil"] = {name: round(value, 1) for name, value in ours.items()}
    for name, figures in peers.items():
        result[name] = figures and {each: round(value, 1) for each, value in figures.items()}
    for name, value in ours.items():
        print(f"{name:28} {value:14,.1f}", file=sys.stderr)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
