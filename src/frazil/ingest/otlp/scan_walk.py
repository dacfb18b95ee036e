"""The scanner's loops over the bytes of a request, compiled by numba: no objects, no recursion, no
GIL.

    walk   validates a request, counts its records, and finds those that cannot be stored
    cut    copies a request without some of its records

Compiled code checks no bounds, so every read is proven safe: a position is compared with `end`
before it is read, and no message ends after its parent. A position is an address. All numbers are
int64, since numba makes a float of an int64 and a uint64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from frazil.model.protobuf import (
    BLOCK_BYTES,
    DEPTH_MAX,
    NOT_TEXT,
    PACKED_ODD,
    TAG_LONG,
    TAG_MAX,
    TOO_DEEP,
    TRUNCATED,
    VARINT_BYTES_MAX,
    VARINT_LONG,
    WELL,
    WIRE_TYPE,
    address_of,
    byte_at,
    compiled,
    high_bits,
    inlined,
    is_text,
    part,
    read_length,
    read_varint32,
    reader_of,
    word_at,
)

# An entry of the table has a kind, flags and a payload. Kinds with a length prefix come first.
MESSAGE, TEXT, BYTES, ID = 0, 1, 2, 3
PACKED_FIXED32, PACKED_FIXED64, PACKED_COUNTS = 4, 5, 6
PACKED_VARINTS, PACKED_VARINT_COUNTS = 7, 8
VARINT, VARINT_COUNT, FIXED64, COUNT, FIXED32, REFUSED = 9, 10, 11, 12, 13, 14
KIND_MASK = 15
RECORD = 1 << 4
"""A MESSAGE that is a record: a log record, a span, a data point."""
CARRIER = 1 << 5
"""A MESSAGE with records below it."""
OWNER = 1 << 6
"""A MESSAGE with a oneof of carriers: a metric."""
MEMBER = 1 << 7
"""A MESSAGE in such a oneof. It replaces an earlier member."""
SINGLE = 1 << 8
"""A number or ID that is not repeated: the last one wins."""
ATTRIBUTED = 1 << 9
"""A MESSAGE with attributes: a resource, a span, an event."""
ATTRIBUTE = 1 << 10
"""A MESSAGE that is an attribute of its parent."""
LOG_BODY = 1 << 11
"""A MESSAGE that is the body of a log record."""
PAYLOAD_SHIFT = 12
"""The payload is the start of the row for MESSAGE, the length for ID, the fault for REFUSED, the
limit for TEXT and BYTES, and one of these for VARINT."""
DROPPED, INT_VALUE = 1, 2
"""A count of dropped attributes; an integer of an attribute or a body."""
NO_LIMIT, KEY_LIMIT, VALUE_LIMIT, BODY_LIMIT, COUNT_LIMIT = range(5)
"""Limits, as indices of an array. The first three are payloads."""
ENTRY_BYTES = 4

WIRE_VARINT, WIRE_FIXED64, WIRE_LENGTH, WIRE_GROUP, WIRE_GROUP_END, WIRE_FIXED32 = range(6)

Bytes = NDArray[np.uint8]
Table = NDArray[np.uint32]
Positions = NDArray[np.int64]

entry_at = reader_of(8 * ENTRY_BYTES)


@compiled
def walk(
    body: Bytes, table: Table, tag_bits: int, large: int, starts: Positions
) -> tuple[int, int, int, int, int, int, int]:
    """Return a fault, the position of a field in the body, the index of its entry in the table, and
    the numbers of records that are stored, rejected and cut, and of messages that are longer than
    `large` and carry no records. Writes the positions of the records that are cut to `starts`, as
    far as it has room.

    The field is the one at fault, or else the first one for which a record is rejected. Records in
    a oneof member that a later one replaces are cut but not rejected: protobuf hides them.
    """
    begin = position = field = address_of(body)
    end = begin + body.size
    last_block = end - BLOCK_BYTES
    rows = row = address_of(table)
    unknown_row = rows + (table.size - (1 << tag_bits)) * ENTRY_BYTES
    # The enclosing messages.
    outer_ends = np.empty(DEPTH_MAX, np.int64)
    outer_rows = np.empty(DEPTH_MAX, np.int64)
    depth = 0
    stored = rejected = cut_count = 0
    member = stored_before = rejected_before = 0
    record = record_cut = bad_field = bad_entry = 0
    large_count = 0
    while True:
        while position == end:
            if depth == 0:
                return WELL, bad_field, bad_entry, stored, rejected, cut_count, large_count
            depth -= 1
            end = outer_ends[depth]
            row = outer_rows[depth]
        field = position
        tag, entry, position = _read_tag(position, end, row, unknown_row, tag_bits)
        if position < 0:
            break
        kind = entry & KIND_MASK
        if kind > PACKED_VARINT_COUNTS:
            position, is_bad = _read_number(entry, position, end)
        else:
            length, position = read_length(position, end)
            if position < 0:
                break
            if kind == MESSAGE:
                if depth == DEPTH_MAX:
                    position = -TOO_DEEP
                    break
                outer_ends[depth] = end
                outer_rows[depth] = row
                depth += 1
                end = position + length
                row = rows + (entry >> PAYLOAD_SHIFT) * ENTRY_BYTES
                if length > large:
                    large_count += entry & CARRIER == 0
                if entry & RECORD:
                    record = field
                    stored += 1
                elif entry & OWNER:
                    member = 0
                    stored_before, rejected_before = stored, rejected
                elif entry & MEMBER and member != tag:
                    member = tag
                    stored, rejected = stored_before, rejected_before
                continue
            position, is_bad = _read_content(entry, position, length, last_block)
        if position < 0:
            break
        if is_bad and record != record_cut:
            if entry & SINGLE and _comes_again(tag, position, end):
                continue
            if cut_count < starts.size:
                starts[cut_count] = record - begin
            record_cut = record
            cut_count += 1
            stored -= 1
            rejected += 1
            if rejected == 1:
                bad_field, bad_entry = field - begin, (row - rows) // ENTRY_BYTES + tag
    entry_index = (row - rows) // ENTRY_BYTES + tag
    return -position, field - begin, entry_index, stored, rejected, cut_count, large_count


# Each reader returns the position after the value, or the negated fault.


@inlined
def _read_tag(
    position: int, end: int, row: int, unknown_row: int, tag_bits: int
) -> tuple[int, int, int]:
    """Read a tag. Returns it, or 0 if it is beyond the table, and its entry."""
    tag = byte_at(position)
    if tag < 128:
        return tag, entry_at(row + tag * ENTRY_BYTES), position + 1
    tag, position = read_varint32(position, end, TAG_MAX, TAG_LONG)
    if position < 0:
        return 0, REFUSED, position
    if tag >> tag_bits == 0:
        return tag, entry_at(row + tag * ENTRY_BYTES), position
    return 0, entry_at(unknown_row + (8 + (tag & 7)) * ENTRY_BYTES), position


@inlined
def _read_number(entry: int, position: int, end: int) -> tuple[int, bool]:
    """Read a number. Returns also whether it is a count above 2^63-1."""
    kind = entry & KIND_MASK
    if kind <= VARINT_COUNT:
        if position < end and byte_at(position) < 128:
            return position + 1, False
        after = _read_varint(position, end)
        return after, kind == VARINT_COUNT and _is_huge(position, after)
    if kind <= COUNT:
        if end - position < 8:
            return -TRUNCATED, False
        return position + 8, kind == COUNT and word_at(position) < 0
    if kind == FIXED32:
        return position + 4 if end - position >= 4 else -TRUNCATED, False
    return -(entry >> PAYLOAD_SHIFT), False


@inlined
def _read_content(entry: int, position: int, length: int, last_block: int) -> tuple[int, bool]:
    """Read a value with a length, not a message. Returns also whether it is a bad ID or count."""
    kind = entry & KIND_MASK
    end = position + length
    if kind == TEXT:
        if length == 0:
            return end, False
        is_near = length <= BLOCK_BYTES and position <= last_block
        # The shift drops the bytes after the text.
        if is_near and high_bits(position) << (BLOCK_BYTES - length) == 0:
            return end, False
        return end if is_text(position, end) else -NOT_TEXT, False
    if kind == ID:
        return end, length != 0 and length != entry >> PAYLOAD_SHIFT
    if kind == BYTES:
        return end, False
    return _read_packed(kind, position, end)


@part
def _read_packed(kind: int, position: int, end: int) -> tuple[int, bool]:
    """Read packed numbers. Returns also whether one is a count above 2^63-1."""
    if kind == PACKED_FIXED32:
        return end if (end - position) % 4 == 0 else -PACKED_ODD, False
    if kind <= PACKED_COUNTS:
        if (end - position) % 8:
            return -PACKED_ODD, False
        union = 0
        for at in range(position, end, 8):
            union |= word_at(at)
        return end, kind == PACKED_COUNTS and union < 0
    is_bad = False
    while 0 <= position < end:
        after = _read_varint(position, end)
        is_bad |= _is_huge(position, after)
        position = after
    return position, kind == PACKED_VARINT_COUNTS and is_bad


@part
def _read_varint(position: int, end: int) -> int:
    """Skip a varint."""
    for at in range(position, min(position + VARINT_BYTES_MAX, end)):
        if byte_at(at) < 128:
            return at + 1
    return -VARINT_LONG if end - position >= VARINT_BYTES_MAX else -TRUNCATED


@part
def _is_huge(position: int, after: int) -> bool:
    """Return whether this varint is above 2^63-1: bit 63 is the lowest bit of the tenth byte.
    Protobuf ignores that byte's other bits."""
    return after - position == VARINT_BYTES_MAX and byte_at(after - 1) & 1 == 1


@part
def _comes_again(tag: int, position: int, end: int) -> bool:
    """Return whether a field with this tag follows in the message, which then wins. Each search
    ends where the next one for the same tag begins, so the total is linear in the bytes."""
    while 0 <= position < end:
        next_tag, position = read_varint32(position, end, TAG_MAX, TAG_LONG)
        if next_tag == tag and position >= 0:
            return True
        if position >= 0:
            position = skip_value(next_tag & 7, position, end)
    return False


@part
def skip_value(wire_type: int, position: int, end: int) -> int:
    """Skip the value after a tag."""
    if wire_type == WIRE_VARINT:
        return _read_varint(position, end)
    if wire_type == WIRE_LENGTH:
        length, position = read_length(position, end)
        return position + length if position >= 0 else position
    if wire_type in (WIRE_FIXED64, WIRE_FIXED32):
        length = 8 if wire_type == WIRE_FIXED64 else 4
        return position + length if length <= end - position else -TRUNCATED
    return -WIRE_TYPE


@compiled
def cut(body: Bytes, table: Table, tag_bits: int, starts: Positions, output: Bytes) -> int:
    """Copy a body that `walk` found valid, without the records that begin at `starts`. Returns the
    length of the copy. A length prefix keeps its width, so a smaller one is padded."""
    begin = position = address_of(body)
    end = begin + body.size
    rows = row = address_of(table)
    frames = np.empty((DEPTH_MAX, 4), np.int64)
    depth = written = cut_count = 0
    while True:
        while position == end:
            if depth == 0:
                return written
            depth -= 1
            end, row, content, width = frames[depth]
            put_length(output, content - width, width, written - content)
        field = position
        tag, position = read_varint32(position, end, TAG_MAX, TAG_LONG)
        entry = entry_at(row + tag * ENTRY_BYTES) if tag >> tag_bits == 0 else REFUSED
        if entry & CARRIER:
            length_begin = position
            length, position = read_length(position, end)
            written = copy_bytes(output, written, field, position)
            frames[depth] = end, row, written, position - length_begin
            depth += 1
            end = position + length
            row = rows + (entry >> PAYLOAD_SHIFT) * ENTRY_BYTES
            continue
        position = skip_value(tag & 7, position, end)
        if cut_count < starts.size and starts[cut_count] == field - begin:
            cut_count += 1
        else:
            written = copy_bytes(output, written, field, position)


@part
def copy_bytes(output: Bytes, written: int, position: int, end: int) -> int:
    """Copy bytes to the output. Returns where they end there."""
    for index in range(end - position):
        output[written + index] = byte_at(position + index)
    return written + end - position


@part
def put_length(output: Bytes, at: int, width: int, length: int) -> None:
    """Write a length, padded to a width."""
    for index in range(at, at + width - 1):
        output[index] = length & 127 | 128
        length >>= 7
    output[at + width - 1] = length
