"""A proxy between a client and a node that injects faults into chosen requests.

A request is forwarded, or refused before any byte of it reaches the node, or its response is lost:
the node has responded completely, and the client receives no byte of it. The proxy only looks for
the boundaries of requests and responses, in HTTP/1.1 and in HTTP/2 for gRPC.
"""

from __future__ import annotations

import contextlib
import enum
import select
import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import httptools

READ_BYTES = 256 * 1024
IDLE_SECONDS_MAX = 120
"""Socket timeout, so that no thread outlives its test for long."""

PREFACE_BYTES = 24
"""Sent by an HTTP/2 client before its first frame."""
FRAME_HEADER_BYTES = 9
HEADERS, RST_STREAM = 0x1, 0x3
ANSWERING = (0x0, HEADERS)
"""Frames that may carry END_STREAM: DATA and HEADERS."""
END_STREAM = 0x1

BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"


class Fault(enum.Enum):
    """What happens to one request."""

    FORWARD = "forward"
    REFUSE = "refuse"
    LOSE = "lose"


class Flaky(socketserver.ThreadingTCPServer):
    """One port in front of one port of a node. Owned by the test; one thread per connection.

    Each request takes the next of `faults`; after the last one all are forwarded. `on_lost` is
    called after the node has responded and before the client can notice the loss: a test may kill
    the node there. `gateway` makes the proxy respond with 502 instead of closing the connection, as
    a load balancer does; only for HTTP.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        node_port: int,
        protocol: Literal["http", "grpc"],
        faults: Iterable[Fault] = (),
        *,
        on_lost: Callable[[], None] | None = None,
        gateway: bool = False,
    ) -> None:
        super().__init__(("127.0.0.1", 0), Line)
        self.node_port = node_port
        self.protocol = protocol
        self.port = int(self.server_address[1])
        self.gateway = gateway
        self.done: Counter[Fault] = Counter()
        """Count of requests by fault."""
        self.lost: list[bytes] = []
        """The responses that were dropped."""
        self._faults = iter(faults)
        self._on_lost = on_lost
        self._turn = threading.Lock()
        self._serving = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._serving.start()

    def next_fault(self) -> Fault:
        with self._turn:
            fault = next(self._faults, Fault.FORWARD)
            if fault is not Fault.LOSE:
                self.done[fault] += 1
            return fault

    def lose(self, answer: bytes) -> None:
        """Drop a response and count it."""
        with self._turn:
            self.lost.append(answer)
            self.done[Fault.LOSE] += 1
        if self._on_lost is not None:
            self._on_lost()

    def server_close(self) -> None:
        self.shutdown()
        self._serving.join()
        super().server_close()


class Line(socketserver.BaseRequestHandler):
    """A client's connection and the one to the node behind it. Both end together."""

    server: Flaky
    request: socket.socket

    def handle(self) -> None:
        address = ("127.0.0.1", self.server.node_port)
        # Peers that disconnect are expected here; the rest is dropped.
        with (
            contextlib.suppress(OSError),
            socket.create_connection(address, IDLE_SECONDS_MAX) as node,
        ):
            self.request.settimeout(IDLE_SECONDS_MAX)
            for end in (self.request, node):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            relay = relay_http if self.server.protocol == "http" else relay_grpc
            relay(self.server, self.request, node)


def relay_http(flaky: Flaky, client: socket.socket, node: socket.socket) -> None:
    """Relay requests and responses in turn. Returning closes both connections."""
    while request := read_message(client, httptools.HttpRequestParser):
        fault = flaky.next_fault()
        answer = b""
        if fault is not Fault.REFUSE:
            node.sendall(request)
            answer = read_message(node, httptools.HttpResponseParser)
        if fault is Fault.LOSE and answer:
            flaky.lose(answer)
            answer = b""
        if not answer and flaky.gateway:
            answer = BAD_GATEWAY
        if not answer:
            return
        client.sendall(answer)


class _Whole:
    """Called by the parser when a message is complete."""

    def __init__(self) -> None:
        self.is_whole = False

    def on_message_complete(self) -> None:
        self.is_whole = True


def read_message(
    end: socket.socket,
    parser: type[httptools.HttpRequestParser] | type[httptools.HttpResponseParser],
) -> bytes:
    """Return one complete message, or nothing when the peer has closed."""
    whole = _Whole()
    parsing = parser(whole)
    message = b""
    while not whole.is_whole:
        data = end.recv(READ_BYTES)
        if not data:
            return b""
        message += data
        parsing.feed_data(data)
    return message


def relay_grpc(flaky: Flaky, client: socket.socket, node: socket.socket) -> None:
    """A stream is a request and its response; many share a connection."""
    requests, responses = Frames(PREFACE_BYTES), Frames()
    losing: dict[int, bytes] = {}
    last_stream = 0
    while readable := select.select([client, node], [], [], IDLE_SECONDS_MAX)[0]:
        if client in readable:
            for frame in requests.read(client):
                if frame.kind == HEADERS and frame.stream > last_stream:
                    last_stream = frame.stream
                    fault = flaky.next_fault()
                    if fault is Fault.REFUSE:
                        return
                    if fault is Fault.LOSE:
                        losing[frame.stream] = b""
                node.sendall(frame.data)
        if node in readable:
            for frame in responses.read(node):
                if frame.stream not in losing:
                    client.sendall(frame.data)
                    continue
                losing[frame.stream] += frame.data
                if frame.is_last:
                    flaky.lose(losing[frame.stream])
                    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One HTTP/2 frame: length (3 bytes), kind (1), flags (1), stream (4), payload."""

    kind: int
    flags: int
    stream: int
    data: bytes

    @property
    def is_last(self) -> bool:
        """True if it ends its side of the stream."""
        ends = self.kind in ANSWERING and self.flags & END_STREAM
        return bool(ends) or self.kind == RST_STREAM


class Frames:
    """Splits the bytes of one direction into frames; the preface is a separate frame."""

    def __init__(self, preface_bytes: int = 0) -> None:
        self._preface_bytes = preface_bytes
        self._waiting = b""

    def read(self, end: socket.socket) -> Iterator[Frame]:
        """Return the complete frames. Raises `ConnectionError` when the peer has closed."""
        data = end.recv(READ_BYTES)
        if not data:
            raise ConnectionError("the connection has ended")
        self._waiting += data
        if self._preface_bytes:
            if len(self._waiting) < self._preface_bytes:
                return
            yield Frame(kind=-1, flags=0, stream=0, data=self._take(self._preface_bytes))
            self._preface_bytes = 0
        while len(self._waiting) >= FRAME_HEADER_BYTES:
            size = FRAME_HEADER_BYTES + int.from_bytes(self._waiting[:3], "big")
            if len(self._waiting) < size:
                return
            kind, flags = self._waiting[3], self._waiting[4]
            stream = int.from_bytes(self._waiting[5:9], "big") & 0x7FFFFFFF
            yield Frame(kind=kind, flags=flags, stream=stream, data=self._take(size))

    def _take(self, size: int) -> bytes:
        taken, self._waiting = self._waiting[:size], self._waiting[size:]
        return taken
