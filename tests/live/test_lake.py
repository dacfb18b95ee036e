"""A real node and its tables: what was acknowledged is there for every engine, once."""

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
from frazil.lake import Lake, LakeConfig, Session
from frazil.lake.catalog.catalog import open_catalog, spark_settings
from frazil.log import Log, Record, append_of_records
from frazil.model import MiB, Signal, SystemClock
from tests.clients.node import COMMAND, Node
from tests.conformance.cases import NOW_NS, log, logs, metric, metrics, span, spans
from tests.conformance.clients import PROTOBUF, send_http

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    # PySpark does not close the pipe to a process that did not start.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]

CONFIG = LakeConfig(driver_memory_bytes=512 * MiB, flush_age_ms=100)
ROWS = 4
"""Of a request."""
REQUESTS = 30
"""Of each signal."""
NAMES = {"logs": "event_name", "spans": "name", "metrics": "metric_name"}
"""Table -> the column with the name that a record was sent under."""
WAIT_S = 120
FLUSH_S = 300

Answer = tuple[Any, ...]


def sums(table: str, relation: str) -> str:
    """A query that every engine understands, and whose answer shows a row that is missing, twice
    there, or different."""
    name = NAMES[table]
    return (
        "SELECT count(*), count(DISTINCT _log_partition * 1000000 + _offset * 1000 + _row), "
        f"sum(_offset), sum(_row), sum(time_unix_nano % 1000003), sum(length({name})), "
        f"min({name}), max({name}) FROM {relation}"
    )


def send_all(node: Node, first: int = 0) -> None:
    """Requests of all three signals, all of which are acknowledged."""
    for number in range(first, first + REQUESTS):
        names = [f"{number:05}-{row}" for row in range(ROWS)]
        gauges = [metric(number) for _ in names]
        for each, name in zip(gauges, names, strict=True):
            each.name = name
            each.gauge.data_points.add(as_int=number, time_unix_nano=NOW_NS + number)
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
    """All programs of this machine, but for one. Undone by the test, when it likes."""
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
    """`frazil flush`, and what it says."""
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
    """The catalog of the folder, once it is there."""
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
    """The files alone."""
    paths = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
    with duckdb.connect() as database:
        return _one(database.execute(sums(name, "read_parquet(?)"), [paths]).fetchall())


def _one(rows: list[Any]) -> Answer:
    (row,) = rows
    return tuple(row)


def wanted(name: str, count: int) -> Answer:
    """What `count` requests are, without asking any engine."""
    width = len("00000-0")
    rows = count * ROWS
    return (
        *(rows, rows, ROWS * sum(range(count)), count * sum(range(ROWS))),
        sum((NOW_NS + number) % 1000003 for number in range(count)) * ROWS,
        *(rows * width, "00000-0", f"{count - 1:05}-{ROWS - 1}"),
    )


def check_prefixes(table: Table) -> None:
    """Every snapshot holds exactly the offsets below those that it names."""
    for snapshot in table.metadata.snapshots:
        assert snapshot.summary is not None
        ((_, ends),) = json.loads(str(snapshot.summary["frazil.offsets"])).items()
        found = table.scan(snapshot_id=snapshot.snapshot_id).select("_offset", "_row").to_arrow()
        places = sorted(zip(*(found[name].to_pylist() for name in found.column_names), strict=True))
        assert places == [(offset, row) for offset in range(ends["0"]) for row in range(ROWS)]


def test_all_engines_read_what_was_acknowledged(
    tmp_path: Path,
    settings: Path,
    without_java: pytest.MonkeyPatch,
    catalog: Callable[[], Catalog],
) -> None:
    """A node without Java takes everything in, and says what is missing. Once it is there, `flush`
    brings all of it into the tables, and all who read them count the same."""
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
        answer = wanted(name, 2 * REQUESTS)
        assert by_pyiceberg(table, name) == answer
        assert by_duckdb(table, name) == answer
        assert by_spark[name] == answer
        assert by_sql[name] == answer
        check_prefixes(table)


def test_a_node_fills_its_tables_until_it_stops(
    tmp_path: Path, settings: Path, catalog: Callable[[], Catalog]
) -> None:
    """By itself while it runs, at once when it is asked to; and what came last when it is told to
    stop."""
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
        assert by_duckdb(table, name) == wanted(name, 3 * REQUESTS)
        check_prefixes(table)


def check_flush(remote: Client, made: Catalog, request_count: int) -> None:
    """When a flush over HTTP returns, all that was acknowledged before is in the tables; and the
    API lists the snapshots that they have."""
    assert all(commit.row_count > 0 for commit in remote.flush())
    for name in NAMES:
        table = made.load_table(f"frazil.{name}")
        assert by_duckdb(table, name) == wanted(name, request_count)
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
            assert by_duckdb(table, "logs") == wanted("logs", 1)


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    over = threading.Event()
    for _ in range(WAIT_S * 10):
        if is_so():
            return
        over.wait(0.1)
    raise AssertionError(f"not so within {WAIT_S} s")
