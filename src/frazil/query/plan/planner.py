"""Planner: from a text to what is known of the query before it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
from datafusion import DataFrame, SessionContext

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
from frazil.query.sql.errors import KnownNames, named
from frazil.query.sql.table_names import tables_of

PLANNING_BYTES_MAX = 64 * 1024 * 1024
"""Planning runs nothing that would need memory of the pool."""

_UNKNOWN_FUNCTION = re.compile(r"Invalid function|[Tt]able function")


class Planner:
    """Plans texts against the tables' schemas; there are no rows. Any thread may ask.

    In this process it knows only steady functions (`is_full` is False), so that no constant of a
    query can grow while it is worked out. A process apart knows all of them.
    """

    def __init__(self, schemas: Mapping[str, pa.Schema], *, is_full: bool) -> None:
        self._scene = SharedQueryContext()
        self._schemas = schemas
        self._steady = _session(schemas, self._scene, is_steady=True)
        self._full = _session(schemas, self._scene, is_steady=False) if is_full else None
        known = self._full or self._steady
        self.names = KnownNames(
            columns_by_table(schemas), [*known.udfs(), *known.udafs(), *known.udwfs()]
        )

    def plan(
        self, spelled: EngineText, moment_us: int, *, is_tried: bool = False
    ) -> QueryPlan | None:
        """What the plan tells; None when it has a function that is not known in this process.

        `is_tried`: work out every step up to running it, so that its time is that of planning.
        """
        self._scene.moment_us = moment_us
        self._scene.error = None
        with speaking(spelled, self.names, self._scene):
            frame = self._read(spelled)
            if frame is None:
                return None
            tables = tables_of(self._schemas, spelled)
            plan = plan_of(frame.optimized_logical_plan(), tables)
            if is_tried:
                frame.execution_plan()
            return plan

    def _read(self, spelled: EngineText) -> DataFrame | None:
        try:
            return read(self._session_for(self._steady, spelled, is_steady=True), spelled.text)
        except ValueError as error:
            if not _UNKNOWN_FUNCTION.search(str(error)):
                raise
        if self._full is None:
            return None
        return read(self._session_for(self._full, spelled, is_steady=False), spelled.text)

    def _session_for(
        self, session: SessionContext, spelled: EngineText, *, is_steady: bool
    ) -> SessionContext:
        """The session of everybody; for a text with tables of topics or of other times, one of
        its own."""
        if not spelled.as_ofs and not spelled.topics:
            return session
        schemas = tables_of(self._schemas, spelled)
        return _session(schemas, self._scene, is_steady=is_steady)


def _session(
    schemas: Mapping[str, pa.Schema], scene: QueryContext, *, is_steady: bool
) -> SessionContext:
    session = open_session(PLANNING_BYTES_MAX, scene, is_steady=is_steady)
    for name, schema in schemas.items():
        add_table(session, name, schema, NO_ROWS)
    if "metrics" in schemas:
        add_views(session)
    return session


@contextmanager
def speaking(spelled: EngineText, names: KnownNames, scene: QueryContext) -> Iterator[None]:
    """Whatever the engine raises in here becomes an error of ours. What it never raises are the
    mistakes of our own code."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, AssertionError, AttributeError, LookupError):
        raise
    except BaseException as error:  # noqa: BLE001 # top of loop: the engine's panics are no Exceptions
        raise scene.error or named(error, spelled, names) from None
