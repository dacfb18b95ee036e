"""Queries over rows that are being loaded, for tasks of a load: only these load DataFusion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset

    from frazil.query.run.staged_rows import RowSelect


def open_row_select(query: str, table: str, schema: pa.Schema, *, now_us: int) -> RowSelect:
    """Return a SELECT that computes each row of its result from one row of `table`. `Malformed` and
    `Unknown` as for a query, and if it combines rows."""
    from frazil.query.run.staged_rows import RowSelect

    return RowSelect(query, table, schema, now_us=now_us)


def first_rows(
    query: str, table: str, rows: Dataset | pa.Table, *, now_us: int, count: int
) -> list[dict[str, Any]]:
    """Return the first rows of a query on all of `rows`. Raises as a query."""
    from frazil.query.run import staged_rows

    return staged_rows.first_rows(query, table, rows, now_us=now_us, count=count)
