"""A real API on a real port, over a log and a hot tier in this process, without Spark."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import uvloop

from frazil.config import Config, load
from frazil.disk import RealDisk
from frazil.embedded import Embedded
from frazil.httpd import Auth
from frazil.ingest import OtlpPorts
from frazil.lake import Lake
from frazil.log import Log
from frazil.model import Clock, SystemClock, SystemRand
from frazil.node import addresses_of, writer_rates
from frazil.reader.node_rules import rules_of_node
from frazil.rules import RuleRunner
from frazil.serve import ApiServer, NodeContext, reader_rates
from frazil.status import Uptime
from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs
from tests.serve.open_rooms import no_groups, status_in_this_process

START_S = 120
ANSWER_S = 60
LOOKS_MAX = 2000
NO_LAKE = {"lake": {"enabled": False}}
PORTS = {
    "ingest": {"grpc_port": 0, "http_port": 0},
    "serve": {"http_port": 0},
    "kafka": {"port": 0},
    "flight": {"port": 0},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json["error"]["message"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """An open API, and what is behind it."""

    api: ApiServer
    port: int
    rooms: NodeContext
    embedded: Embedded
    loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Said:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        sent = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        given = {name.lower(): value for name, value in response.getheaders()}
        return Said(status=response.status, headers=given, body=content)

    def waiting_bytes(self) -> int:
        """Bytes of responses in this process that were not read yet."""

        async def look() -> int:
            connections: set[Any] = self.api._port._connections.active
            return sum(each.transport._inner.get_write_buffer_size() for each in connections)

        return asyncio.run_coroutine_threadsafe(look(), self.loop).result(ANSWER_S)

    def sql(self, text: str, **more: Any) -> Said:
        return self.ask("POST", "/api/v1/sql", {"sql": text, **more})


def get(there: Served, path: str, **parameters: Any) -> Any:
    """The answer to a question, which must be one."""
    said = there.ask("GET", f"/api/v1/{path}?{urlencode(parameters, doseq=True)}")
    assert said.status == 200, said.body
    return said.json


def settings(folder: Path, **changed: dict[str, Any]) -> Config:
    rooms = {**NO_LAKE, **PORTS, "data": str(folder)}
    for room, values in changed.items():
        rooms[room] = {**rooms.get(room, {}), **values}  # type: ignore[dict-item]
    return load(None, rooms)


async def accept(listener: socket.socket, api: ApiServer) -> None:
    """Accept connections for the API, as the writer of a node does."""
    with listener:
        while True:
            accepted, _ = await asyncio.get_running_loop().sock_accept(listener)
            api.adopt(accepted)


def open_rules_of(
    config: Config, log: Log, embedded: Embedded, clock: Clock, stack: ExitStack
) -> RuleRunner | None:
    runner = rules_of_node(config, log, embedded, clock=clock)
    if runner is not None:
        stack.callback(runner.close)
        runner.start()
    return runner


@contextmanager
def served(folder: Path, **changed: dict[str, Any]) -> Iterator[Served]:
    """Open a log, the hot tier over it, and both kinds of port on an event loop of their own. A
    lake does nothing by itself."""
    config = settings(folder, **changed)
    clock, rand, disk = SystemClock(), SystemRand(), RealDisk(folder)
    access = Auth.load(config.ingest)
    loop = uvloop.new_event_loop()
    tasks: list[asyncio.Task[None]] = []
    thread = threading.Thread(target=loop.run_forever, name="served")
    thread.start()

    def on_loop(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(START_S)

    async def open_api(rooms: NodeContext) -> tuple[ApiServer, int]:
        api = ApiServer(rooms, config.serve, config.ingest, access)
        listener = socket.create_server((config.ingest.host, 0), backlog=1024)
        listener.setblocking(False)
        tasks.append(loop.create_task(accept(listener, api)))
        return api, int(listener.getsockname()[1])

    try:
        with (
            Log.open(disk, config.log, clock=clock, rand=rand) as log,
            ExitStack() as stack,
        ):
            lake = None
            if config.lake.enabled:
                lake = Lake.open(log, folder, config.lake, clock=clock, rand=rand, auto_flush=False)
                stack.callback(lake.close)
            embedded = stack.enter_context(Embedded.over(log, disk, config, clock=clock, lake=lake))
            otlp = on_loop(OtlpPorts.open(log, config.ingest, access, clock=clock, rand=rand))
            uptime = Uptime(clock, writer_rates(clock))
            rooms = NodeContext(
                data=str(folder),
                disk=disk,
                log=log,
                otlp=addresses_of(otlp),
                writer_status=status_in_this_process(log, otlp, uptime),
                consumer_groups=no_groups,
                kafka=config.kafka,
                log_config=config.log,
                lake_topics=config.lake.topics,
                rates=reader_rates(clock),
                tier=embedded.tier,
                sql=embedded.sql,
                statements=embedded.statements,
                pipes=embedded.pipes,
                connectors=embedded.connectors,
                tables=embedded.tables,
                lake=lake,
                loader=embedded.loader,
                rules=open_rules_of(config, log, embedded, clock, stack),
                clock=clock,
            )
            api, port = on_loop(open_api(rooms))
            try:
                yield Served(api=api, port=port, rooms=rooms, embedded=embedded, loop=loop)
            finally:
                loop.call_soon_threadsafe(tasks[0].cancel)
                on_loop(api.close(5))
                on_loop(otlp.close(5))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def fill(served: Served, count: int, *, size: int = 100) -> None:
    """Store logs over OTLP, and wait until they are visible."""
    port = served.rooms.otlp.http_port
    for begin in range(0, count, 1000):
        records = [
            log_record(number, event_name=f"{number}".zfill(size))
            for number in range(begin, min(count, begin + 1000))
        ]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
        connection.request(
            "POST", "/v1/logs", logs(*records), {"Content-Type": "application/x-protobuf"}
        )
        assert connection.getresponse().status == 200
        connection.close()
    for _ in range(LOOKS_MAX):
        if served.embedded.sql("SELECT count(*) FROM logs").fetchall() == [(count,)]:
            return
        served.rooms.clock.sleep(0.01)
    raise AssertionError(f"{count} logs did not become visible")
