"""Changes of a table that a topic feeds: records of Kafka clients, as upserts, updates and deletes.

    upsert     the value is the row, as a JSON object; no value deletes the row of the record's key
    debezium   change events: c, r and u put a row, d deletes one, t deletes all

A key is a JSON object with the key columns, or the value of a single key column; what is no JSON
is text. Fields that the table does not have are left out. A record that cannot be a change is
reported with its reason, and changes nothing.

JSON is parsed and given its types by the caller: see `FeedCodec`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from frazil.log import Record
from frazil.tables.changes import Changes, Operation
from frazil.tables.definition import TableColumn, TableDefinition
from frazil.tables.keys.kernels import Longs

UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium sends for a large value that did not change."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME_UNITS = {
    "io.debezium.time.Timestamp": 1_000,
    "io.debezium.time.MicroTimestamp": 1,
    "org.apache.kafka.connect.data.Timestamp": 1_000,
}
"""Microseconds of one unit."""
NANO_TIMESTAMP = "io.debezium.time.NanoTimestamp"
NS_PER_US = 1_000
DAYS = frozenset({"io.debezium.time.Date", "org.apache.kafka.connect.data.Date"})
DECIMAL = "org.apache.kafka.connect.data.Decimal"

JsonObject = dict[str, Any]
Misfits = Mapping[int, tuple[str, str]]
"""Row to the column that does not fit, and why."""


@dataclass(frozen=True, slots=True)
class FeedCodec:
    """JSON of records, read without changing a value in silence."""

    parse: Callable[[bytes], Any]
    """A JSON document as Python values. ValueError, with the reason, if it is none."""
    to_rows: Callable[[Sequence[JsonObject], pa.Schema], tuple[pa.Table, Misfits]]
    """Rows with the types of a schema, and those that do not fit."""


@dataclass(frozen=True, slots=True)
class UnfitRecord:
    """A record that is not a change of the table."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class Truncate:
    """All rows that exist at an offset are deleted."""

    offset: int


@dataclass(frozen=True, slots=True)
class _RowChange:
    operation: Operation
    row: JsonObject
    columns: tuple[TableColumn, ...]
    offset: int


FedChanges = tuple[Changes, Longs] | UnfitRecord | Truncate


def fed_changes(
    definition: TableDefinition, records: Sequence[Record], codec: FeedCodec
) -> Iterator[FedChanges]:
    """Yield what records change, in their order. Adjacent changes of one kind come together."""
    assert definition.feed is not None
    read = _upsert if definition.feed.format == "upsert" else _debezium
    waiting: list[_RowChange] = []
    for record in records:
        try:
            changes = read(definition, record, codec)
        except ValueError as error:
            yield from _typed(definition, waiting, codec)
            waiting = []
            yield UnfitRecord(record.offset, str(error))
            continue
        if isinstance(changes, Truncate):
            yield from _typed(definition, waiting, codec)
            waiting = []
            yield changes
            continue
        unfit = _unfit_of(definition, changes, codec) if len(changes) > 1 else None
        if unfit is not None:
            yield from _typed(definition, waiting, codec)
            waiting = []
            yield unfit
            continue
        for change in changes:
            if waiting and not _is_alike(waiting[0], change):
                yield from _typed(definition, waiting, codec)
                waiting = []
            waiting.append(change)
    yield from _typed(definition, waiting, codec)


def _unfit_of(
    definition: TableDefinition, changes: Sequence[_RowChange], codec: FeedCodec
) -> UnfitRecord | None:
    """Return why a record of several changes does not fit: then none of them is made."""
    for change in changes:
        for each in _typed(definition, [change], codec):
            if isinstance(each, UnfitRecord):
                return each
    return None


def unfit_records(
    definition: TableDefinition, records: Sequence[Record], codec: FeedCodec
) -> Iterator[tuple[Record, str]]:
    """Yield the records that are no changes, each with the reason."""
    by_offset = {record.offset: record for record in records}
    for each in fed_changes(definition, records, codec):
        if isinstance(each, UnfitRecord):
            yield by_offset[each.offset], each.reason


def _is_alike(one: _RowChange, other: _RowChange) -> bool:
    return (one.operation, one.columns) == (other.operation, other.columns)


def _typed(
    definition: TableDefinition, changes: Sequence[_RowChange], codec: FeedCodec
) -> Iterator[FedChanges]:
    """Give alike changes the types of the table. Records that do not fit are left out whole."""
    if not changes:
        return
    columns = changes[0].columns
    schema = pa.schema([column.field() for column in columns])
    table, misfits = codec.to_rows([change.row for change in changes], schema)
    unfit = {index: f"{column}: {reason}" for index, (column, reason) in misfits.items()}
    for field in schema:
        if field.nullable or not table[field.name].null_count:
            continue
        for index in np.flatnonzero(table[field.name].is_null().to_numpy()).tolist():
            unfit.setdefault(index, f"{field.name} is missing or null, but NOT NULL")
    for index in sorted(unfit):
        yield UnfitRecord(changes[index].offset, unfit[index])
    kept = [index for index in range(len(changes)) if index not in unfit]
    if not kept:
        return
    rows = table if not unfit else table.take(pa.array(kept, pa.int64()))
    (batch,) = rows.combine_chunks().to_batches()
    batch = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
    offsets: Longs = np.array([changes[index].offset for index in kept], np.int64)
    yield Changes(changes[0].operation, definition.version, columns, batch), offsets


def _upsert(
    definition: TableDefinition, record: Record, codec: FeedCodec
) -> list[_RowChange] | Truncate:
    key = _key_of(definition, record.key, codec)
    if record.value is None:
        return [_delete(definition, key, record.offset)]
    row = _plain(definition, _object(codec.parse(record.value), "the value"), {})
    for name, value in key.items():
        if row.setdefault(name, value) != value:
            raise ValueError(f"{name} is {row[name]!r} in the value, and {value!r} in the key")
    return [_put(definition, row, record.offset)]


def _debezium(
    definition: TableDefinition, record: Record, codec: FeedCodec
) -> list[_RowChange] | Truncate:
    if record.value is None:
        return []  # the tombstone after a delete
    event = _object(codec.parse(record.value), "the value")
    fields: Mapping[str, JsonObject] = {}
    if "payload" in event and "schema" in event:
        fields = _row_fields(event["schema"])
        event = _object(event["payload"], "the payload")
    kind = event.get("op")
    if kind == "t":
        if definition.partitions > 1:
            raise ValueError("a truncate of a table with several partitions")
        return Truncate(record.offset)
    before, after = event.get("before"), event.get("after")
    if kind in ("c", "r", "u"):
        row = _plain(definition, _object(after, "after"), fields)
        changes = [_put(definition, row, record.offset)]
        if before is not None:
            old = _plain(definition, _object(before, "before"), fields)
            if all(name in old and old[name] is not None for name in definition.key) and any(
                old[name] != row.get(name) for name in definition.key
            ):
                changes.insert(0, _delete(definition, old, record.offset))
        return changes
    if kind == "d":
        old = {} if before is None else _plain(definition, _object(before, "before"), fields)
        if any(old.get(name) is None for name in definition.key):
            old = _key_of(definition, record.key, codec)
        return [_delete(definition, old, record.offset)]
    if kind == "m":
        return []  # a message of the database, not of a table
    raise ValueError(f"op is {kind!r}; change events have c, r, u, d or t")


def _put(definition: TableDefinition, row: JsonObject, offset: int) -> _RowChange:
    """Put a row; if some values are not told because they did not change, set the others."""
    columns = definition.columns
    untold = [column.name for column in columns if row.get(column.name) == UNAVAILABLE]
    told = tuple(column for column in columns if column.name not in untold)
    values = {column.name: row[column.name] for column in told if column.name in row}
    if not untold:
        return _RowChange(Operation.UPSERT, values, columns, offset)
    keys = definition.key_columns
    others = tuple(column for column in told if column.name not in definition.key)
    if len(keys) + len(others) + len(untold) != len(columns) or not others:
        raise ValueError(f"the value of {untold[0]} is not told, and the others are the key")
    return _RowChange(Operation.UPDATE, values, (*keys, *others), offset)


def _delete(definition: TableDefinition, row: JsonObject, offset: int) -> _RowChange:
    values = {name: row.get(name) for name in definition.key}
    return _RowChange(Operation.DELETE, values, definition.key_columns, offset)


def _key_of(definition: TableDefinition, key: bytes | None, codec: FeedCodec) -> JsonObject:
    """Return the key columns that the key of a record has."""
    if key is None:
        raise ValueError("the record has no key")
    value: Any
    try:
        value = codec.parse(key)
    except ValueError:
        value = _text(key)
    if isinstance(value, dict):
        fields: Mapping[str, JsonObject] = {}
        if "payload" in value and "schema" in value:
            fields = _fields(value["schema"])
            value = _object(value["payload"], "the payload of the key")
        value = _plain(definition, value, fields)
        missing = [name for name in definition.key if value.get(name) is None]
        if missing:
            raise ValueError(f"the key has no {missing[0]}")
        return {name: value[name] for name in definition.key}
    if len(definition.key) > 1:
        raise ValueError(f"the key is no JSON object with {', '.join(definition.key)}")
    (column,) = definition.key_columns
    if column.type == "string" and not isinstance(value, str):
        value = _text(key)  # the text 42 is JSON by chance
    return {column.name: value}


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise ValueError("the key is neither JSON nor UTF-8 text") from None


def _object(value: object, what: str) -> JsonObject:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is no JSON object")
    return value


def _row_fields(schema: object) -> Mapping[str, JsonObject]:
    """Return the schemas of a row's fields, from that of an event."""
    for field in _listed(schema):
        if field.get("field") in ("after", "before"):
            return _fields(field)
    return {}


def _fields(schema: object) -> Mapping[str, JsonObject]:
    return {str(field.get("field")): field for field in _listed(schema)}


def _listed(schema: object) -> list[JsonObject]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return [field for field in fields or () if isinstance(field, dict)]


def _plain(
    definition: TableDefinition, row: JsonObject, fields: Mapping[str, JsonObject]
) -> JsonObject:
    """Return the fields that are columns. Numbers for times and bytes for decimals become texts, by
    their schemas."""
    plain = {}
    for column in definition.columns:
        if column.name not in row:
            continue
        value, field = row[column.name], fields.get(column.name)
        is_told = value is not None and value != UNAVAILABLE
        plain[column.name] = _plain_value(column, value, field) if field and is_told else value
    return plain


def _plain_value(column: TableColumn, value: Any, field: JsonObject) -> Any:
    name, logical = column.name, field.get("name")
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    try:
        if logical in TIME_UNITS and is_integer:
            return _time(column, value * TIME_UNITS[logical])
        if logical == NANO_TIMESTAMP and is_integer:
            if value % NS_PER_US:
                raise ValueError(f"{name} has nanoseconds, and tables have microseconds")
            return _time(column, value // NS_PER_US)
        if logical in DAYS and is_integer:
            return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
        if logical == DECIMAL and isinstance(value, str):
            scale = int(field.get("parameters", {}).get("scale", "0"))
            unscaled = int.from_bytes(base64.b64decode(value, validate=True), "big", signed=True)
            return _decimal(unscaled, scale)
    except (OverflowError, binascii.Error, TypeError) as error:
        raise ValueError(f"{name} is {value!r}: {error}") from None
    return value


def _time(column: TableColumn, microseconds: int) -> str:
    time = (EPOCH + timedelta(microseconds=microseconds)).replace(tzinfo=None)
    return time.isoformat() + ("Z" if column.type == "timestamptz" else "")


def _decimal(unscaled: int, scale: int) -> str:
    """Return all digits; arithmetic with Decimal would round them."""
    digits = tuple(map(int, str(abs(unscaled))))
    return format(Decimal((int(unscaled < 0), digits, -scale)), "f")
