"""Read protobuf bytes: tags, lengths, numbers, strings. Accepts and rejects what protobuf's own
parser does.

A position is an address. Readers return the position after what they read, or the negated fault.
Every read is in bounds: the position was compared with the end of its message before.
"""

from __future__ import annotations

from frazil.model.protobuf.memory import BLOCK_BYTES, byte_at, high_bits, inlined, part, word_at

# Kinds of bytes after a tag. Those that start with a length come first.
NODE, FLAT, TEXT, BYTES, PACKED_FIXED64, PACKED_VARINTS, SKIP_LENGTH = range(7)
VARINT, VARINT32, ZIGZAG32, BOOL, FIXED64, FIXED32, ONE_FIXED64, ONE_VARINT, REFUSED = range(7, 16)

# Faults.
WELL, TRUNCATED, TAG_LONG, VARINT_LONG, LENGTH_LONG, LENGTH_BEYOND = range(6)
PACKED_ODD, NOT_TEXT, TOO_DEEP, FIELD_ZERO, GROUP, WIRE_TYPE, NO_ROOM = range(6, 13)

# The limits of protobuf's own parser.
TAG_MAX = 2**32 - 1
LENGTH_MAX = 2**31 - 1
VARINT32_BYTES_MAX = 5
VARINT_BYTES_MAX = 10
DEPTH_MAX = 100
"""Nesting depth of messages, not counting the request."""
FAULTS = {
    TRUNCATED: "the message ends inside a field",
    TAG_LONG: "a tag is longer than 32 bits",
    VARINT_LONG: "a number is longer than 10 bytes",
    LENGTH_LONG: "a length is above 2^31-1 or longer than 5 bytes",
    LENGTH_BEYOND: "a length reaches beyond the end of the message",
    PACKED_ODD: "the length of packed numbers is not a multiple of their size",
    NOT_TEXT: "a string is not UTF-8",
    TOO_DEEP: f"messages are nested more than {DEPTH_MAX} deep",
    FIELD_ZERO: "a field has the number 0",
    GROUP: "groups are not accepted",
    WIRE_TYPE: "a wire type is unknown",
}
MASK32 = 2**32 - 1


@inlined
def read_length(position: int, end: int) -> tuple[int, int]:
    """Read a length; that many bytes follow it."""
    if position == end:
        return 0, -TRUNCATED
    length = byte_at(position)
    if length < 128:
        position += 1
    else:
        length, position = read_varint32(position, end, LENGTH_MAX, LENGTH_LONG)
        if position < 0:
            return 0, position
    return length, position if length <= end - position else -LENGTH_BEYOND


@inlined
def read_number(kind: int, position: int, end: int) -> tuple[int, int]:
    """Read a single number."""
    if kind in (FIXED64, ONE_FIXED64):
        if end - position < 8:
            return 0, -TRUNCATED
        return word_at(position), position + 8
    if kind == FIXED32:
        if end - position < 4:
            return 0, -TRUNCATED
        return word_at(position) & MASK32, position + 4
    if position < end and byte_at(position) < 128:
        number = byte_at(position)
        position += 1
    else:
        number, position = read_varint(position, end)
    if kind == VARINT32:
        number &= MASK32
    elif kind == ZIGZAG32:
        number &= MASK32
        number = number >> 1 ^ -(number & 1)
    elif kind == BOOL:
        number = 1 if number != 0 else 0
    return number, position


@part
def count_packed(kind: int, position: int, length: int) -> tuple[int, bool]:
    """Return the number of packed values, or the fault; and whether one is above 2^63-1."""
    end = position + length
    if kind == PACKED_FIXED64:
        if length % 8:
            return -PACKED_ODD, False
        union = 0
        for at in range(position, end, 8):
            union |= word_at(at)
        return length // 8, union < 0
    count = 0
    is_bad = False
    while position < end:
        number, position = read_varint(position, end)
        if position < 0:
            return position, False
        is_bad |= number < 0
        count += 1
    return count, is_bad


@part
def read_varint32(position: int, end: int, largest: int, fault: int) -> tuple[int, int]:
    """Read a tag or a length."""
    number = 0
    for index in range(min(VARINT32_BYTES_MAX, end - position)):
        byte = byte_at(position + index)
        number |= (byte & 127) << (7 * index)
        if byte < 128:
            return number, position + index + 1 if number <= largest else -fault
    return 0, -fault if end - position >= VARINT32_BYTES_MAX else -TRUNCATED


@part
def read_varint(position: int, end: int) -> tuple[int, int]:
    """Read a varint; bits above 64 are dropped."""
    number = 0
    for index in range(min(VARINT_BYTES_MAX, end - position)):
        byte = byte_at(position + index)
        number |= (byte & 127) << (7 * index)
        if byte < 128:
            return number, position + index + 1
    return 0, -VARINT_LONG if end - position >= VARINT_BYTES_MAX else -TRUNCATED


@inlined
def is_plain(position: int, length: int) -> bool:
    """Return whether the text is certainly ASCII. The shift drops bytes after its end."""
    if length == 0:
        return True
    return length <= BLOCK_BYTES and high_bits(position) << (BLOCK_BYTES - length) == 0


@part
def is_text(position: int, end: int) -> bool:
    """Return whether the bytes are strict UTF-8: no surrogates, no overlong forms, at most
    U+10FFFF."""
    while position < end:
        first = byte_at(position)
        if first < 0x80:
            is_plain = end - position >= BLOCK_BYTES and high_bits(position) == 0
            position += BLOCK_BYTES if is_plain else 1
            continue
        position += 1
        # How many bytes follow, and the bounds of the first of them.
        follow, low, high = 1, 0x80, 0xBF
        if first >= 0xE0:
            follow = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        if first >= 0xF0:
            follow = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        if first < 0xC2 or first > 0xF4 or end - position < follow:
            return False
        if byte_at(position) < low or byte_at(position) > high:
            return False
        for at in range(position + 1, position + follow):
            if byte_at(at) & 0xC0 != 0x80:
                return False
        position += follow
    return True
