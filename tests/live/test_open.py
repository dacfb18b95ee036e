"""`frazil.open` on a data folder that a real node has filled."""

from __future__ import annotations

import datetime
import random
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import frazil
from frazil import embedded
from frazil.config import Config
from frazil.disk import RealDisk
from frazil.embedded import Embedded
from frazil.errors import Held, Unavailable, Unknown
from frazil.hot import HotTier
from frazil.log import Log
from frazil.model import SystemClock
from frazil.query import find_traces, histogram
from tests.clients.node import Node
from tests.conformance.cases import log, logs
from tests.conformance.clients import PROTOBUF, send_http

NAMES = [f"event-{number}" for number in range(40)]
SMALL = "[log]\nsegment_bytes_max = 65536\n[hot]\nenabled = {hot}\n"


def fill(node: Node, names: list[str] = NAMES) -> None:
    """Send one request per name and check that it is acknowledged."""
    for number, name in enumerate(names):
        body = logs(log(number, event_name=name), log(number, event_name=f"{name}-too"))
        answer = send_http(node.http_port, "/v1/logs", body, {"Content-Type": PROTOBUF})
        assert answer.status == 200


def found_in(folder: Path) -> list[str]:
    with frazil.open(folder) as opened:
        rows = opened.sql("SELECT event_name FROM logs ORDER BY _offset, _row").fetchall()
    return [row[0] for row in rows]


def both(names: list[str]) -> list[str]:
    return [each for name in names for each in (name, f"{name}-too")]


def test_acknowledged_rows_of_a_killed_node_are_there_once(tmp_path: Path) -> None:
    """In order, at every open, and after another node has continued."""
    folder = tmp_path / "data"
    with Node(folder) as node:
        fill(node)
        node.kill()
        assert found_in(folder) == both(NAMES)
        assert found_in(folder) == both(NAMES)
        node.start()
        fill(node, ["later"])
        assert node.stop() == 0
    assert found_in(folder) == both([*NAMES, "later"])
    shutil.rmtree(folder / "hot")
    assert found_in(folder) == both([*NAMES, "later"]), "all of it comes from the log"


def test_results_convert_to_other_libraries(tmp_path: Path) -> None:
    """pandas, polars, DuckDB and Python get the same rows."""
    with Node(tmp_path / "data") as node:
        fill(node)
        assert node.stop() == 0
    with frazil.open(tmp_path / "data") as opened:
        text = "SELECT event_name, time FROM logs ORDER BY _offset, _row"
        names = both(NAMES)
        assert [row[0] for row in opened.sql(text).fetchall()] == names
        assert opened.sql(text).df()["event_name"].to_list() == names
        assert opened.sql(text).pl()["event_name"].to_list() == names
        assert opened.ask(text)["event_name"].to_pylist() == names
        result = opened.sql(text)  # noqa: F841 # DuckDB finds it by its name
        counted = duckdb.sql("SELECT count(*) FROM result")
        assert counted is not None
        assert counted.fetchall() == [(len(names),)]
        assert f">{names[0]}</td>" in opened.sql(text)._repr_html_()


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    """`Held` names the owner, be it a node or `frazil.open`."""
    with Node(tmp_path / "data") as node:
        with pytest.raises(Held, match=rf"process {node.process.pid} \(frazil up\)"):
            frazil.open(tmp_path / "data")
        assert node.stop() == 0
    with frazil.open(tmp_path / "data"), pytest.raises(Held, match=r"\(frazil.open\)"):
        frazil.open(tmp_path / "data")
    frazil.open(str(tmp_path / "data")).close()


def test_a_foreign_folder_is_refused_and_unchanged(tmp_path: Path) -> None:
    """A typo does not create a new database."""
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(Unknown, match="not a data folder of Frazil"):
            frazil.open(folder)
    assert list(tmp_path.iterdir()) == []


def test_a_node_without_hot_tier_only_receives(tmp_path: Path) -> None:
    """`frazil.open` of its folder builds the rows, with the same settings."""
    settings = tmp_path / "frazil.toml"
    settings.write_text(SMALL.format(hot="false"))
    folder = tmp_path / "data"
    with Node(folder, "--config", str(settings)) as node:
        fill(node)
        assert node.stop() == 0
    assert not (folder / "hot").exists()
    with frazil.open(folder, config=settings) as opened:
        assert opened.ask("SELECT count(*) AS n FROM logs")["n"].to_pylist() == [80]


def test_an_unreadable_log_is_an_error(tmp_path: Path) -> None:
    """The error names the file and position, and the folder is not locked afterwards."""
    settings = tmp_path / "frazil.toml"
    settings.write_text(SMALL.format(hot="false"))
    folder = tmp_path / "data"
    with Node(folder, "--config", str(settings)) as node:
        fill(node, [f"{number:03}{'x' * 2000}" for number in range(60)])
        assert node.stop() == 0
    first, *others = sorted((folder / "log" / "otlp_logs" / "0").glob("*.log"))
    assert others
    data = bytearray(first.read_bytes())
    data[30_000] ^= 1
    first.write_bytes(data)
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"do not become visible: .*is damaged at byte"):
            frazil.open(folder, config=settings)


def test_catch_up_fails_without_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when memory is full and nothing can be sealed."""
    monkeypatch.setattr(embedded, "STUCK_MS", 300)
    monkeypatch.setattr(HotTier, "step", lambda _: 0)
    with Node(tmp_path / "data") as node:
        fill(node, ["one"])
        assert node.stop() == 0
    shutil.rmtree(tmp_path / "data" / "hot")
    with pytest.raises(Unavailable, match=r"1 requests .* no progress for 300 ms"):
        frazil.open(tmp_path / "data")


def test_a_dead_worker_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries fail instead of returning only old rows."""
    failures: list[BaseException] = []

    def fail(_: HotTier) -> int:
        raise MemoryError("no room")

    monkeypatch.setattr(HotTier, "step", fail)
    disk, clock = RealDisk(tmp_path), SystemClock()
    with (
        Log.open(disk, clock=clock, rand=random.SystemRandom()) as log,
        Embedded.over(log, disk, Config(), clock=clock, fatal=failures.append) as opened,
    ):
        while not failures:
            clock.sleep(0.01)
        with pytest.raises(Unavailable, match="no room"):
            opened.sql("SELECT 1")
    assert isinstance(failures[0], MemoryError)


def test_query_functions_work_with_embedded(tmp_path: Path) -> None:
    """The functions of `query` take `ask`."""
    with Node(tmp_path / "data") as node:
        fill(node)
        assert node.stop() == 0
    with frazil.open(tmp_path / "data") as opened:
        bars = histogram(opened.ask, datetime.timedelta(days=1))
        assert sum(bar.count for bar in bars) == 80
        assert find_traces(opened.ask) == []


def test_a_program_may_exit_without_closing(tmp_path: Path) -> None:
    """A notebook that is shut down leaves a folder that opens again."""
    with Node(tmp_path / "data") as node:
        fill(node)
        assert node.stop() == 0
    program = (
        "import frazil, sys; opened = frazil.open(sys.argv[1]);"
        "print(opened.sql('SELECT count(*) FROM logs').fetchall())"
    )
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "data")],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "[(80,)]\n", "")


def test_rows_from_before_a_start_are_visible_after_it(tmp_path: Path) -> None:
    """The first result after a kill has every acknowledged row."""
    with Node(tmp_path / "data", "--set", "lake.enabled=false") as node:
        for round_number in range(3):
            fill(node, [f"{round_number}-{name}" for name in NAMES])
            node.kill()
            node.start()
            found = frazil.connect(node.url).sql("SELECT count(*) FROM logs").fetchall()
            assert found == [(2 * len(NAMES) * (round_number + 1),)]


def test_a_query_waits_a_limited_time_after_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it fails with the number of missing requests instead of leaving them out."""
    with Node(tmp_path / "data") as node:
        fill(node, ["one"])
        assert node.stop() == 0
    shutil.rmtree(tmp_path / "data" / "hot")
    monkeypatch.setattr(embedded, "START_WAIT_MS", 200)
    monkeypatch.setattr(HotTier, "step", lambda _: 0)
    disk, clock = RealDisk(tmp_path / "data"), SystemClock()
    with (
        Log.open(disk, clock=clock, rand=random.SystemRandom()) as log,
        Embedded.over(log, disk, Config(), clock=clock) as opened,
        pytest.raises(Unavailable, match="1 requests of the log are not visible yet"),
    ):
        opened.sql("SELECT 1")
