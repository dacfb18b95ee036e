"""SELECT over rows that are being loaded: row by row, or as a condition on all of them.

Runs in tasks of a load. A session has one table and nothing else: no files, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from datafusion import DataFrame, SessionContext

from frazil.errors import Malformed, TooLarge
from frazil.model import MiB
from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan.plan import check_scans
from frazil.query.plan.planner import translated_errors
from frazil.query.plan.session import open_session, read
from frazil.query.sql.dialect import EngineText, translate
from frazil.query.sql.errors import KnownNames

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

BYTES_MAX = 512 * MiB
"""Memory of one query in a task."""
ROW_WISE = frozenset({"Projection", "Filter", "SubqueryAlias", "TableScan", "Unnest"})
"""Nodes of plans that compute each row from one row."""
_SUBQUERY = re.compile(r"^\s*Subquery:", re.MULTILINE)
"""Subqueries are inside of expressions: only the printed plan shows them all."""
NAMED = frozenset({"Column", "Alias"})


class RowSelect:
    """A SELECT that computes each row of its result from one row of `table`. Belongs to one
    thread."""

    def __init__(self, query: str, table: str, schema: pa.Schema, *, now_us: int) -> None:
        """`Malformed` and `Unknown` as for a query, and if it combines rows."""
        # One partition keeps the rows in order.
        self._session = _Session(query, table, schema, now_us, partitions=1)
        with self._session.errors():
            frame = self._session.frame(schema.empty_table())
            _check_row_wise(frame)
            self.schema: pa.Schema = frame.schema()

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return the result for some rows, in their order."""
        with self._session.errors():
            return self._session.frame(rows).to_arrow_table()


def first_rows(
    query: str, table: str, rows: Dataset | pa.Table, *, now_us: int, count: int
) -> list[dict[str, Any]]:
    """Return the first rows of a query on all of `rows`. Raises as a query."""
    session = _Session(query, table, rows.schema, now_us)
    with session.errors():
        found: list[dict[str, Any]] = session.frame(rows).limit(count).to_arrow_table().to_pylist()
    return found


class _Session:
    """One query on one table."""

    def __init__(
        self,
        query: str,
        table: str,
        schema: pa.Schema,
        now_us: int,
        *,
        partitions: int | None = None,
    ) -> None:
        self._sql: EngineText = translate(query)
        if self._sql.as_ofs:
            raise Malformed("rows that are being loaded cannot be read AS OF a time or version")
        self._table = table
        self._context = SingleQueryContext(now_us)
        session: SessionContext = open_session(BYTES_MAX, self._context, partitions)
        self._session = session
        self._names = KnownNames(
            {table: schema.names}, [*session.udfs(), *session.udafs(), *session.udwfs()]
        )

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise what DataFusion raises inside as an error of ours."""
        try:
            with translated_errors(self._sql, self._names, self._context):
                yield
        except TooLarge as error:
            if "query.memory_bytes_max" not in str(error):
                raise
            raise TooLarge(
                f"the query needs more than {BYTES_MAX} bytes of memory for these rows; load fewer "
                "files at a time with MAX_FILES"
            ) from None

    def frame(self, rows: Dataset | pa.Table) -> DataFrame:
        """Return the query over these rows."""
        session = self._session
        session.deregister_table(self._table)
        if isinstance(rows, pa.Table):
            batches = rows.combine_chunks().to_batches() or [_empty(rows.schema)]
            session.register_record_batches(self._table, [batches])
        else:
            session.register_dataset(self._table, rows)
        return read(session, self._sql.text)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)


def _check_row_wise(frame: DataFrame) -> None:
    written = frame.logical_plan()
    kinds = [kind for kind in _kinds(written) if kind not in ROW_WISE]
    if _SUBQUERY.search(written.display_indent()):
        kinds.append("Subquery")
    if kinds:
        raise Malformed(
            "the SELECT of a load computes each row from one row of a file, but this one has "
            f"{kinds[0]}: no aggregates, DISTINCT, ORDER BY, LIMIT, window functions, joins, "
            "unions or subqueries. Load the rows, and aggregate in a view"
        )
    # Were a subquery printed otherwise some day, it would read the rows once more.
    check_scans(frame, 1)
    top = written.to_variant()
    if type(top).__name__ == "Projection":
        for expression in top.projections():
            if expression.variant_name() not in NAMED:
                raise Malformed(f"name the column {expression.schema_name()}: write … AS name")


def _kinds(plan: Any) -> list[str]:
    """Return the kinds of all nodes."""
    below = [kind for child in plan.inputs() for kind in _kinds(child)]
    return [type(plan.to_variant()).__name__, *below]
