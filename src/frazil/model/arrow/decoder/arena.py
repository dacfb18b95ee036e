"""The heap: what a walk finds, as an array of words, and what can be done with it.

A node of the heap is a message: its numbers, and address and length of its texts, are words at
slots, which `decode_table` gives out. A message of which there can be many is a node of its own;
one of which there can be one has its slots in the node around it. So what protobuf says of fields
that come twice is true by itself: the last number counts, the messages merge.

    a list      3 words: first node, last node, how many; the nodes are linked by their `NEXT`
    a choice    1 word says which (a mark), and the value follows
    a chunk     a node with some numbers of a list, as they stand in the request
    a level     all resources, all scopes, all metrics, all records: chained by their `NEXT`

Heap and state are given by their addresses, nodes by the index of their first word.
"""

from __future__ import annotations

from frazil.model.protobuf.memory import get, inlined, part, put

# Words of every node; those of a level, which are chained, have the others as well.
NEXT, PARENT, BAD, ADDRESS, LENGTH = range(5)
LEVEL_WORDS = 5
# Words of a chunk.
CHUNK_ADDRESS, CHUNK_COUNT, CHUNK_WORDS = 1, 2, 3
# Levels. The request has none.
NO_LEVEL, RESOURCES, SCOPES, METRICS, RECORDS = range(5)
LEVELS = 5

# The state of a walk: the next free word of the heap, bytes that values need as text, the longest
# list; by level, the last node and how many there are; those of the records before this metric.
USED, ROOM, LIST_MAX, TAIL_BEFORE, TOTAL_BEFORE, TAILS = range(6)
TOTALS = TAILS + LEVELS
STATE_WORDS = TOTALS + LEVELS

NODE_WORDS_MAX = 256
"""The heap begins with node 0, which has nothing, at any slot. Then come a node for each level,
which the first one of that level follows, and one for the name of an unknown service."""
HEADS = NODE_WORDS_MAX
HEAD_WORDS = 8
UNKNOWN_SERVICE = HEADS + HEAD_WORDS * LEVELS
HEAP_BEGIN = UNKNOWN_SERVICE + HEAD_WORDS

SLOT_BITS = 8
SLOT_MASK = 255
# A rule says when a record can never be a row: a slot, and how many words the id at it is long, or
# 0 for a time or count, which must not be above 2^63-1. The rules of a message are one number.
RULE_BITS, RULE_WORDS_MASK = SLOT_BITS + 2, 3


@inlined
def marked(heap: int, place: int, mark: int) -> int:
    """Make the choice, if it is one. Returns where the value goes."""
    if mark:
        put(heap, place, mark)
        return place + 1
    return place


@inlined
def put_span(heap: int, place: int, address: int, length: int) -> None:
    put(heap, place, address)
    put(heap, place + 1, length)


@inlined
def link(heap: int, state: int, place: int, node: int) -> None:
    """Add a node to the list at a place."""
    if get(heap, place) == 0:
        put(heap, place, node)
    else:
        put(heap, get(heap, place + 1) + NEXT, node)
    put(heap, place + 1, node)
    count = get(heap, place + 2) + 1
    put(heap, place + 2, count)
    if count > get(state, LIST_MAX):
        put(state, LIST_MAX, count)


@part
def link_chunk(heap: int, place: int, chunk: int, address: int, count: int) -> int:
    """Add some numbers to the list at a place, which counts numbers, not chunks. Returns the next
    free word."""
    if get(heap, place) == 0:
        put(heap, place, chunk)
    else:
        put(heap, get(heap, place + 1) + NEXT, chunk)
    put(heap, place + 1, chunk)
    put(heap, place + 2, get(heap, place + 2) + count)
    put(heap, chunk + NEXT, 0)
    put_span(heap, chunk + CHUNK_ADDRESS, address, count)
    return chunk + CHUNK_WORDS


@inlined
def chain(heap: int, state: int, level: int, node: int) -> None:
    """Add a node to those of its level. Its parent is the newest one of the level above."""
    put(heap, get(state, TAILS + level) + NEXT, node)
    put(state, TAILS + level, node)
    put(state, TOTALS + level, get(state, TOTALS + level) + 1)
    above = level - 1
    if above == METRICS and get(state, TOTALS + METRICS) == 0:
        # Only the signal of that name has metrics.
        above = SCOPES
    put(heap, node + PARENT, get(state, TOTALS + above) - 1)
    if level != RECORDS:
        put(state, TAIL_BEFORE, get(state, TAILS + RECORDS))
        put(state, TOTAL_BEFORE, get(state, TOTALS + RECORDS))


@inlined
def choose(heap: int, state: int, place: int, mark: int, has_records: bool) -> None:
    """Make another choice: the values of the one before are gone, and so are its records."""
    put(heap, place, mark)
    for word in range(place + 1, place + 4):
        put(heap, word, 0)
    if has_records:
        put(heap, get(state, TAIL_BEFORE) + NEXT, 0)
        put(state, TAILS + RECORDS, get(state, TAIL_BEFORE))
        put(state, TOTALS + RECORDS, get(state, TOTAL_BEFORE))


@part
def judge(heap: int, state: int, node: int, row: int, rules: int) -> None:
    """Condemn the record when a message of it breaks a rule."""
    while rules:
        slot = rules & SLOT_MASK
        length = 8 * (rules >> SLOT_BITS & RULE_WORDS_MASK)
        rules >>= RULE_BITS
        is_broken = get(heap, node + slot) < 0
        if length:
            is_broken = get(heap, node + slot + 1) not in (0, length)
        if is_broken:
            condemn(heap, state, row, slot)


@part
def condemn(heap: int, state: int, row: int, slot: int) -> None:
    """Note that the newest record can never be a row, and why: what is at a slot of a message."""
    record = get(state, TAILS + RECORDS)
    put(heap, record + BAD, row << SLOT_BITS | slot)
