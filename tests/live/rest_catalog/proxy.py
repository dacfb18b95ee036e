"""A proxy between us and a REST catalog that does harm to exactly the requests it is told to."""

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

Ask = Callable[[bytes], bytes]
"""Hands a request to the catalog, and gives its whole answer."""
Fault = Callable[[bytes, Ask], bytes]
"""What becomes of a request: gives what the client gets to hear, and nothing to cut him off."""


def refuse(request: bytes, ask: Ask) -> bytes:
    """Cut off before any byte reaches the catalog."""
    return b""


def lose(request: bytes, ask: Ask) -> bytes:
    """The catalog does it, and the client never hears of that."""
    assert ask(request)
    return b""


def twice(request: bytes, ask: Ask) -> bytes:
    """As a gateway that lost the first answer and asks again by itself."""
    assert ask(request)
    return ask(request)


def say(status: int, *, is_done: bool = False) -> Fault:
    """The catalog, or somebody before it, answers so; with `is_done` after it was done."""

    def fault(request: bytes, ask: Ask) -> bytes:
        if is_done:
            assert ask(request)
        return answer(status)

    return fault


def answer(status: int, body: bytes | None = None) -> bytes:
    """An error as Iceberg's specification has it, or any other text."""
    error = {"message": f"status {status} on purpose", "type": "OnPurpose", "code": status}
    text = json.dumps({"error": error}).encode() if body is None else body
    head = f"HTTP/1.1 {status} On Purpose\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


class RestProxy(socketserver.ThreadingTCPServer):
    """One port in front of a catalog. Owned by the test; one thread per connection."""

    daemon_threads = True

    def __init__(self, catalog_port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Line)
        self.catalog_port = catalog_port
        self.uri = f"http://127.0.0.1:{self.server_address[1]}"
        self.asked: list[bytes] = []
        """The first line of every request."""
        self._faults: dict[bytes, deque[Fault]] = {}
        self._turn = threading.Lock()
        self._serving = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._serving.start()

    def hurt(self, begin: str, *faults: Fault) -> None:
        """What happens to the next requests that begin so, one after the other."""
        with self._turn:
            self._faults[begin.encode()] = deque(faults)

    def is_done(self) -> bool:
        """Has all that was to be hurt been asked for?"""
        with self._turn:
            return not any(self._faults.values())

    def fault_of(self, request: bytes) -> Fault | None:
        with self._turn:
            self.asked.append(request.partition(b"\r\n")[0])
            for begin, faults in self._faults.items():
                if faults and request.startswith(begin):
                    return faults.popleft()
        return None

    def ask(self, request: bytes) -> bytes:
        address = ("127.0.0.1", self.catalog_port)
        with socket.create_connection(address, IDLE_SECONDS_MAX) as catalog:
            catalog.sendall(request)
            if request.startswith(b"HEAD"):  # the length it names is that of nothing
                return _head(catalog)
            return read_message(catalog, httptools.HttpResponseParser)

    def server_close(self) -> None:
        self.shutdown()
        self._serving.join()
        super().server_close()


def _head(catalog: socket.socket) -> bytes:
    said = b""
    while not said.endswith(b"\r\n\r\n"):
        data = catalog.recv(READ_BYTES)
        if not data:
            return b""
        said += data
    return said


class _Line(socketserver.BaseRequestHandler):
    """One connection of a client."""

    server: RestProxy
    request: socket.socket

    def handle(self) -> None:
        self.request.settimeout(IDLE_SECONDS_MAX)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):  # peers that go away are what this is about
            while request := read_message(self.request, httptools.HttpRequestParser):
                fault = self.server.fault_of(request)
                ask = self.server.ask
                said = ask(request) if fault is None else fault(request, ask)
                if not said:
                    return
                self.request.sendall(said)
