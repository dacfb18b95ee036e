"""Walk over the bytes of requests: finds every value, reads each byte once.

Driven by a table with one row per message and one entry per tag (field number and wire type), which
says what the bytes after the tag are and where in the arena they go. See `dispatch`.

No message ends after its parent, and requests are followed by `SLACK_BYTES` readable bytes, so no
input leads out of its memory.
"""

from __future__ import annotations

import numpy as np

from frazil.model.arrow.decoder.arena import (
    ADDRESS,
    CHUNK_WORDS,
    LEVELS,
    NEXT,
    NO_LEVEL,
    RECORDS,
    ROOM,
    STATE_WORDS,
    TAILS,
    TOTALS,
    USED,
    chain,
    check_rules,
    choose,
    link,
    link_chunk,
    marked,
    put_span,
    reject,
)
from frazil.model.protobuf.memory import Words, address_of, byte_at, compiled, get, part, put
from frazil.model.protobuf.reader import (
    BYTES,
    DEPTH_MAX,
    FLAT,
    NO_ROOM,
    NODE,
    NOT_TEXT,
    ONE_FIXED64,
    REFUSED,
    SKIP_LENGTH,
    TAG_LONG,
    TAG_MAX,
    TEXT,
    TOO_DEEP,
    WELL,
    count_packed,
    is_plain,
    is_text,
    read_length,
    read_number,
    read_varint32,
)

# Bits of an entry: kind, flags, then fields of 8 bits, or 16 for the row.
KIND_MASK = 15
TEXTUAL = 1 << 4
"""This value becomes text, so room for that is counted."""
SWITCH = 1 << 5
"""Another field of the oneof drops the records found below this node."""
COUNTS = 1 << 6
"""The numbers are counts and must not be above 2^63-1."""
UNKNOWN = 1 << 7
"""A number that is skipped."""
SLOT_SHIFT, MARK_SHIFT, WIDTH_SHIFT, LEVEL_SHIFT, ROW_SHIFT = 8, 16, 24, 32, 40
TAG_BITS = 8
"""A row has an entry for each tag below 256: no field of OTLP has a higher number."""
UNKNOWN_ROW = 0
"""The first row has no fields."""
BYTE_MASK = 255
# A REFUSED entry has its fault in the bits of the slot.

NUMBER_ROOM = 32
"""Upper bound of the bytes of a number as text."""
JSON_FACTOR, JSON_ROOM = 6, 16
"""JSON, with its type word, is at most this many times as long as the message, plus its
brackets."""

FRAME_WORDS = 3
FRAME_BYTES = 8 * FRAME_WORDS
"""Of an unfinished parent message: end, row, node."""


@compiled
def walk(
    address: int,
    ends: Words,
    begin: int,
    root: int,
    table: Words,
    rules: Words,
    arena: Words,
    state: Words,
    frames: Words,
    found: Words,
) -> int:
    """Walk concatenated requests from number `begin` on. Returns the first one for which the arena
    has no room; their count if all are done.

    Writes fault, position of the fault and records up to its end to `found`. An invalid request
    leaves nothing in the arena.
    """
    before = np.empty(STATE_WORDS, np.int64)
    for number in range(begin, ends.size):
        for word in range(STATE_WORDS):
            before[word] = state[word]
        start = address + (ends[number - 1] if number > 0 else 0)
        fault, position = _walk_request(
            start,
            address + ends[number],
            root,
            address_of(table),
            address_of(rules),
            address_of(arena),
            arena.size,
            address_of(state),
            address_of(frames),
        )
        if fault != WELL:
            for level in range(LEVELS):
                arena[before[TAILS + level] + NEXT] = 0
            for word in range(STATE_WORDS):
                state[word] = before[word]
            if fault == NO_ROOM:
                return number
        found[number, 0] = fault
        found[number, 1] = position - start
        found[number, 2] = state[TOTALS + RECORDS]
    return ends.size


@part
def _walk_request(
    position: int,
    end: int,
    row: int,
    table: int,
    rules: int,
    arena: int,
    arena_size: int,
    state: int,
    frames: int,
) -> tuple[int, int]:
    """Walk one request. Returns the fault and its position. Tables are passed by address."""
    depth = node = 0
    used, room = get(state, USED), get(state, ROOM)
    while True:
        while position == end:
            own_rules = get(rules, row >> TAG_BITS)
            if own_rules:
                check_rules(arena, state, node, row, own_rules)
            if depth == 0:
                put(state, USED, used)
                put(state, ROOM, room)
                return WELL, position
            depth -= 1
            frame = frames + depth * FRAME_BYTES
            end, row, node = get(frame, 0), get(frame, 1), get(frame, 2)
        field = position
        tag = byte_at(position)
        if tag < 128:
            position += 1
        else:
            tag, position = read_varint32(position, end, TAG_MAX, TAG_LONG)
            if position < 0:
                break
        entry = get(table, row + tag if tag >> TAG_BITS == 0 else UNKNOWN_ROW + 8 + (tag & 7))
        kind = entry & KIND_MASK
        place = node + (entry >> SLOT_SHIFT & BYTE_MASK)
        mark = entry >> MARK_SHIFT & BYTE_MASK
        if kind == REFUSED:
            position = -(entry >> SLOT_SHIFT & BYTE_MASK)
            break
        if kind > SKIP_LENGTH:
            number, after = read_number(kind, position, end)
            if after < 0:
                position = after
                break
            if kind < ONE_FIXED64:
                if not entry & UNKNOWN:
                    put(arena, marked(arena, place, mark), number)
                if entry & TEXTUAL:
                    room += NUMBER_ROOM
            elif used + CHUNK_WORDS <= arena_size:
                used = link_chunk(arena, place, used, position, 1)
                if entry & COUNTS and number < 0:
                    reject(arena, state, row, entry >> SLOT_SHIFT & BYTE_MASK)
            else:
                position = -NO_ROOM
                break
            position = after
            continue
        length, position = read_length(position, end)
        if position < 0:
            break
        if kind == TEXT:
            if not (is_plain(position, length) or is_text(position, position + length)):
                position = -NOT_TEXT
                break
            put_span(arena, marked(arena, place, mark), position, length)
            position += length
        elif kind <= FLAT:
            if depth == DEPTH_MAX:
                position = -TOO_DEEP
                break
            frame = frames + depth * FRAME_BYTES
            put(frame, 0, end)
            put(frame, 1, row)
            put(frame, 2, node)
            depth += 1
            end = position + length
            row = entry >> ROW_SHIFT
            if kind == NODE:
                width = entry >> WIDTH_SHIFT & BYTE_MASK
                if used + width > arena_size:
                    position = -NO_ROOM
                    break
                node = used
                used += width
                for word in range(node, used):
                    put(arena, word, 0)
                if entry >> LEVEL_SHIFT & BYTE_MASK == NO_LEVEL:
                    link(arena, state, place, node)
                else:
                    chain(arena, state, entry >> LEVEL_SHIFT & BYTE_MASK, node)
                    put_span(arena, node + ADDRESS, position, length)
            elif mark:
                if entry & TEXTUAL:
                    room += JSON_FACTOR * length + JSON_ROOM
                if get(arena, place) != mark:
                    choose(arena, state, place, mark, entry & SWITCH != 0)
        elif kind == BYTES:
            put_span(arena, marked(arena, place, mark), position, length)
            position += length
            if entry & TEXTUAL:
                room += 2 * length + NUMBER_ROOM
        elif kind == SKIP_LENGTH:
            position += length
        else:
            count, is_huge = count_packed(kind, position, length)
            if count < 0 or used + CHUNK_WORDS > arena_size:
                position = count if count < 0 else -NO_ROOM
                break
            used = link_chunk(arena, place, used, position, count)
            if entry & COUNTS and is_huge:
                reject(arena, state, row, entry >> SLOT_SHIFT & BYTE_MASK)
            position += length
    return -position, field
