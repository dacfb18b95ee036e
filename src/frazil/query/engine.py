"""Engine: one SQL text in, rows out, within limits."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import msgspec
import pyarrow as pa

from frazil import tracing
from frazil.errors import FrazilError, Malformed, Overloaded, TooLarge, Unavailable, Unknown
from frazil.metrics import Counter, Histogram
from frazil.model import NS_PER_MS, Clock
from frazil.query.counts.cache import Counts
from frazil.query.counts.group_count import count_distinct
from frazil.query.functions.register import warm as warm_functions
from frazil.query.plan.explain import preface_of, table_scans_of
from frazil.query.plan.isolation import is_plain
from frazil.query.plan.plan import QueryPlan
from frazil.query.plan.planner import Planner
from frazil.query.plan.projection import narrow_columns, narrowed
from frazil.query.plan.pruning import PrunedScan, prune
from frazil.query.plan.session import LISTING, VIEWS
from frazil.query.run.event_loop import EngineLoop
from frazil.query.run.local import EngineQuery, LocalRunner
from frazil.query.run.shared_memory import matching_rows
from frazil.query.run.top_n import TopNRun, is_worthwhile
from frazil.query.run.worker_pool import Worker, WorkerPool, WorkerRun
from frazil.query.scan.snapshots_table import SNAPSHOTS_SCHEMA
from frazil.query.scan.table_rows import RowsByTable, TableRows
from frazil.query.scan.tiers import Tiers, rows_of
from frazil.query.sql.as_of import SNAPSHOTS
from frazil.query.sql.dialect import EngineText, translate
from frazil.query.sql.table_names import tables_of
from frazil.results import CancelToken, Limits, Result, RunningQuery, tokens
from frazil.settings import QueryConfig

if TYPE_CHECKING:
    from frazil.hot import VisiblePieces
    from frazil.lake import LakeView, TopicTables

PLANNING_MS_MAX = 200
"""A query that a worker planned within this time may run in this process, if it is safe."""
RETRY_AFTER_MS = 1000
US_PER_MS = 1000

SPAN_TEXT_MAX = 1000
"""Characters of the query text in its span."""

QUERIES = Counter("frazil.query.queries", "Finished queries, by outcome.")
PLACES = Counter(
    "frazil.query.places", "Started queries, by place: here (this process) or apart (a worker)."
)
PIECES = Counter("frazil.query.pieces", "Pieces and data files of scanned tables: read or skipped.")
DURATION = Histogram("frazil.query.duration.ms", "Time from the call to the last row.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One query with its limits."""

    query: EngineQuery
    config: QueryConfig
    cancel_token: CancelToken


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    """A running query, with its plan, what it reads, and where it runs."""

    run: RunningQuery
    plan: QueryPlan
    pruned: Mapping[str, PrunedScan]
    place: str


class Engine:
    """Runs SQL over the hot tier and the lake. Thread-safe.

    A query sees the rows that were visible when it started.
    """

    def __init__(
        self,
        snapshot: Callable[[], VisiblePieces],
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
        self._local = LocalRunner(self._loop, schemas, self._planner.names)
        self._counts = Counts()
        self._workers = WorkerPool(schemas, config, self._loop)
        self._slots = threading.BoundedSemaphore(config.concurrency_max)
        self._cancel_tokens: weakref.WeakSet[CancelToken] = weakref.WeakSet()
        self._is_closed = False

    @classmethod
    def open(
        cls,
        snapshot: Callable[[], VisiblePieces],
        schemas: Mapping[str, pa.Schema],
        config: QueryConfig,
        clock: Clock,
        lake: LakeView | None = None,
        topics: TopicTables | None = None,
    ) -> Self:
        """Open an engine over these tables, with an event loop thread. Rows that the `lake` has are
        read from there, and the others from `snapshot`. Tables of `topics` may come and go."""
        return cls(snapshot, schemas, config, clock, lake, topics)

    def sql(
        self, text: str, *, limits: Limits | None = None, cancel_token: CancelToken | None = None
    ) -> Result:
        """Start one query. Returns once it is planned; rows are computed while they are read.
        Pass a `cancel_token` to be able to cancel it before this returns.

        `Malformed` and `Unknown` say what is wrong with the text and where, `TooLarge` which limit
        it exceeds, `Overloaded` that too many queries are running.
        """
        config = limited(self._config, limits)
        self._check(text, config)
        with ExitStack() as stack:
            self._acquire_slot(config)
            stack.callback(self._slots.release)
            span = tracing.span("query.sql", text=text[:SPAN_TEXT_MAX])
            stack.callback(span.end)
            job = self._job(text, config, cancel_token or CancelToken(), stack)
            try:
                started = self._start(job)
            except FrazilError as error:
                QUERIES.add(outcome=type(error).__name__)
                span.note(outcome=type(error).__name__)
                raise
            span.note(place=started.place)
            closing = stack.pop_all()
        return Result(
            started.run,
            job.cancel_token,
            rows_max=config.rows_max,
            preface=preface_of(started.plan, started.pruned, started.place, started.run.schema),
            on_close=lambda outcome: self._finish(closing, span, outcome),
            parts=lambda: table_scans_of(started.pruned),
        )

    def _check(self, text: str, config: QueryConfig) -> None:
        if self._is_closed:
            raise Unavailable("the query engine is closed")
        try:
            length = len(text.encode())
        except UnicodeEncodeError as error:
            raise Malformed(f"character {error.start + 1} of the query is not Unicode") from None
        if length > config.text_bytes_max:
            raise TooLarge(
                f"the query has {length} bytes, which is more than query.text_bytes_max "
                f"({config.text_bytes_max})"
            )

    def _acquire_slot(self, config: QueryConfig) -> None:
        if not self._slots.acquire(timeout=config.queue_timeout_ms / 1000):
            QUERIES.add(outcome="Overloaded")
            raise Overloaded(
                f"{config.concurrency_max} queries are running, which is query.concurrency_max; "
                "close results that are not needed, or retry later",
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
        stack.callback(deadline.cancel)
        stack.callback(self._note_duration, self._clock.monotonic_ns())
        query = EngineQuery(
            sql=self._translate(text),
            now_us=self._clock.wall_ms() * US_PER_MS,
            memory_bytes_max=config.memory_bytes_max,
        )
        return _Job(query=query, config=config, cancel_token=cancel_token)

    def _translate(self, text: str) -> EngineText:
        """Translate a text for DataFusion and add the topics it names."""
        sql = translate(text)
        if self._topics is None:
            return sql
        names = {token.name for token in tokens(text)}
        is_listing = not names.isdisjoint(LISTING)
        topics = self._topics.names() if is_listing else self._topics.known(names)
        return replace(sql, topics=tuple(topics))

    def _start(self, job: _Job) -> _Started:
        try:
            return self._plan_and_start(job)
        except Unknown:
            # The table may be a topic that only the lake has; if not, the error lists all tables.
            topics = () if self._topics is None else tuple(self._topics.names())
            if set(topics) <= set(job.query.sql.topics):
                raise
            query = msgspec.structs.replace(job.query, sql=replace(job.query.sql, topics=topics))
            return self._plan_and_start(replace(job, query=query))

    def _plan_and_start(self, job: _Job) -> _Started:
        """Plan, prune and run: in this process if that is safe, else in a worker."""
        sql = job.query.sql
        plan = None
        if is_plain(sql.text, self._names.union(sql.topics)):
            plan = self._planner.plan(sql, job.query.now_us)
        if plan is None or plan.isolation_reason is not None:
            return self._start_isolated(job, plan)
        return self._start_local(job, plan)

    def _start_local(self, job: _Job, plan: QueryPlan) -> _Started:
        pruned = self._prune(job, plan)
        job.cancel_token.attach(None)
        run = self._run_local(job, plan, pruned)
        job.cancel_token.attach(run)
        PLACES.add(place="here")
        return _Started(run=run, plan=plan, pruned=pruned, place="in this process")

    def _run_local(
        self, job: _Job, plan: QueryPlan, pruned: Mapping[str, PrunedScan]
    ) -> RunningQuery:
        counted = self._run_count(job, plan, pruned)
        if counted is not None:
            return counted
        query = job.query
        schemas = tables_of(self._schemas, query.sql)
        columns = {
            table: narrow_columns(schemas[table], scans, query.sql.text)
            for table, scans in plan.scans.items()
        }
        rows = {table: rows_of(scan.tier_rows) for table, scan in pruned.items()}

        def start(rows: RowsByTable) -> RunningQuery:
            return self._local.start(query, plan, narrowed(rows, columns))

        top_n = plan.top_n
        if (
            top_n is not None
            and top_n.table in pruned
            and not plan.is_explain
            and is_worthwhile(top_n, pruned[top_n.table])
        ):
            return TopNRun(top_n, pruned[top_n.table], rows, start)
        return start(rows)

    def _run_count(
        self, job: _Job, plan: QueryPlan, pruned: Mapping[str, PrunedScan]
    ) -> RunningQuery | None:
        """Run a count query over cached counts of distinct rows; None if it is none, or if it has
        too many distinct rows."""
        count_query = plan.count_query
        if count_query is None or plan.is_explain:
            return None
        scan = pruned.get(count_query.table)
        if scan is None:  # a table of DataFusion's, such as information_schema.routines
            return None
        schemas = tables_of(self._schemas, job.query.sql)
        if not scan.parts or not scan.is_plain or not count_query.suits(schemas[count_query.table]):
            return None
        check = job.cancel_token.check
        batches = self._counts.of(scan.tier_rows[0], count_query.columns, check)
        if batches is None:
            return None
        rows = {count_query.table: TableRows(batches=batches)}
        return self._local.start_count(job.query, plan, rows)

    def _start_isolated(self, job: _Job, plan: QueryPlan | None) -> _Started:
        """Run a query in a worker, which also plans it if `plan` is None."""
        with ExitStack() as stack:
            worker = self._workers.take()
            stack.callback(self._workers.give_back, worker)
            job.cancel_token.attach(worker)
            worker.begin(job.config.memory_bytes_max)
            if plan is None:
                reply = worker.plan(job.query)
                plan = reply.plan
                if plan.isolation_reason is None and reply.planning_ms <= PLANNING_MS_MAX:
                    return self._start_local(job, plan)
            started = self._run_isolated(job, plan, worker)
            stack.pop_all()  # the worker belongs to the run now
            stack.callback(started.run.close)
            job.cancel_token.attach(started.run)
            stack.pop_all()
        PLACES.add(place="apart")
        return started

    def _run_isolated(self, job: _Job, plan: QueryPlan, worker: Worker) -> _Started:
        pruned = self._prune(job, plan)
        schemas = tables_of(self._schemas, job.query.sql)
        batches = {
            table: matching_rows(pruned[table], scans, schemas[table])
            for table, scans in plan.scans.items()
        }
        rows = {table: rows_of(scan.tier_rows) for table, scan in pruned.items()}
        leaf_count_max = plan.leaf_count(rows)
        reply = worker.run(job.query, batches, rows, leaf_count_max, job.config.apart_bytes_max)
        run = WorkerRun(self._workers, worker, reply)
        place = f"in a worker process: {plan.isolation_reason or 'it takes long to plan'}"
        return _Started(run=run, plan=plan, pruned=pruned, place=place)

    def _prune(self, job: _Job, plan: QueryPlan) -> dict[str, PrunedScan]:
        rows = self._tiers.rows(plan.scans, job.query.sql, job.cancel_token.check)
        pruned = {
            table: prune(rows[table], scans.conditions) for table, scans in plan.scans.items()
        }
        read = sum(len(scan.parts) for scan in pruned.values())
        total = sum(scan.piece_count + scan.file_count for scan in pruned.values())
        PIECES.add(read, what="read")
        PIECES.add(total - read, what="skipped")
        return pruned

    def _note_duration(self, begin_ns: int) -> None:
        DURATION.record((self._clock.monotonic_ns() - begin_ns) / NS_PER_MS)

    def _finish(self, closing: ExitStack, span: tracing.Span, outcome: str) -> None:
        QUERIES.add(outcome=outcome)
        span.note(outcome=outcome)
        closing.close()

    def close(self) -> None:
        """Reject new queries, cancel running ones, end the event loop thread and the workers."""
        self._is_closed = True
        for cancel_token in list(self._cancel_tokens):
            cancel_token.cancel(Unavailable("the query engine is closed"))
        self._workers.close()
        self._loop.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def limited(config: QueryConfig, limits: Limits | None) -> QueryConfig:
    """Return the settings of a query with limits of its own. They can only be lower."""
    if limits is None:
        return config
    lower = {
        name: min(value, getattr(config, name))
        for name in limits.__struct_fields__
        if (value := getattr(limits, name)) is not None
    }
    return msgspec.structs.replace(config, **lower)


def warm() -> None:
    """Compile the functions that queries call, or load them from the cache on disk."""
    warm_functions()
    numbers = pa.array([1, 2])
    count_distinct([pa.record_batch({"texts": pa.array(["a", "é"]), "numbers": numbers})])
