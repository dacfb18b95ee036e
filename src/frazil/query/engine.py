"""Engine: one SQL text in, rows out, within limits."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from frazil import tracing
from frazil.errors import FrazilError, Malformed, Overloaded, TooLarge, Unavailable, Unknown
from frazil.metrics import Counter, Histogram
from frazil.model import NS_PER_MS, Clock
from frazil.query.config import QueryConfig
from frazil.query.counts.cache import Counts
from frazil.query.counts.group_count import count_like
from frazil.query.functions.register import warm as warm_functions
from frazil.query.plan.count_rewrite import CountQuery
from frazil.query.plan.explain import parts_of, preface_of
from frazil.query.plan.isolation import is_plain
from frazil.query.plan.plan import QueryPlan
from frazil.query.plan.planner import Planner
from frazil.query.plan.projection import narrow_columns, narrowed
from frazil.query.plan.pruning import PrunedScan, prune
from frazil.query.plan.session import LISTING, VIEWS
from frazil.query.run.event_loop import EngineLoop
from frazil.query.run.local import LocalQuery, LocalRunner
from frazil.query.run.shared_memory import wanted_rows
from frazil.query.run.top_n import TopNRun, is_worthwhile
from frazil.query.run.worker_pool import Worker, WorkerPool, WorkerRun
from frazil.query.scan.snapshots_table import SNAPSHOTS_SCHEMA
from frazil.query.scan.table_rows import RowsByTable, TableRows
from frazil.query.scan.tiers import Tiers, rows_of
from frazil.query.sql.as_of import SNAPSHOTS
from frazil.query.sql.dialect import EngineText, spell
from frazil.query.sql.table_names import tables_of
from frazil.results import CancelToken, Limits, Result, RunningQuery, tokens

if TYPE_CHECKING:
    from frazil.hot import Snapshot
    from frazil.lake import LakeView, TopicTables

PLANNING_MS_MAX = 200
"""A text that took longer to plan apart is not planned here as well."""
RETRY_AFTER_MS = 1000
US_PER_MS = 1000

SHOWN_CHARACTERS = 1000
"""Of a query, in a span."""

QUERIES = Counter("frazil.query.queries", "Queries that ended, by outcome.")
PLACES = Counter("frazil.query.places", "Queries that began to run, by place: here or apart.")
PIECES = Counter("frazil.query.pieces", "Pieces of the tables that were asked: read or skipped.")
DURATION = Histogram("frazil.query.duration.ms", "From the call to the last row.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One query on its way: its text, its limits, and what stops it."""

    query: LocalQuery
    config: QueryConfig
    cancel_token: CancelToken


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """A query that runs, and what was decided on the way there."""

    run: RunningQuery
    plan: QueryPlan
    kept: Mapping[str, PrunedScan]
    place: str


class Engine:
    """Runs SQL over the pieces that `snapshot` shows, and over a lake. Any thread may ask.

    A query sees one moment: the rows that were there when it began.
    """

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        schemas: Mapping[str, pa.Schema],
        config: QueryConfig,
        clock: Clock,
        lake: LakeView | None,
        topics: TopicTables | None,
    ) -> None:
        self._tiers = Tiers(snapshot, lake, topics)
        self._topics = topics
        schemas = {**schemas, SNAPSHOTS: SNAPSHOTS_SCHEMA}
        self._schemas = schemas
        self._config = config
        self._clock = clock
        self._names = frozenset(schemas) | frozenset(VIEWS)
        self._planner = Planner(schemas, is_full=False)
        self._loop = EngineLoop()
        self._here = LocalRunner(self._loop, schemas, self._planner.names)
        self._counts = Counts()
        self._workers = WorkerPool(schemas, config, self._loop)
        self._turns = threading.BoundedSemaphore(config.concurrency_max)
        self._cancel_tokens: weakref.WeakSet[CancelToken] = weakref.WeakSet()
        self._is_closed = False

    @classmethod
    def open(
        cls,
        snapshot: Callable[[], Snapshot],
        schemas: Mapping[str, pa.Schema],
        config: QueryConfig,
        clock: Clock,
        lake: LakeView | None = None,
        topics: TopicTables | None = None,
    ) -> Self:
        """An engine over these tables, with a thread that keeps time. With a `lake`, the rows that
        it holds come from there, and those of `snapshot` count from where it ends. Tables of
        `topics` come and go while it is open."""
        return cls(snapshot, schemas, config, clock, lake, topics)

    def sql(
        self, text: str, *, limits: Limits | None = None, cancel_token: CancelToken | None = None
    ) -> Result:
        """Run one query. Returns once it is planned; rows are worked out while they are read.
        Pass a `cancel_token` to be able to cancel it before this returns.

        `Malformed` and `Unknown` say what is wrong with the text and where, `TooLarge` which limit
        it went over, `Overloaded` that too many run already.
        """
        config = self._config.within(limits)
        self._check(text, config)
        with ExitStack() as stack:
            self._take_turn(config)
            stack.callback(self._turns.release)
            span = tracing.span("query.sql", text=text[:SHOWN_CHARACTERS])
            stack.callback(span.end)
            job = self._job(text, config, cancel_token or CancelToken(), stack)
            try:
                begun = self._begin(job)
            except FrazilError as error:
                QUERIES.add(outcome=type(error).__name__)
                span.note(outcome=type(error).__name__)
                raise
            span.note(place=begun.place)
            closing = stack.pop_all()
        return Result(
            begun.run,
            job.cancel_token,
            rows_max=config.rows_max,
            preface=preface_of(begun.plan, begun.kept, begun.place, begun.run.schema),
            on_close=lambda outcome: self._finish(closing, span, outcome),
            parts=lambda: parts_of(begun.kept),
        )

    def _check(self, text: str, config: QueryConfig) -> None:
        if self._is_closed:
            raise Unavailable("the query engine is closed")
        try:
            length = len(text.encode())
        except UnicodeEncodeError as error:
            raise Malformed(f"the query has no character at {error.start + 1}") from None
        if length > config.text_bytes_max:
            raise TooLarge(
                f"the query has {length} bytes, which is more than query.text_bytes_max "
                f"({config.text_bytes_max})"
            )

    def _take_turn(self, config: QueryConfig) -> None:
        if not self._turns.acquire(timeout=config.queue_timeout_ms / 1000):
            QUERIES.add(outcome="Overloaded")
            raise Overloaded(
                f"{config.concurrency_max} queries are running, which is query.concurrency_max; "
                "close results that are not needed, or ask again later",
                retry_after_ms=RETRY_AFTER_MS,
            )

    def _job(
        self, text: str, config: QueryConfig, cancel_token: CancelToken, stack: ExitStack
    ) -> _Job:
        self._cancel_tokens.add(cancel_token)
        late = TooLarge(
            f"the query took longer than query.timeout_ms ({config.timeout_ms} ms); narrow the "
            "time, name a service, or read less"
        )
        deadline = self._loop.later(config.timeout_ms / 1000, lambda: cancel_token.cancel(late))
        stack.callback(deadline.call_off)
        stack.callback(self._note_duration, self._clock.monotonic_ns())
        query = LocalQuery(
            spelled=self._spell(text),
            moment_us=self._clock.wall_ms() * US_PER_MS,
            memory_bytes_max=config.memory_bytes_max,
        )
        return _Job(query=query, config=config, cancel_token=cancel_token)

    def _spell(self, text: str) -> EngineText:
        """The text for the engine, with the tables of topics that it names."""
        spelled = spell(text)
        if self._topics is None:
            return spelled
        names = {token.name for token in tokens(text)}
        is_listing = not names.isdisjoint(LISTING)
        found = self._topics.names() if is_listing else self._topics.known(names)
        return replace(spelled, topics=tuple(found))

    def _begin(self, job: _Job) -> _Begun:
        try:
            return self._begin_knowing(job)
        except Unknown:
            # Perhaps a table that only the lake has; if not, the answer lists all there are.
            topics = () if self._topics is None else tuple(self._topics.names())
            if set(topics) <= set(job.query.spelled.topics):
                raise
            spelled = replace(job.query.spelled, topics=topics)
            return self._begin_knowing(replace(job, query=replace(job.query, spelled=spelled)))

    def _begin_knowing(self, job: _Job) -> _Begun:
        """Plan, leave out what cannot match, run: here if that is safe, else apart."""
        plan = None
        if is_plain(job.query.spelled.text, self._names.union(job.query.spelled.topics)):
            plan = self._planner.plan(job.query.spelled, job.query.moment_us)
        if plan is None or plan.apart_reason is not None:
            return self._begin_apart(job)
        return self._begin_here(job, plan)

    def _begin_here(self, job: _Job, plan: QueryPlan) -> _Begun:
        kept = self._prune(job, plan)
        job.cancel_token.attach(None)
        run = self._run_here(job, plan, kept)
        job.cancel_token.attach(run)
        PLACES.add(place="here")
        return _Begun(run=run, plan=plan, kept=kept, place="in this process")

    def _run_here(self, job: _Job, plan: QueryPlan, kept: Mapping[str, PrunedScan]) -> RunningQuery:
        if plan.tally is not None and not plan.is_explain:
            counted = self._count_here(job, plan.tally, kept)
            if counted is not None:
                return counted
        query = job.query
        schemas = tables_of(self._schemas, query.spelled)
        columns = {
            table: narrow_columns(schemas[table], scans, query.spelled.text)
            for table, scans in plan.scans.items()
        }
        rows = {table: rows_of(found.lots) for table, found in kept.items()}

        def start(some: RowsByTable) -> RunningQuery:
            return self._here.start(query, narrowed(some, columns))

        newest = plan.newest
        if (
            newest is not None
            and newest.table in kept
            and not plan.is_explain
            and is_worthwhile(newest, kept[newest.table])
        ):
            return TopNRun(newest, kept[newest.table], rows, start)
        return start(rows)

    def _count_here(
        self, job: _Job, tally: CountQuery, kept: Mapping[str, PrunedScan]
    ) -> RunningQuery | None:
        """Count like rows first, and have the engine add the numbers up; None when that does not
        pay, or cannot be asked."""
        found = kept.get(tally.table)
        if found is None:  # a table of the engine's own, such as information_schema.routines
            return None
        schemas = tables_of(self._schemas, job.query.spelled)
        if not found.parts or not found.is_plain or not tally.suits(schemas[tally.table]):
            return None
        rows = self._counts.of(found.lots[0], tally.columns, job.cancel_token.check)
        if rows is None:
            return None
        return self._here.start_tally(job.query, tally, {tally.table: TableRows(batches=rows)})

    def _begin_apart(self, job: _Job) -> _Begun:
        with ExitStack() as stack:
            worker = self._workers.take()
            stack.callback(self._workers.give_back, worker)
            job.cancel_token.attach(worker)
            worker.begin(job.config.memory_bytes_max)
            planned = worker.plan(job.query)
            reason = planned.plan.apart_reason
            if reason is None and planned.planning_ms <= PLANNING_MS_MAX:
                return self._begin_here(job, planned.plan)
            begun = self._run_apart(job, planned.plan, worker, reason or "it takes long to plan")
            stack.pop_all()  # the process now belongs to the run
            stack.callback(begun.run.close)
            job.cancel_token.attach(begun.run)
            stack.pop_all()
        PLACES.add(place="apart")
        return begun

    def _run_apart(self, job: _Job, plan: QueryPlan, worker: Worker, reason: str) -> _Begun:
        kept = self._prune(job, plan)
        schemas = tables_of(self._schemas, job.query.spelled)
        rows = {
            table: wanted_rows(kept[table], scans, schemas[table])
            for table, scans in plan.scans.items()
        }
        cold = {table: rows_of(found.lots) for table, found in kept.items()}
        started = worker.run(rows, cold, job.config.apart_bytes_max)
        run = WorkerRun(self._workers, worker, started)
        return _Begun(run=run, plan=plan, kept=kept, place=f"in a process apart, as {reason}")

    def _prune(self, job: _Job, plan: QueryPlan) -> dict[str, PrunedScan]:
        lots = self._tiers.lots(plan.scans, job.query.spelled, job.cancel_token.check)
        kept = {table: prune(lots[table], scans.conditions) for table, scans in plan.scans.items()}
        read = sum(len(found.parts) for found in kept.values())
        all_of = sum(found.piece_count + found.file_count for found in kept.values())
        PIECES.add(read, what="read")
        PIECES.add(all_of - read, what="skipped")
        return kept

    def _note_duration(self, begin_ns: int) -> None:
        DURATION.record((self._clock.monotonic_ns() - begin_ns) / NS_PER_MS)

    def _finish(self, closing: ExitStack, span: tracing.Span, outcome: str) -> None:
        QUERIES.add(outcome=outcome)
        span.note(outcome=outcome)
        closing.close()

    def close(self) -> None:
        """Take no more queries, stop those that run, end the engine's thread and processes."""
        self._is_closed = True
        for cancel_token in list(self._cancel_tokens):
            cancel_token.cancel(Unavailable("the query engine is closed"))
        self._workers.close()
        self._loop.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def warm() -> None:
    """Compile what queries need, or load it from disk."""
    warm_functions()
    numbers = pa.array([1, 2])
    count_like([pa.record_batch({"texts": pa.array(["a", "é"]), "numbers": numbers})])
