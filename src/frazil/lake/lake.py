"""Lake: the tables filled from one log, and the thread that fills them.

    open ─> tables taken over ─> wait ─> due by size or age, or requested ─> append ─> wait ...

All work on tables runs on one thread, one job after the other: appender rounds, freezes of keyed
tables, maintenance, and jobs submitted by other threads. Spark starts when the first round has
something to do. A failed round is retried later; until then the log keeps its records.
"""

from __future__ import annotations

import importlib.util
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from frazil import tracing
from frazil.disk import DiskReserve
from frazil.errors import Fenced, FrazilError, Unavailable
from frazil.lake.append.appender import Appended, Appender
from frazil.lake.append.log_source import LogSource, RecordSource
from frazil.lake.append.progress import LakeActivity
from frazil.lake.catalog.catalog import open_catalog, spark_settings
from frazil.lake.catalog.relocate import relocate
from frazil.lake.freezing import Freezing
from frazil.lake.job_queue import JobQueue
from frazil.lake.maintain.maintained import Maintained
from frazil.lake.maintain.maintenance import Maintenance
from frazil.lake.maintain.row_condition import RowCondition, check_rules
from frazil.lake.maintain.schedule import Schedule
from frazil.lake.scan.view import LakeView
from frazil.lake.spark.jars import NEEDED
from frazil.lake.spark.jobs import do_on, run_on
from frazil.lake.spark.session import OnSpark, Session
from frazil.log import ReadableLog
from frazil.metrics import Counter, Gauge
from frazil.model import NO_PROMOTIONS, NS_PER_MS, Clock, MiB, Promotions, Rand, TopicPartition
from frazil.settings import LakeConfig, RetentionRule

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from frazil.lake.keyed.definition import KeyedDefinition
    from frazil.lake.keyed.source import FrozenRows, KeyedSource

logger = logging.getLogger(__name__)

CHECK_S = 0.5
"""How often to check whether a round is due."""
FIRST_CHECK_MS = 1000
"""Delay of the first check after the start. Loading the catalog's library takes a second of CPU,
which clients that send and query right after the start would wait for."""
VIEW_MS = 3000
"""How often to look for changes to the tables by others, such as the user's own Spark."""
EARLY_FLUSHES = 4
"""While the disk is short of space, a round is due at one part of so many of `flush_bytes`: only
what is in the tables can be removed elsewhere."""
FULL_AGE_MS = 5000
"""While requests are refused for lack of space, a round is due after this time: it makes room."""
RETRY_S = 1.0
RETRY_S_MAX = 60.0
CLOSE_BYTES_MAX = 128 * MiB
"""Bytes of the log that `close` still commits. A larger rest is committed after the next start."""
CLOSE_S = 15.0
"""How long `close` waits for the current job; calls to a catalog that does not respond can take
minutes. What remains is abandoned as by a kill, which the tables survive."""
ABANDON_S = 1.0
"""How long the thread may take to notice that its Spark process is gone."""

FAILED = Counter("frazil.lake.failures", "Rounds that failed and will be retried.")
UNMAINTAINED = Counter("frazil.lake.maintenance.failures", "Failed maintenance steps.")
PENDING = Gauge("frazil.lake.pending.bytes", "Bytes of the log that are not in tables yet.")

T = TypeVar("T")


class Lake:
    """Any thread may submit jobs. `start` and `close` belong to the owner."""

    def __init__(
        self,
        source: RecordSource,
        data_folder: Path,
        config: LakeConfig,
        *,
        clock: Clock,
        rand: Rand,
        auto_flush: bool,
        rules: Sequence[RetentionRule] = (),
        promotions: Promotions = NO_PROMOTIONS,
        on_commit: Callable[[Appended], None] = lambda _: None,
        on_spark: OnSpark = lambda _, __: None,
        fatal_errors: tuple[type[FrazilError], ...] = (Fenced,),
        flush_at_close: bool = True,
        has_queries: bool = True,
        reserve: DiskReserve | None = None,
    ) -> None:
        """Raises `Unavailable` if a package is missing, `InvalidSetting` if a rule does not fit.

        auto_flush: run rounds when due; otherwise only on request.
        on_commit, on_spark: called on the lake's thread after each commit and each start of Spark.
        fatal_errors: errors after which no more rounds are started.
        flush_at_close: run a last round in `close`.
        has_queries: keep `view` up to date for queries.
        reserve: tells when the disk is short of space.
        """
        for module in NEEDED:
            if importlib.util.find_spec(module) is None:
                raise Unavailable(
                    f"the lake needs {module}; install it with `pip install 'frazil[lake]'`, or "
                    "set lake.enabled = false to run without the lake"
                )
        check_rules(rules, promotions)
        self.config = config
        self.rules = rules
        self.promotions = promotions
        self.data_folder = data_folder
        self._source = source
        self._discarded: dict[TopicPartition, int] = {}  # what the log was told to drop
        self._clock = clock
        self._rand = rand
        self._auto_flush = auto_flush
        self._on_commit = on_commit
        self._fatal_errors = fatal_errors
        self._flush_at_close = flush_at_close
        self._has_queries = has_queries
        self._reserve = reserve
        self.session = Session(
            config,
            spark_settings(config, data_folder),
            data_folder / "lake" / "scratch",
            clock,
            on_start=on_spark,
        )
        self.view = LakeView(config, data_folder, promotions)
        """What queries see of the tables."""
        self._viewed_ns = 0
        self._view_error: str | None = None
        self._catalog: Catalog | None = None
        self._appender: Appender | None = None
        self._maintenance = Maintenance(
            lambda: self.catalog,
            config,
            do_on(self.session),
            clock=clock,
            rand=rand,
            rules=rules,
            report=self._set_activity,
            owns=self._owns,
        )
        self._freezing = Freezing(
            lambda: self.catalog,
            config,
            do_on(self.session),
            data_folder,
            clock=clock,
            rand=rand,
            report=self._set_activity,
            is_disk_short=self._is_disk_short,
            set_aside=lambda unfit: self.appender.set_aside(unfit),
        )
        self._schedule = Schedule(
            self._maintenance, config.maintain_interval_ms, clock, is_disk_short=self._is_disk_short
        )
        self._jobs = JobQueue()
        self._pending_since_ns: int | None = None
        self._retry_s = RETRY_S
        self._retry_ns = 0
        self.activity: LakeActivity | None = None
        """What is being done to the tables. Set by the lake's thread, read by any."""
        self.round_count = 0
        """Rounds that committed something."""
        self.was_cut = False
        """Whether `close` abandoned the current job."""
        self.trouble: str | None = None
        """Why the last round or freeze failed, or None."""
        self.given_up: FrazilError | None = None
        """The fatal error after which no more rounds are started."""
        self.died: BaseException | None = None
        """What ended the thread. Nothing fills the tables after that."""
        self._thread = threading.Thread(target=self._guard, name="frazil-lake", daemon=True)

    @classmethod
    def open(
        cls,
        log: ReadableLog,
        data_folder: Path,
        config: LakeConfig,
        *,
        clock: Clock,
        rand: Rand,
        auto_flush: bool,
        rules: Sequence[RetentionRule] = (),
        promotions: Promotions = NO_PROMOTIONS,
        on_spark: OnSpark = lambda _, __: None,
        reserve: DiskReserve | None = None,
    ) -> Lake:
        """Start a lake that is filled from our own log. Does not wait for a catalog or Spark; the
        tables of a folder that was copied or moved are relocated first."""
        relocate(config, data_folder, rand)
        return cls(
            LogSource(log, data_folder, config.topics),
            data_folder,
            config,
            clock=clock,
            rand=rand,
            auto_flush=auto_flush,
            rules=rules,
            promotions=promotions,
            on_spark=on_spark,
            reserve=reserve,
        ).start()

    def start(self) -> Lake:
        self._thread.start()
        return self

    def flush(self) -> list[Appended]:
        """Commit all that is durable now, wait for it, and return the commits."""
        return self.submit_flush().result()

    def submit_flush(self) -> Future[list[Appended]]:
        """Like `flush`, without waiting. `close` interrupts it between two rounds."""
        return self._jobs.submit(self._flush, lambda: None)  # rounds refresh the view themselves

    def maintain(self) -> list[Maintained]:
        """Run all maintenance on all tables and return what was done. Starts Spark."""
        return self.submit_maintain().result()

    def submit_maintain(self) -> Future[list[Maintained]]:
        """Like `maintain`, without waiting."""
        return self.submit(self._maintenance.all)

    def submit_retention(self) -> Future[list[Maintained]]:
        """Flush, then remove all expired rows, also from older snapshots and from the disk."""
        return self.submit(lambda: self._after_flush(self._maintenance.apply_retention))

    def submit_erasure(self, conditions: Sequence[RowCondition]) -> Future[list[Maintained]]:
        """Flush, then remove these rows, also from older snapshots and from the disk."""
        return self.submit(lambda: self._after_flush(lambda: self._maintenance.erase(conditions)))

    def submit_count(
        self, condition: RowCondition, *, is_all: bool = False
    ) -> Future[tuple[int, int]]:
        """Count rows that match, and files that have some; with `is_all`, in all snapshots."""
        return self.submit(lambda: self._maintenance.count(condition, is_all=is_all))

    def _after_flush(self, job: Callable[[], T]) -> T:
        self._flush()
        return job()

    def run(self, job: Callable[[], T]) -> T:
        """Run a job between two rounds and wait for it; on the lake's thread itself, at once."""
        if threading.current_thread() is self._thread:
            return job()
        return self.submit(job).result()

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Like `run`, without waiting."""
        return self._jobs.submit(job, self._refresh)

    def freeze_from(self, source: KeyedSource, *, is_fatal: bool = False) -> None:
        """Freeze keyed tables, too. With `is_fatal`, their `fatal_errors` end all rounds."""
        self._freezing.attach(source, self._fatal_errors if is_fatal else ())

    def frozen_rows(
        self, definition: KeyedDefinition, partition: int, snapshot_id: int | None = None
    ) -> FrozenRows | None:
        """Return the rows of a keyed table in the lake, by default in the current snapshot."""
        from frazil.lake.keyed.read_rows import frozen_rows

        return self.run(
            lambda: frozen_rows(self.catalog, self.config, definition, partition, snapshot_id)
        )

    def _owns(self, table: str) -> bool:
        is_appended = self._appender is not None and self._appender.owns(table)
        return is_appended or self._freezing.owns(table)

    def _set_activity(self, activity: LakeActivity | None) -> None:
        self.activity = activity

    @property
    def pending_age_ms(self) -> int | None:
        """How long the oldest record that is in no table has waited, or None if there is none."""
        since_ns = self._pending_since_ns
        if since_ns is None:
            return None
        return (self._clock.monotonic_ns() - since_ns) // NS_PER_MS

    @property
    def catalog(self) -> Catalog:
        """Only for the lake's thread."""
        if self._catalog is None:
            self._catalog = open_catalog(self.config, self.data_folder)
        return self._catalog

    @property
    def appender(self) -> Appender:
        """Only for the lake's thread. The first call takes the tables over."""
        if self._appender is None:
            self._appender = Appender.open(
                self._source,
                self.catalog,
                self.config,
                run=run_on(self.session),
                clock=self._clock,
                rand=self._rand,
                report=self._set_activity,
                is_disk_short=self._is_disk_short,
                promotions=self.promotions,
            )
        return self._appender

    def _flush(self) -> list[Appended]:
        done: list[Appended] = []
        for new in self._rounds(self._freezing.flush()):
            done += new
            if self._jobs.is_closed:
                raise Unavailable("stopped before all records were committed to the tables")
        return done

    def _rounds(self, freezes: Iterable[list[Appended]] = ()) -> Iterator[list[Appended]]:
        with ExitStack() as failing:
            failing.callback(self._refresh)  # a failed round may have committed to some tables
            for new in chain(self.appender.append_all(), freezes):
                self.round_count += 1
                for commit in new:
                    self._on_commit(commit)
                self._refresh()
                yield new
            failing.pop_all()

    def _guard(self) -> None:
        try:
            self._work()
        except BaseException as error:  # top of loop: waiting jobs are still resolved
            logger.critical("lake thread died", exc_info=error)
            self.died = error
            self._jobs.close(f"its thread died: {error}")
            self._jobs.run_rest()

    def _work(self) -> None:
        check_ns = self._clock.monotonic_ns() + FIRST_CHECK_MS * NS_PER_MS
        while not self._jobs.is_closed:
            self._jobs.run_next(CHECK_S)
            # Also while jobs keep coming.
            now_ns = self._clock.monotonic_ns()
            if self._auto_flush and now_ns >= check_ns:
                self._step()
                self._maintain_step()
                check_ns = now_ns + int(CHECK_S * 1000) * NS_PER_MS
            if now_ns - self._viewed_ns >= VIEW_MS * NS_PER_MS:
                self._refresh()
        if self._auto_flush and self._flush_at_close and self.session.pid is not None:
            self._last_rounds()
        self._jobs.run_rest()

    def _step(self) -> None:
        """Run rounds if due. Failures are retried later."""
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._retry_ns:
            return
        try:
            if self._is_due(now_ns):
                for _ in self._rounds(self._freezing.step()):
                    if self._jobs.is_closed:
                        break
                self._pending_since_ns = None
        except Exception as error:  # noqa: BLE001 # top of loop: the log keeps everything
            self._fail(error, now_ns)
        else:
            self._retry_s, self.trouble = RETRY_S, self._freezing.trouble

    def _maintain_step(self) -> None:
        """Run the next step of maintenance, if due. Only expired rows are worth starting Spark."""
        has_spark = self.session.pid is not None
        if not self.config.maintain_enabled or not (has_spark or self.rules):
            return
        try:
            with tracing.span("lake.maintain") as span:
                done = self._schedule.step(has_spark=has_spark)
                if done is None or done.is_nothing:
                    span.drop()
                else:
                    span.note(table=done.table)
        except Exception as error:  # top of loop: it is due again later
            UNMAINTAINED.add(reason=type(error).__name__)
            is_known = isinstance(error, FrazilError)
            logger.error(
                "lake maintenance failed",
                extra={"reason": str(error)},
                exc_info=None if is_known else error,
            )
        else:
            if done is not None and not done.is_nothing:
                logger.info("lake maintained", extra=done.to_dict())
                self._refresh()

    def _refresh(self) -> None:
        """Update what queries see. If that fails they keep the last view, and the hot tier keeps
        the rows above it."""
        if not self._has_queries:
            return
        self._viewed_ns = self._clock.monotonic_ns()
        try:
            self.view.refresh()
            self._discard_copies()
        except Exception as error:  # noqa: BLE001 # top of loop: the last view is still valid
            if self._view_error != str(error):
                logger.warning("lake tables not refreshed", extra={"reason": str(error)})
            self._view_error = str(error)
        else:
            self._view_error = None

    def _discard_copies(self) -> None:
        """Let the log drop the records of removed rows, which nothing reads any more."""
        view = self.view.latest
        for table in () if view is None else view.tables.values():
            for partition, end in table.removed.items():
                if end > self._discarded.get(partition, 0):
                    self._source.discard(partition, end)
                    self._discarded[partition] = end

    def _is_due(self, now_ns: int) -> bool:
        pending = self.appender.pending_bytes + self._freezing.pending_bytes
        PENDING.set(pending)
        if pending == 0:
            self._pending_since_ns = None
            return False
        if self._pending_since_ns is None:
            self._pending_since_ns = now_ns
        age_ns = now_ns - self._pending_since_ns
        config = self.config
        flush_bytes = config.flush_bytes // (EARLY_FLUSHES if self._is_disk_short() else 1)
        is_full = self._reserve is not None and self._reserve.is_used()
        age_ms = min(FULL_AGE_MS, config.flush_age_ms) if is_full else config.flush_age_ms
        return pending >= flush_bytes or age_ns >= age_ms * NS_PER_MS

    def _is_disk_short(self) -> bool:
        return self._reserve is not None and self._reserve.missing_bytes() > 0

    def _fail(self, error: Exception, now_ns: int) -> None:
        FAILED.add(reason=type(error).__name__)
        is_known = isinstance(error, FrazilError)
        if self.trouble != str(error):
            logger.error(
                "lake round failed",
                extra={"reason": str(error)},
                exc_info=None if is_known else error,
            )
        self.trouble = str(error)
        if isinstance(error, self._fatal_errors):
            # With Fenced: two appenders on the same tables would fence each other in turns.
            self._auto_flush = False
            self.given_up = error
            return
        self._retry_ns = now_ns + int(self._retry_s * 1000) * NS_PER_MS
        self._retry_s = min(2 * self._retry_s, RETRY_S_MAX)

    def _last_rounds(self) -> None:
        """Commit what is pending before the close, if it is not too much."""
        try:
            if self.appender.pending_bytes <= CLOSE_BYTES_MAX:
                for _ in self._rounds():
                    continue
        except Exception as error:  # noqa: BLE001 # top of loop: the log keeps everything
            logger.warning("last lake round failed", extra={"reason": str(error)})

    def close(self, within_s: float | None = None) -> None:
        """Stop the thread, then Spark. What is not in tables stays in the log.

        Returns within `within_s` plus a second; a job still running then is abandoned.
        """
        wait_s = CLOSE_S if within_s is None else max(0.0, within_s - ABANDON_S)
        if within_s is not None and self.session.state == "starting":
            wait_s = 0.0  # no round would finish after the start in time
        self._jobs.close()
        self._thread.join(wait_s)
        self.was_cut = self._thread.is_alive()
        if self.was_cut:
            logger.warning("lake round abandoned", extra={"waited_s": wait_s})
        # Also ends an abandoned job.
        self.session.end(is_hurried=self.was_cut)
        is_view_busy = not self.view.close(ABANDON_S)
        self._thread.join(ABANDON_S)
        # A catalog with a call in progress cannot be closed.
        if self._catalog is not None and not (is_view_busy or self._thread.is_alive()):
            self._catalog.close()

    def __enter__(self) -> Lake:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
