"""LocalRunner: runs queries in this process, each in a DataFusion session of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import msgspec
import pyarrow as pa
from datafusion import SessionContext

from frazil.errors import FrazilError, Malformed, Unavailable, Unknown
from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan.count_rewrite import count_query_of, sum_counts
from frazil.query.plan.plan import QueryPlan, check_scans
from frazil.query.plan.planner import translated_errors
from frazil.query.plan.session import (
    add_table,
    add_views,
    may_name_views,
    open_session,
    read,
)
from frazil.query.run.event_loop import EngineLoop
from frazil.query.scan.parquet_scan import check_files_exist
from frazil.query.scan.table_rows import NO_ROWS, RowsByTable
from frazil.query.sql.dialect import EngineText
from frazil.query.sql.errors import KnownNames
from frazil.query.sql.table_names import tables_of


class EngineQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One query text with its time and memory limit."""

    sql: EngineText
    now_us: int
    memory_bytes_max: int


class LocalRunner:
    """Starts queries in this process. Thread-safe."""

    def __init__(
        self, loop: EngineLoop, schemas: Mapping[str, pa.Schema], names: KnownNames
    ) -> None:
        self.loop = loop
        self.names = names
        self._schemas = schemas

    def start(self, query: EngineQuery, plan: QueryPlan, rows: RowsByTable) -> LocalRun:
        """Plan the query over these rows and start it."""
        context = SingleQueryContext(query.now_us)
        with translated_errors(query.sql, self.names, context):
            frame = read(session_with(query, rows, self._schemas, context), query.sql.text)
            schema = frame.schema()
            stream = frame.execute_stream()
            check_scans(frame, plan.leaf_count(rows))
            check_files_exist(scan for table in rows.values() for scan in table.scans)
        return LocalRun(self, query, context, schema, stream.rbs)

    def start_count(
        self, query: EngineQuery, plan: QueryPlan, rows: RowsByTable
    ) -> LocalRun | None:
        """Start a count query over rows with a `_frazil_row_count` column; None if its rewritten
        text means something else."""
        sql = sum_counts(query.sql)
        if sql is None:
            return None
        context = SingleQueryContext(query.now_us)
        rewritten = msgspec.structs.replace(query, sql=sql)
        try:
            with translated_errors(sql, self.names, context):
                session = session_with(rewritten, rows, self._schemas, context)
                logical = read(session, sql.text).optimized_logical_plan()
                if count_query_of(logical, is_rewritten=True) != plan.count_query:
                    return None
                frame = session.create_dataframe_from_logical_plan(logical)
                stream = frame.execute_stream()
                check_scans(frame, plan.leaf_count(rows))
        except (Malformed, Unknown):
            return None
        schema = pa.ipc.read_schema(pa.py_buffer(plan.schema))
        return LocalRun(self, rewritten, context, schema, stream.rbs)


def session_with(
    query: EngineQuery,
    rows: RowsByTable,
    schemas: Mapping[str, pa.Schema],
    context: SingleQueryContext,
) -> SessionContext:
    """Open a session with these rows for one query."""
    session = open_session(query.memory_bytes_max, context)
    text = query.sql.text
    has_views = "metrics" in schemas and may_name_views(text)
    for name, schema in tables_of(schemas, query.sql).items():
        # Registering takes time, and a table that the text does not name is never resolved.
        if has_views or name in text.lower():
            add_table(session, name, schema, rows.get(name, NO_ROWS))
    if has_views:
        add_views(session)
    return session


class LocalRun:
    """A query that runs in this process. Private methods run in the event loop's thread."""

    is_cut = False

    def __init__(
        self,
        runner: LocalRunner,
        query: EngineQuery,
        context: SingleQueryContext,
        schema: pa.Schema,
        stream: Any,
    ) -> None:
        self.schema = schema
        self._runner = runner
        self._query = query
        self._context = context
        self._stream: Any = stream
        self._pending: asyncio.Future[Any] | None = None
        self._reply: Future[Any] | None = None
        self._error: FrazilError | None = None

    def next(self) -> pa.RecordBatch | None:
        reply: Future[Any] = Future()
        with translated_errors(self._query.sql, self._runner.names, self._context):
            if not self._runner.loop.run(lambda: self._request(reply)):
                raise Unavailable("the query engine is closed")
            batch = reply.result()
        return None if batch is None else batch.to_pyarrow()

    def _request(self, reply: Future[Any]) -> None:
        if self._error is not None:
            reply.set_exception(self._error)
        elif self._stream is None:
            reply.set_result(None)
        else:
            self._reply = reply
            pending = self._pending = self._stream.__anext__()
            pending.add_done_callback(self._respond)
            self._runner.loop.track(pending)

    def _respond(self, pending: asyncio.Future[Any]) -> None:
        reply, self._reply, self._pending = self._reply, None, None
        if reply is None:
            return
        if pending.cancelled():
            reply.set_exception(Unavailable("the query engine is closed"))
            return
        error = pending.exception()
        if error is None:
            reply.set_result(pending.result())
            return
        self._stream = None
        if isinstance(error, StopAsyncIteration):
            reply.set_result(None)
        else:
            reply.set_exception(error)

    def cancel(self, error: FrazilError) -> None:
        self._error = self._context.error = self._error or error
        self._runner.loop.run(self._end)

    def close(self) -> None:
        self._runner.loop.run(self._end)

    def _end(self) -> None:
        """Answer a waiting reader at once; DataFusion stops at its next yield point."""
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.set_exception(self._error or Unavailable("the result was closed"))
        if self._pending is not None:
            self._pending.cancel()
        self._stream = None
