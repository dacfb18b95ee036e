"""OTLP's protobuf messages, written by hand: most of a span is the same as in the one before, and
is made once.

A field is bytes with its tag. A message is its fields, joined; whoever holds it makes it a field.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache

Value = str | bool | int | float | Sequence["Value"] | Mapping[str, "Value"]
"""What an AnyValue can hold, but for bytes."""

CACHED_MAX = 1 << 15
"""Attributes that are kept as bytes. Those of one kind, as product numbers, are fewer."""
SHORT_MAX = 0x7F
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Protobuf's wire types."""

pack_fixed64 = struct.Struct("<Q").pack
pack_double = struct.Struct("<d").pack


def varint(number: int) -> bytes:
    """An unsigned number."""
    if number <= SHORT_MAX:
        return bytes((number,))
    found = bytearray()
    while number > SHORT_MAX:
        found.append(number & SHORT_MAX | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def field(number: int, content: bytes) -> bytes:
    """Bytes, text or a message."""
    length = len(content)
    size = LENGTHS[length] if length < SHORT_COUNT else varint(length)
    return LENGTH_TAGS[number] + size + content


def text(number: int, content: str) -> bytes:
    return field(number, content.encode())


def whole(number: int, value: int) -> bytes:
    """A number that is not negative, an enum or a bool."""
    return _tag(number, VARINT) + varint(value)


def signed(number: int, value: int) -> bytes:
    """A sint32."""
    return _tag(number, VARINT) + varint(value << 1 if value >= 0 else (-value << 1) - 1)


def fixed64(number: int, value: int) -> bytes:
    """Also a sfixed64 of a negative number."""
    return _tag(number, FIXED64) + pack_fixed64(value & 0xFFFF_FFFF_FFFF_FFFF)


def fixed32(number: int, value: int) -> bytes:
    return _tag(number, FIXED32) + struct.pack("<I", value)


def double(number: int, value: float) -> bytes:
    return _tag(number, FIXED64) + pack_double(value)


def packed_fixed64(number: int, values: Sequence[int]) -> bytes:
    return field(number, struct.pack(f"<{len(values)}Q", *values))


def packed_doubles(number: int, values: Sequence[float]) -> bytes:
    return field(number, struct.pack(f"<{len(values)}d", *values))


def packed_varints(number: int, values: Iterable[int]) -> bytes:
    return field(number, b"".join(map(varint, values)))


@lru_cache(maxsize=CACHED_MAX, typed=True)
def attribute(number: int, key: str, value: str | bool | int | float) -> bytes:
    """A KeyValue, as a field of whoever has attributes."""
    return pair(number, key, value)


def attributes(number: int, pairs: Mapping[str, str | bool | int | float]) -> bytes:
    return b"".join([attribute(number, key, value) for key, value in pairs.items()])


def pair(number: int, key: str, value: Value) -> bytes:
    """The same, of any value, and not kept."""
    return field(number, text(1, key) + field(2, any_value(value)))


def any_value(value: Value) -> bytes:
    """What an AnyValue holds."""
    match value:
        case str():
            return text(1, value)
        case bool():
            return whole(2, int(value))
        case int():
            return whole(3, value & 0xFFFF_FFFF_FFFF_FFFF)
        case float():
            return double(4, value)
        case Mapping():
            members = b"".join(pair(1, key, member) for key, member in value.items())
            return field(6, members)
    return field(5, b"".join(field(1, any_value(element)) for element in value))


@cache
def _tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


SHORT_COUNT = 2048
LENGTHS = [varint(length) for length in range(SHORT_COUNT)]
"""Most lengths are below; their varints are made once."""
LENGTH_TAGS = [varint(number << 3 | LENGTH) for number in range(20)]
"""No message here has more fields."""
