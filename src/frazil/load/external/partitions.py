"""Values in the names of folders: `year=2026/month=01/` has a `year` and a `month`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from urllib.parse import unquote

import pyarrow as pa

from frazil.definitions import ColumnSpec
from frazil.errors import Malformed

NULL = "__HIVE_DEFAULT_PARTITION__"
"""What Hive and Spark write for NULL."""
INTEGER = re.compile(r"-?[0-9]{1,18}")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TYPES = {
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "DATE": pa.date32(),
    "VARCHAR": pa.string(),
}
INT_MAX = 2**31 - 1

Value = int | str | date | None


def texts_of(path: str, names: Sequence[str]) -> list[str | None]:
    """Return the values in a path, as they are written. `Malformed` if one is missing."""
    found = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    for name in names:
        if name not in found:
            raise Malformed(
                f"{path} is in no folder {name}=…, but the table is PARTITIONED BY {name}; move "
                "the file, or leave it out by PATTERN"
            )
    return [None if found[name] == NULL else unquote(found[name]) for name in names]


def infer_partitions(columns: Sequence[ColumnSpec], paths: Iterable[str]) -> list[pa.Field]:
    """Return the columns with their types: as declared, or else BIGINT or DATE if that is what all
    folders have, or VARCHAR."""
    names = [column.name for column in columns]
    rows = [texts_of(path, names) for path in paths]
    fields = []
    for index, column in enumerate(columns):
        values = [row[index] for row in rows if row[index] is not None]
        fields.append(pa.field(column.name, _type_of(column, values)))
    return fields


def _type_of(column: ColumnSpec, values: Sequence[str | None]) -> pa.DataType:
    if column.type:
        if column.type not in TYPES:
            raise Malformed(
                f"PARTITIONED BY ({column.name} {column.type}) is not possible; the types are "
                f"{', '.join(TYPES)}"
            )
        return TYPES[column.type]
    if not values:
        return pa.string()
    if all(INTEGER.fullmatch(value or "") for value in values):
        return pa.int64()
    return pa.date32() if all(map(_is_day, values)) else pa.string()


def _is_day(text: str | None) -> bool:
    try:
        return DAY.fullmatch(text or "") is not None and bool(date.fromisoformat(text or ""))
    except ValueError:
        return False


def partition_values(path: str, fields: Sequence[pa.Field]) -> tuple[Value, ...]:
    """Return the values of a file's partition. `Malformed` if one does not fit its type."""
    texts = texts_of(path, [field.name for field in fields])
    return tuple(_value(path, field, text) for field, text in zip(fields, texts, strict=True))


def _value(path: str, field: pa.Field, text: str | None) -> Value:
    if text is None or field.type == pa.string():
        return text
    if field.type == pa.date32():
        if _is_day(text):
            return date.fromisoformat(text)
    elif INTEGER.fullmatch(text) and (field.type == pa.int64() or -INT_MAX <= int(text) <= INT_MAX):
        return int(text)
    raise Malformed(
        f"{path}: {field.name}={text} is not of type {field.type}; move the file, or declare "
        f"PARTITIONED BY ({field.name} VARCHAR)"
    )
