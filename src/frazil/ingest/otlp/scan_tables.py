"""The scanner's tables, made from protobuf descriptors.

One row per message, with one entry per tag (field number and wire type) that says what the bytes
after the tag are; see the constants of `scan_walk`. The last row has no known field: it serves tags
beyond the width of a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from frazil.ingest.otlp.scan_walk import (
    ATTRIBUTE,
    ATTRIBUTED,
    BYTES,
    CARRIER,
    COUNT,
    DROPPED,
    FIXED32,
    FIXED64,
    ID,
    INT_VALUE,
    KEY_LIMIT,
    LOG_BODY,
    MEMBER,
    MESSAGE,
    OWNER,
    PACKED_COUNTS,
    PACKED_FIXED32,
    PACKED_FIXED64,
    PACKED_VARINT_COUNTS,
    PACKED_VARINTS,
    PAYLOAD_SHIFT,
    RECORD,
    REFUSED,
    SINGLE,
    TEXT,
    VALUE_LIMIT,
    VARINT,
    VARINT_COUNT,
    WIRE_FIXED32,
    WIRE_FIXED64,
    WIRE_GROUP,
    WIRE_GROUP_END,
    WIRE_LENGTH,
    WIRE_VARINT,
    Table,
)
from frazil.model.protobuf import FIELD_ZERO, GROUP, WIRE_TYPE

RECORDS = frozenset(
    {
        "opentelemetry.proto.logs.v1.LogRecord",
        "opentelemetry.proto.trace.v1.Span",
        "opentelemetry.proto.metrics.v1.NumberDataPoint",
        "opentelemetry.proto.metrics.v1.HistogramDataPoint",
        "opentelemetry.proto.metrics.v1.ExponentialHistogramDataPoint",
        "opentelemetry.proto.metrics.v1.SummaryDataPoint",
    }
)
KEY_VALUE = "opentelemetry.proto.common.v1.KeyValue"
LISTS = frozenset({"opentelemetry.proto.common.v1.KeyValueList"})
"""Messages of key-value pairs that are not attributes."""
LOG_RECORD_BODY = "opentelemetry.proto.logs.v1.LogRecord.body"
LIMITS = {
    "opentelemetry.proto.common.v1.KeyValue.key": KEY_LIMIT,
    "opentelemetry.proto.common.v1.AnyValue.string_value": VALUE_LIMIT,
    "opentelemetry.proto.common.v1.AnyValue.bytes_value": VALUE_LIMIT,
}
"""Fields with a limit on their length."""
MARKS = {"dropped_attributes_count": DROPPED, "int_value": INT_VALUE}
"""Numbers that are marked."""
ID_BYTES = {"trace_id": 16, "span_id": 8, "parent_span_id": 8}

TAG_BITS_MIN = 7
"""Rows are this wide at least: the walk looks up one-byte tags without a range check."""

UNKNOWN_KINDS = {
    WIRE_VARINT: VARINT,
    WIRE_FIXED64: FIXED64,
    WIRE_LENGTH: BYTES,
    WIRE_FIXED32: FIXED32,
}
"""How to skip an unknown field, by wire type."""

_FIXED64 = (WIRE_FIXED64, FIXED64, PACKED_FIXED64)
_FIXED32 = (WIRE_FIXED32, FIXED32, PACKED_FIXED32)
_VARINT = (WIRE_VARINT, VARINT, PACKED_VARINTS)
NUMBERS = {
    FieldDescriptor.TYPE_DOUBLE: _FIXED64,
    FieldDescriptor.TYPE_FIXED64: _FIXED64,
    FieldDescriptor.TYPE_SFIXED64: _FIXED64,
    FieldDescriptor.TYPE_FIXED32: _FIXED32,
    FieldDescriptor.TYPE_FLOAT: _FIXED32,
    FieldDescriptor.TYPE_SFIXED32: _FIXED32,
    FieldDescriptor.TYPE_BOOL: _VARINT,
    FieldDescriptor.TYPE_ENUM: _VARINT,
    FieldDescriptor.TYPE_INT32: _VARINT,
    FieldDescriptor.TYPE_INT64: _VARINT,
    FieldDescriptor.TYPE_SINT32: _VARINT,
    FieldDescriptor.TYPE_SINT64: _VARINT,
    FieldDescriptor.TYPE_UINT32: _VARINT,
    FieldDescriptor.TYPE_UINT64: _VARINT,
}
"""Field type -> wire type, kind, packed kind."""
COUNTS = {
    FieldDescriptor.TYPE_FIXED64: (COUNT, PACKED_COUNTS),
    FieldDescriptor.TYPE_UINT64: (VARINT_COUNT, PACKED_VARINT_COUNTS),
}
"""Types of OTLP's times and counts -> kind, packed kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTable:
    """The table of one request type, and names for error messages."""

    entries: Table
    tag_bits: int
    """A row has an entry for each tag below `1 << tag_bits`."""
    messages: tuple[str, ...]
    """Row -> `LogRecord`."""
    fields: dict[int, str]
    """Index of an entry -> `trace_id`."""
    pair_row: int
    """Start of the row of key-value pairs."""


def scan_table_of(request: Descriptor) -> ScanTable:
    """Build the table of a request and all messages inside it."""
    messages = messages_in(request)
    # The rules for ids and counts apply to messages that occur only inside records.
    ruled = messages.keys() - messages_in(request, RECORDS).keys() | RECORDS
    numbers = [field.number for message in messages.values() for field in message.fields]
    tag_bits = max(TAG_BITS_MIN, (max(numbers) << 3 | 7).bit_length())
    rows = {name: index << tag_bits for index, name in enumerate(messages)}
    unknown = np.array([_unknown_entry(tag) for tag in range(1 << tag_bits)], np.uint32)
    entries = np.tile(unknown, len(messages) + 1)
    fields = {}
    for name, message in messages.items():
        for field in message.fields:
            for wire_type, entry in _entries(field, rows, name in ruled):
                index = rows[name] + (field.number << 3 | wire_type)
                entries[index] = entry
                fields[index] = field.name
    names = tuple(message.name for message in messages.values())
    return ScanTable(
        entries=entries,
        tag_bits=tag_bits,
        messages=names,
        fields=fields,
        pair_row=rows[KEY_VALUE],
    )


def messages_in(message: Descriptor, closed: frozenset[str] = frozenset()) -> dict[str, Descriptor]:
    """Return a message and all messages inside it by full name, itself first. Messages that occur
    only inside `closed` ones are left out."""
    messages = {message.full_name: message}
    pending = [message]
    while pending:
        for field in pending.pop().fields:
            inner = field.message_type
            if inner is not None and inner.full_name not in messages:
                messages[inner.full_name] = inner
                if inner.full_name not in closed:
                    pending.append(inner)
    return messages


def _unknown_entry(tag: int) -> int:
    wire_type = tag & 7
    if tag >> 3 == 0:
        return REFUSED | FIELD_ZERO << PAYLOAD_SHIFT
    if wire_type in (WIRE_GROUP, WIRE_GROUP_END):
        return REFUSED | GROUP << PAYLOAD_SHIFT
    return UNKNOWN_KINDS.get(wire_type, REFUSED | WIRE_TYPE << PAYLOAD_SHIFT)


def _entries(
    field: FieldDescriptor, rows: dict[str, int], is_ruled: bool
) -> Iterator[tuple[int, int]]:
    """Yield each wire type this field may have, with its entry."""
    single = 0 if field.is_repeated else SINGLE
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        yield WIRE_LENGTH, _message_entry(field, rows)
    elif field.type == FieldDescriptor.TYPE_STRING:
        yield WIRE_LENGTH, TEXT | LIMITS.get(field.full_name, 0) << PAYLOAD_SHIFT
    elif field.type == FieldDescriptor.TYPE_BYTES:
        length = ID_BYTES.get(field.name) if is_ruled else None
        if length is None:
            yield WIRE_LENGTH, BYTES | LIMITS.get(field.full_name, 0) << PAYLOAD_SHIFT
        else:
            yield WIRE_LENGTH, ID | single | length << PAYLOAD_SHIFT
    else:
        wire_type, kind, packed = NUMBERS[field.type]
        if is_ruled and field.type in COUNTS:
            kind, packed = COUNTS[field.type]
        yield wire_type, kind | single | MARKS.get(field.name, 0) << PAYLOAD_SHIFT
        if field.is_repeated:
            yield WIRE_LENGTH, packed


def _message_entry(field: FieldDescriptor, rows: dict[str, int]) -> int:
    message = field.message_type
    assert message is not None
    entry = MESSAGE | rows[message.full_name] << PAYLOAD_SHIFT
    if _is_attribute(field):
        entry |= ATTRIBUTE
    if any(map(_is_attribute, message.fields)):
        entry |= ATTRIBUTED
    if field.full_name == LOG_RECORD_BODY:
        entry |= LOG_BODY
    if message.full_name in RECORDS:
        return entry | RECORD
    if not _carries(message):
        return entry
    if field.containing_oneof is not None:
        entry |= MEMBER
    if any(_carries(member.message_type) for oneof in message.oneofs for member in oneof.fields):
        entry |= OWNER
    return entry | CARRIER


def _is_attribute(field: FieldDescriptor) -> bool:
    message, owner = field.message_type, field.containing_type
    return (
        message is not None
        and message.full_name == KEY_VALUE
        and owner is not None
        and owner.full_name not in LISTS
    )


def _carries(message: Descriptor | None) -> bool:
    """Return whether there are records below this message."""
    if message is None or message.full_name in RECORDS:
        return False
    return bool(RECORDS & messages_in(message).keys())
