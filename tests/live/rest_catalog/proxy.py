"""A proxy in front of a REST catalog that injects faults into chosen requests."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections import deque
from collections.abc import Callable

import httptools

from tests.clients.flaky import IDLE_SECONDS_MAX, READ_BYTES, read_message

Forward = Callable[[bytes], bytes]
"""Sends a request to the catalog and returns its complete response."""
Fault = Callable[[bytes, Forward], bytes]
"""Returns the response for the client, or nothing to close the connection."""


def refuse(request: bytes, forward: Forward) -> bytes:
    """Close the connection before any byte reaches the catalog."""
    return b""


def lose(request: bytes, forward: Forward) -> bytes:
    """Forward the request, and drop the response."""
    assert forward(request)
    return b""


def twice(request: bytes, forward: Forward) -> bytes:
    """Forward the request twice, like a gateway that lost the first response."""
    assert forward(request)
    return forward(request)


def respond(status: int, *, is_done: bool = False) -> Fault:
    """Respond with a status, with `is_done` after forwarding the request."""

    def fault(request: bytes, forward: Forward) -> bytes:
        if is_done:
            assert forward(request)
        return response(status)

    return fault


def response(status: int, body: bytes | None = None) -> bytes:
    """Return a response with an error as in Iceberg's specification, or with another body."""
    error = {"message": f"status {status} on purpose", "type": "OnPurpose", "code": status}
    text = json.dumps({"error": error}).encode() if body is None else body
    head = f"HTTP/1.1 {status} On Purpose\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


class RestProxy(socketserver.ThreadingTCPServer):
    """One port in front of a catalog. Owned by the test; one thread per connection."""

    daemon_threads = True

    def __init__(self, catalog_port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.catalog_port = catalog_port
        self.uri = f"http://127.0.0.1:{self.server_address[1]}"
        self.request_lines: list[bytes] = []
        """The first line of every request."""
        self._faults: dict[bytes, deque[Fault]] = {}
        self._turn = threading.Lock()
        self._serving = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._serving.start()

    def inject(self, begin: str, *faults: Fault) -> None:
        """Inject faults into the next requests that start with `begin`, one after the other."""
        with self._turn:
            self._faults[begin.encode()] = deque(faults)

    def is_done(self) -> bool:
        """Return True when all faults were injected."""
        with self._turn:
            return not any(self._faults.values())

    def fault_of(self, request: bytes) -> Fault | None:
        with self._turn:
            self.request_lines.append(request.partition(b"\r\n")[0])
            for begin, faults in self._faults.items():
                if faults and request.startswith(begin):
                    return faults.popleft()
        return None

    def forward(self, request: bytes) -> bytes:
        address = ("127.0.0.1", self.catalog_port)
        with socket.create_connection(address, IDLE_SECONDS_MAX) as catalog:
            catalog.sendall(request)
            if request.startswith(b"HEAD"):  # its response has a length but no body
                return _head(catalog)
            return read_message(catalog, httptools.HttpResponseParser)

    def server_close(self) -> None:
        self.shutdown()
        self._serving.join()
        super().server_close()


def _head(catalog: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = catalog.recv(READ_BYTES)
        if not data:
            return b""
        head += data
    return head


class _Connection(socketserver.BaseRequestHandler):
    """One connection of a client."""

    server: RestProxy
    request: socket.socket

    def handle(self) -> None:
        self.request.settimeout(IDLE_SECONDS_MAX)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):  # disconnects are expected here
            while request := read_message(self.request, httptools.HttpRequestParser):
                fault = self.server.fault_of(request)
                forward = self.server.forward
                response = forward(request) if fault is None else fault(request, forward)
                if not response:
                    return
                self.request.sendall(response)
