"""Rows as JSON lines: one object per line, with the columns of the table."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import UNSET, UnsetType

from frazil.errors import Malformed
from frazil.serve.tables.column_values import column_array, json_type
from frazil.tables import Operation, TableColumn, TableDefinition

DECODERS_MAX = 256


def rows_of_lines(definition: TableDefinition, operation: Operation, body: bytes) -> pa.RecordBatch:
    """Return the rows of a body. Raises `Malformed` with line, column and reason if one cannot be
    written."""
    columns = _columns(definition, operation)
    decoder = _decoder(columns, definition.key, operation)
    rows, lines = [], []
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append(decoder.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Malformed(f"line {number}: {_reason(str(error))}") from None
        lines.append(number)
    if not rows:
        raise Malformed("the body has no rows; send one JSON object per line")
    chosen = {}
    for position, column in enumerate(columns):
        values = [getattr(row, _field(position)) for row in rows]
        if UNSET in values:
            _check_none_is_set(column, values, lines)
            continue
        chosen[column.name] = column_array(column, values, lines)
    return pa.RecordBatch.from_arrays(list(chosen.values()), names=list(chosen))


def _columns(definition: TableDefinition, operation: Operation) -> tuple[TableColumn, ...]:
    return definition.key_columns if operation is Operation.DELETE else definition.columns


def _field(position: int) -> str:
    """Names of columns may be words of Python."""
    return f"c{position}"


@lru_cache(DECODERS_MAX)
def _decoder(
    columns: tuple[TableColumn, ...], key: tuple[str, ...], operation: Operation
) -> msgspec.json.Decoder[Any]:
    fields: list[Any] = []
    for position, column in enumerate(columns):
        kind = json_type(column.type)
        if column.is_nullable:
            kind = kind | None
        if column.name in key or (not column.is_nullable and operation is Operation.UPSERT):
            fields.append((_field(position), kind))
        elif operation is Operation.UPDATE:
            fields.append((_field(position), kind | UnsetType, UNSET))
        else:
            fields.append((_field(position), kind, None))
    rename = {_field(position): column.name for position, column in enumerate(columns)}
    row = msgspec.defstruct("Row", fields, rename=rename, forbid_unknown_fields=True, kw_only=True)
    return msgspec.json.Decoder(row)


def _reason(text: str) -> str:
    """Make an error of msgspec one of a column."""
    reason, _, path = text.partition(" - at `$.")
    reason = reason[:1].lower() + reason[1:]
    return f"column {path.rstrip('`')}: {reason}" if path else reason


def _check_none_is_set(column: TableColumn, values: list[Any], lines: list[int]) -> None:
    """An update sets the same columns of all rows: one that is left out is not set to null."""
    for line, value in zip(lines, values, strict=True):
        if value is not UNSET:
            raise Malformed(
                f"line {line}, column {column.name}: other lines do not set it; send rows that set "
                "other columns in a request of their own"
            )
