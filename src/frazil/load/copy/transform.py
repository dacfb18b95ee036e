"""The SELECT of a load: computes the rows to load from the rows of a file, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from frazil.definitions import STAGED_ROWS
from frazil.errors import Malformed
from frazil.load.formats.blocks import Block, target_types
from frazil.load.formats.typed_cast import cast_rows, check_columns, table_schema


class PlannedSelect(Protocol):
    """A planned SELECT. `frazil.query.open_row_select` returns one."""

    schema: pa.Schema
    """Columns of the result."""

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return the result for some rows, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """A SELECT on `staged_rows`."""

    query: str
    schema: pa.Schema
    """What the files are read as; no columns if they have none."""
    is_exact: bool
    """Whether that was inferred from these files."""
    now_us: int
    """The same for all tasks of a load."""

    def open(self) -> PlannedSelect:
        """Plan it. Only in tasks: this loads DataFusion."""
        from frazil.query import open_row_select

        staged = target_types(self.schema)
        return open_row_select(self.query, STAGED_ROWS, staged, now_us=self.now_us)


def without_rows(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the errors of a file that has no columns. `Malformed` if it has rows."""
    for block in blocks:
        if block.rows.num_rows:
            raise Malformed("its rows have no fields that the SELECT could read")
        yield block


def run_plan_task(transform: Transform) -> pa.Schema:
    """Return the columns of the result, with types that a table can have."""
    return table_schema(transform.open().schema)


def transformed(
    blocks: Iterable[Block], select: PlannedSelect, schema: pa.Schema
) -> Iterator[Block]:
    """Yield the rows to load, with the types of a table. `line` of their errors is the number of
    the row in the result."""
    check_columns(select.schema, schema)
    row = 1
    for block in blocks:
        rows = select.rows(block.rows).combine_chunks()
        columns = {
            name: column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        }
        cast = cast_rows(columns, rows.num_rows, schema, row)
        row += rows.num_rows
        yield replace(cast, errors=(*block.errors, *cast.errors))
