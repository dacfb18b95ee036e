"""The Iceberg tables of a real node hold every acknowledged row once, for every engine."""

from __future__ import annotations

import json
import os
import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

import frazil
from frazil.client import Client
from frazil.disk import RealDisk
from frazil.lake import Lake, Session
from frazil.lake.catalog.catalog import open_catalog, spark_settings
from frazil.log import Log, Record, append_of_records
from frazil.model import MiB, Signal, SystemClock
from frazil.settings import LakeConfig
from tests.clients.node import COMMAND, Node
from tests.conformance.cases import NOW_NS, log, logs, metric, metrics, span, spans
from tests.conformance.clients import PROTOBUF, send_http

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    # PySpark does not close the pipe to a process that failed to start.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]

CONFIG = LakeConfig(driver_memory_bytes=512 * MiB, flush_age_ms=100)
ROWS = 4
"""Rows per request."""
REQUESTS = 30
"""Requests per signal."""
NAMES = {"logs": "event_name", "spans": "name", "metrics": "metric_name"}
"""Table -> column with the record's name."""
WAIT_S = 120
FLUSH_S = 300

Answer = tuple[Any, ...]


def sums(table: str, relation: str) -> str:
    """Return a query for every engine whose result reveals missing, duplicate or changed rows."""
    name = NAMES[table]
    return (
        "SELECT count(*), count(DISTINCT _log_partition * 1000000 + _offset * 1000 + _row), "
        f"sum(_offset), sum(_row), sum(time_unix_nano % 1000003), sum(length({name})), "
        f"min({name}), max({name}) FROM {relation}"
    )


def send_all(node: Node, first: int = 0) -> None:
    """Send requests of all three signals and check that all are acknowledged."""
    for number in range(first, first + REQUESTS):
        names = [f"{number:05}-{row}" for row in range(ROWS)]
        gauges = [metric(number) for _ in names]
        for gauge, name in zip(gauges, names, strict=True):
            gauge.name = name
            gauge.gauge.data_points.add(as_int=number, time_unix_nano=NOW_NS + number)
        bodies = {
            Signal.LOGS: logs(*(log(number, event_name=name) for name in names)),
            Signal.TRACES: spans(*(span(number, name=name) for name in names)),
            Signal.METRICS: metrics(*gauges),
        }
        for signal, body in bodies.items():
            answer = send_http(node.http_port, signal.path, body, {"Content-Type": PROTOBUF})
            assert answer.status == 200


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "frazil.toml"
    path.write_text(
        f"[lake]\nflush_age_ms = {CONFIG.flush_age_ms}\n"
        f"driver_memory_bytes = {CONFIG.driver_memory_bytes}\n"
    )
    return path


@pytest.fixture
def without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Hide Java from PATH until the test calls `undo`."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            link = programs / program.name
            if program.name != "java" and not link.exists() and not link.is_symlink():
                link.symlink_to(program)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(programs))
        patch.delenv("JAVA_HOME", raising=False)
        yield patch


def flush(folder: Path, settings: Path) -> list[dict[str, Any]]:
    """Run `frazil flush` and return its output."""
    done = subprocess.run(
        [*COMMAND, "flush", "--data", str(folder), "--config", str(settings), "--json"],
        capture_output=True,
        text=True,
        timeout=FLUSH_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Callable[[], Catalog]]:
    """Open the catalog of the folder at first use."""
    opened: list[Catalog] = []

    def get() -> Catalog:
        if not opened:
            opened.append(open_catalog(CONFIG, tmp_path / "data"))
        return opened[0]

    yield get
    for each in opened:
        each.close()


def by_pyiceberg(table: Table, name: str) -> Answer:
    columns = ("_log_partition", "_offset", "_row", "time_unix_nano", NAMES[name])
    rows: pa.Table = table.scan().select(*columns).to_arrow()
    with duckdb.connect() as database:
        database.register("rows", rows)
        return _one(database.execute(sums(name, "rows")).fetchall())


def by_duckdb(table: Table, name: str) -> Answer:
    """Query the data files without the catalog."""
    paths = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
    with duckdb.connect() as database:
        return _one(database.execute(sums(name, "read_parquet(?)"), [paths]).fetchall())


def _one(rows: list[Any]) -> Answer:
    (row,) = rows
    return tuple(row)


def expected(count: int) -> Answer:
    """Compute the result of `sums` for `count` requests."""
    width = len("00000-0")
    rows = count * ROWS
    return (
        *(rows, rows, ROWS * sum(range(count)), count * sum(range(ROWS))),
        sum((NOW_NS + number) % 1000003 for number in range(count)) * ROWS,
        *(rows * width, "00000-0", f"{count - 1:05}-{ROWS - 1}"),
    )


def check_prefixes(table: Table) -> None:
    """Check that every snapshot holds exactly the offsets below the ends in its summary."""
    for snapshot in table.metadata.snapshots:
        assert snapshot.summary is not None
        ((_, ends),) = json.loads(str(snapshot.summary["frazil.offsets"])).items()
        found = table.scan(snapshot_id=snapshot.snapshot_id).select("_offset", "_row").to_arrow()
        rows = sorted(zip(*(found[name].to_pylist() for name in found.column_names), strict=True))
        assert rows == [(offset, row) for offset in range(ends["0"]) for row in range(ROWS)]


def test_all_engines_read_what_was_acknowledged(
    tmp_path: Path,
    settings: Path,
    without_java: pytest.MonkeyPatch,
    catalog: Callable[[], Catalog],
) -> None:
    """A node without Java accepts requests and reports what is missing.

    With Java, `flush` appends all rows to the tables, and all engines read the same.
    """
    folder = tmp_path / "data"
    with Node(folder, "--config", str(settings)) as node:
        send_all(node)
        wait_for(lambda: "The lake needs Java 17" in node.errors())
        send_all(node, REQUESTS)
        assert node.stop() == 0
        assert "Traceback" not in node.errors()
    without_java.undo()
    done = flush(folder, settings)
    assert {each["table"]: each["row_count"] for each in done} == dict.fromkeys(
        NAMES, 2 * REQUESTS * ROWS
    )
    assert flush(folder, settings) == []
    with closing(Session(CONFIG, spark_settings(CONFIG, folder))) as session:
        spark = session.spark()
        by_spark = {
            name: _one(spark.sql(sums(name, f"frazil.frazil.{name}")).collect()) for name in NAMES
        }
    with frazil.open(folder, config=settings) as opened:
        by_sql = {name: _one(opened.sql(sums(name, name)).fetchall()) for name in NAMES}
    for name in NAMES:
        table = catalog().load_table(f"frazil.{name}")
        answer = expected(2 * REQUESTS)
        assert by_pyiceberg(table, name) == answer
        assert by_duckdb(table, name) == answer
        assert by_spark[name] == answer
        assert by_sql[name] == answer
        check_prefixes(table)


def test_a_node_fills_its_tables_until_it_stops(
    tmp_path: Path, settings: Path, catalog: Callable[[], Catalog]
) -> None:
    """Automatically while it runs, at once on a flush, and the rest when it stops."""
    folder = tmp_path / "data"
    with Node(folder, "--config", str(settings)) as node:
        send_all(node)

        def is_filled() -> bool:
            made = catalog()
            return all(
                made.table_exists(f"frazil.{name}")
                and made.load_table(f"frazil.{name}").current_snapshot() is not None
                for name in NAMES
            )

        wait_for(is_filled)
        send_all(node, REQUESTS)
        check_flush(frazil.connect(node.url), catalog(), 2 * REQUESTS)
        send_all(node, 2 * REQUESTS)
        assert node.stop() == 0
    for name in NAMES:
        table = catalog().load_table(f"frazil.{name}")
        assert by_duckdb(table, name) == expected(3 * REQUESTS)
        check_prefixes(table)


def check_flush(remote: Client, made: Catalog, request_count: int) -> None:
    """Check that a flush over HTTP appends all acknowledged rows, and that the API lists the
    snapshots."""
    assert all(commit.row_count > 0 for commit in remote.flush())
    for name in NAMES:
        table = made.load_table(f"frazil.{name}")
        assert by_duckdb(table, name) == expected(request_count)
        listed = remote.get("/api/v1/snapshots", {"table": name})["snapshots"]
        assert {each["snapshot_id"] for each in listed} == {
            each.snapshot_id for each in table.snapshots()
        }
    assert remote.get("/api/v1/status")["lake"]["last_commit"] is not None


def test_a_reported_problem_clears_when_it_is_fixed(
    tmp_path: Path, without_java: pytest.MonkeyPatch
) -> None:
    folder, clock, rand = tmp_path / "data", SystemClock(), random.SystemRandom()
    with Log.open(RealDisk(folder), clock=clock, rand=rand) as made:
        made.create_topic("otlp_logs")
        with Lake.open(made, folder, CONFIG, clock=clock, rand=rand, auto_flush=True) as lake:
            body = logs(*(log(0, event_name=f"00000-{row}") for row in range(ROWS)))
            record = Record(offset=0, timestamp_ms=1, key=None, value=body)
            made.append("otlp_logs", append_of_records([record])).result()
            wait_for(lambda: "needs Java" in (lake.trouble or ""))
            without_java.undo()
            wait_for(lambda: lake.trouble is None)
            table = lake.run(lambda: lake.catalog.load_table("frazil.logs"))
            assert by_duckdb(table, "logs") == expected(1)


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    over = threading.Event()
    for _ in range(WAIT_S * 10):
        if is_so():
            return
        over.wait(0.1)
    raise AssertionError(f"the condition is not true after {WAIT_S} s")
