"""Endpoints of keyed tables: define and list them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import msgspec
from msgspec import Meta

from frazil.errors import Conflict, Unknown
from frazil.httpd import HttpError, Response
from frazil.model import SystemRand, doc
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.router import NoParams
from frazil.tables import (
    KeyedTables,
    KeyedTableStatus,
    TableColumn,
    TableDefinition,
    new_definition,
)

TableName = Annotated[str, Meta(max_length=128), doc("Name of a keyed table.")]


class TableParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table."""

    table: TableName


class TablesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All keyed tables, by name."""

    tables: list[KeyedTableStatus]


class ColumnBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column."""

    name: str
    type: Annotated[str, Meta(examples=["int64", "string", "decimal(10,2)"])]
    nullable: Annotated[bool, doc("Columns of the key never are.")] = True


class TableBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A keyed table to create."""

    columns: Annotated[list[ColumnBody], Meta(min_length=1, max_length=1000)]
    key: Annotated[
        list[str], Meta(min_length=1, max_length=16), doc("Names of the key columns, in order.")
    ]
    partitions: Annotated[int, Meta(ge=1, le=256), doc("Can never be changed.")] = 1


class PutTableParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table to create."""

    table: TableName
    body: Annotated[TableBody, doc("The definition.")]


class TableAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A keyed table: its definition and how it does."""

    table: str
    columns: list[ColumnBody]
    key: list[str]
    partitions: int
    version: Annotated[int, doc("Changes of the definition so far.")]
    topic: Annotated[str, doc("Topic of the changes.")]
    status: KeyedTableStatus


async def list_tables(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """List keyed tables with watermarks, sizes and lag."""
    tables = handler.tables
    return await handler.respond_without_sql(lambda: TablesAnswer(tables=tables.statuses()))


async def one_table(handler: Handler, params: TableParams, _: ApiRequest) -> Response:
    """Return one keyed table: columns, key, watermarks."""
    tables = handler.tables
    return await handler.respond_without_sql(lambda: _answer_of(tables, params.table))


async def put_table(handler: Handler, params: PutTableParams, _: ApiRequest) -> Response:
    """Create a keyed table. Succeeds if there is one with the same definition."""
    tables = handler.tables

    def create() -> TableAnswer:
        body = params.body
        definition = new_definition(
            params.table,
            [(column.name, column.type) for column in body.columns],
            body.key,
            rand=SystemRand(),
            partitions=body.partitions,
            not_null=[column.name for column in body.columns if not column.nullable],
        )
        try:
            tables.create(definition)
        except Conflict:
            if params.table not in tables.names():
                raise
            found = tables.definition(params.table)
            if _shape(found) != _shape(definition):
                raise
        return _answer_of(tables, params.table)

    return await handler.respond_without_sql(create)


async def drop_table(handler: Handler, params: TableParams, _: ApiRequest) -> Response:
    """Drop a keyed table with its rows and changes, and return what it was."""
    tables = handler.tables

    def drop() -> TableAnswer:
        answer = _answer_of(tables, params.table)
        tables.drop(params.table)
        return answer

    return await handler.respond_without_sql(drop)


def definition_of(tables: KeyedTables, name: str) -> TableDefinition:
    try:
        return tables.definition(name)
    except Unknown as error:
        raise HttpError(HTTPStatus.NOT_FOUND, str(error)) from None


def _answer_of(tables: KeyedTables, name: str) -> TableAnswer:
    definition = definition_of(tables, name)
    return TableAnswer(
        table=name,
        columns=[_column(column) for column in definition.columns],
        key=list(definition.key),
        partitions=definition.partitions,
        version=definition.version,
        topic=definition.topic,
        status=tables.status(name),
    )


def _column(column: TableColumn) -> ColumnBody:
    return ColumnBody(name=column.name, type=column.type, nullable=column.is_nullable)


def _shape(definition: TableDefinition) -> tuple[object, ...]:
    columns = [(column.name, column.type, column.is_nullable) for column in definition.columns]
    return columns, definition.key, definition.partitions
