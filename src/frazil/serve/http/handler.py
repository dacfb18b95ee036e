"""Handler: what an endpoint works with. Whatever takes long runs in threads, and ends when whoever
asked for it has left."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from frazil.errors import Overloaded, Unavailable
from frazil.httpd import ClientGone, Response, WorkerThreads
from frazil.query import Ask
from frazil.results import CancelToken, Limits, Result, json_of
from frazil.serve.config import ServeConfig
from frazil.serve.context import NodeContext, Sql
from frazil.serve.dashboards.store import DashboardFiles
from frazil.serve.demo_process import DemoShop
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import JSON, answer_of_body

THREADS = 16
"""Questions that are worked on at the same time; the engine has a limit of its own."""
RETRY_AFTER_MS = 1000

T = TypeVar("T")


class Handler:
    """Opened with the port, closed after it. Belongs to the event loop."""

    def __init__(self, rooms: NodeContext, config: ServeConfig) -> None:
        self.rooms = rooms
        self.config = config
        self.demo = DemoShop(rooms.otlp, rooms.clock)
        self.dashboards = DashboardFiles(rooms.disk)
        self._threads = WorkerThreads("frazil-serve", THREADS)
        self._request_count = 0
        self._tail_count = 0
        self.is_stopping = asyncio.Event()

    @property
    def sql(self) -> Sql:
        """What runs queries. `Unavailable` where nothing does."""
        if self.rooms.sql is None:
            raise Unavailable("there is no SQL on this node: hot.enabled is false; set it to true")
        return self.rooms.sql

    async def run(self, work: Callable[[], T]) -> T:
        """Do something in a thread, which belongs to the span that we are in."""
        return await self._threads.run(work)

    async def ask(self, request: ApiRequest, question: Callable[[Ask], T]) -> T:
        """Run a question, as many queries as it takes. `ClientGone` when the client left."""
        asking = Asking(self.sql)
        async with watched(request, asking.cancel):
            return await self.run(lambda: question(asking.ask))

    async def answer(self, request: ApiRequest, question: Callable[[Ask], object]) -> Response:
        """The same, written as JSON. None of it is done on the event loop, which has others to
        serve: acknowledgements, for one."""
        body = await self.ask(request, lambda ask: json_of(question(ask)))
        return answer_of_body(body, JSON)

    @contextlib.contextmanager
    def seat(self) -> Iterator[None]:
        """A place among the requests that are served. `Overloaded` when there is none."""
        if self._request_count >= self.config.requests_max:
            raise Overloaded(
                f"{self._request_count} requests are being served, which is serve.requests_max; "
                "ask again in a moment",
                retry_after_ms=RETRY_AFTER_MS,
            )
        self._request_count += 1
        try:
            yield
        finally:
            self._request_count -= 1

    def take_tail(self) -> contextlib.ExitStack:
        """A place among the live tails, until it is closed. `Overloaded` when there is none."""
        if self._tail_count >= self.config.tails_max:
            raise Overloaded(
                f"{self._tail_count} live tails are open, which is serve.tails_max; close one",
                retry_after_ms=RETRY_AFTER_MS,
            )
        self._tail_count += 1
        place = contextlib.ExitStack()
        place.callback(self._give_back_tail)
        return place

    def _give_back_tail(self) -> None:
        self._tail_count -= 1

    def stop(self) -> None:
        """End what never ends by itself: live tails, and streams between two pieces."""
        self.is_stopping.set()

    def close(self) -> None:
        """Wait for what is under way; nothing new is begun."""
        self.demo.close()
        self._threads.close()


class Asking:
    """The queries of one question. Asked in one thread, cancelled from any."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._lock = threading.Lock()
        self._cancel_token = CancelToken()
        self._error: Unavailable | None = None

    def begin(
        self, text: str, *, limits: Limits | None = None, is_on_spark: bool = False
    ) -> Result:
        """Run a query; its rows are worked out while they are read."""
        cancel_token = CancelToken()
        with self._lock:
            if self._error is not None:
                raise self._error
            self._cancel_token = cancel_token
        return self._sql(
            text, limits=limits, engine="spark" if is_on_spark else None, cancel_token=cancel_token
        )

    def ask(self, text: str) -> pa.Table:
        """All rows of a query."""
        with self.begin(text) as result:
            return result.arrow()

    def cancel(self) -> None:
        """End the query that runs, and let no other begin."""
        with self._lock:
            self._error = Unavailable("whoever has asked is gone")
            cancel_token = self._cancel_token
        cancel_token.cancel(self._error)


@contextlib.asynccontextmanager
async def watched(request: ApiRequest, cancel: Callable[[], None]) -> AsyncIterator[None]:
    """Cancel the work, and raise `ClientGone`, when the client disconnects meanwhile. Also
    when a shutdown cuts the client off: the work would go on in a thread the shutdown awaits."""
    watch = asyncio.create_task(request.gone())
    watch.add_done_callback(lambda task: None if task.cancelled() else cancel())
    try:
        yield
    except asyncio.CancelledError:
        cancel()
        raise
    except Unavailable:
        if watch.done():
            raise ClientGone from None
        raise
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch
