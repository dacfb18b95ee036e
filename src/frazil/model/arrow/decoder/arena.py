"""Arena: what a walk found, as an array of words, and the operations on it.

A node is a message: its numbers, and address and length of its texts, are words at slots, which
`dispatch` assigns. A repeated message is a node of its own; a singular one has its slots in the
parent node. This gives protobuf's semantics of repeated singular fields: the last number wins,
messages merge.

    list     3 words: first node, last node, count; nodes are linked by `NEXT`
    oneof    1 word has the mark (which field), then the value
    chunk    a node with some numbers of a list, as they are in the request
    level    all resources, scopes, metrics or records, chained by `NEXT`

Arena and state are passed by address, nodes by the index of their first word.
"""

from __future__ import annotations

from frazil.model.protobuf.memory import get, inlined, part, put

# Words of every node; all five only in nodes of a level.
NEXT, PARENT, BAD, ADDRESS, LENGTH = range(5)
LEVEL_WORDS = 5
# Words of a chunk.
CHUNK_ADDRESS, CHUNK_COUNT, CHUNK_WORDS = 1, 2, 3
# Levels. The request has none.
NO_LEVEL, RESOURCES, SCOPES, METRICS, RECORDS = range(5)
LEVELS = 5

# State of a walk: next free word, bytes of values as text, longest list, last record node and
# record count before this metric; per level, the last node and the count.
USED, ROOM, LIST_MAX, TAIL_BEFORE, TOTAL_BEFORE, TAILS = range(6)
TOTALS = TAILS + LEVELS
STATE_WORDS = TOTALS + LEVELS

NODE_WORDS_MAX = 256
"""The arena starts with node 0, which is empty at every slot. Then come a head node per level
and one for the name of an unknown service."""
HEADS = NODE_WORDS_MAX
HEAD_WORDS = 8
UNKNOWN_SERVICE = HEADS + HEAD_WORDS * LEVELS
ARENA_BEGIN = UNKNOWN_SERVICE + HEAD_WORDS

SLOT_BITS = 8
SLOT_MASK = 255
# A rule says which records are invalid: a slot, and the length in words of the id at it, or 0 for
# a time or count, which must not be above 2^63-1. The rules of a message are packed into one int.
RULE_BITS, RULE_WORDS_MASK = SLOT_BITS + 2, 3


@inlined
def marked(arena: int, place: int, mark: int) -> int:
    """Set the mark of a oneof, if it is one. Returns where the value goes."""
    if mark:
        put(arena, place, mark)
        return place + 1
    return place


@inlined
def put_span(arena: int, place: int, address: int, length: int) -> None:
    put(arena, place, address)
    put(arena, place + 1, length)


@inlined
def link(arena: int, state: int, place: int, node: int) -> None:
    """Append a node to the list at a place."""
    if get(arena, place) == 0:
        put(arena, place, node)
    else:
        put(arena, get(arena, place + 1) + NEXT, node)
    put(arena, place + 1, node)
    count = get(arena, place + 2) + 1
    put(arena, place + 2, count)
    if count > get(state, LIST_MAX):
        put(state, LIST_MAX, count)


@part
def link_chunk(arena: int, place: int, chunk: int, address: int, count: int) -> int:
    """Append numbers to the list at a place, which counts numbers, not chunks. Returns the next
    free word."""
    if get(arena, place) == 0:
        put(arena, place, chunk)
    else:
        put(arena, get(arena, place + 1) + NEXT, chunk)
    put(arena, place + 1, chunk)
    put(arena, place + 2, get(arena, place + 2) + count)
    put(arena, chunk + NEXT, 0)
    put_span(arena, chunk + CHUNK_ADDRESS, address, count)
    return chunk + CHUNK_WORDS


@inlined
def chain(arena: int, state: int, level: int, node: int) -> None:
    """Append a node to its level. Its parent is the newest node of the level above."""
    put(arena, get(state, TAILS + level) + NEXT, node)
    put(state, TAILS + level, node)
    put(state, TOTALS + level, get(state, TOTALS + level) + 1)
    above = level - 1
    if above == METRICS and get(state, TOTALS + METRICS) == 0:
        # Only the metrics signal has this level.
        above = SCOPES
    put(arena, node + PARENT, get(state, TOTALS + above) - 1)
    if level != RECORDS:
        put(state, TAIL_BEFORE, get(state, TAILS + RECORDS))
        put(state, TOTAL_BEFORE, get(state, TOTALS + RECORDS))


@inlined
def choose(arena: int, state: int, place: int, mark: int, has_records: bool) -> None:
    """Switch a oneof to another field: the previous value and its records are dropped."""
    put(arena, place, mark)
    for word in range(place + 1, place + 4):
        put(arena, word, 0)
    if has_records:
        put(arena, get(state, TAIL_BEFORE) + NEXT, 0)
        put(state, TAILS + RECORDS, get(state, TAIL_BEFORE))
        put(state, TOTALS + RECORDS, get(state, TOTAL_BEFORE))


@part
def check_rules(arena: int, state: int, node: int, row: int, rules: int) -> None:
    """Reject the record if a message of it breaks a rule."""
    while rules:
        slot = rules & SLOT_MASK
        length = 8 * (rules >> SLOT_BITS & RULE_WORDS_MASK)
        rules >>= RULE_BITS
        is_broken = get(arena, node + slot) < 0
        if length:
            is_broken = get(arena, node + slot + 1) not in (0, length)
        if is_broken:
            reject(arena, state, row, slot)


@part
def reject(arena: int, state: int, row: int, slot: int) -> None:
    """Mark the newest record as invalid, with the row and slot that cause it."""
    record = get(state, TAILS + RECORDS)
    put(arena, record + BAD, row << SLOT_BITS | slot)
