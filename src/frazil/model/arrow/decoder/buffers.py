"""Arrow buffers from the arena, compiled.

`nodes` are indices into the arena, one per row; node 0 is empty. Offsets are Arrow's, one more than
rows. The caller makes sure that they fit 32 bits.
"""

from __future__ import annotations

import numpy as np

from frazil.model.arrow.decoder.arena import CHUNK_ADDRESS, CHUNK_COUNT, NEXT
from frazil.model.arrow.decoder.dispatch import KEY, VALUE
from frazil.model.arrow.decoder.fields import IS_INT, IS_STRING
from frazil.model.arrow.decoder.values.number_text import MINUS, ZERO
from frazil.model.arrow.decoder.values.sort_keys import is_sorted, sort
from frazil.model.arrow.decoder.values.value_text import (
    LISTED,
    ORDER,
    SPARE,
    make_json,
    make_text,
    row,
)
from frazil.model.arrow.decoder.values.value_types import LETTERS
from frazil.model.protobuf.memory import (
    SLACK_BYTES,
    Bools,
    Bytes,
    Offsets,
    Words,
    address_of,
    byte_at,
    compare,
    compiled,
    copy,
    get,
    inlined,
    is_same,
    put,
    put_word,
    word_at,
)
from frazil.model.protobuf.reader import MASK32, VARINT_BYTES_MAX, read_varint

KEYS_SEEN_BITS = 10
KEYS_SEEN = 1 << KEYS_SEEN_BITS
"""Distinct keys remembered at most: attributes of telemetry have dozens."""
PROBES = 8
"""Probes per key."""
MIXING = 0x9E3779B97F4A7C15 - 2**64
"""Odd, with well mixed bits, so that the upper bits of products are mixed, too."""
INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)

LOWER_HALVES = 0x000F000F000F000F
ONES = 0x0101010101010101
DIGIT_ZERO, LETTER_SHIFT = ord("0"), ord("a") - ord("0") - 10


@compiled
def build_chain(arena: Words, head: int, count: int) -> Words:
    """Return the nodes of a level."""
    words = address_of(arena)
    nodes = np.empty(count, np.int64)
    node = head
    for index in range(count):
        node = get(words, node + NEXT)
        nodes[index] = node
    return nodes


@inlined
def _sum_up(words: int, nodes: Words, slot: int, offsets: Offsets, factor: int) -> int:
    """Write the offsets of lengths at a slot. Returns the last one."""
    offsets[0] = total = 0
    for index in range(nodes.size):
        total += factor * get(words, nodes[index] + slot)
        offsets[index + 1] = total
    return total


@compiled
def build_lists(arena: Words, nodes: Words, slot: int) -> tuple[Offsets, Words]:
    """Return offsets and nodes of the lists at a slot."""
    words = address_of(arena)
    offsets = np.empty(nodes.size + 1, np.int32)
    inner = np.empty(_sum_up(words, nodes, slot + 2, offsets, 1), np.int64)
    at = 0
    for index in range(nodes.size):
        node = get(words, nodes[index] + slot)
        while node:
            inner[at] = node
            at += 1
            node = get(words, node + NEXT)
    return offsets, inner


@compiled
def build_numbers(arena: Words, nodes: Words, slot: int, is_varint: bool) -> tuple[Offsets, Words]:
    """Return offsets and numbers of the lists at a slot."""
    words = address_of(arena)
    offsets = np.empty(nodes.size + 1, np.int32)
    numbers = np.empty(_sum_up(words, nodes, slot + 2, offsets, 1), np.int64)
    at = 0
    for index in range(nodes.size):
        chunk = get(words, nodes[index] + slot)
        while chunk:
            address = get(words, chunk + CHUNK_ADDRESS)
            for _ in range(get(words, chunk + CHUNK_COUNT)):
                if is_varint:
                    # The walk has checked that it ends.
                    numbers[at], address = read_varint(address, address + VARINT_BYTES_MAX)
                else:
                    numbers[at] = word_at(address)
                    address += 8
                at += 1
            chunk = get(words, chunk + NEXT)
    return offsets, numbers


@compiled
def build_texts(arena: Words, nodes: Words, slot: int) -> tuple[Offsets, Bytes]:
    """Return offsets and bytes of the texts at a slot, with slack."""
    words = address_of(arena)
    offsets = np.empty(nodes.size + 1, np.int32)
    data = np.empty(_sum_up(words, nodes, slot + 1, offsets, 1) + SLACK_BYTES, np.uint8)
    at = address_of(data)
    for index in range(nodes.size):
        place = nodes[index] + slot
        length = get(words, place + 1)
        if length:
            copy(at, get(words, place), length)
            at += length
    return offsets, data


@compiled
def build_hex(arena: Words, nodes: Words, slot: int) -> tuple[Offsets, Bytes]:
    """Return the ids at a slot, of 8 or 16 bytes or empty, in lower-case hex."""
    words = address_of(arena)
    offsets = np.empty(nodes.size + 1, np.int32)
    data = np.empty(_sum_up(words, nodes, slot + 1, offsets, 2) + SLACK_BYTES, np.uint8)
    at = address_of(data)
    for index in range(nodes.size):
        place = nodes[index] + slot
        address = get(words, place)
        for four in range(address, address + get(words, place + 1), 4):
            put_word(at, _hex_of(word_at(four) & MASK32))
            at += 8
    return offsets, data


@inlined
def _hex_of(four: int) -> int:
    """Return eight hex digits of four bytes: one byte per nibble, then the letters."""
    pairs = (four | four << 16) & 0x0000FFFF0000FFFF
    pairs = (pairs | pairs << 8) & 0x00FF00FF00FF00FF
    halves = pairs >> 4 & LOWER_HALVES | (pairs & LOWER_HALVES) << 8
    is_letter = halves + ONES * 6 >> 4 & ONES
    return halves + ONES * DIGIT_ZERO + is_letter * LETTER_SHIFT


@compiled
def build_maps(
    arena: Words, nodes: Words, slot: int, work_space: Words, at: int
) -> tuple[Offsets, Words, Bytes, int]:
    """Return the attributes at a slot, sorted, with values as text: offsets, attributes, their
    type letters, and the address after the texts written."""
    words, work = address_of(arena), address_of(work_space)
    offsets = np.empty(nodes.size + 1, np.int32)
    entries = np.empty(_sum_up(words, nodes, slot + 2, offsets, 1), np.int64)
    letters = np.empty(entries.size, np.uint8)
    own, order = row(work, LISTED), row(work, ORDER)
    total = count_before = 0
    for index in range(nodes.size):
        node = get(words, nodes[index] + slot)
        count = get(words, nodes[index] + slot + 2)
        for place in range(count):
            put(own, place, node)
            node = get(words, node + NEXT)
        kept = count
        # Most records have the keys of the one before, in the same order.
        if count != count_before or not is_sorted(words, own, order, count):
            kept = sort(words, own, order, row(work, SPARE), count)
            count_before = count if kept == count else 0
        for place in range(kept):
            node = get(own, get(order, place))
            at = make_text(words, node + VALUE, at, work)
            entries[total + place] = node
            letters[total + place] = LETTERS[get(words, node + VALUE)]
        total += kept
        offsets[index + 1] = total
    return offsets, entries[:total], letters[:total], at


@compiled
def make_texts(arena: Words, nodes: Words, slot: int, work_space: Words, at: int) -> int:
    """Convert the value at a slot to text: JSON, or the string itself."""
    words, work = address_of(arena), address_of(work_space)
    for index in range(nodes.size):
        at = make_json(words, nodes[index] + slot, at, work)
    return at


@compiled
def find_keys(
    arena: Words, offsets: Offsets, entries: Words, keys: Words, by_length: Words
) -> Words:
    """Return for each key and map the attribute with that key, or 0. A key has two words,
    address and length; `by_length` has a bit for each key of that length."""
    words = address_of(arena)
    found = np.zeros((keys.size // 2, offsets.size - 1), np.int64)
    for index in range(offsets.size - 1):
        for place in range(offsets[index], offsets[index + 1]):
            node = entries[place]
            length = get(words, node + KEY + 1)
            bits = by_length[length] if length < by_length.size else 0
            key = 0
            while bits:
                if bits & 1 and compare(get(words, node + KEY), length, keys[2 * key], length) == 0:
                    found[key, index] = node
                bits >>= 1
                key += 1
    return found


@compiled
def number_keys(arena: Words, nodes: Words) -> tuple[Offsets, Words]:
    """Return a number for the key of each attribute, and an attribute for each number. Two
    numbers may mean the same key only if there are very many keys."""
    words = address_of(arena)
    numbers = np.empty(nodes.size, np.int32)
    firsts = np.empty(nodes.size, np.int64)
    # A hash table with linear probing. An entry is the number of a key plus 1.
    seen = np.zeros(KEYS_SEEN, np.int32)
    count = 0
    for index in range(nodes.size):
        address, length = get(words, nodes[index] + KEY), get(words, nodes[index] + KEY + 1)
        place = first = _hash_of(address, length)
        number = -1
        for _ in range(PROBES):
            if seen[place] == 0:
                break
            known = firsts[seen[place] - 1] + KEY
            if get(words, known + 1) == length and is_same(address, get(words, known), length):
                number = seen[place] - 1
                break
            place = (place + 1) & KEYS_SEEN - 1
        else:
            place = first
        if number < 0:
            number = count
            firsts[count] = nodes[index]
            count += 1
            seen[place] = count
        numbers[index] = number
    return numbers, firsts[:count]


@inlined
def _hash_of(address: int, length: int) -> int:
    """Return the hash of a key. Collisions are rare: first and last bytes tell keys apart."""
    if length == 0:
        return 0  # its address may be invalid
    if length < 8:
        ends = word_at(address) & (1 << 8 * length) - 1
    else:
        ends = word_at(address) ^ word_at(address + length - 8) * MIXING
    return (ends + length) * MIXING >> 64 - KEYS_SEEN_BITS & KEYS_SEEN - 1


@compiled
def build_codes(arena: Words, nodes: Words) -> tuple[Offsets, Bools]:
    """Return the values of attributes that are 32-bit numbers, or texts of digits that mean one;
    and which are."""
    words = address_of(arena)
    codes = np.zeros(nodes.size, np.int32)
    is_code = np.zeros(nodes.size, np.bool_)
    for index in range(nodes.size):
        value = nodes[index] + VALUE
        kind, address, length = get(words, value), get(words, value + 1), get(words, value + 2)
        if kind not in (IS_STRING, IS_INT) or length == 0:
            continue
        is_negative = kind == IS_INT and byte_at(address) == MINUS
        number = 0
        for place in range(address + is_negative, address + length):
            digit = byte_at(place) - ZERO
            if digit < 0 or digit > 9 or number > INT32_MAX:
                number = 2 * INT32_MAX
                break
            number = number * 10 + digit
        number = -number if is_negative else number
        if INT32_MIN <= number <= INT32_MAX:
            codes[index] = number
            is_code[index] = True
    return codes, is_code


@compiled
def repeat_texts(
    offsets: Offsets, data: Bytes, ends: Offsets, repeats: Words, bytes_max: int
) -> tuple[Offsets, Bytes, int]:
    """Repeat groups of texts; `ends` has where the groups end. Also returns the bytes needed,
    and does nothing if that is above `bytes_max`."""
    count = total = begin = 0
    for group in range(repeats.size):
        end = ends[group]
        count += (end - begin) * repeats[group]
        total += (offsets[end] - offsets[begin]) * repeats[group]
        begin = end
    byte_count = total + 4 * count
    if byte_count > bytes_max:
        return offsets, data, byte_count
    new_offsets = np.empty(count + 1, np.int32)
    new_data = np.empty(total + SLACK_BYTES, np.uint8)
    new_offsets[0] = at = 0
    begin = written = 0
    source, target = address_of(data), address_of(new_data)
    for group in range(repeats.size):
        end, first = ends[group], int(offsets[begin])
        length = offsets[end] - first
        for _ in range(repeats[group]):
            if length:
                copy(target + written, source + first, length)
            for index in range(begin, end):
                at += 1
                new_offsets[at] = offsets[index + 1] - first + written
            written += length
        begin = end
    return new_offsets, new_data, byte_count
