"""Planner: reads the plan of a query against the tables' schemas, before any rows are known.

DataFusion binds rows to a plan when it resolves a table name, and which rows a query needs follows
from its plan. So a text is planned here over empty tables, and once more over its rows where it
runs. Every optimisation beyond these two is avoided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow as pa
from datafusion import SessionContext

from frazil.errors import FrazilError, Unknown
from frazil.model import MiB
from frazil.query.functions.register import QueryContext, SingleQueryContext
from frazil.query.plan.plan import QueryPlan, plan_of
from frazil.query.plan.session import (
    add_table,
    add_user_views,
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
        self._kept = _Kept(self._session, {})
        self._kept_for: object = None
        session = self._session
        self.names = KnownNames(
            columns_by_table(schemas), [*session.udfs(), *session.udafs(), *session.udwfs()]
        )

    def plan(
        self, sql: EngineText, now_us: int, failures: Mapping[str, str] = MappingProxyType({})
    ) -> QueryPlan:
        """Return the plan of a query. `failures` are views that cannot be expanded, and why."""
        self._context.now_us = now_us
        self._context.error = None
        try:
            with translated_errors(sql, self.names, self._context):
                kept = self._session_for(sql, failures)
                failures = kept.failures
                session = kept.session
                return plan_of(session, read(session, sql.text), tables_of(self._schemas, sql))
        except Unknown as error:
            raise _view_error(error, failures) from None

    def _session_for(self, sql: EngineText, failures: Mapping[str, str]) -> _Kept:
        """Return the shared session, or one with the topics, views and AS OF tables of this text.
        The last one of topics and views is kept: a new one takes 7 ms."""
        if sql.as_ofs or sql.changes:
            return self._session_with_views(sql, failures)
        if not sql.topics and not sql.tables and not sql.views:
            return _Kept(self._session, failures)
        needed = (sql.topics, sql.tables, sql.views, failures)
        if self._kept_for != needed:
            self._kept = self._session_with_views(sql, failures)
            self._kept_for = needed
        return self._kept

    def _session_with_views(self, sql: EngineText, before: Mapping[str, str]) -> _Kept:
        session = _session(tables_of(self._schemas, sql), self._context)
        failures = dict(before)
        texts = dict(sql.views)
        for name, error in add_user_views(session, sql.views).items():
            view = replace(sql, text=texts[name], original=texts[name])
            failures[name] = str(_view_error(frazil_error(error, view, self.names), failures))
        return _Kept(session, failures)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A session, and the views that it does not have, with the reason."""

    session: SessionContext
    failures: Mapping[str, str]


def _view_error(error: FrazilError, failures: Mapping[str, str]) -> FrazilError:
    """Return what is wrong with a view, if `error` says that it does not exist."""
    for name, reason in failures.items():
        if re.match(rf"no table {re.escape(name)}(?!\w)", str(error)):
            return Unknown(f"view {name} cannot be read: {reason}")
    return error


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
