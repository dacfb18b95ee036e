"""Type words of values that became text, as defined in docs/schemas.md.

The mark of a value gives its type while the arena exists. Only the contents of arrays and kvlists
are lost once they are text, so their type words are written right after that text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from frazil.model.arrow.decoder.arena import NEXT
from frazil.model.arrow.decoder.dispatch import FIRST, TEXT_ADDRESS, TEXT_LENGTH, VALUE, WORD_LENGTH
from frazil.model.arrow.decoder.fields import (
    EMPTY,
    IS_ARRAY,
    IS_BOOL,
    IS_BYTES,
    IS_DOUBLE,
    IS_INT,
    IS_KVLIST,
    IS_STRINDEX,
    IS_STRING,
)
from frazil.model.protobuf.memory import (
    SLACK_BYTES,
    Bools,
    Bytes,
    Offsets,
    Words,
    address_of,
    byte_at,
    compiled,
    copy,
    get,
    part,
    put,
    put_byte,
)

STRING, INT, DOUBLE, BOOL, BYTES, NONE = b"sidbye"
ARRAY_OPEN, ARRAY_CLOSE, KVLIST_OPEN, KVLIST_CLOSE = b"[]{}"
BAR = ord("|")
"""Between the words of two levels."""
LETTERS = np.empty(IS_STRINDEX + 1, np.uint8)
"""The type letter of a value by its mark; for an array or kvlist the opening bracket."""
LETTERS[[IS_STRING, IS_INT, IS_DOUBLE, IS_BOOL, IS_BYTES]] = STRING, INT, DOUBLE, BOOL, BYTES
LETTERS[[EMPTY, IS_STRINDEX]] = NONE
LETTERS[[IS_ARRAY, IS_KVLIST]] = ARRAY_OPEN, KVLIST_OPEN


class Values(NamedTuple):
    """Attributes in groups."""

    offsets: Offsets
    nodes: Words
    letters: Bytes
    """The type letter of each value, or its opening bracket."""

    def is_plain(self) -> bool:
        """Return whether all are strings."""
        return bool((self.letters == STRING).all())

    def within(self, offsets: Offsets) -> Values:
        """Return them in larger groups: `offsets` has the bounds of those, in groups."""
        return self._replace(offsets=self.offsets[offsets])


@part
def write_nested_word(arena: int, value: int, at: int, nexts: int, closes: int) -> int:
    """Write the type word of an array or kvlist with sorted members, without recursion. The last
    two arguments are addresses of work rows."""
    depth = 0
    while True:
        letter = LETTERS[get(arena, value)]
        put_byte(at, letter)
        at += 1
        if letter in (ARRAY_OPEN, KVLIST_OPEN):
            put(nexts, depth, get(arena, value + FIRST))
            put(closes, depth, ARRAY_CLOSE if letter == ARRAY_OPEN else KVLIST_CLOSE)
            depth += 1
        while depth and get(nexts, depth - 1) == 0:
            depth -= 1
            put_byte(at, get(closes, depth))
            at += 1
        if depth == 0:
            return at
        node = get(nexts, depth - 1)
        put(nexts, depth - 1, get(arena, node + NEXT))
        value = node + VALUE


@compiled
def build_present(
    arena: Words, nodes: Words, sent_slot: int, slot: int
) -> tuple[Offsets, Words, Bytes]:
    """Return the values at a slot that were sent, as attributes: offsets, attributes, letters."""
    words = address_of(arena)
    offsets = np.empty(nodes.size + 1, np.int32)
    entries = np.empty(nodes.size, np.int64)
    letters = np.empty(nodes.size, np.uint8)
    offsets[0] = total = 0
    for index in range(nodes.size):
        if get(words, nodes[index] + sent_slot):
            entries[total] = nodes[index] + slot - VALUE
            letters[total] = LETTERS[get(words, nodes[index] + slot)]
            total += 1
        offsets[index + 1] = total
    return offsets, entries[:total], letters[:total]


@compiled
def measure_types(
    arena: Words, offsets: Offsets, nodes: Words, letters: Bytes, lengths: Words, is_plain: Bools
) -> None:
    """Add the length of the type words of each group, and note which groups have only strings."""
    words = address_of(arena)
    for group in range(lengths.size):
        length = offsets[group + 1] - offsets[group]
        for place in range(offsets[group], offsets[group + 1]):
            letter = letters[place]
            if letter != STRING:
                is_plain[group] = False
                if letter in (ARRAY_OPEN, KVLIST_OPEN):
                    length += get(words, nodes[place] + VALUE + WORD_LENGTH) - 1
        lengths[group] += length


@compiled
def sum_up_types(lengths: Words, is_plain: Bools) -> Offsets:
    """Return the offsets of type words; groups of strings have none."""
    offsets = np.empty(lengths.size + 1, np.int32)
    offsets[0] = total = 0
    for group in range(lengths.size):
        total += 0 if is_plain[group] else lengths[group]
        offsets[group + 1] = total
    return offsets


@compiled
def write_types(
    arena: Words, offsets: Offsets, nodes: Words, letters: Bytes, ends: Offsets, ats: Words
) -> None:
    """Write the type words of each group to an address, and advance it. Groups of strings are
    skipped."""
    words = address_of(arena)
    for group in range(ats.size):
        if ends[group] == ends[group + 1]:
            continue
        at = ats[group]
        for place in range(offsets[group], offsets[group + 1]):
            letter = letters[place]
            if letter not in (ARRAY_OPEN, KVLIST_OPEN):
                put_byte(at, letter)
                at += 1
                continue
            value = nodes[place] + VALUE
            source = get(words, value + TEXT_ADDRESS) + get(words, value + TEXT_LENGTH)
            # Byte by byte: the next group may be written already.
            for index in range(get(words, value + WORD_LENGTH)):
                put_byte(at, byte_at(source + index))
                at += 1
        ats[group] = at


@compiled
def join_parts(addresses: Words, lengths: Words, bytes_max: int) -> tuple[Offsets, Bytes, int]:
    """Join the parts of each row with bars; a row of empty parts is empty. `lengths` and
    `addresses` have a row per part. Also returns the bytes needed, and does nothing if that is
    above `bytes_max`."""
    part_count, row_count = lengths.shape
    offsets = np.empty(row_count + 1, np.int32)
    offsets[0] = total = 0
    for row in range(row_count):
        length = 0
        for number in range(part_count):
            length += lengths[number, row]
        total += length + part_count - 1 if length else 0
        if total > bytes_max:
            return offsets, np.empty(0, np.uint8), total
        offsets[row + 1] = total
    data = np.empty(total + SLACK_BYTES, np.uint8)
    at = address_of(data)
    for row in range(row_count):
        if offsets[row] == offsets[row + 1]:
            continue
        for number in range(part_count):
            if number:
                put_byte(at, BAR)
                at += 1
            length = lengths[number, row]
            if length:
                copy(at, addresses[number, row], length)
                at += length
    return offsets, data, total
