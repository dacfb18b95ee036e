"""An open Kafka port, and a client that sends it any bytes."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from frazil.disk import RealDisk
from frazil.httpd import Auth
from frazil.kafka import KafkaPort, KafkaUse
from frazil.kafka.produce.otlp_batches import OtlpIntake
from frazil.kafka.wire.headers import decode_response, encode_request
from frazil.kafka.wire.schema import KafkaMessage
from frazil.log import Log
from frazil.model import SystemClock
from frazil.settings import KafkaPortConfig, LogConfig

TIMEOUT_S = 30

R = TypeVar("R", bound=KafkaMessage)


class Client:
    """A connection. Requests and responses can be sent and read apart."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._number = 0

    def send(self, request: KafkaMessage, version: int) -> None:
        self._number += 1
        self.socket.sendall(b"".join(encode_request(request, version, self._number, "test")))

    def receive(self, kind: type[R], version: int) -> tuple[int, R]:
        """Return the next response, with the number of its request."""
        return decode_response(kind, version, self.frame())

    def frame(self) -> bytes:
        return self.bytes(int.from_bytes(self.bytes(4), "big"))

    def bytes(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("closed by the port")
            data += more
        return data

    def is_closed(self) -> bool:
        """Whether the port closes the connection."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def ask(self, kind: type[R], request: KafkaMessage, version: int) -> R:
        self.send(request, version)
        number, response = self.receive(kind, version)
        assert number == self._number
        return response

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


class OpenedPort:
    """A port with an event loop in a thread of its own."""

    def __init__(
        self,
        log: Log,
        disk: RealDisk,
        config: KafkaPortConfig,
        auth: Auth,
        otlp: OtlpIntake | None = None,
    ) -> None:
        self.log = log
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._kafka: KafkaPort = self._run(
            KafkaPort.open(
                log,
                disk,
                config,
                "127.0.0.1",
                auth,
                clock=SystemClock(),
                rand=random.SystemRandom(),
                otlp=otlp,
            )
        )
        self.port = self._kafka.port

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(TIMEOUT_S)

    def use(self) -> KafkaUse:
        """What the port reports, after a turn of its loop."""

        async def use() -> KafkaUse:
            await asyncio.sleep(0)
            return self._kafka.use()

        found: KafkaUse = self._run(use())
        return found

    def client(self) -> Client:
        return Client(self.port)

    def close(self) -> None:
        self._run(self._kafka.close(1.0))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(TIMEOUT_S)
        self.loop.close()


@contextmanager
def opened(
    folder: Path,
    *,
    log_config: LogConfig | None = None,
    auth: Auth | None = None,
    otlp: Callable[[Log], OtlpIntake] | None = None,
    **settings: Any,
) -> Iterator[OpenedPort]:
    """Open a port on a free number, over the log in a folder."""
    disk = RealDisk(folder)
    config = KafkaPortConfig(port=0, **settings)
    clock, rand = SystemClock(), random.SystemRandom()
    with Log.open(disk, log_config, clock=clock, rand=rand) as log:
        intake = None if otlp is None else otlp(log)
        port = OpenedPort(log, disk, config, auth or Auth(), intake)
        try:
            yield port
        finally:
            port.close()
