"""The reader's components: opened in the order of the data flow, closed in reverse.

observed log ─> lake ─> hot tier and SQL ─> API, Flight SQL ... until the writer asks to stop
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from frazil import tracing
from frazil.config import Config
from frazil.disk import RealDisk
from frazil.embedded import Embedded
from frazil.folders import open_lake
from frazil.httpd import Auth
from frazil.lake import Lake
from frazil.log import AppendChannel, CommitWaiter, LogOwner, ObservedLog
from frazil.model import NS_PER_MS, Clock, Rand
from frazil.processes import Hello
from frazil.query import preload_workers
from frazil.reader.node_link import NodeLink
from frazil.reader.node_rules import rules_of_node
from frazil.rules import RuleRunner
from frazil.serve import (
    ApiServer,
    FlightPort,
    FlightSource,
    NodeContext,
    reader_checks,
    reader_rates,
)
from frazil.shutdown import Shutdown

logger = logging.getLogger(__name__)

T = TypeVar("T")
Facts = Mapping[str, object]

BEAT_INTERVAL_S = 0.5
RATES_INTERVAL_S = 1.0
TRACES_S = 0.5
"""Share of a stop: sending the node's own spans."""
API_S = 1.0
"""Share of a stop: running API requests. Clients can retry."""
HOT_DIED_CODE = 70
"""Exit code when the hot tier has died: the next reader rebuilds it from the log."""


class Sockets:
    """What the reader inherits from the writer."""

    def __init__(self, log: int, appends: int, commits: int, connections: int) -> None:
        self.log = socket.socket(fileno=log)
        self.appends = socket.socket(fileno=appends)
        self.commits = commits
        self.connections = socket.socket(fileno=connections)
        self.connections.setblocking(False)


async def run(
    hello: Hello, config: Config, link: NodeLink, sockets: Sockets, *, clock: Clock, rand: Rand
) -> None:
    """Serve until the writer asks to stop."""
    async with AsyncExitStack() as opened:
        startup = ReaderStartup(hello, config, link, sockets, clock, rand, opened)
        context = await startup.open_all()
        link.report_ready()
        gc.freeze()  # objects of the start-up live on; scanning them took 8 % of the time
        tasks = [
            asyncio.create_task(_beat(link, context)),
            asyncio.create_task(_read_rates(context)),
        ]
        stop_s = await link.stopped()
        startup.stop.begin(stop_s)
        await asyncio.to_thread(tracing.flush, min(TRACES_S, stop_s))
        for task in tasks:
            task.cancel()
        startup.stop.note(**_hot_rows(context))
    link.report_stopped(startup.stop.facts())


class ReaderStartup:
    """Opens the components in order, reports each, and registers them for closing in reverse."""

    def __init__(
        self,
        hello: Hello,
        config: Config,
        link: NodeLink,
        sockets: Sockets,
        clock: Clock,
        rand: Rand,
        opened: AsyncExitStack,
    ) -> None:
        self._hello = hello
        self._config = config
        self._link = link
        self._sockets = sockets
        self._clock = clock
        self._rand = rand
        self._opened = opened
        self.stop = Shutdown(clock)
        self._folder = Path(config.data).absolute()

    async def open_all(self) -> NodeContext:
        """Open everything. Long work runs in threads: the writer may ask to stop meanwhile."""
        config, sockets = self._config, self._sockets
        if config.hot.enabled:
            preload_workers()  # takes a second, beside everything else
        self._opened.callback(self.stop.done)
        waiter = CommitWaiter(sockets.commits, self._clock)
        owner, appends = LogOwner(sockets.log), AppendChannel(sockets.appends)
        log = ObservedLog(RealDisk(config.data), owner, waiter, appends)
        self._opened.callback(log.close)
        lake = await self._open("lake", partial(self._open_lake, log), _lake_facts)
        embedded = None
        if config.hot.enabled:
            embedded = await self._open("hot", partial(self._open_hot, log, lake), _hot_facts)
        context = NodeContext(
            data=str(self._folder),
            disk=RealDisk(config.data),
            log=log,
            otlp=self._hello.otlp,
            writer_status=self._link.status,
            consumer_groups=self._link.groups,
            kafka=config.kafka,
            log_config=config.log,
            lake_topics=config.lake.topics,
            rates=reader_rates(self._clock),
            tier=None if embedded is None else embedded.tier,
            sql=None if embedded is None else embedded.sql,
            statements=None if embedded is None else embedded.statements,
            pipes=None if embedded is None else embedded.pipes,
            connectors=None if embedded is None else embedded.connectors,
            tables=None if embedded is None else embedded.tables,
            lake=lake,
            loader=None if embedded is None else embedded.loader,
            rules=None if embedded is None else self._open_rules(log, embedded),
            clock=self._clock,
        )
        if self._hello.api_port is not None:
            begin_ns = self._clock.monotonic_ns()
            api = ApiServer(context, config.serve, config.ingest, Auth.load(config.ingest))
            self._opened.push_async_callback(self._close_api, api)
            asyncio.get_running_loop().add_reader(sockets.connections, self._adopt, api)
            self._opened.callback(self._stop_adopting)
            self._report("serve", {"http_port": self._hello.api_port}, begin_ns)
        if embedded is not None and config.has_flight:
            await self._open_flight(embedded)
        return context

    async def _open(self, name: str, work: Callable[[], T], facts: Callable[[T], Facts]) -> T:
        begin_ns = self._clock.monotonic_ns()
        component = await asyncio.to_thread(work)
        self._report(name, facts(component), begin_ns)
        return component

    def _report(self, name: str, facts: Facts, begin_ns: int) -> None:
        took_ms = (self._clock.monotonic_ns() - begin_ns) // NS_PER_MS
        self._link.report_room(name, {**facts, "took_ms": took_ms})

    def _open_lake(self, log: ObservedLog) -> Lake | None:
        def on_spark(pid: int, seconds: float) -> None:
            self._link.report_room("spark", {"pid": pid, "took_ms": int(seconds * 1000)})

        lake = open_lake(
            log,
            self._config,
            clock=self._clock,
            rand=self._rand,
            auto_flush=True,
            on_spark=on_spark,
        )
        if lake is not None:
            self._opened.callback(self._close_lake, lake)
        return lake

    def _open_hot(self, log: ObservedLog, lake: Lake | None) -> Embedded:
        config = self._config
        disk = RealDisk(config.data)
        fatal = _exit if self._hello.may_exit else None
        embedded = Embedded.over(
            log, disk, config, clock=self._clock, lake=lake, fatal=fatal, runs_pipes=True
        )
        self._opened.callback(embedded.close)
        return embedded

    async def _open_flight(self, embedded: Embedded) -> None:
        begin_ns, config = self._clock.monotonic_ns(), self._config
        source = FlightSource(
            sql=embedded.sql,
            engine=embedded.engine,
            statements=embedded.statements,
            tables=embedded.tables,
        )
        flight = await FlightPort.open(
            source,
            config.flight,
            config.ingest,
            config.serve,
            config.query,
            Auth.load(config.ingest),
            clock=self._clock,
            rand=self._rand,
        )
        self._opened.push_async_callback(self._close_flight, flight)
        self._report("flight", {"port": flight.port}, begin_ns)

    async def _close_flight(self, flight: FlightPort) -> None:
        await asyncio.to_thread(flight.close, self.stop.left_s(API_S))

    def _open_rules(self, log: ObservedLog, embedded: Embedded) -> RuleRunner | None:
        runner = rules_of_node(self._config, log, embedded, clock=self._clock)
        if runner is not None:
            self._opened.callback(runner.close)
            runner.start()
        return runner

    def _adopt(self, api: ApiServer) -> None:
        """Take a connection that the writer has accepted."""
        try:
            data, files, _, _ = socket.recv_fds(self._sockets.connections, 1, 1)
        except BlockingIOError:
            return
        if not data:
            self._stop_adopting()
        for file in files:
            api.adopt(socket.socket(fileno=file))

    def _stop_adopting(self) -> None:
        asyncio.get_running_loop().remove_reader(self._sockets.connections)

    async def _close_api(self, api: ApiServer) -> None:
        await api.close(self.stop.left_s(API_S))

    def _close_lake(self, lake: Lake) -> None:
        """Finish the running append and run a last one, if there is time."""
        before = lake.round_count
        lake.close(self.stop.left_s())
        self.stop.note(lake_rounds=lake.round_count - before, lake_round_cut=lake.was_cut)


def _lake_facts(lake: Lake | None) -> Facts:
    if lake is None:
        return {"is_there": False, "state": "off, or not installed"}
    return {"is_there": True, "state": "Spark starts with the first append"}


def _hot_facts(embedded: Embedded) -> Facts:
    rows = sum(p.row_count for pieces in embedded.tier.visible_pieces().values() for p in pieces)
    return {"rows": rows, "bytes": embedded.tier.disk_bytes, "lag_offsets": embedded.tier.lag}


def _hot_rows(context: NodeContext) -> dict[str, Any]:
    if context.tier is None:
        return {}
    tables = context.tier.visible_pieces().values()
    rows = sum(piece.row_count for pieces in tables for piece in pieces)
    return {"hot_rows": rows, "hot_lag_offsets": context.tier.lag}


def _exit(_: BaseException) -> None:
    """End the process: the hot tier has died and logged why."""
    logging.shutdown()
    os._exit(HOT_DIED_CODE)


async def _beat(link: NodeLink, context: NodeContext) -> None:
    while True:
        link.beat(reader_checks(context))
        await asyncio.sleep(BEAT_INTERVAL_S)


async def _read_rates(context: NodeContext) -> None:
    while True:
        context.rates.step()
        await asyncio.sleep(RATES_INTERVAL_S)
