"""Rows as JSON values and as CSV.

JSON: times are RFC 3339 in UTC, bytes are base64, maps are objects; NaN and infinities are the
strings "NaN", "Infinity" and "-Infinity". CSV: the same, with nested values as JSON in a cell.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import Malformed


def _text(value: object) -> str:
    """Encode a type JSON lacks, such as a duration, as text. Nanosecond timestamps arrive as a
    type of their own."""
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)


_ENCODER = msgspec.json.Encoder(enc_hook=_text, decimal_format="string")
_QUOTED = re.compile(r'[",\r\n]')


def columns_of(schema: pa.Schema) -> list[dict[str, str]]:
    """Return name and type of each column."""
    return [{"name": field.name, "type": str(field.type)} for field in schema]


def json_rows(batch: pa.RecordBatch) -> Iterator[bytes]:
    """Yield each row as a JSON array."""
    columns = _columns(batch)
    if not columns:
        return iter([b"[]"] * batch.num_rows)
    return map(_ENCODER.encode, zip(*columns, strict=True))


def json_objects(batch: pa.RecordBatch) -> Iterator[bytes]:
    """Yield each row as a JSON object, with column names."""
    names = batch.schema.names
    rows = zip(*_columns(batch), strict=True)
    return (_ENCODER.encode(dict(zip(names, row, strict=True))) for row in rows)


def json_of(value: object) -> bytes:
    """Encode a value the way row values are encoded."""
    return _ENCODER.encode(value)


def _columns(batch: pa.RecordBatch) -> list[list[Any]]:
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            columns.append(plain(column))
        except (OverflowError, ValueError):
            raise Malformed(
                f"column {name} has a {column.type} outside the calendar, such as after the year "
                "9999; request Arrow, or CAST it to text or a number"
            ) from None
    return columns


def plain(column: pa.Array) -> list[Any]:
    """Return the values of a column as JSON values."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _moments(column)
    values: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
    if pa.types.is_floating(kind) and not _is_finite(column):
        return [_number(value) for value in values]
    return [_nested(value) for value in values] if pa.types.is_nested(kind) else values


def _moments(column: pa.Array) -> list[str | None]:
    """Format timestamps with all significant digits, without trailing zeros."""
    text = pc.cast(column.cast(pa.timestamp(column.type.unit)), pa.string()).to_pylist()
    end = "" if column.type.tz is None else "Z"
    return [None if moment is None else _moment(moment) + end for moment in text]


def _moment(text: str) -> str:
    if text.startswith("<"):  # Arrow marks a value out of range
        raise ValueError(text)
    day, _, time = text.partition(" ")
    whole, dot, part = time.partition(".")
    part = part.rstrip("0")
    return f"{day}T{whole}{dot if part else ''}{part}"


def _is_finite(column: pa.Array) -> bool:
    return bool(pc.all(pc.is_finite(column), min_count=0).as_py())


def _number(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _nested(value: Any) -> Any:
    """Convert the values inside lists and maps, too."""
    if isinstance(value, dict):
        return {str(key): _nested(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_nested(item) for item in value]
    return _number(value) if isinstance(value, float) else value


def csv_head(schema: pa.Schema) -> bytes:
    """Return the header line."""
    return ",".join(map(_cell, schema.names)).encode() + b"\n"


def csv_of(batch: pa.RecordBatch) -> bytes:
    """Return the rows as CSV lines. NULL is an empty cell, an empty string is `""`."""
    columns = [map(_cell, column) for column in _columns(batch)]
    return "".join(",".join(row) + "\n" for row in zip(*columns, strict=True)).encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else _ENCODER.encode(value).decode().strip('"')
    if text and not _QUOTED.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
