"""Clients that send numbered logs over gRPC and HTTP. No request is sent twice: none may fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from google.protobuf import message_factory

from frazil.ingest.otlp.messages import REQUESTS
from frazil.model import Signal
from tests.clients.node import Node
from tests.torture.node.load import Connection, GrpcConnection, HttpConnection

ROWS = 100
"""Logs per request."""
INTERVAL_S = 0.1
"""Between two requests of one client: four clients send up to 4,000 logs a second."""
SENDERS: dict[str, Callable[[Node, Signal], Connection]] = {
    "grpc-1": GrpcConnection,
    "grpc-2": GrpcConnection,
    "http-1": HttpConnection,
    "http-2": HttpConnection,
}
BASE_NS = 1_790_000_000_000_000_000
"""The time of the first log of each client; the number of a log is added."""


def body_of(sender: str, first: int) -> bytes:
    """Return a request of `ROWS` logs with consecutive numbers."""
    request: Any = message_factory.GetMessageClass(REQUESTS[Signal.LOGS])()
    resource = request.resource_logs.add()
    resource.resource.attributes.add(key="service.name").value.string_value = sender
    scope = resource.scope_logs.add()
    for number in range(first, first + ROWS):
        record = scope.log_records.add(time_unix_nano=BASE_NS + number, severity_number=9)
        record.body.string_value = f"log {number} of {sender}"
    encoded: bytes = request.SerializeToString()
    return encoded


class Load:
    """All clients, each in a thread."""

    def __init__(self, node: Node) -> None:
        self.row_counts = dict.fromkeys(SENDERS, 0)
        """Acknowledged logs by client. Each thread writes its own."""
        self.failures: list[str] = []
        self.slowest_ack_s = 0.0
        self._node = node
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(name,)) for name in SENDERS]
        for thread in self._threads:
            thread.start()

    def _run(self, name: str) -> None:
        connection = SENDERS[name](self._node, Signal.LOGS)
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = max(due + INTERVAL_S, time.monotonic() - INTERVAL_S)
            body = body_of(name, self.row_counts[name])
            begin = time.monotonic()
            if not connection.send(body, self.failures.append):
                self.failures.append(f"{name}: log {self.row_counts[name]} was not acknowledged")
                break  # its outcome is unknown: the numbers of later ones would not fit
            self.slowest_ack_s = max(self.slowest_ack_s, time.monotonic() - begin)
            self.row_counts[name] += ROWS
        connection.close()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
