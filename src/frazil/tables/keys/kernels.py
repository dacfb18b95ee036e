"""Compiled loops over keys and slots.

A slot is an int64: the tag in the upper 24 bits, the row number in the lower 40; -1 if it is empty.
The home of a tag in a shard grows with the tag, and slots are kept in the order of tags. So a shard
is sorted from its first slot to its last, and can be resized without reading a key.

Addresses and hashes are int64: numba makes a float of an int64 and a uint64. Keys are compared byte
by byte at their end, because nothing says that memory goes on after it. The hash is part of the
format (`docs/formats/keyed.md`) and must never change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from frazil.model.protobuf import (
    byte_at,
    compiled,
    inlined,
    put_byte,
    put_word,
    reader_of,
    word_at,
)

TAG_BITS = 24
TAG_MASK = (1 << TAG_BITS) - 1
ROW_BITS = 40
ROW_MASK = (1 << ROW_BITS) - 1
ROWS_MAX = ROW_MASK
"""Row numbers are below it: the largest one with the largest tag would be an empty slot."""
EMPTY = -1
SHARDS = 256
SHARD_SHIFT = 56
SHARD_MASK = SHARDS - 1
TAG_SHIFT = 32
MASK_32 = (1 << 32) - 1
MASK_31 = (1 << 31) - 1
MULTIPLIER = 0xD6E8FEB86659FD93 - (1 << 64)
FIRST_MULTIPLIER = 0xFF51AFD7ED558CCD - (1 << 64)
SECOND_MULTIPLIER = 0xC4CEB9FE1A85EC53 - (1 << 64)

ADDRESS, HOMES, LENGTH, COUNT, LIMIT = range(5)
"""Columns of the shard table: address of the slots, number of homes, number of slots, keys in it,
keys at which it must grow."""
DATA, OFFSETS, NUMBERS, ROWS, BITS = range(5)
"""Columns of the block table: addresses of the keys of a row segment, and of its row numbers (0 if
they have no gaps); how many rows it has; the address of the bits that say which are live."""
NO_ROW = -1
NO_POSITION = -1

Longs = NDArray[np.int64]
Bits = NDArray[np.uint8]

_half_at = reader_of(32)
"""An offset of Arrow, which is never negative."""


@inlined
def _hash(address: int, length: int, seed: int) -> int:
    hashed = np.int64(seed) ^ np.int64(length)
    at = 0
    while at + 8 <= length:
        hashed = (hashed ^ word_at(address + at)) * MULTIPLIER
        hashed ^= (hashed >> 32) & MASK_32
        at += 8
    if at < length:
        word = np.int64(0)
        for byte in range(length - at):
            word |= byte_at(address + at + byte) << (8 * byte)
        hashed = (hashed ^ word) * MULTIPLIER
        hashed ^= (hashed >> 32) & MASK_32
    hashed ^= (hashed >> 33) & MASK_31
    hashed *= FIRST_MULTIPLIER
    hashed ^= (hashed >> 33) & MASK_31
    hashed *= SECOND_MULTIPLIER
    return hashed ^ ((hashed >> 33) & MASK_31)  # type: ignore[return-value]


@inlined
def _length(width: int, offsets: int, position: int) -> int:
    if width:
        return width
    return _half_at(offsets + 4 * position + 4) - _half_at(offsets + 4 * position)


@inlined
def _address(width: int, data: int, offsets: int, position: int) -> int:
    if width:
        return data + width * position
    return data + _half_at(offsets + 4 * position)


@inlined
def _is_same(one: int, other: int, length: int) -> bool:
    at = 0
    while at + 8 <= length:
        if word_at(one + at) != word_at(other + at):
            return False
        at += 8
    while at < length:
        if byte_at(one + at) != byte_at(other + at):
            return False
        at += 1
    return True


@inlined
def _block_of(bases: Longs, count: int, row: int) -> int:
    """The last row segment that begins at or before a row."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) >> 1
        if bases[middle] <= row:
            low = middle
        else:
            high = middle
    return low


@inlined
def _position_of(bases: Longs, blocks: Longs, block: int, row: int) -> int:
    """The position of a row in its segment, or -1 if it is not there any more."""
    position = row - bases[block]
    count, numbers = blocks[block, ROWS], blocks[block, NUMBERS]
    if position < 0:
        return NO_POSITION
    if numbers == 0:
        return position if position < count else NO_POSITION
    low, high = 0, min(position + 1, count)  # a gap only moves rows to the front
    while low < high:
        middle = (low + high) >> 1
        if word_at(numbers + 8 * middle) < row:
            low = middle + 1
        else:
            high = middle
    if low < count and word_at(numbers + 8 * low) == row:
        return low
    return NO_POSITION


@inlined
def _is_key_of(
    row: int, address: int, length: int, width: int, bases: Longs, blocks: Longs, count: int
) -> bool:
    """Whether a row has a key."""
    block = _block_of(bases, count, row)
    position = _position_of(bases, blocks, block, row)
    if position < 0:
        return False
    data, offsets = blocks[block, DATA], blocks[block, OFFSETS]
    if _length(width, offsets, position) != length:
        return False
    return _is_same(_address(width, data, offsets, position), address, length)


@inlined
def _home(tag: int, homes: int) -> int:
    return (tag * homes) >> TAG_BITS


@inlined
def _find(
    hashed: int,
    address: int,
    length: int,
    width: int,
    shards: Longs,
    bases: Longs,
    blocks: Longs,
    block_count: int,
) -> int:
    """The address of the slot of a key, or minus the address where it belongs."""
    shard = (hashed >> SHARD_SHIFT) & SHARD_MASK
    tag = (hashed >> TAG_SHIFT) & TAG_MASK
    at: int = shards[shard, ADDRESS] + 8 * _home(tag, shards[shard, HOMES])
    while True:
        slot = word_at(at)
        if slot == EMPTY:
            return -at
        other = (slot >> ROW_BITS) & TAG_MASK
        if other > tag:
            return -at
        if other == tag and _is_key_of(
            slot & ROW_MASK, address, length, width, bases, blocks, block_count
        ):
            return at
        at += 8


@compiled
def hash_keys(width: int, data: int, offsets: int, count: int, seed: int, hashes: Longs) -> None:
    """Hash the keys of a block."""
    for position in range(count):
        hashes[position] = _hash(
            _address(width, data, offsets, position), _length(width, offsets, position), seed
        )


@compiled
def find_rows(
    hashes: Longs,
    width: int,
    data: int,
    offsets: int,
    shards: Longs,
    bases: Longs,
    blocks: Longs,
    block_count: int,
    rows: Longs,
) -> None:
    """Look up the keys of a block; `rows` gets their row numbers, or -1."""
    for position in range(len(hashes)):
        at = _find(
            hashes[position],
            _address(width, data, offsets, position),
            _length(width, offsets, position),
            width,
            shards,
            bases,
            blocks,
            block_count,
        )
        rows[position] = word_at(at) & ROW_MASK if at > 0 else NO_ROW


@compiled
def put_rows(
    hashes: Longs,
    positions: Longs,
    rows: Longs,
    begin: int,
    end: int,
    width: int,
    data: int,
    offsets: int,
    shards: Longs,
    bases: Longs,
    blocks: Longs,
    block_count: int,
    killed: Longs,
    killed_by: Longs,
    counts: Longs,
) -> int:
    """Make rows the live ones of their keys. Returns where it stopped: at `end`, or before a key
    whose shard must grow. The rows replaced, and what replaced them (indexes into `positions`), are
    appended at `counts[0]`."""
    for number in range(begin, end):
        hashed, position, row = hashes[number], positions[number], rows[number]
        shard = (hashed >> SHARD_SHIFT) & SHARD_MASK
        at = _find(
            hashed,
            _address(width, data, offsets, position),
            _length(width, offsets, position),
            width,
            shards,
            bases,
            blocks,
            block_count,
        )
        tag = (hashed >> TAG_SHIFT) & TAG_MASK
        slot = tag << ROW_BITS | row
        if at > 0:
            old = word_at(at) & ROW_MASK
            put_word(at, slot)
            killed[counts[0]] = old
            killed_by[counts[0]] = number
            counts[0] += 1
        else:
            # The last slot stays empty: every search ends there.
            last = shards[shard, ADDRESS] + 8 * (shards[shard, LENGTH] - 2)
            if shards[shard, COUNT] >= shards[shard, LIMIT] or word_at(last) != EMPTY:
                return number
            at = -at
            while slot != EMPTY:
                shifted = word_at(at)
                put_word(at, slot)
                slot = shifted
                at += 8
            shards[shard, COUNT] += 1
    return end


@inlined
def _remove(at: int, homes: int, first: int) -> None:
    """Remove a slot: those after it that are not at their home move back by one."""
    while True:
        slot = word_at(at + 8)
        if slot == EMPTY:
            break
        home = first + 8 * _home((slot >> ROW_BITS) & TAG_MASK, homes)
        if home > at:
            break
        put_word(at, slot)
        at += 8
    put_word(at, EMPTY)


@compiled
def remove_keys(
    hashes: Longs,
    begin: int,
    end: int,
    width: int,
    data: int,
    offsets: int,
    shards: Longs,
    bases: Longs,
    blocks: Longs,
    block_count: int,
    killed: Longs,
    killed_by: Longs,
    counts: Longs,
) -> None:
    """Remove the keys of a block. The rows that died are appended as by `put_rows`."""
    for position in range(begin, end):
        at = _find(
            hashes[position],
            _address(width, data, offsets, position),
            _length(width, offsets, position),
            width,
            shards,
            bases,
            blocks,
            block_count,
        )
        if at > 0:
            shard = (hashes[position] >> SHARD_SHIFT) & SHARD_MASK
            old = word_at(at) & ROW_MASK
            _remove(at, shards[shard, HOMES], shards[shard, ADDRESS])
            shards[shard, COUNT] -= 1
            killed[counts[0]] = old
            killed_by[counts[0]] = position
            counts[0] += 1


@compiled
def remove_rows(
    rows: Longs,
    seed: int,
    width: int,
    shards: Longs,
    bases: Longs,
    blocks: Longs,
    block_count: int,
) -> int:
    """Remove these row numbers, if the index and the segments have them. Returns how many."""
    removed = 0
    for number in range(len(rows)):
        row = rows[number]
        block = _block_of(bases, block_count, row)
        position = _position_of(bases, blocks, block, row)
        if position < 0:
            continue
        data, offsets = blocks[block, DATA], blocks[block, OFFSETS]
        hashed = _hash(
            _address(width, data, offsets, position), _length(width, offsets, position), seed
        )
        shard = (hashed >> SHARD_SHIFT) & SHARD_MASK
        tag = (hashed >> TAG_SHIFT) & TAG_MASK
        wanted = tag << ROW_BITS | row
        at = shards[shard, ADDRESS] + 8 * _home(tag, shards[shard, HOMES])
        while True:
            slot = word_at(at)
            if slot == wanted:
                _remove(at, shards[shard, HOMES], shards[shard, ADDRESS])
                shards[shard, COUNT] -= 1
                removed += 1
                break
            if slot == EMPTY or (slot >> ROW_BITS) & TAG_MASK > tag:
                break
            at += 8
    return removed


@compiled
def find_in_rows(
    address: int,
    length: int,
    rows: Longs,
    width: int,
    bases: Longs,
    blocks: Longs,
    block_count: int,
    positions: Longs,
) -> int:
    """Note the indexes into `rows` of those that have a key, until `positions` is full. Returns how
    many."""
    count = 0
    for number in range(len(rows)):
        if count == len(positions):
            break
        if _is_key_of(rows[number], address, length, width, bases, blocks, block_count):
            positions[count] = number
            count += 1
    return count


@compiled
def spread(slots: Longs, homes: int, target: Longs) -> bool:
    """Put sorted slots, with or without empty ones between them, at or after their homes. Returns
    False if they do not fit, or are not sorted; the last slot stays empty."""
    target[:] = EMPTY
    at, before = 0, 0
    for slot in slots:
        if slot == EMPTY:
            continue
        tag = (slot >> ROW_BITS) & TAG_MASK
        at = max(at, _home(tag, homes))
        if at >= len(target) - 1 or tag < before:
            return False
        target[at] = slot
        at += 1
        before = tag
    return True


@compiled
def pack(slots: Longs, target: Longs) -> int:
    """Copy the slots that are not empty. Returns how many."""
    count = 0
    for slot in slots:
        if slot != EMPTY:
            target[count] = slot
            count += 1
    return count


@compiled
def put_bits(rows: Longs, is_live: bool, bases: Longs, blocks: Longs, block_count: int) -> int:
    """Say of rows whether they are live, in the bits of their segments. Rows that are in none are
    left out. Returns how many bits changed."""
    changed = 0
    for row in rows:
        block = _block_of(bases, block_count, row)
        position = _position_of(bases, blocks, block, row)
        if position < 0:
            continue
        at = blocks[block, BITS] + (position >> 3)
        before = byte_at(at)
        bit = 1 << (position & 7)
        after = before | bit if is_live else before & ~bit
        put_byte(at, after)
        changed += before != after
    return changed


@compiled
def measure_keys(columns: Longs, count: int, offsets: NDArray[np.int32]) -> int:
    """Fill the offsets of composite keys. Returns the bytes of all of them, or -1 if they are more
    than offsets can count. `columns`: width (0 if it varies), address of data, of offsets."""
    total = 0
    for position in range(count):
        offsets[position] = total
        for column in range(len(columns)):
            width = columns[column, 0]
            if width:
                total += width
            else:
                total += 4 + _length(0, columns[column, 2], position)
        if total > MASK_31:
            return -1
    offsets[count] = total
    return total


@compiled
def join_keys(columns: Longs, count: int, target: Bits) -> None:
    """Write composite keys: numbers as they are, others behind their length."""
    at = 0
    for position in range(count):
        for column in range(len(columns)):
            width, data, offsets = columns[column, 0], columns[column, 1], columns[column, 2]
            length = _length(width, offsets, position)
            source = _address(width, data, offsets, position)
            if not width:
                for byte in range(4):
                    target[at + byte] = np.uint8((length >> (8 * byte)) & 0xFF)
                at += 4
            for byte in range(length):
                target[at + byte] = np.uint8(byte_at(source + byte))
            at += length


@compiled
def length_max(offsets: int, count: int) -> int:
    """The longest of some texts."""
    longest = 0
    for position in range(count):
        longest = max(longest, _length(0, offsets, position))
    return longest
