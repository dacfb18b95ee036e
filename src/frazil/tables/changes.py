"""Change records: upserts, updates and deletes of a keyed table, as values of log records.

One record is one Arrow record batch behind a short header (`docs/formats/keyed.md`). Its schema
follows from the definition, so it is not stored.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from pyarrow import types

from frazil.errors import Malformed
from frazil.model import MiB
from frazil.tables.definition import DECIMAL_DIGITS_MAX, TableColumn, TableDefinition
from frazil.tables.keys.key_block import key_array

FORMAT = 1
HEADER = struct.Struct("<BBHIII")
"""format, operation, columns, version of the definition, rows, reserved; then column ids."""
BY_HEADER = "frazil.by"
"""Header of the first record of a write: who made it, as text."""
ALIGNMENT = 8
RECORD_BYTES = MiB
"""About how large a record becomes. A larger batch is split."""
ROWS_MAX = 1 << 20
"""Of one record."""
SCHEMAS_MAX = 256
"""Schemas that are kept: to make one takes longer than to encode a row."""


class Operation(enum.IntEnum):
    """What a change does."""

    UPSERT = 1
    """Put a whole row in place of the one with its key, if there is one."""
    UPDATE = 2
    """Set some columns of a row that exists."""
    DELETE = 3
    """Remove a row, if it exists."""


OPERATIONS = frozenset(Operation)


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Changes of one operation, in columns of one version."""

    operation: Operation
    version: int
    columns: tuple[TableColumn, ...]
    batch: pa.RecordBatch


def conformed_rows(
    definition: TableDefinition, operation: Operation, rows: pa.RecordBatch | pa.Table
) -> Changes:
    """Return rows of a caller as changes. Raises `Malformed` if a column is missing, unknown, or
    has values that its type does not."""
    given = rows.schema.names
    if len(set(given)) < len(given):
        raise Malformed("the rows have two columns of one name")
    known = {column.name for column in definition.columns}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise Malformed(f"table {definition.name} has no column {unknown[0]}")
    columns = _columns_for(definition, operation, given)
    schema = _schema(columns)
    arrays = [_array(rows, field, given) for field in schema]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return Changes(operation, definition.version, columns, batch)


def _columns_for(
    definition: TableDefinition, operation: Operation, given: Sequence[str]
) -> tuple[TableColumn, ...]:
    missing = [name for name in definition.key if name not in given]
    if missing:
        raise Malformed(f"the rows have no column {missing[0]}, which is part of the key")
    if operation is Operation.DELETE:
        return definition.key_columns
    if operation is Operation.UPSERT:
        return definition.columns
    others = [c for c in definition.columns if c.name in given and c.name not in definition.key]
    if not others:
        raise Malformed("an update needs a column besides the key")
    return (*definition.key_columns, *others)


def _array(rows: pa.RecordBatch | pa.Table, field: pa.Field, given: Sequence[str]) -> pa.Array:
    if field.name not in given:
        if not field.nullable:
            raise Malformed(f"the rows have no column {field.name}, which is NOT NULL")
        return pa.nulls(len(rows), field.type)
    column = rows[field.name]
    try:
        if types.is_decimal(field.type) and types.is_integer(column.type):
            # Arrow casts integers only to decimals that could hold any of their type.
            column = column.cast(pa.decimal128(DECIMAL_DIGITS_MAX, field.type.scale))
        if column.type != field.type:
            column = column.cast(field.type)
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        column.validate(full=True)
    except pa.ArrowException as error:
        raise Malformed(f"column {field.name} does not fit {field.type}: {error}") from None
    if isinstance(column, pa.ChunkedArray):
        raise Malformed(f"column {field.name} is too large; write fewer rows at once")
    if column.null_count and not field.nullable:
        position = column.is_null().index(pa.scalar(True)).as_py()
        reason = f"{field.name} of row {position} is null, but the column is NOT NULL"
        raise Malformed(reason)
    return column


@lru_cache(SCHEMAS_MAX)
def _schema(columns: tuple[TableColumn, ...]) -> pa.Schema:
    return pa.schema([column.field() for column in columns])


def encode_changes(changes: Changes) -> Iterator[bytes]:
    """Yield the values of log records: at least one, each of about `RECORD_BYTES`."""
    batch = changes.batch
    if batch.num_rows == 1:
        yield _encode(changes, batch)
        return
    bytes_per_row = max(1, batch.nbytes // max(1, batch.num_rows))
    rows = min(ROWS_MAX, max(1, RECORD_BYTES // bytes_per_row))
    for begin in range(0, batch.num_rows, rows):
        yield _encode(changes, batch.slice(begin, rows))


def _encode(changes: Changes, batch: pa.RecordBatch) -> bytes:
    ids = struct.pack(f"<{len(changes.columns)}H", *(column.id for column in changes.columns))
    header = HEADER.pack(
        FORMAT, changes.operation, len(changes.columns), changes.version, batch.num_rows, 0
    )
    front = header + ids
    padding = bytes(-len(front) % ALIGNMENT)
    return b"".join((front, padding, batch.serialize()))


def decode_changes(definition: TableDefinition, value: bytes | None) -> Changes:
    """Decode a record. Raises `Malformed`, `Unknown` or `TooLarge` if it is not one of this
    table."""
    if value is None or len(value) < HEADER.size:
        raise Malformed("the record is shorter than the header of changes")
    form, number, count, version, rows, _ = HEADER.unpack_from(value)
    if form != FORMAT or number not in OPERATIONS or rows > ROWS_MAX:
        raise Malformed(f"format {form}, operation {number}, {rows} rows: no change record")
    end = HEADER.size + 2 * count
    if len(value) < end:
        raise Malformed(f"the record ends inside the ids of {count} columns")
    operation = Operation(number)
    columns = definition.columns_of(version, struct.unpack_from(f"<{count}H", value, HEADER.size))
    names = [column.name for column in columns]
    if not set(definition.key) <= set(names) or len(set(names)) < len(names):
        raise Malformed("the record lacks a key column, or has a column twice")
    if operation is Operation.UPSERT and len(columns) != len(definition.versions[version]):
        raise Malformed("an upsert has all columns of its version")
    message = pa.py_buffer(value).slice(end + -end % ALIGNMENT)
    try:
        batch = pa.ipc.read_record_batch(message, _schema(columns))
        batch.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise Malformed(f"the batch of a change record cannot be read: {error}") from None
    if batch.num_rows != rows:
        raise Malformed(f"{batch.num_rows} rows in a record of {rows}")
    for field in batch.schema:
        if not field.nullable and batch[field.name].null_count:
            raise Malformed(f"column {field.name} has nulls, but is NOT NULL")
    key_array([batch[name] for name in definition.key])
    return Changes(operation, version, columns, batch)
