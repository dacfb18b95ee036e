"""A node: components start in the order of the data flow and stop in reverse.

log ─> lake ─> hot tier and SQL ─> OTLP ─> API ─> ready ... stop signal ─> API ─> ... ─> log

If the log's writer or its maintenance dies, the node ends, because durability depends on them. If
another component dies, the node becomes unready: ingest continues, and `/readyz` has the cause.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from frazil import tracing
from frazil.config import Config
from frazil.disk import RealDisk
from frazil.embedded import Embedded, open_lake
from frazil.httpd import Auth
from frazil.ingest import OtlpPorts
from frazil.lake import Lake
from frazil.log import Log
from frazil.model import NS_PER_MS, Clock, Rand
from frazil.serve import ApiServer, NodeContext, Uptime
from frazil.shutdown import Shutdown

logger = logging.getLogger(__name__)

T = TypeVar("T")
Facts = Mapping[str, object]
OnRoom = Callable[[str, Facts], None]
"""Called when a component is ready, with its name and facts. Spark follows later, from another
thread."""

MAINTAIN_INTERVAL_S = 1.0
RATES_INTERVAL_S = 1.0
"""Interval between readings of the counters, for rates."""
TRACES_S = 0.5
"""Share of a stop: sending the node's own spans."""
API_S = 1.0
"""Share of a stop: running API requests. Clients can retry."""
DRAIN_S = 5.0
"""Share of a stop: running OTLP requests."""
LAKE_S = 8.0
"""Share of a stop: appends to the lake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAddresses:
    """Ports and components of a running node."""

    grpc_port: int
    http_port: int
    api_port: int | None
    """None if `serve.enabled` is false."""
    embedded: Embedded | None
    """For queries in this process; None if `hot.enabled` is false."""
    lake: Lake | None
    """None if `lake.enabled` is false or the lake is not installed."""


def log_room(name: str, facts: Facts) -> None:
    """Log that a component is ready; the default of `on_room`."""
    logger.info("room is ready", extra={"room": name, **facts})


async def run(
    config: Config,
    *,
    clock: Clock,
    rand: Rand,
    ready: Callable[[NodeAddresses], None],
    on_room: OnRoom = log_room,
) -> None:
    """Run a node until SIGTERM or SIGINT. Calls `ready` once it accepts requests.

    A stop takes at most ten seconds; after that the process exits, which loses no acknowledged
    data.
    """
    stop_event = _stop_event()
    auth = Auth.load(config.ingest)  # first, so that a wrong setting leaves no files behind
    stop = Shutdown(clock)
    async with AsyncExitStack() as opened:
        opened.callback(stop.done)
        startup = NodeStartup(config, clock, rand, on_room, opened, stop)
        context, addresses = await startup.open_all(auth)
        workers = [
            asyncio.create_task(_maintain(context.log)),
            asyncio.create_task(_read_rates(context)),
        ]
        opened.push_async_callback(_cancel, workers)
        gc.freeze()  # objects of the start-up live on; scanning them took 8 % of the time
        context.uptime.state = "running"
        ready(addresses)
        stopping = asyncio.create_task(stop_event.wait())
        await asyncio.wait({stopping, *workers}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        context.uptime.state = "stopping"
        logger.info("stopping", extra={"requests_in_hand": context.otlp.admission().request_count})
        stop.begin()
        await asyncio.to_thread(tracing.flush, TRACES_S)  # the node may export to itself
        stop.note(**_hot_rows(context))
    logger.info("stopped", extra=stop.facts())


class NodeStartup:
    """Opens the components in order, reports each, and registers them for closing in reverse."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        rand: Rand,
        on_room: OnRoom,
        opened: AsyncExitStack,
        stop: Shutdown,
    ) -> None:
        self._config = config
        self._clock = clock
        self._rand = rand
        self._on_room = on_room
        self._opened = opened
        self._stop = stop
        self._folder = Path(config.data).absolute()

    async def open_all(self, auth: Auth) -> tuple[NodeContext, NodeAddresses]:
        """Open everything. Long work runs in threads, so that a second signal is handled."""
        config, clock, rand = self._config, self._clock, self._rand
        uptime = Uptime(clock)
        log = await self._open("log", self._open_log, _log_facts)
        lake = await self._open("lake", partial(self._open_lake, log), _lake_facts)
        embedded = None
        if config.hot.enabled:
            embedded = await self._open("hot", partial(self._open_hot, log, lake), _hot_facts)
        begin_ns = clock.monotonic_ns()
        otlp = await OtlpPorts.open(log, config.ingest, auth, clock=clock, rand=rand)
        self._opened.push_async_callback(_close_otlp, otlp, self._stop)
        ports = {"grpc_port": otlp.grpc_port, "http_port": otlp.http_port}
        self._report("ingest", ports, begin_ns)
        context = NodeContext(
            data=str(self._folder),
            disk=RealDisk(config.data),
            uptime=uptime,
            log=log,
            otlp=otlp,
            tier=None if embedded is None else embedded.tier,
            sql=None if embedded is None else embedded.sql,
            lake=lake,
            clock=clock,
        )
        api = None
        if config.serve.enabled:
            begin_ns = clock.monotonic_ns()
            api = await ApiServer.open(context, config.serve, config.ingest, auth)
            self._opened.push_async_callback(_close_api, api, self._stop)
            self._report("serve", {"http_port": api.port}, begin_ns)
        return context, NodeAddresses(
            grpc_port=otlp.grpc_port,
            http_port=otlp.http_port,
            api_port=None if api is None else api.port,
            embedded=embedded,
            lake=lake,
        )

    async def _open(self, name: str, work: Callable[[], T], facts: Callable[[T], Facts]) -> T:
        begin_ns = self._clock.monotonic_ns()
        component = await asyncio.to_thread(work)
        self._report(name, facts(component), begin_ns)
        return component

    def _report(self, name: str, facts: Facts, begin_ns: int) -> None:
        took_ms = (self._clock.monotonic_ns() - begin_ns) // NS_PER_MS
        self._on_room(name, {**facts, "took_ms": took_ms})

    def _open_log(self) -> Log:
        config = self._config
        disk = RealDisk(config.data)
        log = Log.open(disk, config.log, clock=self._clock, rand=self._rand, holder="frazil up")
        self._opened.callback(log.close)
        return log

    def _open_lake(self, log: Log) -> Lake | None:
        def on_spark(pid: int, seconds: float) -> None:
            self._on_room("spark", {"pid": pid, "took_ms": int(seconds * 1000)})

        lake = open_lake(
            log,
            self._config,
            clock=self._clock,
            rand=self._rand,
            auto_flush=True,
            on_spark=on_spark,
        )
        if lake is not None:
            self._opened.callback(_close_lake, lake, self._stop)
        return lake

    def _open_hot(self, log: Log, lake: Lake | None) -> Embedded:
        config = self._config
        disk = RealDisk(config.data)
        embedded = Embedded.over(log, disk, config, clock=self._clock, lake=lake)
        self._opened.callback(embedded.close)
        return embedded


def _log_facts(log: Log) -> Facts:
    partitions = [partition for topic in log.topics() for partition in topic.partitions]
    return {
        "topics": len(log.topics()),
        "offsets": sum(p.view.durable_watermark - p.view.start_offset for p in partitions),
        "bytes": log.budget.used_bytes,
        "bytes_max": log.budget.hard_bytes_max,
    }


def _lake_facts(lake: Lake | None) -> Facts:
    if lake is None:
        return {"is_there": False, "state": "off, or not installed"}
    return {"is_there": True, "state": "Spark starts with the first append"}


def _hot_facts(embedded: Embedded) -> Facts:
    rows = sum(p.row_count for pieces in embedded.tier.visible_pieces().values() for p in pieces)
    return {"rows": rows, "bytes": embedded.tier.disk_bytes, "lag_offsets": embedded.tier.lag}


def _hot_rows(context: NodeContext) -> Facts:
    if context.tier is None:
        return {}
    tables = context.tier.visible_pieces().values()
    rows = sum(piece.row_count for pieces in tables for piece in pieces)
    return {"hot_rows": rows, "hot_lag_offsets": context.tier.lag}


async def _close_api(api: ApiServer, stop: Shutdown) -> None:
    await api.close(stop.left_s(API_S))


async def _close_otlp(otlp: OtlpPorts, stop: Shutdown) -> None:
    await otlp.close(stop.left_s(DRAIN_S))
    drained = otlp.admission()
    stop.note(requests_answered=drained.answered_count, requests_cut=drained.cut_count)


def _close_lake(lake: Lake, stop: Shutdown) -> None:
    """Finish the running append and run a last one, if there is time."""
    before = lake.round_count
    lake.close(stop.left_s(LAKE_S))
    stop.note(lake_rounds=lake.round_count - before, lake_round_cut=lake.was_cut)


async def _maintain(log: Log) -> None:
    while True:
        await asyncio.to_thread(log.maintain)
        await asyncio.sleep(MAINTAIN_INTERVAL_S)


async def _read_rates(context: NodeContext) -> None:
    while True:
        context.uptime.rates.step()
        await asyncio.sleep(RATES_INTERVAL_S)


async def _cancel(workers: list[asyncio.Task[None]]) -> None:
    """Cancel the workers. Raises the error of a worker that died."""
    for task in workers:
        task.cancel()
    for task in workers:
        try:
            await task
        except asyncio.CancelledError:
            continue


def _stop_event() -> asyncio.Event:
    """Return an event set by the first SIGTERM or SIGINT. The second ends the process."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def stop() -> None:
        event.set()
        for number in numbers:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        loop.add_signal_handler(number, stop)
    return event
