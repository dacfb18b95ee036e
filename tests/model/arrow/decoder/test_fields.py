"""The dispatch table matches protobuf's descriptors of OTLP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from frazil.model.arrow.decoder.dispatch import SLOTS
from frazil.model.arrow.decoder.fields import COUNT, NODES, SPAN_ID, TRACE_ID, ProtoField
from frazil.model.arrow.decoder.walk import COUNTS
from frazil.model.protobuf.reader import (
    BOOL,
    BYTES,
    FIXED32,
    FIXED64,
    FLAT,
    NODE,
    ONE_FIXED64,
    ONE_VARINT,
    TEXT,
    VARINT,
    VARINT32,
    ZIGZAG32,
)
from tests.model.arrow.decoder.reference import CLASSES

F = FieldDescriptor
KINDS = {
    F.TYPE_STRING: TEXT,
    F.TYPE_BYTES: BYTES,
    F.TYPE_BOOL: BOOL,
    F.TYPE_INT64: VARINT,
    F.TYPE_INT32: VARINT32,
    F.TYPE_UINT32: VARINT32,
    F.TYPE_ENUM: VARINT32,
    F.TYPE_SINT32: ZIGZAG32,
    F.TYPE_DOUBLE: FIXED64,
    F.TYPE_FIXED64: FIXED64,
    F.TYPE_SFIXED64: FIXED64,
    F.TYPE_FIXED32: FIXED32,
}
LIST_KINDS = {
    F.TYPE_STRING: TEXT,
    F.TYPE_DOUBLE: ONE_FIXED64,
    F.TYPE_FIXED64: ONE_FIXED64,
    F.TYPE_UINT64: ONE_VARINT,
}
IDS = {"trace_id": TRACE_ID, "span_id": SPAN_ID, "parent_span_id": SPAN_ID}
NOT_READ = {"key_strindex", "entity_refs"}
"""The former means nothing outside profiles; the latter is only checked."""


def messages_below(signal: str) -> Iterator[tuple[Descriptor, tuple[ProtoField, ...]]]:
    """Every message of a request, with what the decoder knows of its fields."""
    root: Any = CLASSES[signal]
    waiting = [(root.DESCRIPTOR, NODES[signal].fields)]
    seen = set()
    while waiting:
        message, fields = waiting.pop()
        if (message.full_name, fields) in seen:
            continue
        seen.add((message.full_name, fields))
        yield message, fields
        for field in fields:
            if field.kind in (NODE, FLAT) and field.number:
                inner = message.fields_by_number[field.number].message_type
                waiting.append((inner, NODES[field.node].fields if field.node else field.fields))


@pytest.mark.parametrize("signal", CLASSES)
def test_every_field_matches_its_descriptor(signal: str) -> None:
    """Number, wire type and repetition."""
    for message, fields in messages_below(signal):
        known = {field.number: field for field in fields if field.number}
        numbers = {field.number for field in message.fields if field.name not in NOT_READ}
        assert known.keys() - numbers <= {3}, message.full_name
        assert numbers <= known.keys(), message.full_name
        for wanted in message.fields:
            if wanted.number in known and wanted.name not in NOT_READ:
                assert known[wanted.number].kind == kind_of(wanted), wanted.full_name


def kind_of(field: FieldDescriptor) -> int:
    if field.message_type is not None:
        return NODE if field.is_repeated else FLAT
    return LIST_KINDS[field.type] if field.is_repeated else KINDS[field.type]


@pytest.mark.parametrize("signal", CLASSES)
def test_every_id_time_and_count_has_a_rule(signal: str) -> None:
    for message, fields in messages_below(signal):
        known = {field.number: field for field in fields}
        for wanted in message.fields:
            if wanted.type == F.TYPE_BYTES and wanted.name in IDS:
                assert known[wanted.number].rule == IDS[wanted.name], wanted.full_name
            elif wanted.type in (F.TYPE_FIXED64, F.TYPE_UINT64):
                field = known[wanted.number]
                is_ruled = field.flags & COUNTS if wanted.is_repeated else field.rule == COUNT
                assert is_ruled, wanted.full_name


@pytest.mark.parametrize("node", NODES)
def test_slots_do_not_overlap(node: str) -> None:
    def inside(fields: tuple[ProtoField, ...]) -> Iterator[ProtoField]:
        for field in fields:
            yield field
            yield from inside(field.fields)

    words: dict[int, str] = {}
    for field in inside(NODES[node].fields):
        if field.place:
            slot = SLOTS[node][field.place]
            for word in range(slot, slot + field.words):
                assert words.setdefault(word, field.place) == field.place
