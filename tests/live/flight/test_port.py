"""The port belongs to the reader, as that for Jaeger does: it ends with one, and the next one opens
it again."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import grpc
from pyarrow import flight

from tests.clients.node import FREE_PORTS, Node
from tests.live.test_node import up
from tests.live.test_processes import NO_LAKE, eventually, processes
from tests.serve.flight.commands import descriptor, fetch, field
from tests.serve.jaeger_storage.opened import connected as jaeger_client

COUNT = 900_000
QUERY = field(1, f"SELECT value FROM generate_series(1, {COUNT})")


def connected(node: Node) -> Any:
    return flight.connect(f"grpc://127.0.0.1:{node.flight_port}")


def is_open(node: Node) -> bool:
    try:
        with connected(node) as client:
            return bool(fetch(client, "CommandGetCatalogs").num_rows)
    except (flight.FlightUnavailableError, flight.FlightInternalError):
        return False


def answers_jaeger(port: int) -> bool:
    with jaeger_client(port) as client:
        try:
            return not client.one("GetServices", b"").services
        except grpc.RpcError:
            return False


def test_a_successor_opens_the_port_again(tmp_path: Path) -> None:
    """After a kill in the middle of a stream the same port answers, also for an old ticket; the
    port of a node that has stopped is free."""
    with Node(tmp_path / "data", *NO_LAKE, "--jaeger-port", "0") as node:
        jaeger_port = node.jaeger_port
        with connected(node) as client:
            info = client.get_flight_info(descriptor("CommandStatementQuery", QUERY))
            (endpoint,) = info.endpoints
            client.do_get(endpoint.ticket).read_chunk()
            os.kill(processes(node)["reader"], signal.SIGKILL)
        eventually(lambda: is_open(node))
        assert jaeger_port is not None
        eventually(lambda: answers_jaeger(jaeger_port))
        with connected(node) as client:
            assert client.do_get(endpoint.ticket).read_all().num_rows == COUNT
        assert node.stop() == 0
        node.start()
        assert is_open(node)


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    """A node does not start without the port, and says which setting to change."""
    with Node(tmp_path / "first", *NO_LAKE) as node:
        ports = [*FREE_PORTS, "--flight-port", str(node.flight_port)]
        failed = up("--data", str(tmp_path / "second"), *ports, *NO_LAKE)
    assert failed.returncode == 1
    assert f"Flight SQL cannot listen on 127.0.0.1 port {node.flight_port}" in failed.stderr
    assert "flight.port" in failed.stderr
