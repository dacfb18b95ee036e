"""The proxy injects faults into chosen requests."""

from __future__ import annotations

import http.client
import http.server
import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Literal

import grpc
import pytest

from tests.clients.flaky import Fault, Flaky

METHOD = "/chk.Service/Ask"
ANSWER = b"answer" * 10_000
"""Longer than one HTTP/2 frame."""

Protocol = Literal["http", "grpc"]
Ask = Callable[[bytes], bytes | None]


@contextmanager
def http_server(received: list[bytes]) -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", str(len(ANSWER)))
            self.end_headers()
            self.wfile.write(ANSWER)

        def log_message(self, *_: object) -> None:
            """Write no log."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@contextmanager
def grpc_server(received: list[bytes]) -> Iterator[int]:
    def answer(body: bytes, _: object) -> bytes:
        received.append(body)
        return ANSWER

    service = {"Ask": grpc.unary_unary_rpc_method_handler(answer)}
    with ThreadPoolExecutor(2) as workers:
        server = grpc.server(workers)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("chk.Service", service),)
        )
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield port
        server.stop(None).wait()


@contextmanager
def http_client(port: int) -> Iterator[Ask]:
    """Send one request and return True if there was a response; the connection is kept."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(body: bytes) -> bytes | None:
        try:
            connection.request("POST", "/", body)
            response = connection.getresponse()
            answer = response.read()
        except (http.client.HTTPException, ConnectionError):
            connection.close()
            return None
        return answer if response.status == 200 else None

    yield ask
    connection.close()


@contextmanager
def grpc_client(port: int) -> Iterator[Ask]:
    """The same over gRPC. After a failure it opens a new channel with nothing shared: a call right
    after the end of a connection may still be assigned to that, and never be sent."""

    def connect() -> grpc.Channel:
        return grpc.insecure_channel(
            f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)]
        )

    channel = connect()

    def ask(body: bytes) -> bytes | None:
        nonlocal channel
        try:
            return bytes(channel.unary_unary(METHOD)(body, timeout=30))
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE
            channel.close()
            channel = connect()
            return None

    yield ask
    channel.close()


SERVERS = {"http": http_server, "grpc": grpc_server}
CLIENTS = {"http": http_client, "grpc": grpc_client}


@pytest.mark.parametrize(
    ("protocol", "gateway"), [("http", False), ("http", True), ("grpc", False)]
)
def test_each_request_meets_its_planned_fault(protocol: Protocol, gateway: bool) -> None:
    """A refused request never reaches the server; the response to a lost one is dropped."""
    received: list[bytes] = []
    heard_when_lost: list[int] = []
    planned = list(itertools.chain.from_iterable(itertools.product(Fault, repeat=2)))
    heard: list[bool] = []
    with (
        SERVERS[protocol](received) as node_port,
        Flaky(
            node_port,
            protocol,
            planned,
            on_lost=lambda: heard_when_lost.append(len(heard)),
            gateway=gateway,
        ) as flaky,
        CLIENTS[protocol](flaky.port) as ask,
    ):
        for number, fault in enumerate([*planned, Fault.FORWARD]):
            answer = ask(b"%d" % number)
            assert answer == (ANSWER if fault is Fault.FORWARD else None)
            heard.append(answer is not None)
    arrived = [number for number, fault in enumerate(planned) if fault is not Fault.REFUSE]
    assert [int(body) for body in received] == [*arrived, len(planned)]
    assert heard_when_lost == [n for n, fault in enumerate(planned) if fault is Fault.LOSE]
    assert flaky.done == {Fault.FORWARD: 7, Fault.REFUSE: 6, Fault.LOSE: 6}
    assert all(ANSWER[:10_000] in answer for answer in flaky.lost)
    assert len(flaky.lost) == 6


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_requests_to_a_stopped_node_use_up_no_fault(protocol: Protocol) -> None:
    received: list[bytes] = []
    with SERVERS[protocol](received) as node_port, Flaky(1, protocol, [Fault.LOSE]) as flaky:
        with CLIENTS["http"](flaky.port) as ask:
            assert ask(b"0") is None
        assert not flaky.done
        flaky.node_port = node_port
        with CLIENTS[protocol](flaky.port) as ask:
            assert [ask(b"1"), ask(b"2")] == [None, ANSWER]
    assert received == [b"1", b"2"]
