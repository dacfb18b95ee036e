"""A node: rooms start in the order of the river and stop in exact reverse.

log ─> tables ─> hot tier and SQL ─> OTLP ─> API ─> ready ... stop asked ─> API ─> ... ─> log

What guards durability ends the node when it dies: the log's writer and its maintenance. The others
make it unready: acknowledgements go on, and `/readyz` says what is wrong.
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
"""A room is ready: its name, and facts about it. Spark's comes later, in another thread."""

MAINTAIN_INTERVAL_S = 1.0
LOOK_INTERVAL_S = 1.0
"""How often the counters are looked at, for rates."""
TRACES_S = 0.5
"""Of a stop. Spans of our own that are not sent yet."""
API_S = 1.0
"""Of a stop. Whoever reads can ask again."""
DRAIN_S = 5.0
"""Of a stop. Requests in hand may take this long to be answered."""
LAKE_S = 8.0
"""Of a stop, at most: rounds of the lake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAddresses:
    """Where a node that is up can be reached."""

    grpc_port: int
    http_port: int
    api_port: int | None
    """None when `serve.enabled` is false."""
    embedded: Embedded | None
    """From within this process; None when `hot.enabled` is false."""
    lake: Lake | None
    """None when `lake.enabled` is false, or when something for it is not installed."""


def log_room(name: str, facts: Facts) -> None:
    """What is said of a room that is ready, unless somebody wants to say it otherwise."""
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

    A stop takes ten seconds at most; what is not done by then is left as by a kill, which loses
    nothing that was acknowledged.
    """
    asked = _stop_asked()
    access = Auth.load(config.ingest)  # before anything is made: a wrong setting leaves no trace
    stop = Shutdown(clock)
    async with AsyncExitStack() as opened:
        opened.callback(stop.done)
        starting = NodeStartup(config, clock, rand, on_room, opened, stop)
        rooms, up = await starting.open_all(access)
        workers = [asyncio.create_task(_maintain(rooms.log)), asyncio.create_task(_look(rooms))]
        opened.push_async_callback(_end, workers)
        gc.freeze()  # what start-up has made stays; looking through it again and again took 8 %
        rooms.uptime.state = "running"
        ready(up)
        asking = asyncio.create_task(asked.wait())
        await asyncio.wait({asking, *workers}, return_when=asyncio.FIRST_COMPLETED)
        asking.cancel()
        rooms.uptime.state = "stopping"
        logger.info("stopping", extra={"requests_in_hand": rooms.otlp.admission().request_count})
        stop.begin()
        await asyncio.to_thread(tracing.flush, TRACES_S)  # also where they come back to us
        stop.note(**_hot_rows(rooms))
    logger.info("stopped", extra=stop.facts())


class NodeStartup:
    """Opens room after room, says so, and sees to it that they are closed in reverse."""

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

    async def open_all(self, access: Auth) -> tuple[NodeContext, NodeAddresses]:
        """In the order of the river. Whatever takes long is done in a thread, so that a second
        signal is heard."""
        config, clock, rand = self._config, self._clock, self._rand
        uptime = Uptime(clock)
        log = await self._open("log", self._open_log, _log_facts)
        lake = await self._open("lake", partial(self._open_lake, log), _lake_facts)
        embedded = None
        if config.hot.enabled:
            embedded = await self._open("hot", partial(self._open_hot, log, lake), _hot_facts)
        begin_ns = clock.monotonic_ns()
        otlp = await OtlpPorts.open(log, config.ingest, access, clock=clock, rand=rand)
        self._opened.push_async_callback(_close_otlp, otlp, self._stop)
        ports = {"grpc_port": otlp.grpc_port, "http_port": otlp.http_port}
        self._say("ingest", ports, begin_ns)
        rooms = NodeContext(
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
            api = await ApiServer.open(rooms, config.serve, config.ingest, access)
            self._opened.push_async_callback(_close_api, api, self._stop)
            self._say("serve", {"http_port": api.port}, begin_ns)
        return rooms, NodeAddresses(
            grpc_port=otlp.grpc_port,
            http_port=otlp.http_port,
            api_port=None if api is None else api.port,
            embedded=embedded,
            lake=lake,
        )

    async def _open(self, name: str, work: Callable[[], T], facts: Callable[[T], Facts]) -> T:
        begin_ns = self._clock.monotonic_ns()
        room = await asyncio.to_thread(work)
        self._say(name, facts(room), begin_ns)
        return room

    def _say(self, name: str, facts: Facts, begin_ns: int) -> None:
        took_ms = (self._clock.monotonic_ns() - begin_ns) // NS_PER_MS
        self._on_room(name, {**facts, "took_ms": took_ms})

    def _open_log(self) -> Log:
        config = self._config
        disk = RealDisk(config.data)
        log = Log.open(disk, config.log, clock=self._clock, rand=self._rand, holder="frazil up")
        self._opened.callback(log.close)
        return log

    def _open_lake(self, log: Log) -> Lake | None:
        def say(pid: int, seconds: float) -> None:
            self._on_room("spark", {"pid": pid, "took_ms": int(seconds * 1000)})

        lake = open_lake(
            log, self._config, clock=self._clock, rand=self._rand, auto_flush=True, on_spark=say
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
    return {"is_there": True, "state": "Spark starts when there is something to freeze"}


def _hot_facts(embedded: Embedded) -> Facts:
    rows = sum(p.row_count for pieces in embedded.tier.visible_pieces().values() for p in pieces)
    return {"rows": rows, "bytes": embedded.tier.disk_bytes, "lag_offsets": embedded.tier.lag}


def _hot_rows(rooms: NodeContext) -> Facts:
    if rooms.tier is None:
        return {}
    shown = rooms.tier.visible_pieces().values()
    rows = sum(piece.row_count for pieces in shown for piece in pieces)
    return {"hot_rows": rows, "hot_lag_offsets": rooms.tier.lag}


async def _close_api(api: ApiServer, stop: Shutdown) -> None:
    await api.close(stop.left_s(API_S))


async def _close_otlp(otlp: OtlpPorts, stop: Shutdown) -> None:
    await otlp.close(stop.left_s(DRAIN_S))
    drained = otlp.admission()
    stop.note(requests_answered=drained.answered_count, requests_cut=drained.cut_count)


def _close_lake(lake: Lake, stop: Shutdown) -> None:
    """With the round in hand, and a last one, if there is time for them."""
    before = lake.round_count
    lake.close(stop.left_s(LAKE_S))
    stop.note(lake_rounds=lake.round_count - before, lake_round_cut=lake.was_cut)


async def _maintain(log: Log) -> None:
    while True:
        await asyncio.to_thread(log.maintain)
        await asyncio.sleep(MAINTAIN_INTERVAL_S)


async def _look(rooms: NodeContext) -> None:
    while True:
        rooms.uptime.rates.step()
        await asyncio.sleep(LOOK_INTERVAL_S)


async def _end(workers: list[asyncio.Task[None]]) -> None:
    """Stop workers; raises what one died of, if it did."""
    for task in workers:
        task.cancel()
    for task in workers:
        try:
            await task
        except asyncio.CancelledError:
            continue


def _stop_asked() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT. The second one ends the process where it stands."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def ask() -> None:
        asked.set()
        for number in numbers:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        loop.add_signal_handler(number, ask)
    return asked
