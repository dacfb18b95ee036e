"""Catalogs, schemas, tables and keys, as tables. There is one catalog with one schema: their names
may be written before that of a table, and tools do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

import pyarrow as pa

from frazil.errors import Rejected, Unavailable
from frazil.query import QueryColumns
from frazil.serve.proto_messages import Message
from frazil.tables import KeyedTables

CATALOG, SCHEMA = "datafusion", "public"
TABLE, VIEW = "TABLE", "VIEW"

UTF8, INT32, UINT8 = pa.string(), pa.int32(), pa.uint8()


def _required(name: str, kind: pa.DataType = UTF8) -> pa.Field:
    return pa.field(name, kind, nullable=False)


CATALOGS = pa.schema([_required("catalog_name")])
SCHEMAS = pa.schema([("catalog_name", UTF8), _required("db_schema_name")])
TABLES = pa.schema(
    [
        ("catalog_name", UTF8),
        ("db_schema_name", UTF8),
        _required("table_name"),
        _required("table_type"),
    ]
)
TABLES_WITH_SCHEMA = TABLES.append(_required("table_schema", pa.binary()))
TABLE_TYPES = pa.schema([_required("table_type")])
PRIMARY_KEYS = pa.schema(
    [
        ("catalog_name", UTF8),
        ("db_schema_name", UTF8),
        _required("table_name"),
        _required("column_name"),
        _required("key_sequence", INT32),
        ("key_name", UTF8),
    ]
)
FOREIGN_KEYS = pa.schema(
    [
        ("pk_catalog_name", UTF8),
        ("pk_db_schema_name", UTF8),
        _required("pk_table_name"),
        _required("pk_column_name"),
        ("fk_catalog_name", UTF8),
        ("fk_db_schema_name", UTF8),
        _required("fk_table_name"),
        _required("fk_column_name"),
        _required("key_sequence", INT32),
        ("fk_key_name", UTF8),
        ("pk_key_name", UTF8),
        _required("update_rule", UINT8),
        _required("delete_rule", UINT8),
    ]
)


class CatalogSource(Protocol):
    """What knows the tables."""

    def table_names(self) -> Iterable[str]: ...

    def view_names(self) -> Iterable[str]: ...

    def describe(self, text: str) -> QueryColumns: ...


def catalogs() -> pa.Table:
    return _table(CATALOGS, [(CATALOG,)])


def schemas(command: Message) -> pa.Table:
    rows = [(CATALOG, SCHEMA)] if _is_here(command, "db_schema_filter_pattern") else []
    return _table(SCHEMAS, rows)


def table_types() -> pa.Table:
    return _table(TABLE_TYPES, [(TABLE,), (VIEW,)])


def tables(source: CatalogSource, command: Message) -> pa.Table:
    """Return the tables and views that match, by type and name, with their columns if asked for."""
    schema = TABLES_WITH_SCHEMA if command.include_schema else TABLES
    views = set(source.view_names())
    names = sorted({*source.table_names(), *views})
    rows = [
        (CATALOG, SCHEMA, name, VIEW if name in views else TABLE)
        for name in names
        if _is_here(command, "db_schema_filter_pattern")
        and _matches(name, command, "table_name_filter_pattern")
    ]
    wanted = set(command.table_types)
    rows = sorted(
        (row for row in rows if not wanted or row[3] in wanted), key=lambda row: row[3:1:-1]
    )
    if not command.include_schema:
        return _table(schema, rows)
    return _table(schema, [(*row, _columns_of(source, row[2])) for row in rows])


def table_schema(command: Message) -> pa.Schema:
    return TABLES_WITH_SCHEMA if command.include_schema else TABLES


def primary_keys(keyed: KeyedTables, command: Message) -> pa.Table:
    """Return the key columns of a keyed table; no other table has a key."""
    if command.table not in keyed.names() or not _is_named(command):
        return _table(PRIMARY_KEYS, [])
    key = keyed.definition(command.table).key
    return _table(
        PRIMARY_KEYS,
        [(CATALOG, SCHEMA, command.table, name, at, None) for at, name in enumerate(key, 1)],
    )


def foreign_keys() -> pa.Table:
    """Return the foreign keys: there are none."""
    return _table(FOREIGN_KEYS, [])


def _columns_of(source: CatalogSource, name: str) -> bytes:
    """Return the columns of a table as Arrow IPC; none of a view that cannot be read now."""
    quoted = name.replace('"', '""')
    try:
        columns = source.describe(f'SELECT * FROM "{quoted}"').columns
    except (Rejected, Unavailable):
        columns = pa.schema([])
    body: bytes = columns.serialize().to_pybytes()
    return body


def _is_here(command: Message, pattern: str) -> bool:
    """Whether a filter includes our catalog and schema."""
    is_catalog = not command.HasField("catalog") or command.catalog in ("", CATALOG)
    return is_catalog and _matches(SCHEMA, command, pattern)


def _is_named(command: Message) -> bool:
    is_catalog = not command.HasField("catalog") or command.catalog in ("", CATALOG)
    return is_catalog and (not command.HasField("db_schema") or command.db_schema in ("", SCHEMA))


def _matches(name: str, command: Message, field: str) -> bool:
    """Whether a name matches a pattern of LIKE, with a backslash before a literal `%` or `_`."""
    if not command.HasField(field):
        return True
    signs = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|.", getattr(command, field), re.DOTALL)
    pattern = "".join(
        signs.get(part) or re.escape(part[1:] if len(part) > 1 else part) for part in parts
    )
    return re.fullmatch(pattern, name, re.DOTALL) is not None


def _table(schema: pa.Schema, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )
