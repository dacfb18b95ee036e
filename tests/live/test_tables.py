"""Keyed tables of a real node: concurrent writers, and kill -9 of both processes amid writes."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import frazil
from frazil.errors import FrazilError
from tests.clients.node import Node
from tests.live.test_processes import NO_LAKE, eventually, get, processes

TABLE = {
    "columns": [
        {"name": "id", "type": "int64"},
        {"name": "count", "type": "int64", "nullable": False},
    ],
    "key": ["id"],
    "partitions": 4,
}
WRITERS = 64
ROOM = ("--set", "serve.requests_max=128")
"""For the requests of the test besides those of all writers."""
PATH = "/api/v1/tables/t"
WAIT_S = 60


def call(node: Node, method: str, path: str, body: object, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", node.api_port, timeout=WAIT_S)
    try:
        connection.request(
            method, path, json.dumps(body), {"Content-Type": "application/json", **headers}
        )
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


class Counter:
    """Owns one key and counts it up, one write after the other. A write without a response is
    repeated with the same idempotency key until it is acknowledged."""

    def __init__(self, key: int) -> None:
        self.key = key
        self.acknowledged = 0
        self.duplicates = 0
        self.offset = -1
        self.errors: list[str] = []

    def run(self, crowd: Crowd) -> None:
        while not crowd.is_over.is_set():
            self._write(crowd, self.acknowledged + 1)

    def _write(self, crowd: Crowd, count: int) -> None:
        headers = {
            "Content-Type": "application/x-ndjson",
            "Idempotency-Key": f"{self.key}-{count}",
        }
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            try:
                row = {"id": self.key, "count": count}
                status, answer = call(crowd.node, "POST", f"{PATH}/rows", row, **headers)
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
                continue
            if status in (429, 503, 504):
                time.sleep(0.05)
                continue
            if status != 200:
                self.errors.append(f"{status} {answer}")
                return
            ((_, offset),) = answer["token"]["offsets"].items()
            if offset <= self.offset:
                self.errors.append(f"offset {offset} after {self.offset}")
            self.offset = offset
            self.duplicates += answer["duplicate"]
            self.acknowledged = count
            return
        self.errors.append(f"write {count} was not acknowledged in {WAIT_S} s")


class Crowd:
    """Many counters at once."""

    def __init__(self, node: Node, counters: list[Counter]) -> None:
        self.node = node
        """Replaced when the node is started again."""
        self.is_over = threading.Event()
        self._counters = counters
        self._threads = [threading.Thread(target=counter.run, args=(self,)) for counter in counters]
        for thread in self._threads:
            thread.start()

    @property
    def total(self) -> int:
        return sum(counter.acknowledged for counter in self._counters)

    def go_on(self, count: int) -> None:
        """Wait for more acknowledged writes."""
        goal = self.total + count
        eventually(lambda: self.total >= goal)

    def stop(self) -> None:
        self.is_over.set()
        for thread in self._threads:
            thread.join(2 * WAIT_S)
        assert [error for counter in self._counters for error in counter.errors] == []


def changes_by_key(node: Node) -> dict[int, list[int]]:
    """The counts of each key in the order of the log."""
    found: dict[int, list[int]] = {}
    for partition in range(TABLE["partitions"]):  # type: ignore[call-overload]
        begin = 0
        for _ in itertools.count():
            path = f"{PATH}/changes?partition={partition}&from={begin}&limit=10000"
            answer = json.loads(get(node, path)[1])
            for change in answer["changes"]:
                found.setdefault(change["id"], []).append(change["count"])
            begin = answer["next"]
            if begin >= answer["end"]:
                break
    return found


def check(node: Node, counters: list[Counter]) -> None:
    """Every acknowledged change is there once, in order, and nothing else."""
    status = json.loads(get(node, PATH)[1])["status"]
    written = {str(part["partition"]): part["written"] for part in status["partitions"]}
    keys = [counter.key for counter in counters]
    found = call(node, "POST", f"{PATH}/lookup", {"keys": keys, "at_least": written})[1]["rows"]
    assert found == [{"id": c.key, "count": c.acknowledged} for c in counters if c.acknowledged]
    changes = changes_by_key(node)
    for counter in counters:
        assert changes.get(counter.key, []) == list(range(1, counter.acknowledged + 1))


def test_64_writers_lose_nothing_when_reader_and_writer_are_killed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    counters = [Counter(key) for key in range(WRITERS)]
    with Node(data, *NO_LAKE, *ROOM) as node:
        assert call(node, "PUT", PATH, TABLE)[0] == 200
        crowd = Crowd(node, counters)
        crowd.go_on(300)
        for number in (signal.SIGKILL, signal.SIGSEGV):
            reader = processes(node)["reader"]
            os.kill(reader, number)
            crowd.go_on(300)
            assert processes(node)["reader"] != reader
        check_writer_has_no_arrow(node.process.pid)
        node.kill()  # the writer, amid writes; the reader ends with it
    with Node(data, *NO_LAKE, *ROOM) as node:
        crowd.node = node
        crowd.go_on(300)
        crowd.stop()
        check(node, counters)
        metrics = get(node, "/metrics")[1].decode()
        for name in ("keys", "key_bytes", "lag_offsets", "dead_rows", "up"):
            assert re.search(rf'^frazil_tables_{name}{{table="t"}} [0-9]', metrics, re.MULTILINE)
        assert "frazil_tables_write_seconds_count" in metrics
        assert b"tables" in get(node, "/readyz?verbose")[1]
        assert node.stop() == 0
    with frazil.open(data) as db:
        table = db.table("t")
        assert table.get(5) == {"id": 5, "count": counters[5].acknowledged}
        assert db.tables.status("t").partitions[0].sealed > 0  # saved at the stop
        table.upsert([{"id": 1000, "count": 1}])
    with Node(data, *NO_LAKE) as node:
        remote = frazil.connect(f"http://127.0.0.1:{node.api_port}").table("t")
        assert remote.get(1000) == {"id": 1000, "count": 1}
        remote.delete([1000])
        check(node, counters)
        assert node.stop() == 0


def check_writer_has_no_arrow(pid: int) -> None:
    """The process that acknowledges loads neither Arrow nor DataFusion."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    assert "arrow" not in maps and "datafusion" not in maps


def test_a_table_is_created_dropped_and_created_again_across_restarts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Node(data, *NO_LAKE) as node:
        db = frazil.connect(f"http://127.0.0.1:{node.api_port}")
        for round_ in range(2):
            assert call(node, "PUT", PATH, TABLE)[0] == 200
            db.table("t").upsert([{"id": round_, "count": 1}])
            assert call(node, "DELETE", PATH, None)[0] == 200
        assert call(node, "PUT", PATH, TABLE)[0] == 200
        db.table("t").upsert([{"id": 7, "count": 1}])
        os.kill(processes(node)["reader"], signal.SIGKILL)
        eventually(lambda: reads(db, 7) == {"id": 7, "count": 1})
        assert reads(db, 0) is None and reads(db, 1) is None
        assert node.stop() == 0
    assert not [path for path in (data / "tables").iterdir() if path.name.startswith(".")]


def reads(db: Any, key: int) -> object:
    try:
        return db.table("t").get(key)
    except FrazilError:
        return "not yet"
