"""Loops over a request that may exceed limits, compiled by numba.

    exceeding   finds the records that exceed a limit
    trim        copies a request without what exceeds the limits

The scanner has accepted the request. Messages that are too short to exceed any limit are skipped or
copied as a whole. Nothing but the output is allocated, so a hostile request costs no more than its
own size. The output never grows: dropping an attribute removes at least two bytes, and a dropped
count is replaced.
"""

from __future__ import annotations

import numpy as np

from frazil.ingest.otlp.scan_walk import (
    ATTRIBUTE,
    ATTRIBUTED,
    BODY_LIMIT,
    BYTES,
    CARRIER,
    COUNT_LIMIT,
    DROPPED,
    ENTRY_BYTES,
    KEY_LIMIT,
    KIND_MASK,
    LOG_BODY,
    MESSAGE,
    NO_LIMIT,
    PAYLOAD_SHIFT,
    RECORD,
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

ATTRIBUTE_BYTES_MIN = 2
"""A tag and a length."""
COUNT32_MAX = 2**32 - 1

# Where in a log body a message is.
ELSEWHERE, IN_BODY, IN_BODY_LIST = range(3)


@inlined
def small_bytes(limits: Positions) -> int:
    """Return the length up to which a message exceeds no limit."""
    texts = min(limits[KEY_LIMIT], limits[VALUE_LIMIT], limits[BODY_LIMIT])
    small: int = min(texts, ATTRIBUTE_BYTES_MIN * limits[COUNT_LIMIT])
    return small


@inlined
def _read_tag(position: int, end: int, row: int, tag_bits: int) -> tuple[int, int, int]:
    """Read a tag. Returns it, its entry and the position after it."""
    tag, position = read_varint32(position, end, TAG_MAX, TAG_LONG)
    entry = entry_at(row + tag * ENTRY_BYTES) if tag >> tag_bits == 0 else REFUSED
    return tag, entry, position


@part
def _count_attributes(row: int, position: int, end: int, tag_bits: int) -> int:
    count = 0
    while position < end:
        tag, entry, position = _read_tag(position, end, row, tag_bits)
        if entry & KIND_MASK == MESSAGE and entry & ATTRIBUTE:
            count += 1
        position = skip_value(tag & 7, position, end)
    return count


@inlined
def _place_in(entry: int, place: int) -> int:
    """Return where in a log body the fields of a message are."""
    if entry & LOG_BODY:
        return IN_BODY
    return IN_BODY_LIST if place == IN_BODY else ELSEWHERE


@inlined
def _limit_of(entry: int, place: int) -> int:
    """Return the limit of a TEXT or BYTES."""
    limit = entry >> PAYLOAD_SHIFT
    return BODY_LIMIT if limit == VALUE_LIMIT and place == IN_BODY else limit


@part
def _exceeded(
    rows: int, entry: int, position: int, end: int, tag_bits: int, limits: Positions
) -> int:
    """Return the first limit that a message, or one inside it, exceeds; NO_LIMIT if none."""
    small = small_bytes(limits)
    outer = np.empty((DEPTH_MAX, 3), np.int64)
    depth = 0
    place = _place_in(entry, ELSEWHERE)
    row = rows + (entry >> PAYLOAD_SHIFT) * ENTRY_BYTES
    if entry & ATTRIBUTED and _count_attributes(row, position, end, tag_bits) > limits[COUNT_LIMIT]:
        return COUNT_LIMIT
    while True:
        while position == end:
            if depth == 0:
                return NO_LIMIT
            depth -= 1
            end, row, place = outer[depth]
        tag, entry, position = _read_tag(position, end, row, tag_bits)
        kind = entry & KIND_MASK
        if kind > BYTES:
            position = skip_value(tag & 7, position, end)
            continue
        length, position = read_length(position, end)
        if kind != MESSAGE:
            limit = _limit_of(entry, place)
            if length > limits[limit]:
                return limit
        elif length > small:
            outer[depth] = end, row, place
            depth += 1
            place = _place_in(entry, place)
            end = position + length
            row = rows + (entry >> PAYLOAD_SHIFT) * ENTRY_BYTES
            if place == IN_BODY_LIST and length > limits[BODY_LIMIT]:
                return BODY_LIMIT
            if entry & ATTRIBUTED:
                count = _count_attributes(row, position, end, tag_bits)
                if count > limits[COUNT_LIMIT]:
                    return COUNT_LIMIT
            continue
        position += length


@part
def _exceeded_by_own(
    rows: int, entry: int, position: int, end: int, tag_bits: int, limits: Positions
) -> int:
    """Return the first limit that a carrier exceeds apart from the records and carriers in it."""
    row = rows + (entry >> PAYLOAD_SHIFT) * ENTRY_BYTES
    if entry & ATTRIBUTED and _count_attributes(row, position, end, tag_bits) > limits[COUNT_LIMIT]:
        return COUNT_LIMIT
    while position < end:
        tag, entry, position = _read_tag(position, end, row, tag_bits)
        if entry & KIND_MASK != MESSAGE or entry & (CARRIER | RECORD):
            position = skip_value(tag & 7, position, end)
            continue
        length, position = read_length(position, end)
        limit = _exceeded(rows, entry, position, position + length, tag_bits, limits)
        if limit != NO_LIMIT:
            return limit
        position += length
    return NO_LIMIT


@compiled
def exceeding(
    body: Bytes,
    table: Table,
    tag_bits: int,
    limits: Positions,
    with_carriers: bool,
    starts: Positions,
) -> tuple[int, int]:
    """Return how many records exceed a limit, and the first limit. Writes their positions to
    `starts`, as far as it has room. With `with_carriers` a resource, scope or metric that exceeds
    one makes all its records do so."""
    begin = position = address_of(body)
    end = begin + body.size
    rows = row = address_of(table)
    outer = np.empty((DEPTH_MAX, 3), np.int64)
    small = small_bytes(limits)
    depth = count = 0
    exceeded = first = NO_LIMIT
    while True:
        while position == end:
            if depth == 0:
                return count, first
            depth -= 1
            end, row, exceeded = outer[depth]
        field = position
        tag, entry, position = _read_tag(position, end, row, tag_bits)
        if entry & KIND_MASK != MESSAGE or entry & (CARRIER | RECORD) == 0:
            position = skip_value(tag & 7, position, end)
            continue
        length, position = read_length(position, end)
        if entry & CARRIER:
            outer[depth] = end, row, exceeded
            depth += 1
            end = position + length
            if with_carriers and exceeded == NO_LIMIT:
                exceeded = _exceeded_by_own(rows, entry, position, end, tag_bits, limits)
            row = rows + (entry >> PAYLOAD_SHIFT) * ENTRY_BYTES
            continue
        limit = exceeded
        if limit == NO_LIMIT and length > small:
            limit = _exceeded(rows, entry, position, position + length, tag_bits, limits)
        if limit != NO_LIMIT:
            if count < starts.size:
                starts[count] = field - begin
            count += 1
            first = limit if first == NO_LIMIT else first
        position += length


@compiled
def trim(
    body: Bytes,
    table: Table,
    tag_bits: int,
    limits: Positions,
    output: Bytes,
    cut_counts: Positions,
) -> int:
    """Copy a request: texts cut to their limits, attributes beyond theirs dropped and counted, and
    members that do not fit into a log body dropped. Returns the length of the copy. Adds what was
    cut to `cut_counts`, by limit. A length prefix keeps its width, so a smaller one is padded."""
    position = address_of(body)
    end = position + body.size
    rows = row = address_of(table)
    small = small_bytes(limits)
    outer = np.empty((DEPTH_MAX, 10), np.int64)
    depth = written = content = width = 0
    place, room = ELSEWHERE, 0
    kept = excess = dropped = dropped_tag = 0
    while True:
        while position == end:
            if depth == 0:
                return written
            if excess and dropped_tag:
                count = min(dropped + excess, COUNT32_MAX)
                written = _put_varint(output, _put_varint(output, written, dropped_tag), count)
            put_length(output, content - width, width, written - content)
            depth -= 1
            end, row, content, width, place, room = outer[depth, :6]
            kept, excess, dropped, dropped_tag = outer[depth, 6:]
        field = position
        tag, entry, position = _read_tag(position, end, row, tag_bits)
        kind = entry & KIND_MASK
        if kind > BYTES:
            after = skip_value(tag & 7, position, end)
            if kind == VARINT and entry >> PAYLOAD_SHIFT == DROPPED and excess:
                dropped = read_varint(position, end)[0] & COUNT32_MAX
            else:
                written = copy_bytes(output, written, field, after)
            position = after
            continue
        length_begin = position
        length, position = read_length(position, end)
        after = position + length
        if kind != MESSAGE:
            limit = _limit_of(entry, place)
            if length > limits[limit]:
                length = _cut_length(kind, position, limits[limit])
                cut_counts[limit] += 1
            written = copy_bytes(output, written, field, position)
            put_length(output, written - position + length_begin, position - length_begin, length)
            written = copy_bytes(output, written, position, position + length)
            position = after
            continue
        if entry & ATTRIBUTE:
            kept += 1
            if kept > limits[COUNT_LIMIT]:
                cut_counts[COUNT_LIMIT] += 1
                position = after
                continue
        if place == IN_BODY_LIST:
            room -= after - field
            if room < 0:
                room = 0
                cut_counts[BODY_LIMIT] += 1
                position = after
                continue
        written = copy_bytes(output, written, field, position)
        if length <= small and entry & CARRIER == 0:
            written = copy_bytes(output, written, position, after)
            position = after
            continue
        outer[depth, :6] = end, row, content, width, place, room
        outer[depth, 6:] = kept, excess, dropped, dropped_tag
        depth += 1
        end, content, width = after, written, position - length_begin
        row = rows + (entry >> PAYLOAD_SHIFT) * ENTRY_BYTES
        place, room = _place_in(entry, place), limits[BODY_LIMIT]
        kept = excess = dropped = dropped_tag = 0
        if entry & ATTRIBUTED:
            count = _count_attributes(row, position, end, tag_bits)
            excess = max(0, count - limits[COUNT_LIMIT])
            dropped_tag = _dropped_tag(row, tag_bits)


@part
def _cut_length(kind: int, position: int, limit: int) -> int:
    """Return the largest length up to a limit that ends between two characters."""
    if kind == TEXT:
        while limit > 0 and byte_at(position + limit) & 0xC0 == 0x80:
            limit -= 1
    return limit


@part
def _dropped_tag(row: int, tag_bits: int) -> int:
    """Return the tag of a message's count of dropped attributes; 0 if it has none."""
    for tag in range(1 << tag_bits):
        entry = entry_at(row + tag * ENTRY_BYTES)
        if entry & KIND_MASK == VARINT and entry >> PAYLOAD_SHIFT == DROPPED:
            return tag
    return 0


@part
def _put_varint(output: Bytes, written: int, number: int) -> int:
    while number >= 128:
        output[written] = number & 127 | 128
        number >>= 7
        written += 1
    output[written] = number
    return written + 1
