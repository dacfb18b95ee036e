"""Executor: plans and runs queries in a worker process, one at a time.

count query   over cached counts of distinct rows
top-N         over the newest few pieces, if that is enough
any other     over all rows that were not pruned
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from datafusion import SessionContext

from frazil.errors import Malformed, Unknown
from frazil.query.counts.cache import Counts
from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan.count_rewrite import count_query_of, sum_counts
from frazil.query.plan.plan import QueryPlan, check_scans
from frazil.query.plan.planner import Planner, translated_errors
from frazil.query.plan.projection import narrow_columns, narrowed, reads_no_column, without_values
from frazil.query.plan.session import (
    add_entry_spans,
    add_table,
    add_user_views,
    add_views,
    may_name_entry_spans,
    may_name_views,
    open_session,
    read,
)
from frazil.query.run.protocol import Planned, PlanRequest
from frazil.query.run.top_n import Run, TopNRun, is_worthwhile
from frazil.query.scan.parquet_scan import check_files_exist
from frazil.query.scan.table_rows import (
    NO_ROWS,
    RowsByTable,
    ScanParts,
    TableRows,
    is_plain,
    rows_of,
)
from frazil.query.sql.dialect import EngineText, translate
from frazil.query.sql.errors import KnownNames
from frazil.query.sql.table_names import tables_of
from frazil.results import tokens


class Executor:
    """Owned by the worker's main thread."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self._schemas = schemas
        self._planner = Planner(schemas)
        self._counts = Counts()

    def plan(self, request: PlanRequest) -> Planned:
        """Translate and plan a text over empty tables."""
        sql = replace(translate(request.text), views=request.views.texts)
        if request.topics or request.tables:
            names = {token.name for token in tokens(sql.expanded)}
            names |= {as_of.table for as_of in sql.as_ofs} | {call.table for call in sql.changes}
            is_all = request.is_listing
            topics = (name for name in request.topics if is_all or name in names)
            tables = (table for table in request.tables if is_all or table[0] in names)
            sql = replace(sql, topics=tuple(topics), tables=tuple(tables), keyed=request.keyed)
        return Planned(sql, self._planner.plan(sql, request.now_us, request.views.failures))

    def schemas_of(self, sql: EngineText) -> Mapping[str, pa.Schema]:
        """Return the schemas of the tables that a text can name."""
        return tables_of(self._schemas, sql)

    def start(
        self,
        request: PlanRequest,
        planned: Planned,
        scans: Mapping[str, tuple[ScanParts, ...]],
    ) -> Run:
        """Start a planned query over these rows."""
        plan = planned.plan
        query = _Query(self, request, planned.sql)
        counted = self._start_count(query, plan, scans)
        if counted is not None:
            return counted
        schemas = self.schemas_of(planned.sql)
        columns = {
            table: narrow_columns(schemas[table], table_scans, planned.sql.expanded)
            for table, table_scans in plan.scans.items()
        }
        rows = {table: rows_of(parts) for table, parts in scans.items()}
        for table, table_scans in plan.scans.items():
            is_read = table in rows
            if is_read and reads_no_column(schemas[table], table_scans, planned.sql.expanded):
                rows[table] = without_values(rows[table])

        def start(rows: RowsByTable) -> Run:
            return query.start(plan, narrowed(rows, columns))

        top_n = plan.top_n
        if top_n is not None and top_n.table in scans and not plan.is_explain:
            parts = scans[top_n.table]
            if is_worthwhile(top_n, parts):
                return TopNRun(top_n, parts[0], rows, start)
        return start(rows)

    def _start_count(
        self, query: _Query, plan: QueryPlan, scans: Mapping[str, Sequence[ScanParts]]
    ) -> Run | None:
        """Run a count query over cached counts of distinct rows; None if it is none, or if it has
        too many distinct rows."""
        count_query = plan.count_query
        if count_query is None or plan.is_explain:
            return None
        parts = scans.get(count_query.table)
        if parts is None:  # a table of DataFusion's, such as information_schema.routines
            return None
        schema = self.schemas_of(query.sql)[count_query.table]
        if not is_plain(parts) or not parts[0].parts or not count_query.suits(schema):
            return None
        if any(not set(count_query.columns).isdisjoint(part.unfilled) for part in parts[0].parts):
            return None  # their values are only in the maps
        batches = self._counts.of(parts[0], count_query.columns)
        if batches is None:
            return None
        return query.start_count(plan, {count_query.table: TableRows(batches=batches)})

    @property
    def names(self) -> KnownNames:
        return self._planner.names


class _Query:
    """One query text with its time and memory limit."""

    def __init__(self, executor: Executor, request: PlanRequest, sql: EngineText) -> None:
        self.sql = sql
        self._executor = executor
        self._request = request

    def start(self, plan: QueryPlan, rows: RowsByTable) -> SessionRun:
        """Plan the query over these rows and start it."""
        context = SingleQueryContext(self._request.now_us)
        with translated_errors(self.sql, self._executor.names, context):
            frame = read(self._session(self.sql, rows, context), self.sql.text)
            stream = frame.execute_stream()
            check_scans(frame, plan.leaf_count(rows))
            check_files_exist(scan for table in rows.values() for scan in table.scans)
        return SessionRun(self._executor.names, self.sql, context, plan.schema, stream)

    def start_count(self, plan: QueryPlan, rows: RowsByTable) -> SessionRun | None:
        """Start a count query over rows with a `_frazil_row_count` column; None if its rewritten
        text means something else."""
        sql = sum_counts(self.sql)
        if sql is None:
            return None
        context = SingleQueryContext(self._request.now_us)
        try:
            with translated_errors(sql, self._executor.names, context):
                session = self._session(sql, rows, context)
                logical = read(session, sql.text).optimized_logical_plan()
                if count_query_of(logical, is_rewritten=True) != plan.count_query:
                    return None
                frame = session.create_dataframe_from_logical_plan(logical)
                stream = frame.execute_stream()
                check_scans(frame, plan.leaf_count(rows))
        except (Malformed, Unknown):
            return None
        return SessionRun(self._executor.names, sql, context, plan.schema, stream)

    def _session(
        self, sql: EngineText, rows: RowsByTable, context: SingleQueryContext
    ) -> SessionContext:
        """Open a session with these rows for one query."""
        session = open_session(self._request.memory_bytes_max, context)
        schemas = self._executor.schemas_of(sql)
        text = sql.expanded
        has_views = "metrics" in schemas and may_name_views(text)
        lower = text.lower()
        for name, schema in schemas.items():
            # Registering takes time, and a table that the text does not name is never resolved.
            if has_views or name.lower() in lower:
                add_table(session, name, schema, rows.get(name, NO_ROWS))
        if has_views:
            add_views(session)
        elif may_name_entry_spans(text):
            add_entry_spans(session)
        add_user_views(session, sql.views)
        return session


class SessionRun:
    """A query that runs in a session of its own."""

    def __init__(
        self,
        names: KnownNames,
        sql: EngineText,
        context: SingleQueryContext,
        schema: bytes,
        stream: Any,
    ) -> None:
        self.schema = pa.ipc.read_schema(pa.py_buffer(schema))
        self._names = names
        self._sql = sql
        self._context = context
        self._stream = stream

    def next(self) -> pa.RecordBatch | None:
        with translated_errors(self._sql, self._names, self._context):
            batch = next(self._stream, None)
        return None if batch is None else batch.to_pyarrow()
