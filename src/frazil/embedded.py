"""Embedded: the rows of a log, its tables, and SQL over them, in this process.

tables ─> hot tier ─> its threads ─> SQL ... closed in reverse

A node has one beside its ports. `frazil.open(path)` is one over a log of its own.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol

import pyarrow as pa

from frazil import query
from frazil.config import Config, load
from frazil.disk import Disk, RealDisk
from frazil.errors import Malformed, Unavailable, Unknown
from frazil.hot import HotTier, HotWorker
from frazil.lake import (
    Appended,
    Follower,
    Followers,
    Lake,
    Maintained,
    OnSpark,
    ReadLimits,
    TopicTables,
    query_spark,
)
from frazil.log import AtTime, Log, Start
from frazil.model import NS_PER_MS, Clock, Rand, SystemClock, SystemRand, arrow
from frazil.query import Engine
from frazil.results import CancelToken, Limits, Result, result_of

logger = logging.getLogger(__name__)

LOOK_S = 0.01
"""How often to look whether all is visible."""
STARTING_MS = 10_000
"""So long a query waits for rows that were there before the start."""
STUCK_MS = 30_000
"""Without a single new row for so long, something is wrong that waiting does not mend."""

Fatal = Callable[[BaseException], None]


class Closable(Protocol):
    """Something that is given back when it is not needed any more."""

    def close(self) -> None: ...


class Embedded:
    """Any thread may ask; one opens and closes."""

    def __init__(
        self,
        tier: HotTier,
        engine: Engine,
        lake: Lake | None,
        followers: Followers,
        clock: Clock,
        rows_max: int,
    ) -> None:
        self._rows_max = rows_max
        self.tier = tier
        self.engine = engine
        self.lake = lake
        self._followers = followers
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
        lake: Lake | None = None,
        fatal: Fatal | None = None,
        owns: Iterable[Closable] = (),
    ) -> Embedded:
        """Open the rooms above a log that was not maintained yet. Its rows become visible while
        others go on.

        What it `owns` it closes, the last one first. `fatal` is called, in another thread, when
        nothing new can become visible any more.
        """
        with ExitStack() as stack:
            for owned in owns:
                stack.callback(owned.close)
            view = None if lake is None else lake.view
            tier = HotTier.open(
                disk,
                log,
                config.hot,
                decode=arrow.decode,
                schemas=arrow.TABLES,
                clock=clock,
                lake_watermark=None if view is None else view.held,
            )
            stack.callback(tier.close)
            topics = TopicTables(
                log, config.lake.topics, view, bytes_max=config.query.topic_bytes_max
            )
            engine = Engine.open(
                tier.visible_pieces, arrow.TABLES, config.query, clock, view, topics
            )
            stack.callback(engine.close)
            followers = Followers(log, disk, lake)
            stack.callback(followers.close)
            opened = cls(tier, engine, lake, followers, clock, config.query.rows_max)
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
        while not self.tier.is_complete:
            missing, now_ns = self.tier.lag, self._clock.monotonic_ns()
            if missing != seen:
                seen, seen_ns = missing, now_ns
            reason = self._error or self.tier.trouble
            if reason is None and now_ns - seen_ns > STUCK_MS * NS_PER_MS:
                reason = f"nothing new for {STUCK_MS} ms; the disk may be full"
            if reason is not None:
                raise Unavailable(f"{missing} requests of the log do not become visible: {reason}")
            self._clock.sleep(LOOK_S)

    def sql(
        self,
        text: str,
        *,
        limits: Limits | None = None,
        engine: Literal["spark"] | None = None,
        cancel_token: CancelToken | None = None,
    ) -> Result:
        """Run one query over the rows of this moment; they are worked out while they are read.

        With `engine="spark"` it runs on Spark, in its dialect: for questions that are too large
        for this process. Spark is started if need be, and the answer is there when this returns.
        A `cancel_token` cancels the query, also before this returns.
        """
        if engine == "spark":
            return self._query_spark(text, limits or Limits())
        if self._error is not None:
            raise Unavailable(f"recent rows are not read any more: {self._error}")
        if not self.tier.has_caught_up:
            self._see_what_was(cancel_token)
        return self.engine.sql(text, limits=limits, cancel_token=cancel_token)

    def _see_what_was(self, cancel_token: CancelToken | None) -> None:
        """Wait until all rows are visible that were there before the start: whoever has seen one
        then finds it again. `Unavailable` when that takes too long. What cannot be read at all is
        not waited for; the node's health says so."""
        begin_ns = self._clock.monotonic_ns()
        while not self.tier.has_caught_up and self.tier.trouble is None:
            if cancel_token is not None:
                cancel_token.check()
            if self._error is not None:
                raise Unavailable(f"recent rows are not read any more: {self._error}")
            if self._clock.monotonic_ns() - begin_ns > STARTING_MS * NS_PER_MS:
                raise Unavailable(
                    f"{self.tier.lag} requests of the log are not visible yet after the start; "
                    "ask again in a moment"
                )
            self._clock.sleep(LOOK_S)

    def ask(self, text: str) -> pa.Table:
        """All rows of one query at once. What the questions in `frazil.query` are asked with."""
        return self.sql(text).arrow()

    def _query_spark(self, text: str, limits: Limits) -> Result:
        if self.lake is None:
            raise Unavailable("there is no lake: lake.enabled is false, or it is not installed")
        timeout_ms, rows_max = self.lake.config.question_timeout_ms, self._rows_max
        rows_max = min(rows_max, limits.rows_max or rows_max)
        timeout_ms = min(timeout_ms, limits.timeout_ms or timeout_ms)
        rows = query_spark(self.lake, text, timeout_ms=timeout_ms, rows_max=rows_max)
        return result_of(rows, rows_max)

    def flush(self) -> list[Appended]:
        """Bring all that is durable now into the tables. Returns when it is there, and what was
        new. Starts Spark, if it is not there yet."""
        return self._some_lake().flush()

    def maintain(self) -> list[Maintained]:
        """Join small files, let old snapshots go, remove what nobody names. Returns what was done.
        Starts Spark, if it is not there yet."""
        return self._some_lake().maintain()

    def _some_lake(self) -> Lake:
        if self.lake is None:
            raise Unavailable("there is no lake: lake.enabled is false, or it is not installed")
        return self.lake

    def follow(
        self, table: str, name: str, *, start: Start | datetime, limits: ReadLimits | None = None
    ) -> Follower:
        """Every row of a table or topic, once and in order: from the lake what is old, then from
        the log, and on as rows come. It has a name, under which it goes on where it was; a new one
        begins at `start`."""
        if isinstance(start, datetime):
            if start.tzinfo is None:
                raise Malformed(f"{start} has no time zone; say which one is meant")
            start = AtTime(timestamp_ms=int(start.timestamp() * 1000))
        return self._followers.follow(table, name, start, limits)

    def unfollow(self, name: str) -> None:
        """Forget how far a reader has come."""
        self._followers.forget(name)

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


def open_folder(
    path: str | os.PathLike[str],
    config: str | os.PathLike[str] | None,
    assignments: Iterable[str] = (),
) -> Embedded:
    """Everything that a data folder holds, visible when this returns. `assignments` are settings
    that are stronger than the file, as in `query.rows_max=10`."""
    file = None if config is None else os.fspath(config)
    settings = load(file, {"data": os.fspath(path)}, assignments=assignments)
    _check_folder(Path(path))
    disk, clock = RealDisk(settings.data), SystemClock()
    log = Log.open(disk, settings.log, clock=clock, rand=SystemRand(), holder="frazil.open")
    with ExitStack() as stack:
        stack.callback(log.close)
        lake = open_lake(log, settings, clock=clock, rand=SystemRand(), auto_flush=False)
        owns: list[Closable] = [log] if lake is None else [log, lake]
        stack.pop_all()
        opened = Embedded.over(log, disk, settings, clock=clock, lake=lake, owns=owns)
        stack.callback(opened.close)
        opened.catch_up()
        stack.pop_all()
    return opened


def flush_folder(config: Config) -> list[Appended]:
    """Bring all that a data folder holds into its tables. Nobody else may use the folder now."""
    with _lake_of(config, "frazil flush") as lake:
        return lake.flush()


def maintain_folder(config: Config) -> list[Maintained]:
    """Maintain the tables of a data folder. Nobody else may use the folder now."""
    with _lake_of(config, "frazil maintain") as lake:
        return lake.maintain()


@contextmanager
def _lake_of(config: Config, holder: str) -> Iterator[Lake]:
    """The tables of a data folder, for one who does nothing else."""
    _check_folder(Path(config.data))
    disk, clock, rand = RealDisk(config.data), SystemClock(), SystemRand()
    with (
        Log.open(disk, config.log, clock=clock, rand=rand, holder=holder) as log,
        Lake.open(
            log, Path(config.data), config.lake, clock=clock, rand=rand, auto_flush=False
        ) as lake,
    ):
        yield lake


def open_lake(
    log: Log,
    config: Config,
    *,
    clock: Clock,
    rand: Rand,
    auto_flush: bool,
    on_spark: OnSpark = lambda _, __: None,
) -> Lake | None:
    """The tables beside a log, unless they are not wanted, or something for them is missing."""
    if not config.lake.enabled:
        return None
    try:
        return Lake.open(
            log,
            Path(config.data),
            config.lake,
            clock=clock,
            rand=rand,
            auto_flush=auto_flush,
            on_spark=on_spark,
        )
    except Unavailable as error:
        logger.warning("there is no lake", extra={"reason": str(error)})
        return None


def _check_folder(path: Path) -> None:
    if not (path / "log").is_dir():
        raise Unknown(
            f"{path} is no data folder of Frazil: it has no log in it. "
            "`frazil up --data …` makes one"
        )


def _warm() -> None:
    """Compiled code is there before somebody waits for it. Nobody waits for this."""
    arrow.warm()
    query.warm()
