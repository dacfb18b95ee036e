"""The port belongs to the reader: it ends with one, and the next one opens it again."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from pyarrow import flight

from frazil.model import SystemClock
from tests.clients.node import FREE_PORTS, Node
from tests.live.test_node import up
from tests.serve.flight.commands import descriptor, fetch, field

TRIES_MAX = 3000
QUERY = field(1, "SELECT 7 AS a")


def _sevens(node: Node) -> list[int]:
    with flight.connect(f"grpc://127.0.0.1:{node.flight_port}") as client:
        values: list[int] = fetch(client, "CommandStatementQuery", QUERY)["a"].to_pylist()
        return values


def _reader_pid(node: Node) -> int:
    children = Path(f"/proc/{node.process.pid}/task/{node.process.pid}/children").read_text()
    readers = [
        int(child)
        for child in children.split()
        if b"frazil.reader" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    threads = Path(f"/proc/{node.process.pid}/task").iterdir()
    for thread in () if readers else threads:
        for child in (thread / "children").read_text().split():
            if b"frazil.reader" in Path(f"/proc/{child}/cmdline").read_bytes():
                readers.append(int(child))
    (pid,) = readers
    return pid


def test_a_successor_opens_the_port_again(tmp_path: Path) -> None:
    """After a kill in the middle of a stream the same port answers, also for an old ticket; the
    port of a node that has stopped is free."""
    clock = SystemClock()
    with Node(tmp_path / "data", "--set", "lake.enabled=false") as node:
        client = flight.connect(f"grpc://127.0.0.1:{node.flight_port}")
        text = field(1, "SELECT value FROM generate_series(1, 900000)")
        ticket = _info(client, text).endpoints[0].ticket
        client.do_get(ticket).read_chunk()
        os.kill(_reader_pid(node), signal.SIGKILL)
        for _ in range(TRIES_MAX):
            try:
                assert _sevens(node) == [7]
                break
            except (flight.FlightUnavailableError, flight.FlightInternalError):
                clock.sleep(0.02)
        else:
            pytest.fail("no successor listens")
        with flight.connect(f"grpc://127.0.0.1:{node.flight_port}") as again:
            assert again.do_get(ticket).read_all().num_rows == 900_000
        assert node.stop() == 0
        node.start()
        assert _sevens(node) == [7]


def _info(client: Any, body: bytes) -> Any:
    return client.get_flight_info(descriptor("CommandStatementQuery", body))


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    """A node does not start without the port, and says which setting to change."""
    with Node(tmp_path / "first", "--set", "lake.enabled=false") as node:
        ports = [*FREE_PORTS, "--flight-port", str(node.flight_port)]
        failed = up("--data", str(tmp_path / "second"), *ports, "--set", "lake.enabled=false")
    assert failed.returncode == 1
    assert f"Flight SQL cannot listen on 127.0.0.1 port {node.flight_port}" in failed.stderr
    assert "flight.port" in failed.stderr
