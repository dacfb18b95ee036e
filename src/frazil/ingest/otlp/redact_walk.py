"""Loops that find what redaction rules may change, and put the changes in; compiled by numba.

    find     finds attributes by key, and joins all texts, so that patterns search them at once
    splice   copies a request with some fields replaced

The scanner has accepted the request.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from frazil.ingest.otlp.scan_walk import (
    BYTES,
    ENTRY_BYTES,
    INT_VALUE,
    KEY_LIMIT,
    KIND_MASK,
    MESSAGE,
    PAYLOAD_SHIFT,
    REFUSED,
    TEXT,
    VALUE_LIMIT,
    VARINT,
    Bytes,
    Positions,
    Table,
    copy_bytes,
    entry_at,
    put_length,
    skip_value,
)
from frazil.model.protobuf import (
    DEPTH_MAX,
    TAG_LONG,
    TAG_MAX,
    address_of,
    byte_at,
    compiled,
    inlined,
    part,
    read_length,
    read_varint,
    read_varint32,
)

SEPARATOR = ord("\n")
INTEGER_CHARACTERS_MAX = 20
MINUS, ZERO = ord("-"), ord("0")
NOT_FOUND = -1

# Columns of a hit: the field of the attribute, its value if it has one, and the rule.
HIT_BEGIN, HIT_END, HIT_VALUE, HIT_VALUE_END, HIT_RULE = range(5)
HIT_WORDS = 5
# Columns of a text: the field, its content, where it begins in the joined texts.
TEXT_BEGIN, TEXT_CONTENT, TEXT_END, TEXT_JOINED = range(4)
TEXT_WORDS = 4

Places = NDArray[np.int32]


@inlined
def _read_tag(position: int, end: int, row: int, tag_bits: int) -> tuple[int, int, int]:
    tag, position = read_varint32(position, end, TAG_MAX, TAG_LONG)
    entry = entry_at(row + tag * ENTRY_BYTES) if tag >> tag_bits == 0 else REFUSED
    return tag, entry, position


@part
def _rule_of(position: int, length: int, keys: Bytes, key_ends: Positions) -> int:
    """Return the rule with this key."""
    begin = 0
    for rule in range(key_ends.size):
        if key_ends[rule] - begin == length:
            at = 0
            while at < length and keys[begin + at] == byte_at(position + at):
                at += 1
            if at == length:
                return rule
        begin = key_ends[rule]
    return NOT_FOUND


@part
def _key_rule(
    row: int, position: int, end: int, tag_bits: int, keys: Bytes, key_ends: Positions
) -> tuple[int, int, int]:
    """Return the rule for a message, if it is a key-value pair that has one, and its value."""
    rule, value, value_end = NOT_FOUND, end, end
    while position < end:
        tag, entry, position = _read_tag(position, end, row, tag_bits)
        if entry & KIND_MASK == TEXT and entry >> PAYLOAD_SHIFT == KEY_LIMIT:
            length, position = read_length(position, end)
            rule = max(rule, _rule_of(position, length, keys, key_ends))
            position += length
        elif entry & KIND_MASK == MESSAGE:
            length, value = read_length(position, end)
            position = value_end = value + length
        else:
            position = skip_value(tag & 7, position, end)
    return rule, value, value_end


@compiled
def find(
    body: Bytes,
    table: Table,
    tag_bits: int,
    pair_row: int,
    keys: Bytes,
    key_ends: Positions,
    has_patterns: bool,
    hits: Places,
    texts: Places,
    joined: Bytes,
) -> tuple[int, int, int]:
    """Return the numbers of attributes with a key of a rule and of other texts, and the size of the
    texts joined. Writes them as far as there is room: all or none."""
    begin = position = address_of(body)
    end = begin + body.size
    rows = row = address_of(table)
    outer = np.empty((DEPTH_MAX, 2), np.int64)
    depth = hit_count = text_count = size = 0
    while True:
        while position == end:
            if depth == 0:
                return hit_count, text_count, size
            depth -= 1
            end, row = outer[depth]
        field = position
        tag, entry, position = _read_tag(position, end, row, tag_bits)
        kind = entry & KIND_MASK
        payload = entry >> PAYLOAD_SHIFT
        if kind > BYTES:
            content = position
            position = skip_value(tag & 7, position, end)
            if has_patterns and kind == VARINT and payload == INT_VALUE:
                if joined.size:
                    _put_text(texts, text_count, field - begin, content - begin, position - begin)
                    texts[text_count, TEXT_JOINED] = size
                    after = _put_integer(joined, size, read_varint(content, end)[0])
                    joined[after] = SEPARATOR
                    size = after + 1
                else:
                    size += INTEGER_CHARACTERS_MAX + 1
                text_count += 1
            continue
        length, position = read_length(position, end)
        after = position + length
        if kind == MESSAGE:
            if payload == pair_row and key_ends.size:
                inner = rows + payload * ENTRY_BYTES
                rule, value, value_end = _key_rule(inner, position, after, tag_bits, keys, key_ends)
                if rule != NOT_FOUND:
                    if hits.size:
                        hits[hit_count, HIT_BEGIN] = field - begin
                        hits[hit_count, HIT_END] = after - begin
                        hits[hit_count, HIT_VALUE] = value - begin
                        hits[hit_count, HIT_VALUE_END] = value_end - begin
                        hits[hit_count, HIT_RULE] = rule
                    hit_count += 1
                    position = after
                    continue
            outer[depth] = end, row
            depth += 1
            end = after
            row = rows + payload * ENTRY_BYTES
            continue
        is_searched = payload != KEY_LIMIT if kind == TEXT else payload == VALUE_LIMIT
        if has_patterns and length and is_searched:
            if joined.size:
                _put_text(texts, text_count, field - begin, position - begin, after - begin)
                texts[text_count, TEXT_JOINED] = size
                copy_bytes(joined, size, position, after)
                joined[size + length] = SEPARATOR
            size += length + 1
            text_count += 1
        position = after


@inlined
def _put_text(texts: Places, index: int, begin: int, content: int, end: int) -> None:
    texts[index, TEXT_BEGIN] = begin
    texts[index, TEXT_CONTENT] = content
    texts[index, TEXT_END] = end


@part
def _put_integer(joined: Bytes, at: int, number: int) -> int:
    """Write a signed integer in decimal. Returns the position after it."""
    if number < 0:
        joined[at] = MINUS
        at += 1
    first = at
    while True:
        # The remainder has the sign of the divisor; -2^63 has no positive.
        digit = number % 10 if number >= 0 else (10 - number % 10) % 10
        joined[at] = ZERO + digit
        at += 1
        number = (number - digit) // 10 if number >= 0 else (number + digit) // 10
        if number == 0:
            break
    low, high = first, at - 1
    while low < high:
        joined[low], joined[high] = joined[high], joined[low]
        low += 1
        high -= 1
    return at


@compiled
def splice(
    body: Bytes,
    table: Table,
    tag_bits: int,
    edits: Positions,
    replacements: Bytes,
    output: Bytes,
) -> int:
    """Copy a request with some fields replaced. An edit has the begin and end of a field, and where
    its replacement ends; edits are ordered and apart. Returns the length of the copy. The length of
    a message around an edit keeps its width if it fits."""
    begin = position = address_of(body)
    end = begin + body.size
    rows = row = address_of(table)
    new = address_of(replacements)
    outer = np.empty((DEPTH_MAX, 4), np.int64)
    depth = written = index = replaced = content = width = 0
    edit_begin = begin + edits[0, 0] if edits.shape[0] else end + 1
    while True:
        while position == end:
            if depth == 0:
                return written
            written = _close(output, content, width, written)
            depth -= 1
            end, row, content, width = outer[depth]
        field = position
        tag, entry, position = _read_tag(position, end, row, tag_bits)
        if field == edit_begin:
            written = copy_bytes(output, written, new + replaced, new + edits[index, 2])
            position = begin + edits[index, 1]
            replaced = edits[index, 2]
            index += 1
            edit_begin = begin + edits[index, 0] if index < edits.shape[0] else begin - 1
            continue
        if entry & KIND_MASK == MESSAGE:
            length_begin = position
            length, position = read_length(position, end)
            written = copy_bytes(output, written, field, position)
            if field < edit_begin < position + length:
                outer[depth] = end, row, content, width
                depth += 1
                end, content, width = position + length, written, position - length_begin
                row = rows + (entry >> PAYLOAD_SHIFT) * ENTRY_BYTES
            else:
                written = copy_bytes(output, written, position, position + length)
                position += length
            continue
        after = skip_value(tag & 7, position, end)
        written = copy_bytes(output, written, field, after)
        position = after


@part
def _close(output: Bytes, content: int, width: int, written: int) -> int:
    """Write the length of a message, which may need more room than it had. Returns its end."""
    length = written - content
    needed = 1
    while length >> 7 * needed:
        needed += 1
    if needed > width:
        shift = needed - width
        for index in range(written - 1, content - 1, -1):
            output[index + shift] = output[index]
        put_length(output, content - width, needed, length)
        return written + shift
    put_length(output, content - width, width, length)
    return written
