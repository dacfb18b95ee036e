"""Values as text: what is no string becomes one, and nested values become JSON (RFC 8259).

An AnyValue is a choice on the heap: its mark, and up to three words. These are replaced by address
and length of its text; the mark still says what it was, and `decode_types` what was inside.
Members of an object are sorted by key, and of those with the same key the last one counts.

The heap and the work space are given by their addresses. Room for all texts is known from the
walk, so nothing here asks for it. Whatever writes takes the address to write at and returns the
one behind what it wrote.
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
"""The letter behind the backslash, by byte; 0 when the byte stands for itself."""
ESCAPES[:32] = LETTER_U
for _byte, _letter in zip(b'\b\f\n\r\t"\\', b'bfnrt"\\', strict=True):
    ESCAPES[_byte] = _letter

ROWS = 7
LISTED, ORDER, SPARE, INNER_LISTED, INNER_ORDER, NEXTS, CLOSES = range(ROWS)
"""Rows of the work space, each as long as the longest list on the heap, or the deepest value. The
word before them says how long that is."""


def work_space(list_max: int) -> Words:
    """Room for what is done with one list at a time."""
    length = max(list_max, DEPTH_MAX)
    work = np.empty(1 + ROWS * length, np.int64)
    work[0] = length
    return work


@inlined
def row(work: int, number: int) -> int:
    """The address of a row."""
    return work + 8 * (1 + number * get(work, 0))


@inlined
def make_text(heap: int, value: int, at: int, work: int) -> int:
    """Replace a value by its text: a string as it is, an empty one by nothing, an array or object
    by JSON."""
    kind = get(heap, value)
    if kind == IS_STRING:
        return at
    end = at
    if kind in (IS_ARRAY, IS_KVLIST):
        end = _write_nested(heap, value, at, work)
    elif IS_STRING < kind <= IS_BYTES:
        end = _write_scalar(heap, value, at)
    return _replace(heap, value, at, end, work)


@inlined
def make_json(heap: int, value: int, at: int, work: int) -> int:
    """Replace a value by JSON, unless it is a string or empty."""
    kind = get(heap, value)
    if kind == IS_STRING:
        return at
    end = at
    if IS_STRING < kind <= IS_BYTES:
        end = _write_nested(heap, value, at, work)
    return _replace(heap, value, at, end, work)


@inlined
def _replace(heap: int, value: int, begin: int, end: int, work: int) -> int:
    """Put the text in the place of the value. What an array or kvlist was is written behind it."""
    at = end
    if get(heap, value) in (IS_ARRAY, IS_KVLIST):
        at = write_nested_word(heap, value, end, row(work, NEXTS), row(work, CLOSES))
        put(heap, value + WORD_LENGTH, at - end)
    put(heap, value + TEXT_ADDRESS, begin)
    put(heap, value + TEXT_LENGTH, end - begin)
    return at


@part
def _write_scalar(heap: int, value: int, at: int) -> int:
    kind, word = get(heap, value), get(heap, value + 1)
    if kind == IS_INT:
        return write_integer(word, at)
    if kind == IS_DOUBLE:
        return write_double(word, at)
    if kind == IS_BYTES:
        return _write_base64(word, get(heap, value + 2), at)
    put_word(at, TRUE if word else FALSE)
    return at + (4 if word else 5)


@part
def _write_member(heap: int, value: int, at: int) -> int:
    """The same as JSON, which has no bytes, no NaN and no Infinity: there they are strings."""
    kind = get(heap, value)
    if kind == IS_BYTES or (kind == IS_DOUBLE and is_special(get(heap, value + 1))):
        put_byte(at, QUOTE)
        at = _write_scalar(heap, value, at + 1)
        put_byte(at, QUOTE)
        return at + 1
    return _write_scalar(heap, value, at)


@part
def _write_nested(heap: int, value: int, at: int, work: int) -> int:
    """A value as JSON, without recursion."""
    nexts, closes = row(work, NEXTS), row(work, CLOSES)
    depth = 0
    while True:
        kind = get(heap, value)
        if kind == IS_ARRAY:
            put_byte(at, ARRAY_OPEN)
            at += 1
            put(nexts, depth, get(heap, value + FIRST))
            put(closes, depth, ARRAY_CLOSE)
            depth += 1
        elif kind == IS_KVLIST:
            put_byte(at, OBJECT_OPEN)
            at += 1
            put(nexts, depth, _sort_members(heap, value, work))
            put(closes, depth, OBJECT_CLOSE)
            depth += 1
        elif kind == IS_STRING:
            at = _write_string(get(heap, value + 1), get(heap, value + 2), at)
        elif IS_STRING < kind <= IS_BYTES:
            at = _write_member(heap, value, at)
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
        put(nexts, depth - 1, get(heap, node + NEXT))
        # Only what has just been opened ends like this.
        if byte_at(at - 1) not in (ARRAY_OPEN, OBJECT_OPEN):
            put_byte(at, COMMA)
            at += 1
        if get(closes, depth - 1) == OBJECT_CLOSE:
            at = _write_string(get(heap, node + KEY), get(heap, node + KEY + 1), at)
            put_byte(at, COLON)
            at += 1
        value = node + VALUE


@part
def _sort_members(heap: int, value: int, work: int) -> int:
    """Link the members in the order of their keys; returns the first one."""
    nodes, order = row(work, INNER_LISTED), row(work, INNER_ORDER)
    count = get(heap, value + COUNT)
    node = get(heap, value + FIRST)
    for index in range(count):
        put(nodes, index, node)
        node = get(heap, node + NEXT)
    next_node = 0
    for index in range(sort(heap, nodes, order, row(work, SPARE), count) - 1, -1, -1):
        node = get(nodes, get(order, index))
        put(heap, node + NEXT, next_node)
        next_node = node
    put(heap, value + FIRST, next_node)
    return next_node


@part
def _write_string(address: int, length: int, at: int) -> int:
    """With quotes. Only what must be escaped is."""
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
    """The standard alphabet, padded."""
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
