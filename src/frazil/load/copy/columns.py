"""Columns of a load: declared types, comments, and what a table's columns are read as."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from frazil.definitions import ColumnSpec, FormatType
from frazil.errors import Malformed
from frazil.lake import COMMENT
from frazil.load.formats.blocks import JSON_COMMENT, JSON_TEXT, written_type

TYPES = {
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
    "BINARY": pa.binary(),
    "UUID": pa.binary(16),
    "JSON": JSON_TEXT,
}
DECIMAL = re.compile(r"DECIMAL\((\d+), ?(\d+)\)")
MIXED: dict[FormatType, pa.DataType | None] = {
    "ndjson": JSON_TEXT,
    "json": JSON_TEXT,
    "csv": pa.string(),
    "text": pa.string(),
}
"""What values of several types become. Other formats have types: nothing."""


def declared_type(text: str) -> pa.DataType:
    """Return the type of a declared column."""
    decimal = DECIMAL.fullmatch(text)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if text not in TYPES:
        raise Malformed(f"{text} is not a type of columns; there are {', '.join(TYPES)}, DECIMAL")
    return TYPES[text]


def with_declared(inferred: pa.Schema, columns: Sequence[ColumnSpec]) -> pa.Schema:
    """Return the columns of a new table: the declared ones, or else all that were inferred."""
    if not columns:
        return inferred
    fields = []
    for column in columns:
        if column.type:
            fields.append(pa.field(column.name, declared_type(column.type)))
        elif column.name in inferred.names:
            fields.append(inferred.field(column.name))
        else:
            raise Malformed(f"no file has the column {column.name}; give it a type")
    return pa.schema(fields)


def with_staged(inferred: pa.Schema, columns: Sequence[ColumnSpec]) -> pa.Schema:
    """Return what files are read as: inferred columns, those with a declared type as that, and
    declared ones that no file has."""
    declared = {column.name: declared_type(column.type) for column in columns}
    fields = [pa.field(f.name, declared.pop(f.name, f.type)) for f in inferred]
    return pa.schema([*fields, *(pa.field(name, kind) for name, kind in declared.items())])


def table_columns(schema: pa.Schema) -> pa.Schema:
    """Return columns as they are in a table: JSON text is a string with a comment."""
    return pa.schema(
        [
            pa.field(
                field.name,
                written_type(field.type),
                metadata={COMMENT: JSON_COMMENT} if field.type == JSON_TEXT else None,
            )
            for field in schema
        ]
    )


def read_columns(schema: pa.Schema) -> pa.Schema:
    """Return what the columns of a table are read as; the opposite of `table_columns`."""
    fields = []
    for field in schema:
        comment = (field.metadata or {}).get(COMMENT.encode(), b"").decode()
        is_json = comment == JSON_COMMENT and field.type == pa.string()
        kind = JSON_TEXT if is_json else field.type
        fields.append(pa.field(field.name, kind, nullable=field.nullable))
    return pa.schema(fields)


def type_name(kind: pa.DataType) -> str:
    """Return a type as statements declare it; others as Arrow prints them."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return next((name for name, known in TYPES.items() if known == kind), str(kind))
