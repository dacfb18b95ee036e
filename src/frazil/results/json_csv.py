"""Rows written down for others: as values that JSON has, and as CSV.

JSON: times are RFC 3339 in UTC, bytes are base64, maps are objects, and numbers that JSON lacks are
the texts "NaN", "Infinity" and "-Infinity". CSV: the same, and what is nested is JSON in a cell.
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
    """What JSON has no word for, such as a stretch of time, is written as text. Times to the
    nanosecond come as a type of their own."""
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)


_ENCODER = msgspec.json.Encoder(enc_hook=_text, decimal_format="string")
_QUOTED = re.compile(r'[",\r\n]')


def columns_of(schema: pa.Schema) -> list[dict[str, str]]:
    """Name and type of each column."""
    return [{"name": field.name, "type": str(field.type)} for field in schema]


def json_rows(batch: pa.RecordBatch) -> Iterator[bytes]:
    """Each row as a list in JSON."""
    columns = _columns(batch)
    if not columns:
        return iter([b"[]"] * batch.num_rows)
    return map(_ENCODER.encode, zip(*columns, strict=True))


def json_of(value: object) -> bytes:
    """A value in JSON, written as those of rows are."""
    return _ENCODER.encode(value)


def _columns(batch: pa.RecordBatch) -> list[list[Any]]:
    found = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            found.append(plain(column))
        except (OverflowError, ValueError):
            raise Malformed(
                f"the column {name} has a {column.type} that no calendar has, such as a day after "
                "the year 9999; ask for Arrow, or make it text or a number with CAST"
            ) from None
    return found


def plain(column: pa.Array) -> list[Any]:
    """The values of a column as JSON has them."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _moments(column)
    values: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
    if pa.types.is_floating(kind) and not _is_finite(column):
        return [_number(value) for value in values]
    return [_nested(value) for value in values] if pa.types.is_nested(kind) else values


def _moments(column: pa.Array) -> list[str | None]:
    """To the last digit that there is, without those behind a second that are all zero."""
    text = pc.cast(column.cast(pa.timestamp(column.type.unit)), pa.string()).to_pylist()
    end = "" if column.type.tz is None else "Z"
    return [None if moment is None else _moment(moment) + end for moment in text]


def _moment(text: str) -> str:
    if text.startswith("<"):  # Arrow says that it is out of range
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
    """What lies inside lists and maps, too, is something that JSON has."""
    if isinstance(value, dict):
        return {str(name): _nested(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_nested(each) for each in value]
    return _number(value) if isinstance(value, float) else value


def csv_head(schema: pa.Schema) -> bytes:
    """The first line."""
    return ",".join(map(_cell, schema.names)).encode() + b"\n"


def csv_of(batch: pa.RecordBatch) -> bytes:
    """Lines of CSV. What is not there is an empty cell; an empty text is one in quotes."""
    columns = [map(_cell, column) for column in _columns(batch)]
    return "".join(",".join(row) + "\n" for row in zip(*columns, strict=True)).encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else _ENCODER.encode(value).decode().strip('"')
    if text and not _QUOTED.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
