"""Embedded: the rows of a log, and SQL over them, in this process.

hot tier open ─> its threads ─> SQL ... closed in reverse

A node has one beside its ports. `frazil.open(path)` is one over a log of its own.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from frazil import query
from frazil.config import Config, load
from frazil.disk import Disk, RealDisk
from frazil.errors import Unavailable, Unknown
from frazil.hot import HotTier, HotWorker
from frazil.log import Log
from frazil.model import NS_PER_MS, Clock, SystemClock, SystemRand, columns
from frazil.query import Engine, Limits, Result

logger = logging.getLogger(__name__)

LOOK_S = 0.01
"""How often to look whether all is visible."""
STUCK_MS = 30_000
"""Without a single new row for so long, something is wrong that waiting does not mend."""

Fatal = Callable[[BaseException], None]


class Embedded:
    """Any thread may ask; one opens and closes."""

    def __init__(self, tier: HotTier, engine: Engine, clock: Clock) -> None:
        self.tier = tier
        self.engine = engine
        self._clock = clock
        self._closing = ExitStack()
        self._error: BaseException | None = None

    @classmethod
    def over(
        cls,
        log: Log,
        disk: Disk,
        config: Config,
        *,
        clock: Clock,
        fatal: Fatal | None = None,
        owns_log: bool = False,
    ) -> Embedded:
        """Open the rooms above a log that was not maintained yet. Its rows become visible while
        others go on.

        `fatal` is called, in another thread, when nothing new can become visible any more.
        """
        with ExitStack() as stack:
            if owns_log:
                stack.callback(log.close)
            tier = HotTier.open(
                disk, log, config.hot, decode=columns.decode, schemas=columns.TABLES, clock=clock
            )
            stack.callback(tier.close)
            engine = Engine.open(tier.snapshot, columns.TABLES, config.query, clock)
            stack.callback(engine.close)
            opened = cls(tier, engine, clock)
            worker = HotWorker(tier, clock=clock, fatal=lambda error: opened._die(error, fatal))
            worker.start()
            stack.callback(worker.close)
            warming = threading.Thread(target=_warm, name="frazil-warm")
            warming.start()
            stack.callback(warming.join)
            opened._closing = stack.pop_all()
        return opened

    def _die(self, error: BaseException, fatal: Fatal | None) -> None:
        logger.critical("the hot tier has stopped", exc_info=error)
        self._error = error
        if fatal is not None:
            fatal(error)

    def catch_up(self) -> None:
        """Wait until all that the log holds is visible. `Unavailable` when that gets stuck."""
        seen, seen_ns = -1, 0
        while not self.tier.is_whole:
            missing, now_ns = self.tier.lag, self._clock.monotonic_ns()
            if missing != seen:
                seen, seen_ns = missing, now_ns
            reason = self._error or self.tier.trouble
            if reason is None and now_ns - seen_ns > STUCK_MS * NS_PER_MS:
                reason = f"nothing new for {STUCK_MS} ms; the disk may be full"
            if reason is not None:
                raise Unavailable(f"{missing} requests of the log do not become visible: {reason}")
            self._clock.sleep(LOOK_S)

    def sql(self, text: str, *, limits: Limits | None = None) -> Result:
        """Run one query over the rows of this moment; they are worked out while they are read."""
        if self._error is not None:
            raise Unavailable(f"recent rows are not read any more: {self._error}")
        return self.engine.sql(text, limits=limits)

    def ask(self, text: str) -> pa.Table:
        """All rows of one query at once. What the questions in `frazil.query` are asked with."""
        return self.sql(text).arrow()

    def close(self) -> None:
        """Stop queries, then threads; give back files. What is not sealed comes from the log."""
        self._closing.close()

    def __enter__(self) -> Embedded:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_folder(path: str | os.PathLike[str], config: str | os.PathLike[str] | None) -> Embedded:
    """Everything that a data folder holds, visible when this returns."""
    settings = load(None if config is None else os.fspath(config), {"data": os.fspath(path)})
    if not (Path(path) / "log").is_dir():
        raise Unknown(
            f"{os.fspath(path)} is no data folder of Frazil: it has no log in it. "
            "`frazil up --data …` makes one"
        )
    disk, clock = RealDisk(settings.data), SystemClock()
    log = Log.open(disk, settings.log, clock=clock, rand=SystemRand(), holder="frazil.open")
    with ExitStack() as stack:
        opened = Embedded.over(log, disk, settings, clock=clock, owns_log=True)
        stack.callback(opened.close)
        opened.catch_up()
        stack.pop_all()
    return opened


def _warm() -> None:
    """Compiled code is there before somebody waits for it. Nobody waits for this."""
    columns.warm()
    query.warm()
