"""Change capture from a real Postgres: changes per second of processor time, lag, memory.

    PYTHONPATH=. .venv/bin/python bench/postgres.py [--rows 20000] [--changes 200000] [--debezium]

A process has a log and a source, as a connector of a node does. First it copies the rows; then it
catches up with changes that wait; then a client commits 200 transactions a second, and the time
from the commit to the acknowledgement of the log is taken. With --debezium the same is done to
Debezium's engine, whose events end in a file. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from frazil.connectors.postgres.options import PostgresOptions
from tests.connectors.postgres.harness import SourceRun, count_of, open_log
from tests.connectors.postgres.server import PostgresServer, postgres_server, unavailable
from tests.live.postgres.debezium import debezium

RATE = 200
LAG_S = 10.0
TICKS = os.sysconf("SC_CLK_TCK")
TABLE = "CREATE TABLE accounts (id int PRIMARY KEY, balance bigint, name text, at timestamptz)"


def child(folder: Path, port: str, rows: int) -> None:
    """Run a source until standard input ends; print what standard input asks for."""
    connection = {"host": "127.0.0.1", "port": port, "user": "postgres", "dbname": "postgres"}
    log = open_log(folder)
    run = SourceRun(log, connection, PostgresOptions())
    begin, cpu = time.monotonic(), time.process_time()
    while count_of(log, "public.accounts") < rows:
        run.step(0.05)
    facts = {
        "copy_wall_s": time.monotonic() - begin,
        "copied_per_cpu_s": rows / (time.process_time() - cpu),
        "copy_peak_mb": peak_mb(os.getpid()),
    }
    print(json.dumps(facts), flush=True)
    wanted = int(sys.stdin.readline())
    run.records = 0
    begin, cpu = time.monotonic(), time.process_time()
    while run.records < wanted:
        run.step(0.2)
    facts = {"wall_s": time.monotonic() - begin, "cpu_s": time.process_time() - cpu}
    print(json.dumps(facts), flush=True)
    wanted = int(sys.stdin.readline())
    run.records, lags = 0, []
    while run.records < wanted:
        for batch in run.source.poll(0.2):
            run._append(batch)
            stamps = [record.timestamp_ms for record in batch.records]
            while run._flying:
                run._settle()
            now = time.time() * 1000
            lags += [now - stamp for stamp in stamps]
            run.records += len(batch.records)
    lags.sort()
    facts = {
        "lag_p50_ms": lags[len(lags) // 2],
        "lag_p99_ms": lags[len(lags) * 99 // 100],
        "peak_mb": peak_mb(os.getpid()),
    }
    print(json.dumps(facts), flush=True)
    run.close()
    log.close()


def peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def write_changes(server: PostgresServer, count: int, rows: int) -> int:
    """Commit updates, 10 to a transaction. Returns their number."""
    with server.connect() as connection:
        connection.execute("SET synchronous_commit = off")
        with connection.pipeline():
            for number in range(count // 10):
                first = number * 10 % rows
                connection.execute(
                    "UPDATE accounts SET balance = balance + 1, at = now() "
                    "WHERE id >= %s AND id < %s",
                    (first, first + 10),
                )
    return count // 10 * 10


def trickle(server: PostgresServer, rows: int) -> int:
    """Commit one row at a time. Returns their number."""
    with server.connect() as connection:
        begin = time.monotonic()
        count = int(RATE * LAG_S)
        for number in range(count):
            connection.execute("UPDATE accounts SET balance = 0 WHERE id = %s", (number % rows,))
            time.sleep(max(0.0, begin + (number + 1) / RATE - time.monotonic()))
    return count


def measure_ours(server: PostgresServer, folder: Path, changes: int, rows: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", str(folder / "data"), str(server.port)]
    command.append(str(rows))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        copied = json.loads(process.stdout.readline())
        count = write_changes(server, changes, rows)
        process.stdin.write(f"{count}\n")
        process.stdin.flush()
        facts: dict[str, Any] = copied | json.loads(process.stdout.readline())
        facts["changes_per_cpu_s"] = count / facts["cpu_s"]
        process.stdin.write(f"{int(RATE * LAG_S)}\n")
        process.stdin.flush()
        trickle(server, rows)
        facts |= json.loads(process.stdout.readline())
        return facts
    finally:
        process.kill()
        process.wait()


def measure_debezium(
    server: PostgresServer, folder: Path, changes: int, rows: int
) -> dict[str, Any]:
    def wait_for(lines: int) -> None:
        while output.read_bytes().count(b"\n") < lines:
            time.sleep(0.5)

    with debezium(server, folder) as output:
        with server.connect() as connection:
            (pid,) = [
                int(entry.name)
                for entry in Path("/proc").iterdir()
                if entry.name.isdigit() and b"debezium_child" in (entry / "cmdline").read_bytes()
            ]
            connection.execute("UPDATE accounts SET balance = 0 WHERE id = 1")
        while not output.exists():
            time.sleep(0.2)
        wait_for(1)
        begin, cpu = time.monotonic(), cpu_s(pid)
        count = write_changes(server, changes, rows)
        wait_for(1 + count)
        facts: dict[str, Any] = {"wall_s": time.monotonic() - begin, "cpu_s": cpu_s(pid) - cpu}
        facts["changes_per_cpu_s"] = count / facts["cpu_s"]
        told = 1 + count
        wait_for(told + trickle(server, rows))
        lags = sorted(
            value["ts_ms"] - value["source"]["ts_ms"]
            for line in output.read_text().splitlines()[told:]
            if (value := json.loads(json.loads(line)[2]))
        )
        facts["lag_to_event_p50_ms"] = lags[len(lags) // 2]
        facts["lag_to_event_p99_ms"] = lags[len(lags) * 99 // 100]
        return facts | {"peak_mb": peak_mb(pid)}


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--changes", type=int, default=200_000)
    parser.add_argument("--debezium", action="store_true")
    arguments = parser.parse_args()
    if reason := unavailable():
        print(json.dumps({"skipped": reason}))
        return
    with tempfile.TemporaryDirectory() as path, postgres_server() as server:
        with server.connect() as connection:
            connection.execute(TABLE)
            connection.execute(
                f"INSERT INTO accounts SELECT i, 0, 'account ' || i, now() "
                f"FROM generate_series(0, {arguments.rows - 1}) i"
            )
        size = (arguments.changes, arguments.rows)
        facts: dict[str, Any] = {"rows": arguments.rows, "changes": arguments.changes}
        facts["frazil"] = measure_ours(server, Path(path), *size)
        if arguments.debezium:
            facts["debezium"] = measure_debezium(server, Path(path), *size)
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
