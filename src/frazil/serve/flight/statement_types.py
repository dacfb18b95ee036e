"""The types of a statement's parameters: those of the columns that they are compared with, or
written to. Only INSERT, UPDATE and DELETE have some: in others, `$1` is a column of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from frazil.definitions import DeleteRows, InsertRows, UpdateRows, parse_statement
from frazil.query import QueryColumns
from frazil.serve.flight.parameters import names_of, parameter_schema
from frazil.tables import KeyedTables

Describe = Callable[[str], QueryColumns]
NONE = pa.schema([])


def statement_parameters(text: str, tables: KeyedTables, describe: Describe) -> pa.Schema:
    """Return the parameters of a statement. Raises what is wrong with it."""
    if not names_of(text):
        return NONE
    statement = parse_statement(text).statement
    if not isinstance(statement, InsertRows | UpdateRows | DeleteRows):
        return NONE
    columns = tables.definition(statement.table).schema
    if isinstance(statement, InsertRows):
        found = _of_insert(statement, columns, describe)
    else:
        assigned = statement.assignments if isinstance(statement, UpdateRows) else ()
        found = _of_changes(statement.table, assigned, statement.where, columns, describe)
    known: dict[str, pa.DataType] = {}
    for name, kind in found:
        known.setdefault(name, kind)
    return parameter_schema(text, pa.schema(list(known.items())))


def _of_insert(
    statement: InsertRows, columns: pa.Schema, describe: Describe
) -> Iterator[tuple[str, pa.DataType]]:
    if statement.query:
        yield from _of_query(statement.query, describe)
    names = statement.columns or columns.names
    for row in statement.rows:
        yield from _of_values(zip(names, row, strict=False), columns)


def _of_changes(
    table: str,
    assigned: tuple[tuple[str, str], ...],
    where: str,
    columns: pa.Schema,
    describe: Describe,
) -> Iterator[tuple[str, pa.DataType]]:
    yield from _of_values(assigned, columns)
    expressions = ", ".join(["1", *(f"{value} AS c{at}" for at, (_, value) in enumerate(assigned))])
    quoted = table.replace('"', '""')
    condition = f" WHERE {where}" if where else ""
    yield from _of_query(f'SELECT {expressions} FROM "{quoted}"{condition}', describe)


def _of_values(
    values: zip[tuple[str, str]] | tuple[tuple[str, str], ...], columns: pa.Schema
) -> Iterator[tuple[str, pa.DataType]]:
    """Yield parameters that are the whole value of a column."""
    for column, value in values:
        if column in columns.names and names_of(value) and value.strip()[1:].isalnum():
            yield value.strip(), columns.field(column).type


def _of_query(text: str, describe: Describe) -> Iterator[tuple[str, pa.DataType]]:
    for field in describe(text).parameters:
        yield field.name, field.type
