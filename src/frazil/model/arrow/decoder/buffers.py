"""From the heap to the buffers of Arrow: what is compiled for the columns.

`nodes` are places on the heap, one per row; node 0 has nothing. Offsets are those of Arrow, one
more than there are rows. Who calls has made sure that they fit 32 bits.
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
"""So many different keys are remembered at most: attributes of telemetry have dozens."""
PLACES = 8
"""Where one key may be."""
MIXING = 0x9E3779B97F4A7C15 - 2**64
"""Odd, with its bits well mixed: the upper bits of products are, too."""
INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)

LOWER_HALVES = 0x000F000F000F000F
ONES = 0x0101010101010101
DIGIT_ZERO, LETTER_SHIFT = ord("0"), ord("a") - ord("0") - 10


@compiled
def lay_chain(heap: Words, head: int, count: int) -> Words:
    """The nodes of a level."""
    words = address_of(heap)
    nodes = np.empty(count, np.int64)
    node = head
    for index in range(count):
        node = get(words, node + NEXT)
        nodes[index] = node
    return nodes


@inlined
def _sum_up(words: int, nodes: Words, slot: int, offsets: Offsets, factor: int) -> int:
    """Write the offsets of what is as long as a word at a slot says. Returns the last one."""
    offsets[0] = total = 0
    for index in range(nodes.size):
        total += factor * get(words, nodes[index] + slot)
        offsets[index + 1] = total
    return total


@compiled
def lay_lists(heap: Words, nodes: Words, slot: int) -> tuple[Offsets, Words]:
    """The lists at a slot: offsets, and their nodes one after the other."""
    words = address_of(heap)
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
def lay_numbers(heap: Words, nodes: Words, slot: int, is_varint: bool) -> tuple[Offsets, Words]:
    """The lists of numbers at a slot: offsets, and the numbers."""
    words = address_of(heap)
    offsets = np.empty(nodes.size + 1, np.int32)
    numbers = np.empty(_sum_up(words, nodes, slot + 2, offsets, 1), np.int64)
    at = 0
    for index in range(nodes.size):
        chunk = get(words, nodes[index] + slot)
        while chunk:
            address = get(words, chunk + CHUNK_ADDRESS)
            for _ in range(get(words, chunk + CHUNK_COUNT)):
                if is_varint:
                    # The walk has seen that it ends.
                    numbers[at], address = read_varint(address, address + VARINT_BYTES_MAX)
                else:
                    numbers[at] = word_at(address)
                    address += 8
                at += 1
            chunk = get(words, chunk + NEXT)
    return offsets, numbers


@compiled
def lay_texts(heap: Words, nodes: Words, slot: int) -> tuple[Offsets, Bytes]:
    """The texts at a slot: offsets, and their bytes with some slack behind."""
    words = address_of(heap)
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
def lay_hex(heap: Words, nodes: Words, slot: int) -> tuple[Offsets, Bytes]:
    """The ids at a slot, of 8 or 16 bytes or empty, in lower-case hex."""
    words = address_of(heap)
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
    """Eight digits for four bytes: a byte for each half byte, then the letters made of them."""
    pairs = (four | four << 16) & 0x0000FFFF0000FFFF
    pairs = (pairs | pairs << 8) & 0x00FF00FF00FF00FF
    halves = pairs >> 4 & LOWER_HALVES | (pairs & LOWER_HALVES) << 8
    is_letter = halves + ONES * 6 >> 4 & ONES
    return halves + ONES * DIGIT_ZERO + is_letter * LETTER_SHIFT


@compiled
def lay_maps(
    heap: Words, nodes: Words, slot: int, work_space: Words, at: int
) -> tuple[Offsets, Words, Bytes, int]:
    """The attributes at a slot, sorted and with texts for values: offsets, attributes, the letters
    for what they were, and the address behind the texts that were written."""
    words, work = address_of(heap), address_of(work_space)
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
        # Most records have the same keys in the same order as the one before.
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
def make_texts(heap: Words, nodes: Words, slot: int, work_space: Words, at: int) -> int:
    """Make a text of the value at a slot: JSON, or the string it is."""
    words, work = address_of(heap), address_of(work_space)
    for index in range(nodes.size):
        at = make_json(words, nodes[index] + slot, at, work)
    return at


@compiled
def find_keys(
    heap: Words, offsets: Offsets, entries: Words, keys: Words, by_length: Words
) -> Words:
    """For each key, and each map, the attribute with that key, or 0. A key has two words, address
    and length; `by_length` has a bit for each key of that length."""
    words = address_of(heap)
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
def number_keys(heap: Words, nodes: Words) -> tuple[Offsets, Words]:
    """A number for the key of each attribute, and an attribute with that key for each number. Two
    numbers stand for the same key only when there are very many keys."""
    words = address_of(heap)
    numbers = np.empty(nodes.size, np.int32)
    firsts = np.empty(nodes.size, np.int64)
    # A key is looked for at some places one after the other. What is there is its number and 1.
    seen = np.zeros(KEYS_SEEN, np.int32)
    count = 0
    for index in range(nodes.size):
        address, length = get(words, nodes[index] + KEY), get(words, nodes[index] + KEY + 1)
        place = first = _place_of(address, length)
        number = -1
        for _ in range(PLACES):
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
def _place_of(address: int, length: int) -> int:
    """Where a key is looked for. It is seldom the same for two: their ends tell them apart."""
    if length == 0:
        return 0  # it may be nowhere
    if length < 8:
        ends = word_at(address) & (1 << 8 * length) - 1
    else:
        ends = word_at(address) ^ word_at(address + length - 8) * MIXING
    return (ends + length) * MIXING >> 64 - KEYS_SEEN_BITS & KEYS_SEEN - 1


@compiled
def lay_codes(heap: Words, nodes: Words) -> tuple[Offsets, Bools]:
    """The values of attributes that are numbers of 32 bits, or texts of nothing but digits that
    mean such a number; and which ones are."""
    words = address_of(heap)
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
    """Texts in groups, each group as often as it says: `ends` has where the groups end. Also how
    many bytes that takes; nothing is done when that is more than allowed."""
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
