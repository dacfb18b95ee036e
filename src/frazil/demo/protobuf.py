"""OTLP protobuf messages, encoded by hand: most parts of a span repeat, and are encoded once.

A field is bytes with its tag. A message is its joined fields; its parent makes it a field.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache

Value = str | bool | int | float | Sequence["Value"] | Mapping[str, "Value"]
"""Values of an AnyValue, except bytes."""

CACHED_MAX = 1 << 15
"""Encoded attributes to cache: more than the distinct values of any key."""
SHORT_MAX = 0x7F
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Protobuf's wire types."""

pack_fixed64 = struct.Struct("<Q").pack
pack_double = struct.Struct("<d").pack


def varint(number: int) -> bytes:
    """Encode an unsigned integer."""
    if number <= SHORT_MAX:
        return bytes((number,))
    encoded = bytearray()
    while number > SHORT_MAX:
        encoded.append(number & SHORT_MAX | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def field(number: int, content: bytes) -> bytes:
    """Encode bytes, text or a message."""
    length = len(content)
    size = LENGTHS[length] if length < SHORT_COUNT else varint(length)
    return LENGTH_TAGS[number] + size + content


def text(number: int, content: str) -> bytes:
    return field(number, content.encode())


def whole(number: int, value: int) -> bytes:
    """Encode a non-negative integer, an enum or a bool."""
    return _tag(number, VARINT) + varint(value)


def signed(number: int, value: int) -> bytes:
    """Encode a sint32."""
    return _tag(number, VARINT) + varint(value << 1 if value >= 0 else (-value << 1) - 1)


def fixed64(number: int, value: int) -> bytes:
    """Encode a fixed64, or a sfixed64 of a negative number."""
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
    """Encode a KeyValue, cached."""
    return pair(number, key, value)


def attributes(number: int, pairs: Mapping[str, str | bool | int | float]) -> bytes:
    return b"".join([attribute(number, key, value) for key, value in pairs.items()])


def pair(number: int, key: str, value: Value) -> bytes:
    """Encode a KeyValue of any type, not cached."""
    return field(number, text(1, key) + field(2, any_value(value)))


def any_value(value: Value) -> bytes:
    """Encode an AnyValue."""
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
"""Varints of common lengths."""
LENGTH_TAGS = [varint(number << 3 | LENGTH) for number in range(20)]
"""Enough for all messages here."""
