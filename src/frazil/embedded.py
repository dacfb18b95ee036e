"""Embedded: hot tier, lake and SQL over a log, in this process.

lake ─> hot tier ─> threads ─> SQL ... closed in reverse

A node has one; `frazil.open(path)` opens one over its own log.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

from frazil.config import Config, reserve_bytes
from frazil.connectors.runtime import ConnectorLog, Connectors, open_connectors
from frazil.definitions import Audit, Definitions, PipeHistory, StatementExecutor
from frazil.disk import Disk
from frazil.errors import Malformed, Overloaded, Unavailable
from frazil.hot import HotTier, HotWorker
from frazil.hot import warm as warm_filters
from frazil.keyed_lake import FreezeSource, seed_rows
from frazil.lake import (
    Appended,
    Follower,
    Followers,
    Lake,
    Maintained,
    ReadLimits,
    TopicTables,
    query_spark,
)
from frazil.load import (
    ExternalTables,
    KeyedLoads,
    Loader,
    PipeScheduler,
    StagedFile,
    StepLog,
    open_pipes,
    parse_document,
    register_external,
    register_loaded_tables,
    rows_to_table,
)
from frazil.log import AtTime, Log, Start
from frazil.log_file_loads import log_loads_of
from frazil.model import NS_PER_MS, Clock, SystemRand, arrow
from frazil.query import Engine, refuse_bare_names, register_tables, register_views
from frazil.removal import Removal, RemovalPreview, RemovalReport, RuleStatus, rule_statuses
from frazil.results import (
    CancelToken,
    Limits,
    Parameters,
    Result,
    WriteToken,
    bind_parameters,
    result_of,
)
from frazil.tables import FeedCodec, KeyedTables, TableHandle, TableOwner
from frazil.tables import warm as warm_tables

logger = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.01
"""Interval between checks whether all rows are visible."""
SPARK_RETRY_MS = 5_000
"""Retry hint when too many queries run on Spark; they take seconds at least."""
START_WAIT_MS = 10_000
"""How long a query waits for rows from before the start."""
WRITE_WAIT_MS = 10_000
"""How long a query waits for the writes that it must see."""
STUCK_MS = 30_000
"""`catch_up` fails after this time without a new row."""

Fatal = Callable[[BaseException], None]

FEED_CODEC = FeedCodec(parse_document, rows_to_table)
"""Reads the records of topics that feed keyed tables."""


class EmbeddedLog(TableOwner, StepLog, ConnectorLog, Protocol):
    """A log to which keyed tables, loads and connectors are written."""


class Closable(Protocol):
    """A resource to close."""

    def close(self) -> None: ...


class Embedded:
    """Any thread may query; one thread opens and closes."""

    def __init__(
        self,
        tier: HotTier,
        engine: Engine,
        lake: Lake | None,
        followers: Followers,
        clock: Clock,
        rows_max: int,
        statements: StatementExecutor,
        tables: KeyedTables,
        pipes: PipeScheduler | None,
        loader: Loader | None,
        connectors: Connectors,
    ) -> None:
        self.pipes = pipes
        self.connectors = connectors
        self._rows_max = rows_max
        self.statements = statements
        self.tables = tables
        self.loader = loader
        questions_max = 1 if lake is None else lake.config.questions_max
        self._questions = threading.BoundedSemaphore(questions_max)
        self.tier = tier
        self.engine = engine
        self.lake = lake
        self._followers = followers
        self._clock = clock
        self._removal: Removal | None = None
        self._closing = ExitStack()
        self._error: BaseException | None = None

    @classmethod
    def over(
        cls,
        log: EmbeddedLog,
        disk: Disk,
        config: Config,
        *,
        clock: Clock,
        lake: Lake | None = None,
        fatal: Fatal | None = None,
        owns: Iterable[Closable] = (),
        runs_pipes: bool = False,
    ) -> Embedded:
        """Open the hot tier and SQL over a log that was not maintained yet. Its rows become
        visible in the background.

        Closes what it `owns`, the last first. `fatal` is called in another thread when the hot
        tier stops. With `runs_pipes`, pipes run when they are due; otherwise by statements only.
        """
        with ExitStack() as stack:
            for resource in owns:
                stack.callback(resource.close)
            view = None if lake is None else lake.view
            promotions = config.promotions
            schemas = arrow.tables_with(promotions)
            tier = HotTier(
                disk,
                log,
                config.hot,
                decode=partial(arrow.decode, promotions=promotions),
                schemas=schemas,
                clock=clock,
                lake_watermark=None if view is None else view.held,
                removed_below=None if view is None else view.removed_below,
                reserve_bytes=reserve_bytes(config),
            )
            stack.callback(tier.close)
            tables = KeyedTables(
                disk,
                log,
                config.tables,
                clock=clock,
                check_name=lambda name: engine.check_keyed_name(name),
                codec=FEED_CODEC,
                frozen=None if lake is None else seed_rows(lake),
            )
            stack.callback(tables.close)
            tables.start()
            if lake is not None:
                lake.freeze_from(FreezeSource(tables, log))
            topics = TopicTables(
                log, config.lake.topics, view, bytes_max=config.query.topic_bytes_max
            )
            statements = StatementExecutor(Definitions(disk), Audit(disk, clock), clock)
            history = PipeHistory(disk)
            external = ExternalTables(
                statements.definitions,
                config.external,
                config.stages,
                config.connections,
                disk,
                Path(config.data).absolute(),
                in_use_ms=config.query.timeout_ms,
                clock=clock,
            )
            engine = Engine.open(
                tier.visible_pieces,
                schemas,
                config.query,
                clock,
                view,
                topics,
                statements.definitions,
                statements.audit,
                pipes=history,
                external=external,
                keyed=tables,
            )
            stack.callback(engine.close)
            register_views(statements, engine)
            pipes, loader = None, None
            if lake is not None:
                loads = KeyedLoads(
                    tables,
                    str(Path(config.data).absolute()),
                    clock=clock,
                    batch_bytes_max=config.log.batch_bytes_max,
                )
                loads.start()
                stack.callback(loads.close)
                loader = Loader(
                    lake,
                    engine,
                    statements.definitions,
                    config.stages,
                    config.connections,
                    clock=clock,
                    rand=SystemRand(),
                    keyed=loads,
                    log_loads=log_loads_of(log, lake, config, clock),
                )
                loader.register(statements)
                pipes = open_pipes(
                    statements,
                    loader,
                    history,
                    disk,
                    clock,
                    poll_interval_ms=config.stages.poll_interval_ms,
                    is_scheduling=runs_pipes,
                )
                register_external(statements, external, engine, loader.tasks)
                register_loaded_tables(statements, lake, engine, clock=clock, rand=SystemRand())
            register_tables(statements, engine, tables, rand=SystemRand())
            connectors = open_connectors(
                statements,
                log,
                disk,
                config.connectors,
                clock,
                connections=config.connections,
                roots=config.stages.roots,
                batch_bytes_max=config.log.batch_bytes_max,
                is_running=runs_pipes,
            )
            followers = Followers(log, disk, lake, promotions)
            stack.callback(followers.close)
            rows_max = config.query.rows_max
            opened = cls(
                tier,
                engine,
                lake,
                followers,
                clock,
                rows_max,
                statements,
                tables,
                pipes,
                loader,
                connectors,
            )
            if lake is not None:
                maintain = log.maintain if isinstance(log, Log) else lambda: None
                opened._removal = Removal(lake, log, tier, config.data, clock, maintain)
            worker = HotWorker(tier, clock=clock, fatal=lambda error: opened._die(error, fatal))
            worker.start()
            stack.callback(worker.close)
            warming = threading.Thread(target=_warm, name="frazil-warm")
            warming.start()
            stack.callback(warming.join)
            if pipes is not None:
                pipes.start()
                stack.callback(pipes.close)
            if loader is not None and runs_pipes:
                stack.callback(loader.begin_finishing().close)
            connectors.start()
            stack.callback(connectors.close)
            opened._closing = stack.pop_all()
        return opened

    def _die(self, error: BaseException, fatal: Fatal | None) -> None:
        logger.critical("the hot tier has stopped", exc_info=error)
        self._error = error
        if fatal is not None:
            fatal(error)

    def catch_up(self) -> None:
        """Wait until all rows of the log are visible. `Unavailable` if that does not progress."""
        self.tables.catch_up()
        last_lag, progress_ns = -1, 0
        while not self.tier.is_complete:
            lag, now_ns = self.tier.lag, self._clock.monotonic_ns()
            if lag != last_lag:
                last_lag, progress_ns = lag, now_ns
            reason = self._error or self.tier.trouble
            if reason is None and now_ns - progress_ns > STUCK_MS * NS_PER_MS:
                reason = f"no progress for {STUCK_MS} ms; the disk may be full"
            if reason is not None:
                raise Unavailable(f"{lag} requests of the log do not become visible: {reason}")
            self._clock.sleep(POLL_INTERVAL_S)

    def sql(
        self,
        text: str,
        parameters: Parameters | None = None,
        *,
        limits: Limits | None = None,
        engine: Literal["spark"] | None = None,
        cancel_token: CancelToken | None = None,
        at_least: WriteToken | Sequence[WriteToken] = (),
    ) -> Result:
        """Run one query over the current rows; results are computed while they are read.
        `parameters` are the values of `$1`, `$2` (a list) or of `$name` (a dict). With `at_least`
        it sees these writes to keyed tables.

        `engine="spark"` runs it on Spark, in its dialect, for queries too large for this process.
        Spark is started if needed, and all rows are there on return. A `cancel_token` cancels the
        query, also before this returns.
        """
        if parameters is not None:
            text = bind_parameters(text, parameters, engine)
        if at_least:
            self._await_writes(at_least, limits)
        if engine == "spark":
            return self._query_spark(text, limits or Limits(), cancel_token or CancelToken())
        if self._error is not None:
            raise Unavailable(f"the hot tier has stopped: {self._error}")
        if not self.tier.has_caught_up:
            self._await_start(cancel_token)
        return self.engine.sql(text, limits=limits, cancel_token=cancel_token)

    def _await_writes(
        self, at_least: WriteToken | Sequence[WriteToken], limits: Limits | None
    ) -> None:
        """Wait until writes to keyed tables are visible. `Unavailable` after `WRITE_WAIT_MS`, or
        after the time of the query if that is shorter."""
        timeout_ms = WRITE_WAIT_MS
        if limits is not None and limits.timeout_ms is not None:
            timeout_ms = min(timeout_ms, limits.timeout_ms)
        for token in [at_least] if isinstance(at_least, WriteToken) else at_least:
            self.tables.wait(token.table, token.offsets, timeout_ms / 1000)

    def table(self, name: str) -> TableHandle:
        """Return a keyed table, to write and to look up rows by key."""
        self.tables.definition(name)
        return TableHandle(self.tables, name)

    def _await_start(self, cancel_token: CancelToken | None) -> None:
        """Wait until all rows from before the start are visible, so that none disappears after a
        restart. `Unavailable` after `START_WAIT_MS`. Does not wait for rows that cannot be read,
        which the node's health reports."""
        begin_ns = self._clock.monotonic_ns()
        while not self.tier.has_caught_up and self.tier.trouble is None:
            if cancel_token is not None:
                cancel_token.check()
            if self._error is not None:
                raise Unavailable(f"the hot tier has stopped: {self._error}")
            if self._clock.monotonic_ns() - begin_ns > START_WAIT_MS * NS_PER_MS:
                raise Unavailable(
                    f"{self.tier.lag} requests of the log are not visible yet after the start; "
                    "retry in a moment"
                )
            self._clock.sleep(POLL_INTERVAL_S)

    def execute(
        self, text: str, *, who: str = "embedded", cancel_token: CancelToken | None = None
    ) -> Result:
        """Carry out one statement that defines or changes something, such as CREATE VIEW, and
        return its rows. `docs/statements.md` lists them. `who` is for the audit."""
        rows = self.statements.execute(text, who=who, cancel_token=cancel_token)
        return result_of(rows, self._rows_max)

    def upload(
        self, stage: str, path: str, chunks: Iterable[bytes], *, overwrite: bool = False
    ) -> StagedFile:
        """Store a file in a stage that is a local folder. It is durable on return. `Conflict` if it
        exists, unless `overwrite`."""
        self._required_lake()
        assert self.loader is not None
        return self.loader.upload(stage, path, chunks, overwrite=overwrite)

    def ask(self, text: str) -> pa.Table:
        """Run one query and return all rows. Functions of `frazil.query` take this method."""
        return self.sql(text).arrow()

    def _query_spark(self, text: str, limits: Limits, cancel_token: CancelToken) -> Result:
        lake = self._required_lake()
        questions_max = lake.config.questions_max
        if not self._questions.acquire(blocking=False):
            raise Overloaded(
                f"{questions_max} queries run on Spark, which is lake.questions_max; retry later",
                retry_after_ms=SPARK_RETRY_MS,
            )
        try:
            return self._run_on_spark(lake, text, limits, cancel_token)
        finally:
            self._questions.release()

    def _run_on_spark(
        self, lake: Lake, text: str, limits: Limits, cancel_token: CancelToken
    ) -> Result:
        place = f"{lake.config.catalog_name}.{lake.config.namespace}"
        refuse_bare_names(text, self.tables.names(), place)
        timeout_ms, rows_max = lake.config.question_timeout_ms, self._rows_max
        rows_max = min(rows_max, limits.rows_max or rows_max)
        timeout_ms = min(timeout_ms, limits.timeout_ms or timeout_ms)
        rows = query_spark(
            lake, text, timeout_ms=timeout_ms, rows_max=rows_max, cancel_token=cancel_token
        )
        return result_of(rows, rows_max)

    def flush(self) -> list[Appended]:
        """Append all durable data to the tables and return the commits. Starts Spark if needed."""
        return self._required_lake().flush()

    def maintain(self) -> list[Maintained]:
        """Compact files, expire snapshots and delete orphan files. Starts Spark if needed."""
        return self._required_lake().maintain()

    def erase(self, where: str, *, table: str | None = None) -> RemovalReport:
        """Remove the rows that match, from one table or all, in every place of the data folder.
        Starts Spark."""
        return self._required_removal().erase(where, table)

    def preview_erasure(self, where: str, *, table: str | None = None) -> list[RemovalPreview]:
        """Count the rows that `erase` would remove, by table. Starts Spark."""
        return self._required_removal().preview_erasure(where, table)

    def apply_retention(self) -> RemovalReport:
        """Remove all rows that have expired now, in every place of the data folder. Starts
        Spark."""
        return self._required_removal().apply_retention()

    def preview_retention(self) -> list[RemovalPreview]:
        """Count the rows that have expired, by table. Starts Spark."""
        return self._required_removal().preview_retention()

    def retention_rules(self) -> list[RuleStatus]:
        """Return the retention rules, and what they will remove when."""
        return rule_statuses(self._required_lake(), self._clock.wall_ms())

    def _required_removal(self) -> Removal:
        self._required_lake()
        assert self._removal is not None
        return self._removal

    def _required_lake(self) -> Lake:
        if self.lake is None:
            raise Unavailable("there is no lake: lake.enabled is false, or it is not installed")
        return self.lake

    def follow(
        self, table: str, name: str, *, start: Start | datetime, limits: ReadLimits | None = None
    ) -> Follower:
        """Read every row of a table or topic once and in order: old rows from the lake, then from
        the log, then new ones. Progress is stored under `name`; a new reader begins at
        `start`."""
        if isinstance(start, datetime):
            if start.tzinfo is None:
                raise Malformed(f"{start} has no time zone; add one, such as datetime.UTC")
            start = AtTime(timestamp_ms=int(start.timestamp() * 1000))
        return self._followers.follow(table, name, start, limits)

    def unfollow(self, name: str) -> None:
        """Delete the progress of a reader."""
        self._followers.forget(name)

    def close(self) -> None:
        """Stop queries and threads, close files. Unsealed rows are read from the log again."""
        self._closing.close()

    def __enter__(self) -> Embedded:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _warm() -> None:
    """Load compiled code in the background, before the first rows need it."""
    arrow.warm()
    warm_filters()
    warm_tables()
