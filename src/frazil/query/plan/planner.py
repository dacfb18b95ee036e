"""Planner: reads the plan of a query against the tables' schemas, before any rows are known.

DataFusion binds rows to a plan when it resolves a table name, and which rows a query needs follows
from its plan. So a text is planned here over empty tables, and once more over its rows where it
runs. Every optimisation beyond these two is avoided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
from datafusion import DataFrame, SessionContext

from frazil.model import MiB
from frazil.query.functions.register import QueryContext, SharedQueryContext
from frazil.query.plan.plan import QueryPlan, plan_of
from frazil.query.plan.session import (
    add_table,
    add_views,
    columns_by_table,
    open_session,
    read,
)
from frazil.query.scan.table_rows import NO_ROWS
from frazil.query.sql.dialect import EngineText
from frazil.query.sql.errors import KnownNames, frazil_error
from frazil.query.sql.table_names import tables_of

PLANNING_BYTES_MAX = 64 * MiB
"""Planning runs nothing that takes memory from the pool."""

_UNKNOWN_FUNCTION = re.compile(r"Invalid function|[Tt]able function")


class Planner:
    """Plans queries over empty tables. Thread-safe.

    In this process it has only the steady functions (`is_full` is False), so no constant of a
    query can grow while it is folded. In a worker process it has all functions.
    """

    def __init__(self, schemas: Mapping[str, pa.Schema], *, is_full: bool) -> None:
        self._context = SharedQueryContext()
        self._schemas = schemas
        self._steady = _session(schemas, self._context, is_steady=True)
        self._full = _session(schemas, self._context, is_steady=False) if is_full else None
        session = self._full or self._steady
        self.names = KnownNames(
            columns_by_table(schemas), [*session.udfs(), *session.udafs(), *session.udwfs()]
        )

    def plan(self, sql: EngineText, now_us: int, *, is_complete: bool = False) -> QueryPlan | None:
        """Return the plan of a query, or None if it calls a function this process does not have.

        `is_complete`: also make the physical plan of a query that may run outside a worker, so
        that the time this takes is all of its planning time.
        """
        self._context.now_us = now_us
        self._context.error = None
        with translated_errors(sql, self.names, self._context):
            frame = self._read(sql)
            if frame is None:
                return None
            plan = plan_of(frame, tables_of(self._schemas, sql))
            if is_complete and plan.isolation_reason is None:
                frame.execution_plan()
            return plan

    def _read(self, sql: EngineText) -> DataFrame | None:
        try:
            return read(self._session_for(self._steady, sql, is_steady=True), sql.text)
        except ValueError as error:
            if not _UNKNOWN_FUNCTION.search(str(error)):
                raise
        if self._full is None:
            return None
        return read(self._session_for(self._full, sql, is_steady=False), sql.text)

    def _session_for(
        self, shared: SessionContext, sql: EngineText, *, is_steady: bool
    ) -> SessionContext:
        """Return the shared session, or a new one for a text with topics or AS OF tables."""
        if not sql.as_ofs and not sql.topics:
            return shared
        return _session(tables_of(self._schemas, sql), self._context, is_steady=is_steady)


def _session(
    schemas: Mapping[str, pa.Schema], context: QueryContext, *, is_steady: bool
) -> SessionContext:
    session = open_session(PLANNING_BYTES_MAX, context, is_steady=is_steady)
    for name, schema in schemas.items():
        add_table(session, name, schema, NO_ROWS)
    if "metrics" in schemas:
        add_views(session)
    return session


@contextmanager
def translated_errors(sql: EngineText, names: KnownNames, context: QueryContext) -> Iterator[None]:
    """Raise what DataFusion raises inside as a `FrazilError`. Exceptions that only bugs in our own
    code raise pass unchanged."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, AssertionError, AttributeError, LookupError):
        raise
    except BaseException as error:  # noqa: BLE001 # top of loop: DataFusion's panics are no Exceptions
        raise context.error or frazil_error(error, sql, names) from None
