"""An OTLP/gRPC port on a real log, in this process, and a client for it."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import grpc
import uvloop
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from frazil.disk import RealDisk
from frazil.httpd.auth import Auth
from frazil.ingest.admission import IN_FLIGHT, Gate
from frazil.ingest.grpc.errors import DETAILS_KEY
from frazil.ingest.grpc.server import OtlpGrpc
from frazil.ingest.otlp.warm_up import warm
from frazil.ingest.receiver import Receiver
from frazil.log import Log
from frazil.model import Signal, SystemClock
from frazil.settings import IngestConfig

T = TypeVar("T")
LoopKind = Literal["asyncio", "uvloop"]
LOOPS: dict[LoopKind, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}

WAIT_S = 60
"""Longer than any call here takes."""
POLL_S = 0.02
IDLE_TASKS = 3
"""One or two of gRPC that wait for the next call, and the one that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The response to a call. Without a `Status` it was gRPC itself that refused."""

    code: grpc.StatusCode
    text: str = ""
    response: bytes = b""
    status: Status | None = None

    @property
    def retry_after_ms(self) -> int | None:
        """Return the retry hint, or None."""
        if self.status is None or not self.status.details:
            return None
        (detail,) = self.status.details
        info = RetryInfo()
        assert detail.Unpack(info)
        wait_ms: int = info.retry_delay.ToMilliseconds()
        return wait_ms


def answer_to(call: Callable[[], bytes]) -> Answer:
    """Make a call and return its response."""
    try:
        return Answer(code=grpc.StatusCode.OK, response=call())
    except grpc.RpcError as error:
        return refusal(error)


def refusal(error: Any) -> Answer:
    trailing = dict(error.trailing_metadata() or ())
    packed = trailing.get(DETAILS_KEY)
    return Answer(
        code=error.code(),
        text=error.details(),
        status=Status.FromString(packed) if packed is not None else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An open port, its log and its gate."""

    otlp: OtlpGrpc
    log: Log
    receiver: Receiver
    loop: asyncio.AbstractEventLoop

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.otlp.port}"

    @property
    def gate(self) -> Gate:
        return self.receiver.gate

    @contextmanager
    def channel(self) -> Iterator[grpc.Channel]:
        options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(self.target, options=options) as channel:
            yield channel

    def send(
        self,
        *messages: bytes,
        method: str = Signal.LOGS.method,
        compression: grpc.Compression | None = None,
        metadata: tuple[tuple[str, str], ...] = (),
    ) -> Answer:
        """Make one call with these messages, as a stream: proper clients send exactly one."""
        with self.channel() as channel:
            call = channel.stream_unary(method)
            return answer_to(
                lambda: call(
                    iter(messages), timeout=WAIT_S, compression=compression, metadata=metadata
                )
            )

    def stored(self, signal: Signal = Signal.LOGS) -> list[bytes]:
        """Return all stored requests of a signal."""
        reader = self.log.reader(signal.topic, "earliest")
        values = []
        while batches := reader.read():
            values += [record.value or b"" for batch in batches for record in batch.records()]
        reader.close()
        return values

    def on_loop(self, work: Callable[[], T]) -> T:
        """Call a function on the event loop."""

        async def do() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(do(), self.loop).result(WAIT_S)

    def close(self, grace_s: float) -> None:
        asyncio.run_coroutine_threadsafe(self.otlp.close(grace_s), self.loop).result(WAIT_S)

    def await_idle(self) -> None:
        """Wait until no call is served and the gate is empty."""
        self.await_tasks(IDLE_TASKS)
        assert self.gate.status().request_count == 0
        assert IN_FLIGHT.value() == 0

    def await_tasks(self, count: int) -> None:
        """Wait until the loop has at most `count` tasks, including the one that counts."""
        eventually(lambda: self.on_loop(lambda: len(asyncio.all_tasks())) <= count)


def eventually(is_true: Callable[[], object]) -> None:
    """Wait until a condition is true, within a bounded time."""
    waited = threading.Event()
    for _ in range(int(WAIT_S / POLL_S)):
        if is_true():
            return
        waited.wait(POLL_S)
    raise AssertionError("it never came true")


@contextmanager
def grpc_edge(
    folder: Path,
    *,
    loop_kind: LoopKind = "uvloop",
    receiver_kind: type[Receiver] = Receiver,
    **settings: Any,
) -> Iterator[Edge]:
    """Open a log and a port on their own event loop. `settings` are those of the config."""
    config = IngestConfig(**{"grpc_port": 0, "http_port": 0, **settings})
    clock, rand = SystemClock(), random.Random(5)
    warm()
    loop = LOOPS[loop_kind]()
    thread = threading.Thread(target=loop.run_forever, name="edge")
    thread.start()
    try:
        with Log.open(RealDisk(folder), clock=clock, rand=rand) as log:
            gate = Gate(config, log.budget, clock, rand)
            receiver = receiver_kind(log, gate, config, clock)
            opening = OtlpGrpc.open(config, Auth.load(config), receiver)
            opened = asyncio.run_coroutine_threadsafe(opening, loop).result(WAIT_S)
            edge = Edge(otlp=opened, log=log, receiver=receiver, loop=loop)
            try:
                yield edge
            finally:
                edge.close(0)
                receiver.close()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
