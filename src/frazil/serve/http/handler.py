"""Handler: what endpoints share: components, threads, limits. Queries run in threads and are
cancelled when the client disconnects."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Literal, TypeVar

import pyarrow as pa

from frazil.errors import Overloaded, Unavailable
from frazil.httpd import ClientGone, Response, WorkerThreads
from frazil.languages import KnownLabels, MetricDirectory
from frazil.query import Ask
from frazil.results import CancelToken, Limits, Result, WriteToken, json_of
from frazil.serve.context import NodeContext, Sql
from frazil.serve.demo_process import DemoShop
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import JSON, answer_of_body
from frazil.serve.http.shared_tails import SharedTails
from frazil.serve.saved.dashboard import Dashboard
from frazil.serve.saved.files import SavedFiles
from frazil.serve.saved.query import SavedQuery
from frazil.serve.saved.view import SavedView
from frazil.settings import ServeConfig
from frazil.tables import KeyedTables

THREADS = 16
"""Concurrent requests; the query engine has its own limit."""
SPARK_THREADS = 4
"""Requests to Spark, which may take minutes: those that run, and those that are being refused."""
STATUS_THREADS = 2
"""Status, health, metrics and files of the page: they wait for no query."""
PROMQL_MAX = 4
"""PromQL queries that are evaluated at the same time; each holds its points in memory."""
TAIL_INTERVAL_S = 0.1
"""Interval between polls of live tails."""
RETRY_AFTER_MS = 1000

T = TypeVar("T")


class Handler:
    """Opened with the port, closed after it. Owned by the event loop."""

    def __init__(self, context: NodeContext, config: ServeConfig) -> None:
        self.context = context
        self.config = config
        self.demo = DemoShop(context.otlp, context.clock)
        self.dashboards = SavedFiles(context.disk, "dashboards", "dashboard", Dashboard)
        self.views = SavedFiles(context.disk, "views", "view", SavedView)
        self.queries = SavedFiles(context.disk, "queries", "query", SavedQuery)
        self.metric_directory = MetricDirectory(context.clock)
        self.known_labels = KnownLabels()
        self.promql_slots = asyncio.Semaphore(PROMQL_MAX)
        self._threads = WorkerThreads("frazil-serve", THREADS)
        self._spark_threads = WorkerThreads("frazil-serve-spark", SPARK_THREADS)
        self._status_threads = WorkerThreads("frazil-serve-status", STATUS_THREADS)
        self.tails = SharedTails(TAIL_INTERVAL_S)
        self._request_count = 0
        self._tail_count = 0
        self.is_stopping = asyncio.Event()

    @property
    def sql(self) -> Sql:
        """The query function. `Unavailable` if there is no SQL."""
        if self.context.sql is None:
            raise Unavailable("this node has no SQL: hot.enabled is false; set it to true")
        return self.context.sql

    @property
    def tables(self) -> KeyedTables:
        """The keyed tables. `Unavailable` if there are none."""
        if self.context.tables is None:
            raise Unavailable("this node has no tables: hot.enabled is false; set it to true")
        return self.context.tables

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread, within the current trace span."""
        return await self._threads.run(work)

    async def run_on_spark(self, work: Callable[[], T]) -> T:
        """Like `run`, for work that waits for Spark."""
        return await self._spark_threads.run(work)

    async def run_quickly(self, work: Callable[[], T]) -> T:
        """Like `run`, for work that waits for no query."""
        return await self._status_threads.run(work)

    async def load(self, request: ApiRequest, load: Callable[[Ask], T]) -> T:
        """Run `load` with its queries in a thread. `ClientGone` if the client disconnects."""
        token = CancelToken()
        ask = ask_with(self.sql, token, self.config.answer_bytes_max)
        async with watched(request, token):
            return await self.run(lambda: load(ask))

    async def respond(self, request: ApiRequest, load: Callable[[Ask], object]) -> Response:
        """Run `load` and return JSON, encoded off the event loop, which also acknowledges."""
        body = await self.load(request, lambda ask: json_of(load(ask)))
        return answer_of_body(body, JSON)

    async def respond_without_sql(self, work: Callable[[], object]) -> Response:
        """Run `work` in a thread and return its result as JSON."""
        return answer_of_body(await self.run(lambda: json_of(work())), JSON)

    @contextlib.contextmanager
    def admit(self) -> Iterator[None]:
        """Count a request while it is served. `Overloaded` above `serve.requests_max`."""
        if self._request_count >= self.config.requests_max:
            raise Overloaded(
                f"{self._request_count} requests are running, the limit serve.requests_max; "
                "retry in a moment",
                retry_after_ms=RETRY_AFTER_MS,
            )
        self._request_count += 1
        try:
            yield
        finally:
            self._request_count -= 1

    def take_tail(self) -> contextlib.ExitStack:
        """Count a live tail until the stack is closed. `Overloaded` above `serve.tails_max`."""
        if self._tail_count >= self.config.tails_max:
            raise Overloaded(
                f"{self._tail_count} live tails are open, the limit serve.tails_max; close one",
                retry_after_ms=RETRY_AFTER_MS,
            )
        self._tail_count += 1
        stack = contextlib.ExitStack()
        stack.callback(self._release_tail)
        return stack

    def _release_tail(self) -> None:
        self._tail_count -= 1

    def stop(self) -> None:
        """End live tails and streams."""
        self.is_stopping.set()

    def close(self) -> None:
        """Stop the demo and wait for running threads."""
        self.demo.close()
        for threads in (self._threads, self._spark_threads, self._status_threads):
            threads.close()


def run_query(
    sql: Sql,
    token: CancelToken,
    text: str,
    *,
    limits: Limits | None = None,
    engine: Literal["spark"] | None = None,
    at_least: Sequence[WriteToken] = (),
) -> Result:
    """Start a query that `token` cancels. Each query of a request has its own token, since its
    timeout must not cancel the others."""
    query_token = CancelToken()
    token.attach(query_token)
    return sql(text, limits=limits, engine=engine, cancel_token=query_token, at_least=at_least)


def ask_with(sql: Sql, token: CancelToken, bytes_max: int) -> Ask:
    """Return a function that runs a query and reads all rows, until `token` is cancelled. The rows
    of one query have at most `bytes_max` bytes."""
    limits = Limits(bytes_max=bytes_max)

    def ask(text: str) -> pa.Table:
        with run_query(sql, token, text, limits=limits) as result:
            return result.arrow()

    return ask


def disconnect(token: CancelToken) -> None:
    """Cancel the queries of a client that is gone."""
    token.cancel(Unavailable("the client disconnected"))


@contextlib.asynccontextmanager
async def watched(request: ApiRequest, token: CancelToken) -> AsyncIterator[None]:
    """Cancel `token` and raise `ClientGone` when the client disconnects. Also cancel when a
    shutdown cuts the client off: the shutdown waits for the thread."""
    watch = asyncio.create_task(request.gone())
    watch.add_done_callback(lambda task: None if task.cancelled() else disconnect(token))
    try:
        yield
    except asyncio.CancelledError:
        disconnect(token)
        raise
    except Unavailable:
        if watch.done():
            raise ClientGone from None
        raise
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch
