"""Keys of rows: as text in a path, and as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.errors import Malformed
from frazil.serve.tables.column_values import column_value, json_type
from frazil.tables import Key, TableColumn, TableDefinition


def key_of_text(definition: TableDefinition, text: str) -> Key:
    """Return the key in a path: the value itself, or a JSON array if the key has several columns.
    Raises `Malformed` if it is not a key of this table."""
    columns = definition.key_columns
    if len(columns) == 1:
        return _value(columns[0], text, strict=False)
    try:
        values = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Malformed(f"the key is not JSON: {error}; {_hint(columns)}") from None
    return key_of_json(definition, values)


def key_of_json(definition: TableDefinition, value: Any) -> Key:
    """Return a key: a JSON value, or an array if the key has several columns."""
    columns = definition.key_columns
    if len(columns) == 1:
        return _value(columns[0], value, strict=True)
    if not isinstance(value, list) or len(value) != len(columns):
        raise Malformed(f"the key is not an array of {len(columns)} values; {_hint(columns)}")
    return tuple(
        _value(column, each, strict=True) for column, each in zip(columns, value, strict=True)
    )


def _value(column: TableColumn, value: Any, *, strict: bool) -> object:
    kind = json_type(column.type)
    try:
        converted = msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        reason = str(error)
        raise Malformed(
            f"{value!r} is not a value of {column.name}: {reason[:1].lower()}{reason[1:]}"
        ) from None
    result: object = column_value(column, converted)
    return result


def _hint(columns: tuple[TableColumn, ...]) -> str:
    names = ", ".join(column.name for column in columns)
    return f"write [{names}], in this order"
