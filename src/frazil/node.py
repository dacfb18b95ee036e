"""A node: rooms start in the order of the river and stop in reverse.

log ─> tables ─> hot tier and SQL ─> OTLP ─> ready ... stop asked ─> OTLP drained ─> all closed
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from frazil.config import Config
from frazil.disk import RealDisk
from frazil.embedded import Embedded, open_lake
from frazil.errors import Unavailable
from frazil.ingest import Access, Otlp
from frazil.lake import Lake
from frazil.log import Log
from frazil.model import Clock, Rand
from frazil.serve import Api, Rooms

logger = logging.getLogger(__name__)

MAINTAIN_INTERVAL_S = 1.0
API_DRAIN_S = 1.0
"""Whoever reads can ask again; queries in hand may take this long."""
DRAIN_S = 8.0
"""Requests in hand may take this long to be answered once a stop is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Where a node that is up can be reached."""

    grpc_port: int
    http_port: int
    api_port: int | None
    """None when `serve.enabled` is false."""
    embedded: Embedded | None
    """From within this process; None when `hot.enabled` is false."""
    lake: Lake | None
    """None when `lake.enabled` is false, or when something for it is not installed."""


async def run(config: Config, *, clock: Clock, rand: Rand, ready: Callable[[Ready], None]) -> None:
    """Run a node until SIGTERM or SIGINT. Calls `ready` once it accepts requests.

    A worker that dies ends the node: it never serves without its maintenance, nor pretends that
    what it shows is recent.
    """
    stop = _stop_asked()
    access = Access.load(config.ingest)  # before anything is made: a wrong setting leaves no trace
    disk = RealDisk(config.data)
    died: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    with ExitStack() as rooms:
        log = Log.open(disk, config.log, clock=clock, rand=rand, holder="frazil up")
        rooms.enter_context(log)
        lake = open_lake(log, config, clock=clock, rand=rand, is_steady=True)
        if lake is not None:
            rooms.enter_context(lake)
        embedded = None
        if config.hot.enabled:
            embedded = Embedded.over(log, disk, config, clock=clock, lake=lake, fatal=_teller(died))
            rooms.enter_context(embedded)
        otlp = await Otlp.open(log, config.ingest, access, clock=clock, rand=rand)
        rooms_shown = Rooms(
            data=config.data,
            log=log,
            otlp=otlp,
            tier=None if embedded is None else embedded.tier,
            sql=None if embedded is None else embedded.sql,
            lake=lake,
            clock=clock,
        )
        api = None
        if config.serve.enabled:
            api = await Api.open(rooms_shown, config.serve, config.ingest, access)
        maintaining = asyncio.create_task(_maintain(log))
        stopping = asyncio.create_task(stop.wait())
        gc.freeze()  # what start-up has made stays; looking through it again and again took 8 %
        try:
            ready(
                Ready(
                    grpc_port=otlp.grpc_port,
                    http_port=otlp.http_port,
                    api_port=None if api is None else api.port,
                    embedded=embedded,
                    lake=lake,
                )
            )
            ends: set[asyncio.Future[Any]] = {maintaining, stopping, died}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            logger.info("stopping", extra={"requests_in_hand": otlp.gate.request_count})
            stopping.cancel()
            if api is not None:
                await api.close(API_DRAIN_S)
            await otlp.close(DRAIN_S)
            await _end(maintaining)
    if died.done():
        raise Unavailable(f"the hot tier has stopped: {died.result()}")
    logger.info("stopped")


def _teller(died: asyncio.Future[BaseException]) -> Callable[[BaseException], None]:
    """Tells the loop from another thread what a worker died of."""
    loop = died.get_loop()

    def set_result(error: BaseException) -> None:
        if not died.done():
            died.set_result(error)

    def tell(error: BaseException) -> None:
        loop.call_soon_threadsafe(set_result, error)

    return tell


async def _maintain(log: Log) -> None:
    while True:
        await asyncio.to_thread(log.maintain)
        await asyncio.sleep(MAINTAIN_INTERVAL_S)


async def _end(task: asyncio.Task[None]) -> None:
    """Stop a worker; raises what it died of, if it did."""
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return


def _stop_asked() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT. The second one ends the process where it stands."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ask(number: signal.Signals) -> None:
        stop.set()
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask, number)
    return stop
