"""Hostile SQL reads no file, reaches no host, changes nothing and stays within its limits."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from frazil.model import MiB
from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan.session import open_session
from tests.query import hostile
from tests.query.hostile_run import MEMORY_BYTES_MAX, SECRET, TIMEOUT_MS, TIMEOUT_MS_ELSE

ROOT = Path(__file__).parents[2]
GRACE_S = 8.0
"""We promise one second; the rest is for a busy machine. A query that escaped its limit would run
for minutes."""
OWN_GROWTH_MAX = 3 * MEMORY_BYTES_MAX + 128 * MiB
"""Memory of queries, and of code that is loaded and compiled at the first use."""
CHILD_MAX = 128 * MiB + 2 * MEMORY_BYTES_MAX + 128 * MiB
"""A process with its libraries, its limit, and its growth between two checks."""


class Doorbell:
    """A server that counts connections."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.visitor_count = 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._count)
        self._thread.start()

    def _count(self) -> None:
        while True:
            try:
                visitor, _ = self._listener.accept()
            except OSError:
                return
            self.visitor_count += 1
            visitor.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture
def doorbell() -> Iterator[Doorbell]:
    bell = Doorbell()
    yield bell
    bell.close()


def lay_out(folder: Path) -> dict[str, bytes]:
    """Write the secret in every format that DataFusion can read."""
    table = pa.table({"secret": [SECRET]})
    pyarrow.csv.write_csv(table, folder / "secret.csv")
    pyarrow.parquet.write_table(table, folder / "secret.parquet")
    with pa.ipc.new_file(folder / "secret.arrow", table.schema) as writer:
        writer.write_table(table)
    (folder / "secret.json").write_text(json.dumps({"secret": SECRET}), encoding="utf-8")
    (folder / "secret.txt").write_text(SECRET, encoding="utf-8")
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_there_are_two_hundred_hostile_texts() -> None:
    families = (hostile.WRITES, hostile.TRICKS, hostile.REACHES, hostile.GREEDY, hostile.WICKED)
    assert sum(map(len, families)) >= 200
    assert len({text for family in families for text in family}) == sum(map(len, families))


@pytest.mark.parametrize("family", ["WRITES", "TRICKS", "REACHES", "GREEDY", "WICKED"])
def test_hostile_sql_is_contained(family: str, tmp_path: Path, doorbell: Doorbell) -> None:
    """Each text returns rows or an error of ours, within its limits; afterwards nothing has
    changed, no connection was opened, and the secret is unread."""
    before = lay_out(tmp_path)
    command = [sys.executable, "-m", "tests.query.hostile_run", family, str(tmp_path), doorbell.url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    report: dict[str, Any] = json.loads(done.stdout)

    timeout_s = TIMEOUT_MS.get(family, TIMEOUT_MS_ELSE) / 1000
    assert len(report["attempts"]) == len(getattr(hostile, family))
    for attempt in report["attempts"]:
        assert not attempt["has_secret"], attempt
        assert attempt["seconds"] <= timeout_s + GRACE_S, attempt
        if family in ("WRITES", "REACHES"):
            assert attempt["outcome"] in ("Rejected", "Malformed", "Unknown"), attempt
        if family == "GREEDY":
            assert attempt["outcome"] in ("TooLarge", "Malformed"), attempt
    assert report["is_unchanged"]
    assert report["settled_s"] <= GRACE_S
    assert report["own_growth"] <= OWN_GROWTH_MAX
    assert report["child_max"] <= CHILD_MAX
    assert contents(tmp_path) == before
    assert doorbell.visitor_count == 0


def test_a_session_that_may_write_reaches_no_file(tmp_path: Path) -> None:
    """Rejecting statements is not the only barrier: there is no object store to read or write."""
    before = lay_out(tmp_path)
    session = open_session(MiB, SingleQueryContext(0))
    for text in (
        f"CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{tmp_path}/secret.csv'",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION 'http://127.0.0.1:9/x.csv'",
    ):
        with pytest.raises(Exception, match="No suitable object store"):
            session.sql(text).collect()
    with pytest.raises(Exception, match="No suitable object store"):
        session.register_csv("x", tmp_path / "secret.csv")
    assert contents(tmp_path) == before


def test_the_canary_works(tmp_path: Path, doorbell: Doorbell) -> None:
    """The files can be read and the server can be reached."""
    lay_out(tmp_path)
    assert pyarrow.csv.read_csv(tmp_path / "secret.csv")["secret"].to_pylist() == [SECRET]
    assert pyarrow.parquet.read_table(tmp_path / "secret.parquet").num_rows == 1
    host, port = doorbell.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as visitor:
        assert visitor.recv(1) == b""
    assert doorbell.visitor_count == 1
