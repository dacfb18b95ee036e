"""Valid requests as the start of mutations: together they contain every field of every message.

A `Body` knows the boundaries of its fields, so that one can be changed and the enclosing lengths
corrected.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from frazil.ingest.otlp.scan_tables import messages_in

BODY_BYTES_MAX = 1200
"""Larger bodies are not mutated again: they would only slow down the run."""
ID_LENGTHS = (0, 0, 1, 7, 8, 8, 9, 15, 16, 16, 17, 32, 130)
EDGES = {
    FieldDescriptor.TYPE_BYTES,
    FieldDescriptor.TYPE_DOUBLE,
    FieldDescriptor.TYPE_FIXED64,
    FieldDescriptor.TYPE_UINT64,
}
VALUE = "AnyValue"


class Node(NamedTuple):
    """A field of a body: the positions of its tag, its value and its content after any length."""

    begin: int
    value: int
    content: int
    end: int
    parent: int
    """Index of the enclosing message; -1 for the request itself."""
    field: FieldDescriptor | None
    message: Descriptor | None
    """The type of its content, if that is a message."""
    depth: int


@dataclass(frozen=True, slots=True)
class Body:
    """An encoded request and its fields."""

    data: bytes
    request: Descriptor
    nodes: list[Node]
    edges: list[Node]
    """Fields with edge values: ids, times, counts, packed numbers."""
    choices: list[Node]
    """Messages in a oneof."""
    lists: list[Node]
    """Repeated numbers."""
    values: list[Node]
    """Fields of type AnyValue, which can nest."""

    def with_replaced(self, begin: int, end: int, piece: bytes, parent: int) -> bytes:
        """Replace some bytes, and correct the lengths of the enclosing messages."""
        data = self.data
        while parent >= 0:
            node = self.nodes[parent]
            content = data[node.content : begin] + piece + data[end : node.end]
            piece = data[node.begin : node.value] + varint(len(content)) + content
            begin, end, parent = node.begin, node.end, node.parent
        return data[:begin] + piece + data[end:]


def varint(number: int, width: int = 0) -> bytes:
    """Encode a number as a varint, padded to at least `width` bytes."""
    if number < 128 and width <= 1:
        return bytes((number,))
    encoded = bytearray()
    while number > 127 or len(encoded) + 1 < width:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def indexed(data: bytes, request: Descriptor) -> Body:
    """Index the fields of a body that is valid and has no groups."""
    nodes: list[Node] = []
    _index(data, 0, len(data), request, -1, 1, nodes)
    known = [(node, node.field) for node in nodes if node.field is not None]
    edges = [node for node, field in known if field.type in EDGES]
    choices = [node for node, field in known if node.message and field.containing_oneof]
    lists = [node for node, field in known if field.type in EDGES and field.is_repeated]
    values = [node for node in nodes if node.message is not None and node.message.name == VALUE]
    return Body(data, request, nodes, edges, choices, lists, values)


def _index(
    data: bytes, at: int, end: int, message: Descriptor, parent: int, depth: int, nodes: list[Node]
) -> None:
    while at < end:
        begin = at
        tag, at = read_varint(data, at)
        value = content = at
        field = message.fields_by_number.get(tag >> 3)
        inner = None
        if tag & 7 == 0:
            _, at = read_varint(data, at)
        elif tag & 7 == 1:
            at += 8
        elif tag & 7 == 5:
            at += 4
        else:
            assert tag & 7 == 2, "the body has a group"
            length, content = read_varint(data, at)
            at = content + length
            inner = field.message_type if field is not None else None
        nodes.append(Node(begin, value, content, at, parent, field, inner, depth))
        if inner is not None:
            _index(data, content, at, inner, len(nodes) - 1, depth + 1, nodes)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7


def corpus(request: Descriptor, rand: Random, count: int) -> list[Body]:
    """Return at least `count` valid bodies that together contain every field of every message."""
    bodies: list[Body] = []
    messages = messages_in(request).values()
    missing = {field.full_name for message in messages for field in message.fields}
    while len(bodies) < count or missing:
        message = GetMessageClass(request)()
        fill(message, rand, 0)
        body = indexed(message.SerializeToString(), request)
        seen = {node.field.full_name for node in body.nodes if node.field is not None}
        is_wanted = bool(seen & missing) or len(bodies) < count
        if is_wanted and 0 < len(body.data) <= BODY_BYTES_MAX // 2:
            missing -= seen
            bodies.append(body)
    return bodies


def fill(message: Message, rand: Random, depth: int) -> None:
    """Set random fields, recursively. Nested values are less likely."""
    is_value = message.DESCRIPTOR.full_name.startswith("opentelemetry.proto.common")
    chance = 0.8 if depth < 6 and not is_value else 0.3
    fields: list[Any] = list(message.DESCRIPTOR.fields)
    for field in rand.sample(fields, len(fields)):
        if rand.random() > chance:
            continue
        target = getattr(message, field.name)
        if field.message_type is not None and field.is_repeated:
            for _ in range(rand.choice((1, 1, 2))):
                fill(target.add(), rand, depth + 1)
        elif field.message_type is not None:
            target.SetInParent()
            fill(target, rand, depth + 1)
        elif field.is_repeated:
            target.extend(scalar(field, rand) for _ in range(rand.choice((0, 1, 2, 5))))
        else:
            setattr(message, field.name, scalar(field, rand))


def scalar(field: FieldDescriptor, rand: Random) -> object:
    """Return a value for a field, mostly one that a real client could send."""
    kind = field.cpp_type
    if field.type == FieldDescriptor.TYPE_BYTES:
        usual = 16 if field.name == "trace_id" else 8
        return rand.randbytes(usual if rand.random() < 0.9 else rand.choice(ID_LENGTHS))
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return rand.choice(("", "a", "key", "some text", "\u00e9t\u00e9", "x" * 70))
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return rand.choice((0.5, -1.0, 1e300))
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return True
    if kind == FieldDescriptor.CPPTYPE_UINT64:
        return rand.choice((1, 300, 1_700_000_000_000_000_000, 2**63 - 1) * 4 + (2**63,))
    if kind == FieldDescriptor.CPPTYPE_INT64:
        return rand.choice((1, 300, -1, 2**63 - 1))
    return rand.choice((1, 3, 300, 2**31 - 1))
