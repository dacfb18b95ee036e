"""Lake: the tables beside one log, and the thread that fills them.

    open ─> tables taken over ─> wait ─> due by size or time, or asked for ─> append ─> wait ...

Whatever the thread does to tables it does one after the other: rounds of the appender, and what
others ask it to do. Spark is started when the first round has something to do. A round that fails
is tried again later; meanwhile the log keeps what it has.
"""

from __future__ import annotations

import importlib.util
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from frazil import tracing
from frazil.errors import Fenced, FrazilError, Overloaded, Unavailable
from frazil.lake.append.appender import Appended, Appender
from frazil.lake.append.log_source import LogSource, RecordSource
from frazil.lake.append.progress import LakeActivity
from frazil.lake.catalog.catalog import open_catalog, spark_settings
from frazil.lake.config import LakeConfig
from frazil.lake.maintain.maintenance import Maintained, Maintenance
from frazil.lake.maintain.schedule import Schedule
from frazil.lake.scan.view import LakeView
from frazil.lake.spark.jars import NEEDED
from frazil.lake.spark.jobs import do_on, run_on
from frazil.lake.spark.session import OnSpark, Session
from frazil.log import Log
from frazil.metrics import Counter, Gauge
from frazil.model import NS_PER_MS, Clock, Rand

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

logger = logging.getLogger(__name__)

LOOK_S = 0.5
"""How often to look whether a round is due."""
FIRST_LOOK_MS = 1000
"""After the start: the catalog's library takes a second to load, and whoever sends and asks right
then would wait for it. Rows come into tables after a minute anyway."""
VIEW_MS = 3000
"""How often to look whether somebody else has changed the tables, such as the user's own Spark."""
RETRY_S = 1.0
RETRY_S_MAX = 60.0
JOBS_MAX = 16
"""Asked for and not done yet."""
CLOSE_BYTES_MAX = 128 * 1024 * 1024
"""Of the log, that a stop may wait for. What is more comes with the next start."""
CLOSE_S = 15.0
"""A stop waits so long for whatever is under way: a catalog that does not answer is asked for
minutes. What is left then is left as by a kill, which the tables survive."""

LEAVE_S = 1.0
"""What the thread gets to notice that Spark was taken from it."""

FAILED = Counter("frazil.lake.failures", "Rounds that failed and are tried again.")
UNMAINTAINED = Counter("frazil.lake.maintenance.failures", "Steps of maintenance that failed.")
PENDING = Gauge("frazil.lake.pending.bytes", "Bytes of the log that are not in tables yet.")

T = TypeVar("T")


class Lake:
    """Any thread may flush and ask; one opens and closes."""

    def __init__(
        self,
        feed: RecordSource,
        data_folder: Path,
        config: LakeConfig,
        clock: Clock,
        rand: Rand,
        tell: Callable[[Appended], None],
    ) -> None:
        self.config = config
        self.data_folder = data_folder
        self._feed = feed
        self._tell = tell
        self._clock = clock
        self._rand = rand
        self.session = Session(
            config, spark_settings(config, data_folder), data_folder / "lake" / "scratch", clock
        )
        self.view = LakeView(config, data_folder)
        """What queries see of the tables."""
        self._viewed_ns = 0
        self._view_trouble: str | None = None
        self._catalog: Catalog | None = None
        self._appender: Appender | None = None
        self._maintenance = Maintenance(
            lambda: self.catalog, config, do_on(self.session), clock=clock, rand=rand
        )
        self._schedule = Schedule(self._maintenance, config.maintain_interval_ms, clock)
        self._jobs: queue.Queue[Callable[[], None]] = queue.Queue(JOBS_MAX)
        self._is_closing = threading.Event()
        self._hopeless: tuple[type[FrazilError], ...] = (Fenced,)
        self.given_up: FrazilError | None = None
        """Why no round comes by itself any more."""
        self._door = threading.Lock()
        """Whoever is let in before the close is answered."""
        self._is_steady = False
        self._has_last_round = True
        self._has_queries = True
        self._pending_since_ns: int | None = None
        self._retry_s = RETRY_S
        self._retry_ns = 0
        self.round_count = 0
        """Rounds that have committed something."""
        self.was_cut = False
        """Did the close not wait for what was under way?"""
        self.died: BaseException | None = None
        """What the thread died of; nobody fills the tables since."""
        self._thread = threading.Thread(target=self._guard, name="frazil-lake", daemon=True)
        self.trouble: str | None = None
        """Why the last round failed; None when it did not."""

    @classmethod
    def open(
        cls,
        log: Log,
        data_folder: Path,
        config: LakeConfig,
        *,
        clock: Clock,
        rand: Rand,
        is_steady: bool,
        on_spark: OnSpark = lambda _, __: None,
    ) -> Lake:
        """Start the thread; nobody waits for a catalog or for Spark. With `is_steady` rounds come
        by themselves, without only when asked for. `on_spark` hears of every start of Spark, in
        the thread. `Unavailable` when something is not installed.
        """
        return cls.over(
            LogSource(log, data_folder, config.topics),
            data_folder,
            config,
            clock=clock,
            rand=rand,
            is_steady=is_steady,
            on_spark=on_spark,
        )

    @classmethod
    def over(
        cls,
        feed: RecordSource,
        data_folder: Path,
        config: LakeConfig,
        *,
        clock: Clock,
        rand: Rand,
        is_steady: bool,
        tell: Callable[[Appended], None] = lambda _: None,
        hopeless: tuple[type[FrazilError], ...] = (Fenced,),
        has_last_round: bool = True,
        has_queries: bool = True,
        on_spark: OnSpark = lambda _, __: None,
    ) -> Lake:
        """As `open`, and filled from anywhere. `tell` hears of every commit, in the thread. What is
        `hopeless` is not tried again. Without `has_last_round` a stop ends with the round in hand.
        Without `has_queries` nobody wants the view, and the tables are not looked up for it.
        """
        for module in NEEDED:
            if importlib.util.find_spec(module) is None:
                raise Unavailable(
                    f"the lake needs {module}; install it with `pip install 'frazil[lake]'`, or "
                    "set lake.enabled = false. Everything else works without"
                )
        lake = cls(feed, data_folder, config, clock, rand, tell)
        lake._is_steady = is_steady
        lake._hopeless = hopeless
        lake._has_last_round = has_last_round
        lake._has_queries = has_queries
        lake.session.on_start = on_spark
        lake._thread.start()
        return lake

    def flush(self) -> list[Appended]:
        """Commit all that is durable now. Returns when it is in the tables, and what was new."""
        return self.ask_flush().result()

    def ask_flush(self) -> Future[list[Appended]]:
        """As `flush`, without waiting. A stop cuts it short, between two rounds."""
        return self._ask(self._flush, lambda: None)  # its rounds are seen already

    def maintain(self) -> list[Maintained]:
        """Do to the tables all that can be done now, and tell what that was. Starts Spark."""
        return self.ask_maintain().result()

    def ask_maintain(self) -> Future[list[Maintained]]:
        """As `maintain`, without waiting."""
        return self.ask(self._maintenance.all)

    def run(self, job: Callable[[], T]) -> T:
        """Have the thread do something with the tables, between two rounds, and wait for it."""
        return self.ask(job).result()

    def ask(self, job: Callable[[], T]) -> Future[T]:
        """As `run`, without waiting."""
        return self._ask(job, self._refresh)

    def _ask(self, job: Callable[[], T], after: Callable[[], None]) -> Future[T]:
        """What is done `after` is done before anybody is told."""
        answer: Future[T] = Future()

        def do() -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                found = job()
            except BaseException as error:  # noqa: BLE001 # top of loop: whoever asked gets it
                after()
                answer.set_exception(error)
            else:
                after()
                answer.set_result(found)

        with self._door:
            if self._is_closing.is_set():
                raise Unavailable(
                    "the lake is closed" if self.died is None else f"its thread died: {self.died}"
                )
            try:
                self._jobs.put_nowait(do)
            except queue.Full:
                raise Overloaded(
                    f"{JOBS_MAX} jobs wait for the lake already; ask again when they are done"
                ) from None
        return answer

    @property
    def doing(self) -> LakeActivity | None:
        """What is done to the tables now; any thread may look."""
        appender = self._appender
        return self._maintenance.doing or (None if appender is None else appender.doing)

    @property
    def pending_age_ms(self) -> int | None:
        """How long the first bytes wait that no table has; None when none do."""
        since_ns = self._pending_since_ns
        if since_ns is None:
            return None
        return (self._clock.monotonic_ns() - since_ns) // NS_PER_MS

    @property
    def catalog(self) -> Catalog:
        """For the thread."""
        if self._catalog is None:
            self._catalog = open_catalog(self.config, self.data_folder)
        return self._catalog

    @property
    def appender(self) -> Appender:
        """For the thread. Opened, it has taken the tables over."""
        if self._appender is None:
            self._appender = Appender.open(
                self._feed,
                self.catalog,
                self.config,
                run=run_on(self.session),
                clock=self._clock,
                rand=self._rand,
            )
        return self._appender

    def _flush(self) -> list[Appended]:
        done: list[Appended] = []
        for new in self._rounds():
            done += new
            if self._is_closing.is_set():
                raise Unavailable("stopped before everything was known to be in the tables")
        return done

    def _rounds(self) -> Iterator[list[Appended]]:
        with ExitStack() as failing:
            failing.callback(self._refresh)  # some tables may have new rows all the same
            for new in self.appender.append_all():
                self.round_count += 1
                for each in new:
                    self._tell(each)
                self._refresh()
                yield new
            failing.pop_all()

    def _guard(self) -> None:
        try:
            self._work()
        except BaseException as error:  # top of loop: whoever waits is answered
            logger.critical("the thread of the lake has died", exc_info=error)
            self.died = error
            with self._door:
                self._is_closing.set()
            while not self._jobs.empty():
                self._jobs.get()()

    def _work(self) -> None:
        look_ns = self._clock.monotonic_ns() + FIRST_LOOK_MS * NS_PER_MS
        while not self._is_closing.is_set():
            with suppress(queue.Empty):
                self._jobs.get(timeout=LOOK_S)()
            # Also when somebody always wants something.
            now_ns = self._clock.monotonic_ns()
            if self._is_steady and now_ns >= look_ns:
                self._step()
                self._maintain_step()
                look_ns = now_ns + int(LOOK_S * 1000) * NS_PER_MS
            if now_ns - self._viewed_ns >= VIEW_MS * NS_PER_MS:
                self._refresh()
        if self._is_steady and self._has_last_round and self.session.pid is not None:
            self._finish()
        while not self._jobs.empty():
            self._jobs.get()()

    def _step(self) -> None:
        """Do a round if one is due. What fails is tried again later."""
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._retry_ns:
            return
        try:
            if self._is_due(now_ns):
                for _ in self._rounds():
                    if self._is_closing.is_set():
                        break
                self._pending_since_ns = None
        except Exception as error:  # noqa: BLE001 # top of loop: the log keeps everything
            self._fail(error, now_ns)
        else:
            self._retry_s, self.trouble = RETRY_S, None

    def _maintain_step(self) -> None:
        """Do the next bit of maintenance, if something is due. Spark is not started for it: where
        nothing was appended, nothing is to be done that could not wait."""
        if not self.config.maintain_enabled or self.session.pid is None:
            return
        try:
            with tracing.span("lake.maintain") as span:
                done = self._schedule.step()
                if done is None or done.is_nothing:
                    span.drop()
                else:
                    span.note(table=done.table)
        except Exception as error:  # top of loop: it is due again later
            UNMAINTAINED.add(reason=type(error).__name__)
            is_known = isinstance(error, FrazilError)
            logger.error(
                "the lake could not be maintained",
                extra={"reason": str(error)},
                exc_info=None if is_known else error,
            )
        else:
            if done is not None and not done.is_nothing:
                logger.info("the lake was maintained", extra=done.to_dict())
                self._refresh()

    def _refresh(self) -> None:
        """Let queries see what the tables have now. While that fails they see what they had, and
        the hot tier keeps the rest."""
        if not self._has_queries:
            return
        self._viewed_ns = self._clock.monotonic_ns()
        try:
            self.view.refresh()
        except Exception as error:  # noqa: BLE001 # top of loop: the last view is still right
            if self._view_trouble != str(error):
                logger.warning("the tables were not looked up", extra={"reason": str(error)})
            self._view_trouble = str(error)
        else:
            self._view_trouble = None

    def _is_due(self, now_ns: int) -> bool:
        pending = self.appender.pending_bytes
        PENDING.set(pending)
        if pending == 0:
            self._pending_since_ns = None
            return False
        if self._pending_since_ns is None:
            self._pending_since_ns = now_ns
        age_ns = now_ns - self._pending_since_ns
        config = self.config
        return pending >= config.flush_bytes or age_ns >= config.flush_age_ms * NS_PER_MS

    def _fail(self, error: Exception, now_ns: int) -> None:
        FAILED.add(reason=type(error).__name__)
        is_known = isinstance(error, FrazilError)
        if self.trouble != str(error):
            logger.error(
                "the lake could not be filled",
                extra={"reason": str(error)},
                exc_info=None if is_known else error,
            )
        self.trouble = str(error)
        if isinstance(error, self._hopeless):
            # As when somebody else fills these tables: two would take turns in fencing each other.
            self._is_steady = False
            self.given_up = error
            return
        self._retry_ns = now_ns + int(self._retry_s * 1000) * NS_PER_MS
        self._retry_s = min(2 * self._retry_s, RETRY_S_MAX)

    def _finish(self) -> None:
        """The last round, when Spark is there and it does not take long."""
        try:
            if self.appender.pending_bytes <= CLOSE_BYTES_MAX:
                for _ in self._rounds():
                    continue
        except Exception as error:  # noqa: BLE001 # top of loop: the log keeps everything
            logger.warning("the lake was not filled at the stop", extra={"reason": str(error)})

    def close(self, within_s: float | None = None) -> None:
        """End rounds, then Spark. What is not in tables stays in the log.

        Returns within `within_s`, or a second later; what is under way then is left as by a kill.
        """
        waits_s = CLOSE_S if within_s is None else max(0.0, within_s - LEAVE_S)
        if within_s is not None and self.session.state == "starting":
            waits_s = 0.0  # no round would fit in behind the start
        with self._door:
            self._is_closing.set()
        self._thread.join(waits_s)
        self.was_cut = self._thread.is_alive()
        if self.was_cut:
            logger.warning("the round in hand is given up", extra={"waited_s": waits_s})
        # Which also ends a job that nobody waits for any more.
        self.session.end(is_hurried=self.was_cut)
        is_left = not self.view.close(LEAVE_S)
        self._thread.join(LEAVE_S)
        # A catalog that is still being asked is left as it is.
        if self._catalog is not None and not (is_left or self._thread.is_alive()):
            self._catalog.close()

    def __enter__(self) -> Lake:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
