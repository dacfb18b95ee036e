"""Rows that a caller gives, as Arrow: Arrow itself, pandas, polars, or a list of dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
from pyarrow import types

from frazil.errors import Malformed

ACCEPTED = "an Arrow table or batch, a pandas or polars DataFrame, or a list of dicts"


@runtime_checkable
class ArrowExporter(Protocol):
    """The Arrow PyCapsule interface: what pandas, polars, DuckDB and others have."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


GivenRows: TypeAlias = "pa.Table | pa.RecordBatch | ArrowExporter | Sequence[Mapping[str, Any]]"


def arrow_rows(rows: GivenRows, *, same_names: bool = False) -> pa.Table:
    """Return rows as Arrow; a slice of them is as small as its rows. With `same_names` all dicts
    must have the same names: one that is left out must not become null. Raises `Malformed` if they
    are not rows."""
    try:
        if isinstance(rows, pa.RecordBatch):
            return _with_own_values(pa.Table.from_batches([rows]))
        if isinstance(rows, ArrowExporter):
            return _with_own_values(pa.table(rows))
        return _of_dicts(rows, same_names=same_names)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise Malformed(f"the rows cannot be read: {error}; give {ACCEPTED}") from None


def _with_own_values(table: pa.Table) -> pa.Table:
    """Decode columns whose rows share values: categories, and string views as polars has them."""
    for number, column in enumerate(table.columns):
        if _shares_values(column.type):
            chunks = [_own_values(chunk) for chunk in column.chunks or [pa.array([], column.type)]]
            table = table.set_column(number, table.schema.names[number], pa.chunked_array(chunks))
    return table


def _shares_values(kind: pa.DataType) -> bool:
    return bool(
        types.is_dictionary(kind) or types.is_string_view(kind) or types.is_binary_view(kind)
    )


def _own_values(values: pa.Array) -> pa.Array:
    kind = values.type
    if types.is_dictionary(kind):
        return _own_values(values.dictionary).take(values.indices)
    if types.is_string(kind) or types.is_string_view(kind):
        return values.cast(pa.large_string())
    if types.is_binary(kind) or types.is_binary_view(kind):
        return values.cast(pa.large_binary())
    return values


def _of_dicts(rows: Sequence[Mapping[str, Any]], *, same_names: bool) -> pa.Table:
    if isinstance(rows, Mapping) or not all(isinstance(row, Mapping) for row in rows):
        raise Malformed(f"these are no rows; give {ACCEPTED}")
    names = list(dict.fromkeys(name for row in rows for name in row))
    if same_names:
        for number, row in enumerate(rows):
            if len(row) < len(names):
                missing = next(name for name in names if name not in row)
                raise Malformed(
                    f"row {number} has no {missing}, which others have; write rows that set other "
                    "columns separately"
                )
    return pa.table({name: [row.get(name) for row in rows] for name in names})
