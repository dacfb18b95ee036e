"""Convert values to text: scalars to a string, nested values to JSON (RFC 8259).

An AnyValue in the arena is a mark and up to three words. These are replaced by address and length
of its text; the mark keeps the type, and `value_types` writes the types inside. Members of an
object are sorted by key, and of equal keys the last one wins.

Arena and work space are passed by address. The walk has counted the room for all texts, so nothing
here checks it. Writers take the address to write at and return the address after the text.
"""

from __future__ import annotations

import numpy as np

from frazil.model.arrow.decoder.arena import NEXT
from frazil.model.arrow.decoder.dispatch import (
    COUNT,
    FIRST,
    KEY,
    TEXT_ADDRESS,
    TEXT_LENGTH,
    VALUE,
    WORD_LENGTH,
)
from frazil.model.arrow.decoder.fields import (
    IS_ARRAY,
    IS_BYTES,
    IS_DOUBLE,
    IS_INT,
    IS_KVLIST,
    IS_STRING,
)
from frazil.model.arrow.decoder.values.number_text import is_special, write_double, write_integer
from frazil.model.arrow.decoder.values.sort_keys import sort
from frazil.model.arrow.decoder.values.value_types import write_nested_word
from frazil.model.protobuf.memory import Words, byte_at, get, inlined, part, put, put_byte, put_word
from frazil.model.protobuf.reader import DEPTH_MAX

QUOTE, BACKSLASH, COMMA, COLON, EQUALS, LETTER_U, ZERO = b'"\\,:=u0'
ARRAY_OPEN, ARRAY_CLOSE, OBJECT_OPEN, OBJECT_CLOSE = b"[]{}"
TRUE, FALSE, NULL = (int.from_bytes(word, "little") for word in (b"true", b"false", b"null"))
BASE64 = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
).copy()
HEX = np.frombuffer(b"0123456789abcdef", np.uint8).copy()
ESCAPES = np.zeros(256, np.uint8)
"""Letter after the backslash by byte; 0 if the byte needs no escape."""
ESCAPES[:32] = LETTER_U
for _byte, _letter in zip(b'\b\f\n\r\t"\\', b'bfnrt"\\', strict=True):
    ESCAPES[_byte] = _letter

ROWS = 7
LISTED, ORDER, SPARE, INNER_LISTED, INNER_ORDER, NEXTS, CLOSES = range(ROWS)
"""Rows of the work space, each as long as the longest list in the arena or the deepest value.
The word before them has that length."""


def work_space(list_max: int) -> Words:
    """Allocate the work space for one list at a time."""
    length = max(list_max, DEPTH_MAX)
    work = np.empty(1 + ROWS * length, np.int64)
    work[0] = length
    return work


@inlined
def row(work: int, number: int) -> int:
    """Return the address of a row."""
    return work + 8 * (1 + number * get(work, 0))


@inlined
def make_text(arena: int, value: int, at: int, work: int) -> int:
    """Replace a value by its text: strings stay, empty becomes "", arrays and objects become
    JSON."""
    kind = get(arena, value)
    if kind == IS_STRING:
        return at
    end = at
    if kind in (IS_ARRAY, IS_KVLIST):
        end = _write_nested(arena, value, at, work)
    elif IS_STRING < kind <= IS_BYTES:
        end = _write_scalar(arena, value, at)
    return _replace(arena, value, at, end, work)


@inlined
def make_json(arena: int, value: int, at: int, work: int) -> int:
    """Replace a value by JSON, unless it is a string or empty."""
    kind = get(arena, value)
    if kind == IS_STRING:
        return at
    end = at
    if IS_STRING < kind <= IS_BYTES:
        end = _write_nested(arena, value, at, work)
    return _replace(arena, value, at, end, work)


@inlined
def _replace(arena: int, value: int, begin: int, end: int, work: int) -> int:
    """Store the text as the value. The type word of an array or kvlist is written after it."""
    at = end
    if get(arena, value) in (IS_ARRAY, IS_KVLIST):
        at = write_nested_word(arena, value, end, row(work, NEXTS), row(work, CLOSES))
        put(arena, value + WORD_LENGTH, at - end)
    put(arena, value + TEXT_ADDRESS, begin)
    put(arena, value + TEXT_LENGTH, end - begin)
    return at


@part
def _write_scalar(arena: int, value: int, at: int) -> int:
    kind, word = get(arena, value), get(arena, value + 1)
    if kind == IS_INT:
        return write_integer(word, at)
    if kind == IS_DOUBLE:
        return write_double(word, at)
    if kind == IS_BYTES:
        return _write_base64(word, get(arena, value + 2), at)
    put_word(at, TRUE if word else FALSE)
    return at + (4 if word else 5)


@part
def _write_member(arena: int, value: int, at: int) -> int:
    """Write as JSON, which has no bytes, NaN or Infinity: they become strings."""
    kind = get(arena, value)
    if kind == IS_BYTES or (kind == IS_DOUBLE and is_special(get(arena, value + 1))):
        put_byte(at, QUOTE)
        at = _write_scalar(arena, value, at + 1)
        put_byte(at, QUOTE)
        return at + 1
    return _write_scalar(arena, value, at)


@part
def _write_nested(arena: int, value: int, at: int, work: int) -> int:
    """Write a value as JSON, without recursion."""
    nexts, closes = row(work, NEXTS), row(work, CLOSES)
    depth = 0
    while True:
        kind = get(arena, value)
        if kind == IS_ARRAY:
            put_byte(at, ARRAY_OPEN)
            at += 1
            put(nexts, depth, get(arena, value + FIRST))
            put(closes, depth, ARRAY_CLOSE)
            depth += 1
        elif kind == IS_KVLIST:
            put_byte(at, OBJECT_OPEN)
            at += 1
            put(nexts, depth, _sort_members(arena, value, work))
            put(closes, depth, OBJECT_CLOSE)
            depth += 1
        elif kind == IS_STRING:
            at = _write_string(get(arena, value + 1), get(arena, value + 2), at)
        elif IS_STRING < kind <= IS_BYTES:
            at = _write_member(arena, value, at)
        else:
            put_word(at, NULL)
            at += 4
        while depth and get(nexts, depth - 1) == 0:
            depth -= 1
            put_byte(at, get(closes, depth))
            at += 1
        if depth == 0:
            return at
        node = get(nexts, depth - 1)
        put(nexts, depth - 1, get(arena, node + NEXT))
        # No comma right after an opening bracket.
        if byte_at(at - 1) not in (ARRAY_OPEN, OBJECT_OPEN):
            put_byte(at, COMMA)
            at += 1
        if get(closes, depth - 1) == OBJECT_CLOSE:
            at = _write_string(get(arena, node + KEY), get(arena, node + KEY + 1), at)
            put_byte(at, COLON)
            at += 1
        value = node + VALUE


@part
def _sort_members(arena: int, value: int, work: int) -> int:
    """Link the members in key order. Returns the first."""
    nodes, order = row(work, INNER_LISTED), row(work, INNER_ORDER)
    count = get(arena, value + COUNT)
    node = get(arena, value + FIRST)
    for index in range(count):
        put(nodes, index, node)
        node = get(arena, node + NEXT)
    next_node = 0
    for index in range(sort(arena, nodes, order, row(work, SPARE), count) - 1, -1, -1):
        node = get(nodes, get(order, index))
        put(arena, node + NEXT, next_node)
        next_node = node
    put(arena, value + FIRST, next_node)
    return next_node


@part
def _write_string(address: int, length: int, at: int) -> int:
    """Write a quoted string with minimal escapes."""
    put_byte(at, QUOTE)
    at += 1
    for place in range(address, address + length):
        byte = byte_at(place)
        escape = ESCAPES[byte]
        if escape == 0:
            put_byte(at, byte)
            at += 1
            continue
        put_byte(at, BACKSLASH)
        put_byte(at + 1, escape)
        at += 2
        if escape == LETTER_U:
            put_byte(at, ZERO)
            put_byte(at + 1, ZERO)
            put_byte(at + 2, HEX[byte >> 4])
            put_byte(at + 3, HEX[byte & 15])
            at += 4
    put_byte(at, QUOTE)
    return at + 1


@part
def _write_base64(address: int, length: int, at: int) -> int:
    """Write standard base64 with padding."""
    for place in range(address, address + length, 3):
        left = address + length - place
        bits = byte_at(place) << 16
        if left > 1:
            bits |= byte_at(place + 1) << 8
        if left > 2:
            bits |= byte_at(place + 2)
        put_byte(at, BASE64[bits >> 18])
        put_byte(at + 1, BASE64[bits >> 12 & 63])
        put_byte(at + 2, BASE64[bits >> 6 & 63] if left > 1 else EQUALS)
        put_byte(at + 3, BASE64[bits & 63] if left > 2 else EQUALS)
        at += 4
    return at
