"""hash_maps: 128 bits for the content of two maps, compiled, without the GIL.

Maps are sorted by key, so equal attributes are equal bytes. Two lanes of 64 bits each read the keys
and the values of a row as two blocks, after the lengths of both. Used to tell series apart without
reading their labels; never stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from frazil.model.protobuf import byte_at, compiled, inlined, word_at
from frazil.query.functions.string_buffers import Ints, Longs, buffers_of

HASH_BYTES = 16

_FIRST = 0xD6E8FEB86659FD93 - (1 << 64)
_SECOND = 0x9E3779B97F4A7C15 - (1 << 64)
_LAST = 0xFF51AFD7ED558CCD - (1 << 64)
_MASK_32 = (1 << 32) - 1
_MASK_35 = (1 << 35) - 1
_MASK_31 = (1 << 31) - 1


def hash_maps(one: pa.MapArray, other: pa.MapArray) -> pa.FixedSizeBinaryArray:
    """Return a hash per row."""
    hashes = np.zeros((len(one), 2), np.int64)
    for number, maps in enumerate((one, other)):
        starts = np.frombuffer(maps.buffers()[1], np.int32)[maps.offset :]
        pairs = maps.values
        keys, values = buffers_of(pairs.field(0)), buffers_of(pairs.field(1))
        _add_maps(
            hashes,
            number,
            starts,
            keys[0],
            keys[1].ctypes.data,
            values[0],
            values[1].ctypes.data,
        )
    return pa.Array.from_buffers(pa.binary(HASH_BYTES), len(one), [None, pa.py_buffer(hashes)])


@compiled
def _add_maps(
    hashes: Longs,
    number: int,
    starts: Ints,
    key_ends: Ints,
    keys: int,
    value_ends: Ints,
    values: int,
) -> None:
    for row in range(len(hashes)):
        begin, end = starts[row], starts[row + 1]
        first = hashes[row, 0] ^ (end - begin)
        second = hashes[row, 1] + np.int64(number)
        for pair in range(begin, end):
            key_length = np.int64(key_ends[pair + 1] - key_ends[pair])
            value_length = np.int64(value_ends[pair + 1] - value_ends[pair])
            first, second = _mixed(first, second, (key_length << 32) | value_length)
        if end > begin:
            at = np.int64(key_ends[begin])
            first, second = _add_block(first, second, keys + at, key_ends[end] - at)
            at = np.int64(value_ends[begin])
            first, second = _add_block(first, second, values + at, value_ends[end] - at)
        hashes[row, 0] = _closed(first)
        hashes[row, 1] = _closed(second)


@inlined
def _mixed(first: Any, second: Any, word: Any) -> tuple[Any, Any]:
    first = (first ^ word) * _FIRST
    first ^= (first >> 32) & _MASK_32
    second = (second + word) * _SECOND
    second ^= (second >> 29) & _MASK_35
    return first, second


@inlined
def _add_block(first: Any, second: Any, address: Any, length: Any) -> tuple[Any, Any]:
    at = np.int64(0)
    while at + 8 <= length:
        first, second = _mixed(first, second, word_at(address + at))
        at += 8
    if at < length:
        word = np.int64(0)
        for byte in range(length - at):
            word |= byte_at(address + at + byte) << (8 * byte)
        first, second = _mixed(first, second, word)
    return first, second


@inlined
def _closed(lane: Any) -> Any:
    lane ^= (lane >> 33) & _MASK_31
    lane *= _LAST
    return lane ^ ((lane >> 32) & _MASK_32)
