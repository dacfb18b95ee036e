"""The writer and the reader of a real node: what reads may die, what writes goes on."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.clients.node import Node
from tests.conformance.cases import log, logs
from tests.conformance.clients import PROTOBUF, send_http

NO_LAKE = ("--set", "lake.enabled=false")
WAIT_S = 60


def get(node: Node, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", node.api_port, timeout=WAIT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def sql(node: Node, text: str) -> list[list[Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", node.api_port, timeout=WAIT_S)
    try:
        body = json.dumps({"sql": text})
        connection.request("POST", "/api/v1/sql", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    assert response.status == 200, answer
    rows: list[list[Any]] = json.loads(answer)["rows"]
    return rows


def eventually(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)


def processes(node: Node) -> dict[str, int]:
    status = json.loads(get(node, "/api/v1/status")[1])
    return {each["process"]: each["pid"] for each in status["processes"]}


class Sender:
    """Sends logs, one a request, until it is stopped; every one must be acknowledged."""

    def __init__(self, node: Node) -> None:
        self.count = 0
        self.failed: list[str] = []
        self._node = node
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        headers = {"Content-Type": PROTOBUF}
        while not self._stop.wait(0.005):
            body = logs(log(self.count, event_name=f"{self.count}"))
            answer = send_http(self._node.http_port, "/v1/logs", body, headers)
            if answer.status != 200:
                self.failed.append(f"{self.count}: {answer.status}")
            self.count += 1

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        assert self.failed == []
        return self.count


def test_a_reader_that_dies_is_started_again_and_every_row_is_there(tmp_path: Path) -> None:
    """Three times, by a crash, a kill and an abort; no acknowledgement is missed."""
    with Node(tmp_path / "data", *NO_LAKE) as node:
        sender = Sender(node)
        for number in (signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT):
            before = processes(node)
            assert before["writer"] == node.process.pid
            os.kill(before["reader"], number)
            eventually(lambda: get(node, "/readyz")[0] == 503)
            assert get(node, "/livez") == (200, b"ok\n")
            eventually(lambda: get(node, "/readyz")[0] == 200)
            assert processes(node)["reader"] != before["reader"]
        count = sender.stop()
        eventually(lambda: sql(node, "SELECT count(*) FROM logs") == [[count]])
        assert sql(node, "SELECT count(DISTINCT event_name) FROM logs") == [[count]]
        metrics = get(node, "/metrics")[1].decode()
        assert "frazil_node_reader_starts_total 4" in metrics
        assert 'frazil_node_reader_ends_total{reason="signal 11"} 1' in metrics
        assert node.stop() == 0


def test_a_reader_that_hangs_delays_neither_probes_nor_acknowledgements(tmp_path: Path) -> None:
    with Node(tmp_path / "data", *NO_LAKE) as node:
        sender = Sender(node)
        reader = processes(node)["reader"]
        os.kill(reader, signal.SIGSTOP)
        try:
            assert get(node, "/livez") == (200, b"ok\n")
            eventually(lambda: b"has not responded" in get(node, "/readyz")[1])
        finally:
            os.kill(reader, signal.SIGCONT)
        eventually(lambda: get(node, "/readyz")[0] == 200)
        count = sender.stop()
        eventually(lambda: sql(node, "SELECT count(*) FROM logs") == [[count]])
        assert processes(node)["reader"] == reader


def test_the_reader_ends_with_the_writer(tmp_path: Path) -> None:
    """Also when the writer is killed, and while the reader hangs."""
    with Node(tmp_path / "data", *NO_LAKE) as node:
        reader = processes(node)["reader"]
        os.kill(reader, signal.SIGSTOP)
        node.kill()
        eventually(lambda: not Path(f"/proc/{reader}/stat").exists() or _is_zombie(reader))


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_signal_to_every_process_stops_a_node_in_order(tmp_path: Path) -> None:
    """As Ctrl-C in a terminal and systemd do."""
    with Node(tmp_path / "data", *NO_LAKE) as node:
        sender = Sender(node)
        eventually(lambda: sender.count > 50)
        count = sender.stop()
        eventually(lambda: sql(node, "SELECT count(*) FROM logs") == [[count]])
        reader = processes(node)["reader"]
        os.kill(reader, signal.SIGTERM)
        os.kill(reader, signal.SIGINT)
        assert node.stop() == 0
        (line,) = (line for line in node.errors().splitlines() if '"stopped"' in line)
        facts = json.loads(line)
        assert facts["hot_rows"] == count


def test_the_writer_loads_no_query_engine(tmp_path: Path) -> None:
    with Node(tmp_path / "data", *NO_LAKE) as node:
        mapped = Path(f"/proc/{node.process.pid}/maps").read_text()
        for library in ("libarrow", "datafusion"):
            assert library not in mapped
        mapped = Path(f"/proc/{processes(node)['reader']}/maps").read_text()
        assert "libarrow" in mapped
        assert "cygrpc" not in mapped


def test_a_node_that_only_receives_has_no_reader(tmp_path: Path) -> None:
    off = (*NO_LAKE, "--set", "hot.enabled=false", "--set", "serve.enabled=false")
    with Node(tmp_path / "data", *off) as node:
        sender = Sender(node)
        eventually(lambda: sender.count > 20)
        sender.stop()
        children = Path(f"/proc/{node.process.pid}/task/{node.process.pid}/children").read_text()
        assert children.split() == []
        assert node.stop() == 0
