"""Engine: one SQL text in, rows out, within limits.

    text ─> worker plans ─> prune ─> worker runs over what is left ─> rows

A text is parsed, planned and run in a worker process only. This process finds the rows: it knows
which pieces and data files there are, and skips those that cannot match.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import msgspec
import pyarrow as pa

from frazil import tracing
from frazil.definitions import Audit, CreateView, Definitions, PipeHistory
from frazil.errors import (
    Conflict,
    FrazilError,
    Malformed,
    Overloaded,
    Rejected,
    TooLarge,
    Unavailable,
    Unknown,
)
from frazil.lake import TOPIC_PREFIX
from frazil.metrics import Counter, Histogram
from frazil.model import NS_PER_MS, Clock
from frazil.query.plan.explain import preface_of, table_scans_of
from frazil.query.plan.external_scan import scan_external
from frazil.query.plan.keyed_pruning import SegmentBounds
from frazil.query.plan.plan import QueryColumns, QueryPlan
from frazil.query.plan.pruning import PrunedScan, prune
from frazil.query.run.protocol import FILES_MAX, Gone, Planned, PlanRequest
from frazil.query.run.references import references_of
from frazil.query.run.timers import Timers
from frazil.query.run.worker_pool import Worker, WorkerPool, WorkerRun
from frazil.query.scan.audit_table import AUDIT_SCHEMA
from frazil.query.scan.copy_history import COPY_HISTORY_SCHEMA
from frazil.query.scan.external import ExternalSource, external_schemas
from frazil.query.scan.keyed_tables import KeyedPins, KeyedViews, NoKeyedTables
from frazil.query.scan.pipe_history import PIPE_HISTORY_SCHEMA
from frazil.query.scan.snapshots_table import SNAPSHOTS_SCHEMA
from frazil.query.scan.tiers import Tiers
from frazil.query.sql.as_of import COPY_HISTORY, PIPE_HISTORY, SNAPSHOTS, STATEMENT_AUDIT
from frazil.query.sql.table_names import LISTING, VIEW_NAMES, tables_of
from frazil.query.sql.views import ViewDefinition, views_for
from frazil.results import CancelToken, Limits, Result, RunningQuery
from frazil.settings import QueryConfig

if TYPE_CHECKING:
    from frazil.hot import VisiblePieces
    from frazil.lake import LakeView, TopicTables
    from frazil.tables import KeyedView

RETRY_AFTER_MS = 1000
US_PER_MS = 1000
TRIES_MAX = 5
"""Attempts to start a query whose segment files are merged or evicted meanwhile."""
PLACE = "in a worker process"
RESERVED = (TOPIC_PREFIX, "_", "information_schema", "datafusion")
"""Names of views do not begin so."""
SPAN_TEXT_MAX = 1000
"""Characters of the query text in its span."""

QUERIES = Counter("frazil.query.queries", "Finished queries, by outcome.")
PIECES = Counter("frazil.query.pieces", "Pieces and data files of scanned tables: read or skipped.")
DURATION = Histogram("frazil.query.duration.ms", "Time from the call to the last row.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    """A running query, with its plan and what it reads."""

    run: RunningQuery
    plan: QueryPlan
    pruned: Mapping[str, PrunedScan]


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
        definitions: Definitions | None,
        audit: Audit | None,
        pipes: PipeHistory | None,
        external: ExternalSource | None,
        keyed: KeyedViews | None,
    ) -> None:
        self._keyed = keyed or NoKeyedTables()
        self._bounds = SegmentBounds()
        self._tiers = Tiers(snapshot, lake, topics, audit, pipes, self._keyed)
        self._lake = lake
        self._definitions = definitions
        self._topics = topics
        self._external = external
        self._schemas = {
            **schemas,
            SNAPSHOTS: SNAPSHOTS_SCHEMA,
            STATEMENT_AUDIT: AUDIT_SCHEMA,
            COPY_HISTORY: COPY_HISTORY_SCHEMA,
            PIPE_HISTORY: PIPE_HISTORY_SCHEMA,
        }
        self._config = config
        self._clock = clock
        self._timers = Timers(clock)
        self._workers = WorkerPool(self._schemas, config, self._timers)
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
        definitions: Definitions | None = None,
        audit: Audit | None = None,
        pipes: PipeHistory | None = None,
        external: ExternalSource | None = None,
        keyed: KeyedViews | None = None,
    ) -> Self:
        """Open an engine over these tables. Rows that the `lake` has are read from there, and the
        others from `snapshot`. Tables of `topics` and `external`, `keyed` tables, and views of
        `definitions`, may come and go."""
        return cls(
            snapshot,
            schemas,
            config,
            clock,
            lake,
            topics,
            definitions,
            audit,
            pipes,
            external,
            keyed,
        )

    def sql(
        self,
        text: str,
        *,
        limits: Limits | None = None,
        cancel_token: CancelToken | None = None,
        keyed_views: Mapping[str, KeyedView] | None = None,
    ) -> Result:
        """Start one query. Returns once it is planned; rows are computed while they are read.
        Pass a `cancel_token` to be able to cancel it before this returns, and `keyed_views` to read
        keyed tables as these show them.

        `Malformed` and `Unknown` say what is wrong with the text and where, `TooLarge` which limit
        it exceeds, `Overloaded` that too many queries are running.
        """
        config = limited(self._config, limits)
        self._check(text, config)
        cancel_token = cancel_token or CancelToken()
        with ExitStack() as stack:
            self._acquire_slot(config)
            stack.callback(self._slots.release)
            span = tracing.span("query.sql", text=text[:SPAN_TEXT_MAX])
            stack.callback(span.end)
            self._begin_timeout(config, cancel_token, stack)
            bytes_max = None if limits is None else limits.bytes_max
            pins = KeyedPins(self._keyed, keyed_views)
            try:
                started = self._start(text, config, cancel_token, bytes_max, pins)
            except FrazilError as error:
                QUERIES.add(outcome=type(error).__name__)
                span.note(outcome=type(error).__name__)
                raise
            closing = stack.pop_all()
        return Result(
            started.run,
            cancel_token,
            rows_max=config.rows_max,
            preface=preface_of(started.plan, started.pruned, PLACE, started.run.schema),
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

    def _begin_timeout(
        self, config: QueryConfig, cancel_token: CancelToken, stack: ExitStack
    ) -> None:
        """Cancel the query, whatever it is doing, when its time is over."""
        self._cancel_tokens.add(cancel_token)
        late = TooLarge(
            f"the query took longer than query.timeout_ms ({config.timeout_ms} ms); narrow the "
            "time, name a service, or read less"
        )
        deadline = self._timers.later(config.timeout_ms / 1000, lambda: cancel_token.cancel(late))
        stack.callback(deadline.cancel)
        stack.callback(self._note_duration, self._clock.monotonic_ns())

    def _start(
        self,
        text: str,
        config: QueryConfig,
        cancel_token: CancelToken,
        bytes_max: int | None,
        pins: KeyedPins,
    ) -> _Started:
        request = self._plan_request(text, self._views(), config, pins)
        with ExitStack() as stack:
            worker = self._workers.take()
            stack.callback(self._workers.give_back, worker)
            cancel_token.attach(worker)
            planned = self._plan(worker, request, pins)
            worker.limit_bytes(bytes_max)
            started = self._run(worker, planned, config, cancel_token, pins)
            stack.pop_all()  # the worker belongs to the run now
            stack.callback(started.run.close)
            cancel_token.attach(started.run)
            stack.pop_all()
        return started

    def _plan_request(
        self,
        text: str,
        views: Mapping[str, ViewDefinition],
        config: QueryConfig,
        pins: KeyedPins,
    ) -> PlanRequest:
        lower = text.lower()
        is_listing = any(word in lower for word in LISTING)
        used = views_for(text, views, is_listing=is_listing)
        texts = "\n".join((text, *(query for _, query in used.texts)))
        return PlanRequest(
            text=text,
            topics=self._topics_for(texts, is_listing=is_listing),
            tables=self._tables(texts, pins, is_listing=is_listing),
            keyed=tuple(pins.views),
            is_listing=is_listing,
            views=used,
            now_us=self._clock.wall_ms() * US_PER_MS,
            memory_bytes_max=config.memory_bytes_max,
        )

    def _topics_for(self, text: str, *, is_listing: bool) -> tuple[str, ...]:
        """Return the tables of topics that a text may name."""
        if self._topics is None:
            return ()
        if is_listing:
            return tuple(self._topics.names())
        return tuple(self._topics.known()) if TOPIC_PREFIX in text.lower() else ()

    def _tables(
        self, text: str, pins: KeyedPins, *, is_listing: bool
    ) -> tuple[tuple[str, bytes], ...]:
        """Return the tables that neither come from the log nor are built in and that a text may
        name, with their schemas. Those that the catalog got since are found when planning fails."""
        return (
            *pins.tables(text, is_listing=is_listing),
            *self._lake_tables(text, pins, is_listing=is_listing),
            *external_schemas(self._external, text, is_listing=is_listing),
        )

    def _lake_tables(
        self, text: str, pins: KeyedPins, *, is_listing: bool
    ) -> tuple[tuple[str, bytes], ...]:
        """Return the other tables of the lake that a text may name, such as those loaded from
        files. Keyed tables are read from their segments, also if they are frozen there."""
        if self._lake is None:
            return ()
        lower = text.lower()
        names = self._lake.other_tables() if is_listing else self._lake.known_others
        names = pins.without(name for name in names if is_listing or name in lower)
        if not names:
            return ()
        tables = self._lake.pin(names).tables
        return tuple(
            (name, tables[name].schema.serialize().to_pybytes())
            for name in names
            if tables[name].schema.names
        )

    def _views(self) -> dict[str, ViewDefinition]:
        """Return the views that users have defined."""
        if self._definitions is None:
            return {}
        return {
            each.name: ViewDefinition(
                query=each.statement.query if isinstance(each.statement, CreateView) else "",
                error=each.error,
            )
            for each in self._definitions.of_kind("view")
        }

    def table_names(self) -> set[str]:
        """Return the names of all tables and built-in views."""
        topics = () if self._topics is None else self._topics.names()
        others = () if self._lake is None else self._lake.other_tables()
        keyed, external = self._keyed.names(), self._external_names()
        return {*self._schemas, *VIEW_NAMES, *topics, *others, *keyed, *external}

    def view_names(self) -> set[str]:
        return {*VIEW_NAMES, *self._views()}

    def _external_names(self) -> Collection[str]:
        return () if self._external is None else self._external.names()

    def check_keyed_name(self, name: str) -> None:
        """Raise `Conflict` if no keyed table with this name may be created. What the lake has of a
        keyed table that was dropped is no matter: it is renamed."""
        others = () if self._lake is None else self._lake.other_tables()
        is_dropped = name in others and name not in self._keyed.names() and self._was_keyed(name)
        taken = {*self.table_names(), *self._views()}.difference((name,) if is_dropped else ())
        if name in taken or name.startswith(RESERVED):
            raise Conflict(f"{name} is the name of a table or view, or reserved; choose another")

    def _was_keyed(self, name: str) -> bool:
        """Whether a table of the lake was frozen from a keyed table."""
        assert self._lake is not None
        return self._lake.pin([name]).tables[name].table_id is not None

    def check_loaded_name(self, name: str) -> None:
        """Raise `Conflict` if no table with this name may be loaded from files."""
        topics = () if self._topics is None else self._topics.names()
        keyed, external = self._keyed.names(), self._external_names()
        taken = {*self._schemas, *VIEW_NAMES, *topics, *self._views(), *keyed, *external}
        if name in taken or name.startswith(RESERVED):
            raise Conflict(
                f"{name} is the name of a view, of a keyed or external table, of a table that is "
                "filled from the log, or reserved; choose another"
            )

    def check_external_name(self, name: str) -> None:
        """Raise `Conflict` if no external table may have this name, also if there is one."""
        taken = self.table_names().difference(self._external_names())
        if name in taken or name.startswith(RESERVED):
            raise Conflict(f"{name} is the name of a table, or reserved; choose another")

    def check_view(self, name: str, query: str) -> pa.Schema:
        """Plan a view that is to be defined, and return its columns. Nothing runs. `Conflict` if a
        table has that name; `Malformed` and `Unknown` as for a query."""
        if name in self.table_names() or name.startswith(RESERVED):
            raise Conflict(f"{name} is the name of a table, or reserved; choose another")
        views = {**self._views(), name: ViewDefinition(query=query)}
        return self.describe(f'SELECT * FROM "{name}"', views).columns

    def view_problem(self, name: str) -> str | None:
        """Return why a view cannot be read now; None if it can."""
        try:
            self.describe(f'SELECT * FROM "{name}"')
        except Rejected as error:
            return str(error)
        return None

    def describe(
        self, text: str, views: Mapping[str, ViewDefinition] | None = None
    ) -> QueryColumns:
        """Plan a query, which may have parameters. Nothing runs. Errors as for `sql`."""
        views = self._views() if views is None else views
        self._check(text, self._config)
        cancel_token = CancelToken()
        with ExitStack() as stack:
            self._acquire_slot(self._config)
            stack.callback(self._slots.release)
            self._begin_timeout(self._config, cancel_token, stack)
            worker = self._workers.take()
            stack.callback(self._workers.give_back, worker)
            cancel_token.attach(worker)
            pins = KeyedPins(self._keyed)
            planned = self._plan(worker, self._plan_request(text, views, self._config, pins), pins)
            return planned.plan.described

    def _plan(self, worker: Worker, request: PlanRequest, pins: KeyedPins) -> Planned:
        try:
            return worker.plan(request)
        except Unknown:
            # The table may be one that only the lake has; if not, the error lists all tables.
            topics = () if self._topics is None else tuple(self._topics.names())
            tables = self._tables("", pins, is_listing=True)
            if request.is_listing or not (topics or tables):
                raise
            every = msgspec.structs.replace(
                request, topics=topics, tables=tables, keyed=tuple(pins.views), is_listing=True
            )
            return worker.plan(every)

    def _run(
        self,
        worker: Worker,
        planned: Planned,
        config: QueryConfig,
        cancel_token: CancelToken,
        pins: KeyedPins,
    ) -> _Started:
        """Run a planned query over the rows of now. If a segment file is removed or replaced
        meanwhile, its rows are somewhere else: look again."""
        schemas = tables_of(self._schemas, planned.sql)
        gone = None
        for _ in range(TRIES_MAX):
            pruned = self._prune(planned, cancel_token, pins)
            with references_of(pruned, planned.plan.scans, schemas, config.apart_bytes_max) as (
                refs,
                files,
            ):
                assert len(files) <= FILES_MAX, "there are few open segments"
                started = worker.run(refs, files)
            if isinstance(started, Gone):
                gone = started
                continue
            run = WorkerRun(self._workers, worker, started)
            return _Started(run=run, plan=planned.plan, pruned=pruned)
        assert gone is not None
        raise Unavailable(f"{gone.path} cannot be read; see the log of the node, and retry")

    def _prune(
        self, planned: Planned, cancel_token: CancelToken, pins: KeyedPins
    ) -> dict[str, PrunedScan]:
        scans = planned.plan.scans
        pruned = scan_external(self._external, scans, planned.sql, cancel_token.check)
        others = [table for table in scans if table not in pruned]
        rows = self._tiers.rows(others, planned.sql, cancel_token.check, pins)
        pruned |= {
            table: prune(rows[table], scans[table].conditions, self._bounds) for table in others
        }
        read = sum(scan.read_count for scan in pruned.values())
        total = sum(scan.total_count for scan in pruned.values())
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
        """Reject new queries, cancel running ones, end the workers."""
        self._is_closed = True
        for cancel_token in list(self._cancel_tokens):
            cancel_token.cancel(Unavailable("the query engine is closed"))
        self._workers.close()
        self._timers.close()

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
        for name in ("timeout_ms", "memory_bytes_max", "rows_max")
        if (value := getattr(limits, name)) is not None
    }
    return msgspec.structs.replace(config, **lower)
