"""Clients that send numbered records and demo traffic, and a ledger of acknowledged records.

Each record has a unique id. A request without a response is sent again, with the same bytes, until
it is acknowledged. Some are given up instead: their outcome stays unknown. Some acknowledged ones
are sent again: they must not be stored twice.
"""

from __future__ import annotations

import http.client
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import grpc
from google.protobuf import message_factory

from frazil.demo import Export, Traffic
from frazil.errors import Unavailable
from frazil.ingest.otlp.messages import REQUESTS
from frazil.model import Signal, SystemClock
from frazil.otlp_client import ExportResult, OtlpClient, OtlpTarget
from tests.clients.node import Node

SERVICE = "torture"
ID = "chk.id"
ROWS = 4
"""Rows per numbered request."""
WAYS = ("grpc", "http")
TIMEOUT_S = 30
PAUSE_S = 0.1
"""Mean pause between two requests of one client."""
RETRY_S = 0.1
"""Pause between two attempts."""
GIVE_UP_CHANCE = 0.15
AGAIN_CHANCE = 0.05
REMEMBERED = 4
"""Acknowledged requests that may be repeated."""
DEMO_RATE = 2.0
DEMO_TICK_S = 0.5
DEMO_BEHIND_NS_MAX = 10**9
DEMO_PATIENCE_S = 300.0
"""A node may be down for as long as a cycle takes."""
DEMO_TRIES_MAX = 600
REPEATABLE = frozenset({408, 429, 502, 503, 504})
GRPC_REPEATABLE = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)


@dataclass(slots=True)
class Sent:
    """The outcomes of one client's requests, by number."""

    signal: Signal
    count: int = 0
    """Numbers below this were sent."""
    acknowledged: set[int] = field(default_factory=set)
    maybe: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Ledger:
    """Outcomes of all clients. Each client thread writes its own entry; any thread may read."""

    senders: dict[str, Sent] = field(default_factory=dict)
    demo: dict[Signal, int] = field(default_factory=lambda: dict.fromkeys(Signal, 0))
    """Acknowledged demo records."""
    fired: Counter[str] = field(default_factory=Counter)
    problems: deque[str] = field(default_factory=lambda: deque(maxlen=1000))

    def acknowledged_rows(self, signal: Signal) -> int:
        """Return the number of numbered rows that must be stored."""
        mine = [sent for sent in self.senders.values() if sent.signal is signal]
        return ROWS * sum(len(sent.acknowledged) for sent in mine)


def id_of(sender: str, number: int, row: int) -> str:
    return f"{sender}/{number}/{row}"


def parts_of(identity: str) -> tuple[str, int, int]:
    """Return sender, number and row."""
    sender, number, row = identity.split("/")
    return sender, int(number), int(row)


def body_of(signal: Signal, sender: str, number: int, now_ns: int) -> bytes:
    """Return a request of `ROWS` records. Retries reuse its bytes: the log dedups by digest."""
    request: Any = message_factory.GetMessageClass(REQUESTS[signal])()
    resources = {
        Signal.LOGS: "resource_logs",
        Signal.TRACES: "resource_spans",
        Signal.METRICS: "resource_metrics",
    }[signal]
    resource = getattr(request, resources).add()
    resource.resource.attributes.add(key="service.name").value.string_value = SERVICE
    scope = getattr(resource, resources.replace("resource", "scope")).add()
    scope.scope.name = sender
    for row in range(ROWS):
        record = _record(signal, scope, now_ns + row)
        record.attributes.add(key=ID).value.string_value = id_of(sender, number, row)
    encoded: bytes = request.SerializeToString()
    return encoded


def _record(signal: Signal, scope: Any, at_ns: int) -> Any:
    if signal is Signal.LOGS:
        return scope.log_records.add(time_unix_nano=at_ns, severity_number=9)
    if signal is Signal.TRACES:
        times = {"start_time_unix_nano": at_ns, "end_time_unix_nano": at_ns + 1}
        ids = {"trace_id": at_ns.to_bytes(16, "big"), "span_id": at_ns.to_bytes(8, "big")}
        return scope.spans.add(name="numbered", **times, **ids)
    return scope.metrics.add(name="numbered").gauge.data_points.add(as_int=1, time_unix_nano=at_ns)


class Load:
    """All clients, each in a thread. Owned by the run's thread."""

    def __init__(self, node: Node, seed: int) -> None:
        self.ledger = Ledger()
        self._node = node
        self._clock = SystemClock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run_demo, args=(seed,))]
        for signal in Signal:
            for way in WAYS:
                name = f"{signal.name.lower()}-{way}"
                self.ledger.senders[name] = Sent(signal)
                arguments = (name, way, Random(f"{seed} {name}"))
                self._threads.append(threading.Thread(target=self._run, args=arguments))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop sending, and wait until all requests are acknowledged or given up."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, name: str, way: str, chance: Random) -> None:
        sent = self.ledger.senders[name]
        connection = (GrpcConnection if way == "grpc" else HttpConnection)(self._node, sent.signal)
        before: deque[bytes] = deque(maxlen=REMEMBERED)
        while not self._stop.is_set():
            number, body = sent.count, body_of(sent.signal, name, sent.count, self._now_ns())
            sent.count += 1
            if self._deliver(connection, body, chance):
                sent.acknowledged.add(number)
                before.append(body)
            else:
                sent.maybe.add(number)
            if before and chance.random() < AGAIN_CHANCE:
                self.ledger.fired["again"] += connection.send(chance.choice(before), self._complain)
            self._stop.wait(chance.uniform(0, 2 * PAUSE_S))
        connection.close()

    def _deliver(self, connection: Connection, body: bytes, chance: Random) -> bool:
        """Send until acknowledged or given up. Return True when acknowledged."""
        while not connection.send(body, self._complain):
            if chance.random() < GIVE_UP_CHANCE:
                self.ledger.fired["given_up"] += 1
                return False
            self.ledger.fired["repeated"] += 1
            self._clock.sleep(RETRY_S)
        return True

    def _run_demo(self, seed: int) -> None:
        """Send demo traffic as `frazil demo` does."""
        target = OtlpTarget(url=f"http://127.0.0.1:{self._node.http_port}")
        sender = OtlpClient(target, clock=self._clock, give_up_s=DEMO_PATIENCE_S)
        traffic = Traffic(Random(seed), start_ns=self._now_ns(), rate=DEMO_RATE)
        signals = {signal.path.rpartition("/")[2]: signal for signal in Signal}
        try:
            while not self._stop.wait(DEMO_TICK_S):
                for export in (*traffic.advance(self._now_ns()), *traffic.flush()):
                    answer = self._send_demo(sender, export)
                    if answer.refused is not None or answer.rejected_count:
                        self._complain(f"the demo's {export.signal}: {answer}")
                    self.ledger.demo[signals[export.signal]] += export.record_count
                traffic.skip(self._now_ns() - DEMO_BEHIND_NS_MAX)
        except Unavailable as error:
            self._complain(f"the demo gave up: {error}")
        finally:
            sender.close()

    def _send_demo(self, sender: OtlpClient, export: Export) -> ExportResult:
        """Send, also when the node is down at the first request, where `frazil demo` gives up."""
        for _ in range(DEMO_TRIES_MAX):
            with suppress(Unavailable):
                return sender.send(export.signal, export.body)
            self._clock.sleep(RETRY_S)
        return sender.send(export.signal, export.body)

    def _complain(self, problem: str) -> None:
        self.ledger.problems.append(problem)

    def _now_ns(self) -> int:
        return self._clock.wall_ms() * 10**6


Complain = Callable[[str], None]


class HttpConnection:
    """An HTTP connection that is reopened after an error."""

    def __init__(self, node: Node, signal: Signal) -> None:
        self._path = signal.path
        self._connection = http.client.HTTPConnection(
            "127.0.0.1", node.http_port, timeout=TIMEOUT_S
        )

    def send(self, body: bytes, complain: Complain) -> bool:
        """Send once. Return True when the node acknowledged the request."""
        headers = {"Content-Type": "application/x-protobuf"}
        try:
            self._connection.request("POST", self._path, body, headers)
            answer = self._connection.getresponse()
            response = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return False
        if answer.status == http.HTTPStatus.OK and not response:
            return True
        if answer.status not in REPEATABLE:
            complain(f"{self._path}: {answer.status} {response[:200]!r}")
        return False

    def close(self) -> None:
        self._connection.close()


class GrpcConnection:
    """A gRPC channel that is reopened after an error: its own reconnect backoff is too long."""

    def __init__(self, node: Node, signal: Signal) -> None:
        self._target = f"127.0.0.1:{node.grpc_port}"
        self._method = signal.method
        self._channel: grpc.Channel | None = None

    def send(self, body: bytes, complain: Complain) -> bool:
        """Send once. Return True when the node acknowledged the request."""
        if self._channel is None:
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
            self._channel = grpc.insecure_channel(self._target, options=options)
        try:
            response = self._channel.unary_unary(self._method)(body, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            self.close()
            if error.code() not in GRPC_REPEATABLE:
                complain(f"{self._method}: {error.code()} {error.details()}")
            return False
        if response:
            complain(f"{self._method}: {response[:200]!r}")
        return True

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


Connection = HttpConnection | GrpcConnection
