"""Planner: reads the plan of a query against the tables' schemas, before any rows are known.

DataFusion binds rows to a plan when it resolves a table name, and which rows a query needs follows
from its plan. So a text is planned here over empty tables, and once more over its rows where it
runs. Every optimisation beyond these two is avoided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
from datafusion import SessionContext

from frazil.model import MiB
from frazil.query.functions.register import QueryContext, SingleQueryContext
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


class Planner:
    """Plans queries over empty tables. Runs in a worker process, which can be killed."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self._context = SingleQueryContext(0)
        self._schemas = schemas
        self._session = _session(schemas, self._context)
        self._topics: tuple[str, ...] = ()
        self._topics_session = self._session
        session = self._session
        self.names = KnownNames(
            columns_by_table(schemas), [*session.udfs(), *session.udafs(), *session.udwfs()]
        )

    def plan(self, sql: EngineText, now_us: int) -> QueryPlan:
        """Return the plan of a query."""
        self._context.now_us = now_us
        self._context.error = None
        with translated_errors(sql, self.names, self._context):
            session = self._session_for(sql)
            return plan_of(session, read(session, sql.text), tables_of(self._schemas, sql))

    def _session_for(self, sql: EngineText) -> SessionContext:
        """Return the shared session, or one with the topics or AS OF tables of this text. The one
        of the last topics is kept: a new one takes 7 ms."""
        if sql.as_ofs:
            return _session(tables_of(self._schemas, sql), self._context)
        if sql.topics and sql.topics != self._topics:
            self._topics_session = _session(tables_of(self._schemas, sql), self._context)
            self._topics = sql.topics
        return self._topics_session if sql.topics else self._session


def _session(schemas: Mapping[str, pa.Schema], context: QueryContext) -> SessionContext:
    session = open_session(PLANNING_BYTES_MAX, context)
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
