"""What compiled codecs call: varints, tagged fields of newer versions, errors."""

from __future__ import annotations

from typing import NoReturn

from frazil.errors import Malformed

ELEMENTS_MAX = 100_000
"""Elements in all arrays of one message, and its tagged fields, together. A frame of some megabytes
could otherwise hold millions of topics of three bytes each, which take gigabytes as objects, or
tagged fields of two bytes each, which take seconds to skip."""

STRING_BYTES_MAX = 0x7FFF
"""Maximum length of a string in every version: older ones have 16 bits for it."""

VARINT_BYTES_MAX = 5
"""Bytes of a varint of 32 bits."""


def uvarint(view: memoryview, at: int) -> tuple[int, int]:
    """Return an unsigned varint and the position after it."""
    value = 0
    for index in range(VARINT_BYTES_MAX):
        byte = view[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value > 0xFFFF_FFFF:
                break
            return value, at + index + 1
    raise Malformed(f"the varint at byte {at} has more than 32 bits")


def uvarint_bytes(value: int) -> bytes:
    """Return an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


UVARINTS = tuple(uvarint_bytes(value) for value in range(1024))
"""The usual ones."""


def skip_tags(view: memoryview, at: int, end: int, left: int) -> tuple[int, int]:
    """Skip a section of tagged fields, none of which this version knows. Return its end, and what
    is left of the maximum of elements."""
    count, at = uvarint(view, at)
    if count > left:
        bad_count("tagged fields", count)
    for _ in range(count):
        _, at = uvarint(view, at)
        size, at = uvarint(view, at)
        at += size
        if at > end:
            raise Malformed("a tagged field reaches beyond the end")
    return at, left - count


def bad_length(field: str, length: int) -> NoReturn:
    """Refuse the length of a text or of bytes."""
    raise Malformed(f"{field} cannot have length {length}: null, too long, or beyond the end")


def bad_count(field: str, count: int) -> NoReturn:
    """Refuse the number of elements of an array."""
    raise Malformed(
        f"{field} cannot have {count} elements: null, beyond the end, or the message has more than"
        f" {ELEMENTS_MAX}"
    )


def bad_marker(field: str, marker: int) -> NoReturn:
    """Refuse the byte that says whether a struct is there."""
    raise Malformed(f"{field} begins with {marker}; that means neither a value nor null")


def bad_tag(field: str) -> NoReturn:
    """Refuse a tagged field whose value is not as long as it says."""
    raise Malformed(f"tagged field {field} does not have the length it says")


def no_field(message: str, version: int, field: str) -> NoReturn:
    """Refuse to leave out a value that the receiver must see."""
    raise Malformed(f"version {version} of {message} has no {field}; leave it at its default")


def no_null(field: str) -> NoReturn:
    """Refuse None for a field that cannot be null in this version."""
    raise Malformed(f"{field} cannot be None in this version")


def too_long(field: str, length: int) -> NoReturn:
    """Refuse to write a string."""
    raise Malformed(f"{field} has {length} bytes; the maximum is {STRING_BYTES_MAX}")


def bad_uuid(field: str) -> NoReturn:
    """Refuse to write an id that has not 16 bytes."""
    raise Malformed(f"{field} is not 16 bytes")
