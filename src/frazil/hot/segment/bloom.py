"""Bloom: a split-block bloom filter over the strings of a column.

Blocks have 256 bits. The upper half of a string's hash selects a block, the lower half one bit in
each of its eight words, so that a lookup touches one cache line. The hash is part of the file
format (`docs/formats/arrow-segment.md`) and must never change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from frazil.model.protobuf import compiled

BLOCK_BYTES = 32
WORDS = 8
"""Of a block."""
BITS_PER_VALUE = 12
"""False positive rate below 1 %."""
SALTS = (
    0x47B6137B,
    0x44974D91,
    0x8824AD5B,
    0xA2B7289D,
    0x705495C7,
    0x2DF1424B,
    0x9EFC4947,
    0x5C6BFB31,
)
"""One odd number per word of a block; those of Parquet's filters."""
SALTS_ARRAY = np.array(SALTS, np.uint32)
SEED = 0x9E3779B97F4A7C15
MULTIPLIER = 0xD6E8FEB86659FD93
FIRST_MULTIPLIER = 0xFF51AFD7ED558CCD
SECOND_MULTIPLIER = 0xC4CEB9FE1A85EC53
MASK_64 = (1 << 64) - 1
MASK_32 = (1 << 32) - 1
COUNT_SLOTS = 4
"""Slots per value to count the different ones: the estimate is off by less than a percent."""
HASHES_CACHED = 1024
"""A query looks up the same few strings in every segment."""

Hashes = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int32]
NOTHING: Hashes = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class Bloom:
    """A filter over the strings of one column. Its bytes may be in a mapped file."""

    data: memoryview

    def may_hold(self, value: str) -> bool:
        """Return False only if the string is certainly absent."""
        hashed = hash_of(value)
        key = hashed & MASK_32
        begin = ((hashed >> 32) * (len(self.data) // BLOCK_BYTES) >> 32) * BLOCK_BYTES
        for word, salt in enumerate(SALTS):
            bit = (key * salt & MASK_32) >> 27
            if not self.data[begin + 4 * word + (bit >> 3)] >> (bit & 7) & 1:
                return False
        return True


def build_bloom(column: pa.ChunkedArray) -> Bloom:
    """Build a filter over all strings of a column, without nulls."""
    strings = pc.drop_null(column).cast(pa.string())
    hashes = np.concatenate([NOTHING, *map(_hashes, strings.chunks)])
    blocks = 2 * (_distinct(hashes) * BITS_PER_VALUE // (16 * BLOCK_BYTES) + 1)  # 64 bytes, aligned
    words = np.zeros(WORDS * blocks, np.uint32)
    _set_bits(hashes, SALTS_ARRAY, words)
    return Bloom(memoryview(words.tobytes()))


def warm() -> None:
    """Compile, or load from the disk cache, so that no seal waits for it."""
    build_bloom(pa.chunked_array([["a"]]))


def _distinct(hashes: Hashes) -> int:
    """Estimate how many are different, by the share of a table that they fill: sorting them costs
    as much as the rest of the filter."""
    size = COUNT_SLOTS * len(hashes) + 1
    filled = np.zeros(size, np.bool_)
    filled[(hashes % np.uint64(size)).view(np.int64)] = True
    return round(-size * math.log1p(-np.count_nonzero(filled) / (size + 1)))


@lru_cache(HASHES_CACHED)
def hash_of(value: str) -> int:
    """Return the hash of a string."""
    data = value.encode(errors="surrogatepass")
    hashed = SEED ^ len(data)
    for begin in range(0, len(data), 8):
        word = int.from_bytes(data[begin : begin + 8], "little")
        hashed = (hashed ^ word) * MULTIPLIER & MASK_64
        hashed ^= hashed >> 32
    for multiplier in (FIRST_MULTIPLIER, SECOND_MULTIPLIER):
        hashed ^= hashed >> 33
        hashed = hashed * multiplier & MASK_64
    return hashed ^ hashed >> 33


def _hashes(strings: pa.StringArray) -> Hashes:
    """Return the hashes of all strings."""
    _, offsets_buffer, data_buffer = strings.buffers()
    hashes: Hashes = np.empty(len(strings), np.uint64)
    if len(strings):
        offsets = np.frombuffer(offsets_buffer, np.int32)[strings.offset :][: len(strings) + 1]
        _hash_all(np.frombuffer(data_buffer or b"", np.uint8), offsets, hashes)
    return hashes


@compiled
def _hash_all(data: Bytes, offsets: Offsets, hashes: Hashes) -> None:
    """Do what `hash_of` does, for many strings."""
    for number in range(len(hashes)):
        begin, end = int(offsets[number]), int(offsets[number + 1])
        hashed = np.uint64(SEED) ^ np.uint64(end - begin)
        for at in range(begin, end, 8):
            word = np.uint64(0)
            for byte in range(min(8, end - at)):
                word |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
            hashed = (hashed ^ word) * np.uint64(MULTIPLIER)
            hashed ^= hashed >> np.uint64(32)
        hashed ^= hashed >> np.uint64(33)
        hashed *= np.uint64(FIRST_MULTIPLIER)
        hashed ^= hashed >> np.uint64(33)
        hashed *= np.uint64(SECOND_MULTIPLIER)
        hashes[number] = hashed ^ hashed >> np.uint64(33)


@compiled
def _set_bits(hashes: Hashes, salts: NDArray[np.uint32], words: NDArray[np.uint32]) -> None:
    blocks = np.uint64(len(words) // WORDS)
    for hashed in hashes:
        begin = np.int64((hashed >> np.uint64(32)) * blocks >> np.uint64(32)) * WORDS
        key = np.uint32(hashed & np.uint64(MASK_32))
        for word in range(WORDS):
            bit = np.uint32(key * salts[word]) >> np.uint32(27)
            words[begin + word] |= np.uint32(1) << bit
