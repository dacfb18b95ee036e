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

from frazil.model import MiB

BLOCK_BYTES = 32
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
SEED = 0x9E3779B97F4A7C15
MULTIPLIER = 0xD6E8FEB86659FD93
FINAL_MULTIPLIERS = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
MASK_64 = (1 << 64) - 1
MASK_32 = (1 << 32) - 1
GATHER_BYTES_MAX = 4 * MiB
"""Bytes hashed at a time; hashing needs eight times as much memory."""
COUNT_SLOTS = 4
"""Slots per value to count the different ones: the estimate is off by less than a percent."""
HASHES_CACHED = 1024
"""A query looks up the same few strings in every segment."""

Hashes = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
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
    begins = ((hashes >> 32) * np.uint64(blocks) >> 32) * np.uint64(8 * BLOCK_BYTES)
    keys = hashes & MASK_32
    bits = np.zeros(8 * BLOCK_BYTES * blocks, np.bool_)
    for word, salt in enumerate(SALTS):
        bit = (keys * np.uint64(salt) & MASK_32) >> 27
        bits[(begins + 32 * word + bit).view(np.int64)] = True
    return Bloom(memoryview(np.packbits(bits, bitorder="little").tobytes()))


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
    for multiplier in FINAL_MULTIPLIERS:
        hashed ^= hashed >> 33
        hashed = hashed * multiplier & MASK_64
    return hashed ^ hashed >> 33


def _hashes(strings: pa.StringArray) -> Hashes:
    """Return the hashes of all strings, in any order."""
    if not len(strings):
        return NOTHING
    _, offsets_buffer, data_buffer = strings.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[strings.offset :][: len(strings) + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    lengths = np.diff(offsets)
    hashes = []
    for length in map(int, np.unique(lengths)):
        begins = offsets[:-1][lengths == length]
        count = max(1, GATHER_BYTES_MAX // max(1, length))
        for first in range(0, len(begins), count):
            rows = _gather(data, begins[first : first + count].astype(np.int64), length)
            hashes.append(_hash_rows(rows))
    return np.concatenate(hashes)


def _gather(data: Bytes, begins: NDArray[np.int64], length: int) -> Bytes:
    """Return strings of one length as the rows of a matrix."""
    first, last = int(begins[0]), int(begins[-1])
    if last - first == (len(begins) - 1) * length:  # contiguous, as ids are
        return data[first : last + length].reshape(len(begins), length)
    rows: Bytes = data[begins[:, None] + np.arange(length)]
    return rows


def _hash_rows(rows: Bytes) -> Hashes:
    """Return what `hash_of` does, for many strings of one length."""
    count, length = rows.shape
    padded = np.zeros((count, -(-length // 8) * 8), np.uint8)
    padded[:, :length] = rows
    hashed: Hashes = np.full(count, SEED ^ length, np.uint64)
    for word in padded.view("<u8").T:
        hashed = (hashed ^ word) * np.uint64(MULTIPLIER)
        hashed ^= hashed >> 32
    for multiplier in FINAL_MULTIPLIERS:
        hashed ^= hashed >> 33
        hashed = hashed * np.uint64(multiplier)
    hashed ^= hashed >> 33
    return hashed
