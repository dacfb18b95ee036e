"""The scanner of `get_json_object`: finds one value in each JSON text, without the GIL.

It reads no further than the end of the value, so anything may follow it. A text that is invalid
before the value has no such value.
"""

from __future__ import annotations

import numpy as np

from frazil.model.protobuf import compiled, part
from frazil.query.functions.string_buffers import Bytes, Ints, Longs

KEY = -1
"""A step by name; other steps are array indexes."""
MISSING = -1

QUOTE, BACKSLASH, COMMA, COLON, MINUS = 0x22, 0x5C, 0x2C, 0x3A, 0x2D
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
REPLACEMENT = 0xFFFD
"""Replaces an unpaired surrogate."""


@compiled
def find_all(
    offsets: Ints,
    letters: Bytes,
    steps: Longs,
    names: Bytes,
    name_offsets: Longs,
    begins: Longs,
    ends: Longs,
) -> int:
    """Fill `begins` and `ends` with the position of the value in each row, or `MISSING` if it is
    missing or null. Returns the total length of the values."""
    total = 0
    for row in range(len(begins)):
        begin, end = _find(letters, offsets[row], offsets[row + 1], steps, names, name_offsets)
        if begin >= 0 and end - begin == 4 and letters[begin] == 0x6E:
            begin = MISSING  # null
        begins[row] = begin
        ends[row] = end
        if begin >= 0:
            total += end - begin
    return total


@compiled
def copy_all(letters: Bytes, begins: Longs, ends: Longs, values: Bytes, offsets: Ints) -> int:
    """Write the values, strings without quotes and escapes. Returns the total length."""
    at = 0
    offsets[0] = 0
    for row in range(len(begins)):
        begin, end = begins[row], ends[row]
        if begin >= 0 and letters[begin] == QUOTE:
            at = _unescape(letters, begin + 1, end - 1, values, at)
        elif begin >= 0:
            values[at : at + end - begin] = letters[begin:end]
            at += end - begin
        offsets[row + 1] = at
    return at


@part
def _find(
    letters: Bytes, at: int, end: int, steps: Longs, names: Bytes, name_offsets: Longs
) -> tuple[int, int]:
    name = 0
    at = _space(letters, at, end)
    for step in steps:
        if step == KEY:
            at = _member(letters, at, end, names[name_offsets[name] : name_offsets[name + 1]])
            name += 1
        else:
            at = _element(letters, at, end, step)
        if at < 0:
            return MISSING, MISSING
    stop = _skip(letters, at, end)
    if stop <= at:
        return MISSING, MISSING
    return at, stop


@part
def _member(letters: Bytes, at: int, end: int, name: Bytes) -> int:
    """Return the position of the value with this name, in the object at this position."""
    if at >= end or letters[at] != OPEN_OBJECT:
        return MISSING
    at += 1
    while True:
        at = _space(letters, at, end)
        if at >= end or letters[at] != QUOTE:
            return MISSING
        stop = _skip_text(letters, at, end)
        if stop < 0:
            return MISSING
        is_match = _same(letters, at + 1, stop - 1, name)
        at = _space(letters, stop, end)
        if at >= end or letters[at] != COLON:
            return MISSING
        at = _space(letters, at + 1, end)
        if is_match:
            return at
        at = _next(letters, at, end)
        if at < 0:
            return MISSING


@part
def _element(letters: Bytes, at: int, end: int, index: int) -> int:
    """Return the position of the value with this index, in the array at this position."""
    if at >= end or letters[at] != OPEN_ARRAY:
        return MISSING
    at = _space(letters, at + 1, end)
    if at >= end or letters[at] == CLOSE_ARRAY:
        return MISSING
    for _ in range(index):
        at = _next(letters, at, end)
        if at < 0:
            return MISSING
        at = _space(letters, at, end)
    return at


@part
def _next(letters: Bytes, at: int, end: int) -> int:
    """Return the position after the value at this position and the comma that must follow it."""
    stop = _skip(letters, at, end)
    if stop <= at:
        return MISSING
    at = _space(letters, stop, end)
    if at >= end or letters[at] != COMMA:
        return MISSING
    return at + 1


@part
def _skip(letters: Bytes, at: int, end: int) -> int:
    """Return the position after the value at this position; `MISSING` if it does not end. Depth is
    a counter without recursion, so a text of only brackets is as cheap as any other."""
    if at >= end:
        return MISSING
    lead = letters[at]
    if lead == QUOTE:
        return _skip_text(letters, at, end)
    if lead in (OPEN_OBJECT, OPEN_ARRAY):
        depth = 0
        while at < end:
            sign = letters[at]
            if sign == QUOTE:
                at = _skip_text(letters, at, end)
                if at < 0:
                    return MISSING
                continue
            if sign in (OPEN_OBJECT, OPEN_ARRAY):
                depth += 1
            elif sign in (CLOSE_OBJECT, CLOSE_ARRAY):
                depth -= 1
                if depth == 0:
                    return at + 1
            at += 1
        return MISSING
    return _skip_bare(letters, at, end)


@part
def _skip_bare(letters: Bytes, at: int, end: int) -> int:
    """Return the position after a number, true, false or null."""
    lead = letters[at]
    is_number = lead == MINUS or 0x30 <= lead <= 0x39
    if not is_number and lead not in (0x74, 0x66, 0x6E):
        return MISSING
    while at < end:
        sign = letters[at]
        if sign in (COMMA, CLOSE_OBJECT, CLOSE_ARRAY, 0x20, 0x09, 0x0A, 0x0D):
            break
        is_letter = 0x61 <= sign <= 0x7A or sign == 0x45
        is_digit = 0x30 <= sign <= 0x39 or sign in (MINUS, 0x2B, 0x2E)
        if not (is_letter or (is_number and is_digit)):
            return MISSING
        at += 1
    return at


@part
def _skip_text(letters: Bytes, at: int, end: int) -> int:
    """Return the position after the string whose opening quote is here."""
    at += 1
    while at < end:
        if letters[at] == BACKSLASH:
            at += 2
        elif letters[at] == QUOTE:
            return at + 1
        else:
            at += 1
    return MISSING


@part
def _space(letters: Bytes, at: int, end: int) -> int:
    while at < end and letters[at] in (0x20, 0x09, 0x0A, 0x0D):
        at += 1
    return at


@part
def _same(letters: Bytes, begin: int, end: int, name: Bytes) -> bool:
    """Return whether the string between these quotes, perhaps with escapes, is this name."""
    is_escaped = False
    for at in range(begin, end):
        is_escaped |= letters[at] == BACKSLASH
    if not is_escaped:
        return _equal(letters[begin:end], name)
    decoded = np.empty(end - begin, dtype=np.uint8)
    return _equal(decoded[: _unescape(letters, begin, end, decoded, 0)], name)


@part
def _equal(one: Bytes, other: Bytes) -> bool:
    if len(one) != len(other):
        return False
    step = 0
    while step < len(one) and one[step] == other[step]:
        step += 1
    return step == len(one)


@part
def _unescape(letters: Bytes, begin: int, end: int, values: Bytes, at: int) -> int:
    """Write the string between two quotes; returns the position after it. It never grows: an escape
    is at least as long as its character. An escape that JSON does not have loses its backslash."""
    position = begin
    while position < end:
        sign = letters[position]
        position += 1
        if sign != BACKSLASH or position >= end:
            values[at] = sign
            at += 1
            continue
        sign = letters[position]
        position += 1
        number = MISSING
        if sign == 0x75 and position + 4 <= end:
            number = _hex(letters, position)
        if number >= 0:
            position += 4
            low = _low_half(letters, position, end)
            if 0xD800 <= number <= 0xDBFF and low >= 0:
                number = 0x10000 + ((number - 0xD800) << 10) + low
                position += 6
            if 0xD800 <= number <= 0xDFFF:
                number = REPLACEMENT
            at = _encode(number, values, at)
            continue
        values[at] = _ESCAPES[sign]
        at += 1
    return at


@part
def _low_half(letters: Bytes, at: int, end: int) -> int:
    """Return the ten bits of a low surrogate escape at this position, or `MISSING`."""
    if at + 6 > end or letters[at] != BACKSLASH or letters[at + 1] != 0x75:
        return MISSING
    number = _hex(letters, at + 2)
    return number - 0xDC00 if 0xDC00 <= number <= 0xDFFF else MISSING


_ESCAPES = np.arange(256, dtype=np.uint8)
for _letter, _code in (("b", 8), ("f", 12), ("n", 10), ("r", 13), ("t", 9)):
    _ESCAPES[ord(_letter)] = _code


@part
def _hex(letters: Bytes, at: int) -> int:
    number = 0
    for step in range(4):
        sign = letters[at + step]
        if 0x30 <= sign <= 0x39:
            digit = sign - 0x30
        elif 0x61 <= (sign | 0x20) <= 0x66:
            digit = (sign | 0x20) - 0x61 + 10
        else:
            return MISSING
        number = number * 16 + digit
    return number


@part
def _encode(number: int, values: Bytes, at: int) -> int:
    """Write one character as UTF-8; returns the position after it."""
    if number < 0x80:
        values[at] = number
        return at + 1
    if number < 0x800:
        values[at] = 0xC0 | number >> 6
        values[at + 1] = 0x80 | number & 0x3F
        return at + 2
    if number < 0x10000:
        values[at] = 0xE0 | number >> 12
        values[at + 1] = 0x80 | number >> 6 & 0x3F
        values[at + 2] = 0x80 | number & 0x3F
        return at + 3
    values[at] = 0xF0 | number >> 18
    values[at + 1] = 0x80 | number >> 12 & 0x3F
    values[at + 2] = 0x80 | number >> 6 & 0x3F
    values[at + 3] = 0x80 | number & 0x3F
    return at + 4
