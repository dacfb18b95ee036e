"""Both OTLP ports on a real log, in this process."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import uvloop

from frazil.disk import RealDisk
from frazil.httpd import Auth
from frazil.ingest import OtlpPorts, Redactor
from frazil.log import Log
from frazil.model import Signal, SystemClock
from frazil.settings import IngestConfig, LogConfig

T = TypeVar("T")

START_S = 120
"""Long enough to compile, on a machine without compiled code."""
ROUNDS_MAX = 2000
"""How often `soon` checks its condition, at least 5 ms apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Two open ports and the log behind them."""

    log: Log
    otlp: OtlpPorts
    loop: asyncio.AbstractEventLoop

    def end_offset(self, signal: Signal) -> int:
        return self.log.partition(signal.topic, 0).durable_watermark

    def stored_since(self, signal: Signal, offset: int) -> list[bytes]:
        """The requests stored from `offset` on."""
        reader = self.log.reader(signal.topic, offset)
        values = []
        while batches := reader.read():
            values += [record.value or b"" for batch in batches for record in batch.records()]
        reader.close()
        return values

    def on_loop(self, work: Callable[[], T]) -> T:
        """Call a function on the event loop."""

        async def do() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(do(), self.loop).result(START_S)


@contextmanager
def serving(
    folder: Path,
    config: IngestConfig | None = None,
    log_config: LogConfig | None = None,
    redactor: Redactor | None = None,
) -> Iterator[Serving]:
    """Open a log and both ports on an event loop of their own."""
    config = config or IngestConfig(grpc_port=0, http_port=0)
    access = Auth.load(config)
    clock, rand = SystemClock(), random.SystemRandom()
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="serving")
    thread.start()
    try:
        with Log.open(RealDisk(folder), log_config, clock=clock, rand=rand) as log:
            opening = OtlpPorts.open(log, config, access, clock=clock, rand=rand, redactor=redactor)
            otlp = asyncio.run_coroutine_threadsafe(opening, loop).result(START_S)
            try:
                yield Serving(log=log, otlp=otlp, loop=loop)
            finally:
                asyncio.run_coroutine_threadsafe(otlp.close(5), loop).result(START_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def inside(served: Serving) -> int:
    """Return the number of admitted requests."""
    return served.on_loop(lambda: served.otlp.admission().request_count)


def soon(is_true: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true within a bounded time."""
    over = threading.Event()
    return any(is_true() or over.wait(0.005) for _ in range(ROUNDS_MAX))
