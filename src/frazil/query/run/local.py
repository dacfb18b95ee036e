"""Running a query in this process: a session of its own, read batch by batch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from datafusion import DataFrame

from frazil.errors import FrazilError, Malformed, Unavailable, Unknown
from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan.count_rewrite import CountQuery, added_up, tally_of
from frazil.query.plan.planner import speaking
from frazil.query.plan.session import (
    add_table,
    add_views,
    may_name_views,
    open_session,
    read,
)
from frazil.query.run.event_loop import EngineLoop
from frazil.query.scan.parquet_scan import check_there
from frazil.query.scan.table_rows import NO_ROWS, RowsByTable
from frazil.query.sql.dialect import EngineText
from frazil.query.sql.errors import KnownNames
from frazil.query.sql.table_names import tables_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQuery:
    """One text to run, and what it may take."""

    spelled: EngineText
    moment_us: int
    memory_bytes_max: int


class LocalRunner:
    """This process as a place to run queries in."""

    def __init__(
        self, loop: EngineLoop, schemas: Mapping[str, pa.Schema], names: KnownNames
    ) -> None:
        self.loop = loop
        self.names = names
        self._schemas = schemas

    def start(self, query: LocalQuery, rows: RowsByTable) -> LocalRun:
        """Plan the query over these rows and begin to run it."""
        scene = SingleQueryContext(query.moment_us)
        with speaking(query.spelled, self.names, scene):
            frame = frame_of(query, rows, self._schemas, scene)
            schema = frame.schema()
            stream = frame.execute_stream()
            check_there(scan for some in rows.values() for scan in some.scans)
        return LocalRun(self, query, scene, schema, stream.rbs)

    def start_tally(
        self, query: LocalQuery, tally: CountQuery, rows: RowsByTable
    ) -> LocalRun | None:
        """Begin to run a query that counts, over rows that each stand for some; None when it
        cannot be asked that way."""
        spelled = added_up(query.spelled)
        if spelled is None:
            return None
        asked = replace(query, spelled=spelled)
        scene = SingleQueryContext(query.moment_us)
        try:
            with speaking(spelled, self.names, scene):
                schema = frame_of(query, {}, self._schemas, scene).schema()
                frame = frame_of(asked, rows, self._schemas, scene)
                if tally_of(frame.optimized_logical_plan(), is_added_up=True) != tally:
                    return None
                stream = frame.execute_stream()
        except (Malformed, Unknown):
            return None
        return LocalRun(self, asked, scene, schema, stream.rbs)


def frame_of(
    query: LocalQuery,
    rows: RowsByTable,
    schemas: Mapping[str, pa.Schema],
    scene: SingleQueryContext,
) -> DataFrame:
    """The query, planned in a session of its own that has these rows."""
    session = open_session(query.memory_bytes_max, scene)
    text = query.spelled.text
    has_views = "metrics" in schemas and may_name_views(text)
    for name, schema in tables_of(schemas, query.spelled).items():
        # A table that the text does not name is not looked for, and need not be set up.
        if has_views or name in text.lower():
            add_table(session, name, schema, rows.get(name, NO_ROWS))
    if has_views:
        add_views(session)
    return read(session, text)


class LocalRun:
    """A query in this process. What begins with an underscore happens in the loop's thread."""

    is_cut = False

    def __init__(
        self,
        here: LocalRunner,
        query: LocalQuery,
        scene: SingleQueryContext,
        schema: pa.Schema,
        stream: Any,
    ) -> None:
        self.schema = schema
        self._here = here
        self._query = query
        self._scene = scene
        self._stream: Any = stream
        self._pending: asyncio.Future[Any] | None = None
        self._answer: Future[Any] | None = None
        self._error: FrazilError | None = None

    def next(self) -> pa.RecordBatch | None:
        answer: Future[Any] = Future()
        with speaking(self._query.spelled, self._here.names, self._scene):
            if not self._here.loop.run(lambda: self._ask(answer)):
                raise Unavailable("the query engine is closed")
            found = answer.result()
        return None if found is None else found.to_pyarrow()

    def _ask(self, answer: Future[Any]) -> None:
        if self._error is not None:
            answer.set_exception(self._error)
        elif self._stream is None:
            answer.set_result(None)
        else:
            self._answer = answer
            pending = self._pending = self._stream.__anext__()
            pending.add_done_callback(self._tell)
            self._here.loop.await_for(pending)

    def _tell(self, pending: asyncio.Future[Any]) -> None:
        answer, self._answer, self._pending = self._answer, None, None
        if answer is None:
            return
        if pending.cancelled():
            answer.set_exception(Unavailable("the query engine is closed"))
            return
        error = pending.exception()
        if error is None:
            answer.set_result(pending.result())
            return
        self._stream = None
        if isinstance(error, StopAsyncIteration):
            answer.set_result(None)
        else:
            answer.set_exception(error)

    def cancel(self, error: FrazilError) -> None:
        self._error = self._scene.error = self._error or error
        self._here.loop.run(self._end)

    def close(self) -> None:
        self._here.loop.run(self._end)

    def _end(self) -> None:
        """Whoever waits is told at once; the engine stops when it next looks up."""
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.set_exception(self._error or Unavailable("the result was closed"))
        if self._pending is not None:
            self._pending.cancel()
        self._stream = None
