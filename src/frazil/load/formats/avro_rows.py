"""Avro object container files, by fastavro."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

import pyarrow as pa

from frazil.errors import Malformed
from frazil.load.formats.avro_zstd import without_zstd
from frazil.load.formats.blocks import Block
from frazil.load.formats.type_merge import DEPTH_MAX
from frazil.load.formats.typed_cast import cast_rows, check_columns, table_schema

BATCH_ROWS = 8 * 1024

PRIMITIVE = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}


def infer_avro(stream: IO[bytes]) -> pa.Schema:
    return table_schema(_schema(_reader(stream)))


def read_avro(stream: IO[bytes], schema: pa.Schema) -> Iterator[Block]:
    """Yield all rows with the types of a table. `Malformed` if the columns do not fit."""
    reader = _reader(stream)
    found = _schema(reader)
    check_columns(found, schema)
    row = 1
    while records := _records(reader):
        columns = {
            field.name: _array([_plain(record[field.name]) for record in records], field)
            for field in found
        }
        yield cast_rows(columns, len(records), schema, row)
        row += len(records)


def _reader(stream: IO[bytes]) -> Any:
    import fastavro

    try:
        return fastavro.reader(without_zstd(stream))
    except (ValueError, EOFError, KeyError) as error:
        raise Malformed(f"it is not an Avro file: {error}") from error


def _records(reader: Any) -> list[dict[str, Any]]:
    try:
        return list(islice(reader, BATCH_ROWS))
    except (ValueError, EOFError, OverflowError, IndexError) as error:
        raise Malformed(f"the Avro file is damaged: {error}") from error


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise Malformed(f"column {field.name} of the Avro file is damaged: {error}") from error


def _plain(value: Any) -> Any:
    """Return a value as Arrow takes it: UUIDs as text."""
    import uuid

    return str(value) if isinstance(value, uuid.UUID) else value


def _schema(reader: Any) -> pa.Schema:
    written = reader.writer_schema
    if not isinstance(written, dict) or written.get("type") != "record":
        raise Malformed("the Avro file does not hold records")
    return pa.schema(
        [
            pa.field(field["name"], _type(field["type"], field["name"]))
            for field in written["fields"]
        ]
    )


def _type(kind: Any, column: str, depth: int = 0) -> pa.DataType:
    if depth > DEPTH_MAX:
        raise Malformed(f"column {column} of the Avro file is nested too deeply")
    if isinstance(kind, list):
        others = [each for each in kind if each != "null"]
        if len(others) != 1:
            raise Malformed(f"column {column} is a union of several types, which tables lack")
        return _type(others[0], column, depth + 1)
    if isinstance(kind, str):
        if kind not in PRIMITIVE:
            raise Malformed(f"column {column} has the named type {kind} twice; it is not supported")
        return PRIMITIVE[kind]
    logical, base = kind.get("logicalType"), kind["type"]
    if logical == "decimal" and base in ("bytes", "fixed"):
        return pa.decimal128(kind["precision"], kind.get("scale", 0))
    if logical in LOGICAL:
        return LOGICAL[logical]
    if base == "record":
        return pa.struct(
            [pa.field(f["name"], _type(f["type"], column, depth + 1)) for f in kind["fields"]]
        )
    if base == "array":
        return pa.list_(_type(kind["items"], column, depth + 1))
    if base == "map":
        return pa.map_(pa.string(), _type(kind["values"], column, depth + 1))
    if base == "fixed":
        return pa.binary(kind["size"])
    return _type(base, column, depth + 1)
