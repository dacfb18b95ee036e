"""The tables that steer the scanner, made from protobuf's own descriptors.

One row per message, and in it one entry per tag (field number and wire type), which says what the
bytes behind the tag are; see the constants of `wire_walk`. The last row knows no field: it serves
the tags that are beyond the width of a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from frazil.ingest.otlp.scan_walk import (
    BYTES,
    CARRIER,
    COUNT,
    FIELD_ZERO,
    FIXED32,
    FIXED64,
    GROUP,
    ID,
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
    VARINT,
    VARINT_COUNT,
    WIRE_FIXED32,
    WIRE_FIXED64,
    WIRE_GROUP,
    WIRE_GROUP_END,
    WIRE_LENGTH,
    WIRE_TYPE,
    WIRE_VARINT,
    Table,
)

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
ID_BYTES = {"trace_id": 16, "span_id": 8, "parent_span_id": 8}

TAG_BITS_MIN = 7
"""The walk looks up a tag of one byte without asking whether the row is that wide."""

UNKNOWN_KINDS = {
    WIRE_VARINT: VARINT,
    WIRE_FIXED64: FIXED64,
    WIRE_LENGTH: BYTES,
    WIRE_FIXED32: FIXED32,
}
"""How a field that nobody knows is skipped, by its wire type."""

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
"""Type of field -> wire type, kind alone, kind packed."""
COUNTS = {
    FieldDescriptor.TYPE_FIXED64: (COUNT, PACKED_COUNTS),
    FieldDescriptor.TYPE_UINT64: (VARINT_COUNT, PACKED_VARINT_COUNTS),
}
"""The types of OTLP's times and counts -> kind alone, kind packed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTable:
    """What the walk needs to know about one kind of request, and how to speak of what it finds."""

    table: Table
    tag_bits: int
    """A row has an entry for each tag below `1 << tag_bits`."""
    messages: tuple[str, ...]
    """Row -> `LogRecord`."""
    fields: dict[int, str]
    """Place in the table -> `trace_id`."""


def steering_of(request: Descriptor) -> ScanTable:
    """The tables for a request and everything inside it."""
    messages = messages_in(request)
    # The rules for ids and counts hold in what is only found in records.
    ruled = messages.keys() - messages_in(request, RECORDS).keys() | RECORDS
    numbers = [field.number for message in messages.values() for field in message.fields]
    tag_bits = max(TAG_BITS_MIN, (max(numbers) << 3 | 7).bit_length())
    rows = {name: index << tag_bits for index, name in enumerate(messages)}
    unknown = np.array([_unknown_entry(tag) for tag in range(1 << tag_bits)], np.uint32)
    table = np.tile(unknown, len(messages) + 1)
    fields = {}
    for name, message in messages.items():
        for field in message.fields:
            for wire_type, entry in _entries(field, rows, name in ruled):
                place = rows[name] + (field.number << 3 | wire_type)
                table[place] = entry
                fields[place] = field.name
    names = tuple(message.name for message in messages.values())
    return ScanTable(table=table, tag_bits=tag_bits, messages=names, fields=fields)


def messages_in(message: Descriptor, closed: frozenset[str] = frozenset()) -> dict[str, Descriptor]:
    """A message and all that can be inside it, by full name, itself first. What is only inside
    `closed` ones is left out."""
    found = {message.full_name: message}
    waiting = [message]
    while waiting:
        for field in waiting.pop().fields:
            inner = field.message_type
            if inner is not None and inner.full_name not in found:
                found[inner.full_name] = inner
                if inner.full_name not in closed:
                    waiting.append(inner)
    return found


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
    """Wire type and entry, for each wire type that this field may have."""
    single = 0 if field.is_repeated else SINGLE
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        yield WIRE_LENGTH, _message_entry(field, rows)
    elif field.type == FieldDescriptor.TYPE_STRING:
        yield WIRE_LENGTH, TEXT
    elif field.type == FieldDescriptor.TYPE_BYTES:
        length = ID_BYTES.get(field.name) if is_ruled else None
        yield WIRE_LENGTH, BYTES if length is None else ID | single | length << PAYLOAD_SHIFT
    else:
        wire_type, kind, packed = NUMBERS[field.type]
        if is_ruled and field.type in COUNTS:
            kind, packed = COUNTS[field.type]
        yield wire_type, kind | single
        if field.is_repeated:
            yield WIRE_LENGTH, packed


def _message_entry(field: FieldDescriptor, rows: dict[str, int]) -> int:
    message = field.message_type
    assert message is not None
    entry = MESSAGE | rows[message.full_name] << PAYLOAD_SHIFT
    if message.full_name in RECORDS:
        return entry | RECORD
    if not _carries(message):
        return entry
    if field.containing_oneof is not None:
        entry |= MEMBER
    if any(_carries(each.message_type) for oneof in message.oneofs for each in oneof.fields):
        entry |= OWNER
    return entry | CARRIER


def _carries(message: Descriptor | None) -> bool:
    """Are there records below this message?"""
    if message is None or message.full_name in RECORDS:
        return False
    return bool(RECORDS & messages_in(message).keys())
