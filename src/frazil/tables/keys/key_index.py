"""KeyIndex: from a key to the row version that is live.

Slots of 8 bytes, in 256 shards that grow one by one. A slot has 24 bits of the key's hash; the key
itself is compared in the column of its row. Owned by one thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from frazil.tables.keys import kernels
from frazil.tables.keys.kernels import (
    ADDRESS,
    COUNT,
    EMPTY,
    HOMES,
    LENGTH,
    LIMIT,
    SHARDS,
    Bits,
    Longs,
)
from frazil.tables.keys.key_block import KeyBlock, block_of, key_array

LOAD_MAX = 0.8
"""Share of slots in use at which a shard grows."""
SHRUNK_BELOW = 0.2
"""Share of slots in use below which a shard may shrink: far from where it would grow again."""
HOMES_MIN = 16
DOUBLED_BELOW = 4096
"""Small shards double. Larger ones grow by an eighth, so that few slots are unused."""
SPARE_SLOTS = 32
"""After the last home, for slots that are not at theirs; larger shards have more."""
SPARE_SHIFT = 6
WARM_KEYS = 8 * SHARDS * HOMES_MIN
"""So many that shards grow."""


@dataclass(frozen=True, slots=True, eq=False)
class Killed:
    """Rows that died, and which change of the batch killed each."""

    rows: Longs
    by: Longs


class TableEntry(NamedTuple):
    """A row segment, as the table of keys needs it."""

    base_row: int
    keys: KeyBlock
    numbers: Longs | None
    """The row numbers, if they have gaps."""
    live: Bits
    """One bit per position, the lowest first."""


class KeyTable:
    """Where the keys and bits of all row segments are, for compiled code."""

    def __init__(self, entries: Sequence[TableEntry] = ()) -> None:
        self.count = 0
        self.bases: Longs = np.zeros(16, np.int64)
        self.blocks: Longs = np.zeros((16, 5), np.int64)
        self._entries: list[TableEntry] = []
        """They keep the memory that the addresses point to."""
        self.replace(0, entries)

    def replace(self, begin: int, entries: Sequence[TableEntry]) -> None:
        """Put these row segments at `begin`, in place of all that follow."""
        end = begin + len(entries)
        if end > len(self.bases):
            size = max(end, 2 * len(self.bases))
            self.bases = np.concatenate([self.bases, np.zeros(size - len(self.bases), np.int64)])
            more = np.zeros((size - len(self.blocks), 5), np.int64)
            self.blocks = np.concatenate([self.blocks, more])
        for number, (base, keys, numbers, live) in enumerate(entries, begin):
            self.bases[number] = base
            at = 0 if numbers is None else numbers.ctypes.data
            self.blocks[number] = keys.data, keys.offsets, at, len(keys), live.ctypes.data
        self.blocks[end : self.count] = 0  # nothing points to memory that is given back
        self._entries[begin:] = entries
        self.count = end

    def put_bits(self, rows: Longs, *, is_live: bool) -> int:
        """Say of rows whether they are live; those that are gone are left out. Returns how many
        bits changed."""
        return kernels.put_bits(rows, is_live, self.bases, self.blocks, self.count)

    def find_among(self, block: KeyBlock, rows: Longs, count_max: int) -> Longs:
        """Return the first of some rows that have the one key of a block, at most `count_max`."""
        length = block.width or block.array[0].as_buffer().size
        positions: Longs = np.empty(min(count_max, len(rows)), np.int64)
        count = kernels.find_in_rows(
            block.data,
            length,
            rows,
            block.width,
            self.bases,
            self.blocks,
            self.count,
            positions,
        )
        found: Longs = rows[positions[:count]]
        return found


class KeyIndex:
    """The live row of every key of a partition."""

    def __init__(self, width: int, seed: int) -> None:
        self.width = width
        """Bytes of every key; 0 if they vary."""
        self.seed = seed
        self.table = KeyTable()
        self._slots = [_empty_slots(HOMES_MIN) for _ in range(SHARDS)]
        self._shards: Longs = np.zeros((SHARDS, 5), np.int64)
        for shard, slots in enumerate(self._slots):
            self._put_shard(shard, slots, HOMES_MIN, 0)

    def _put_shard(self, shard: int, slots: Longs, homes: int, count: int) -> None:
        self._slots[shard] = slots
        self._shards[shard, ADDRESS] = slots.ctypes.data
        self._shards[shard, HOMES] = homes
        self._shards[shard, LENGTH] = len(slots)
        self._shards[shard, COUNT] = count
        self._shards[shard, LIMIT] = int(homes * LOAD_MAX)

    def __len__(self) -> int:
        return int(self._shards[:, COUNT].sum())

    @property
    def size_bytes(self) -> int:
        """Memory of all slots."""
        return 8 * int(self._shards[:, LENGTH].sum())

    def find(self, block: KeyBlock, hashes: Longs | None = None) -> Longs:
        """Return the live row of each key, -1 if there is none."""
        rows: Longs = np.empty(len(block), np.int64)
        if hashes is None:
            hashes = block.hashes(self.seed)
        table = self.table
        kernels.find_rows(
            hashes,
            self.width,
            block.data,
            block.offsets,
            self._shards,
            table.bases,
            table.blocks,
            table.count,
            rows,
        )
        return rows

    def put(self, block: KeyBlock, hashes: Longs, positions: Longs, rows: Longs) -> Killed:
        """Make rows, at these positions of a block, the live ones of their keys. The block is in
        `table` already: a later row may have the key of an earlier one."""
        end = len(positions)
        killed, killed_by = np.empty(end, np.int64), np.empty(end, np.int64)
        counts: Longs = np.zeros(1, np.int64)
        table, at = self.table, 0
        while True:
            at = kernels.put_rows(
                hashes,
                positions,
                rows,
                at,
                end,
                self.width,
                block.data,
                block.offsets,
                self._shards,
                table.bases,
                table.blocks,
                table.count,
                killed,
                killed_by,
                counts,
            )
            if at == end:
                count = int(counts[0])
                return Killed(killed[:count], killed_by[:count])
            self._grow(int(hashes[at]) >> kernels.SHARD_SHIFT & kernels.SHARD_MASK)

    def remove(self, block: KeyBlock, hashes: Longs) -> Killed:
        """Remove keys. Those that are not there are left out."""
        end = len(block)
        killed, killed_by = np.empty(end, np.int64), np.empty(end, np.int64)
        counts: Longs = np.zeros(1, np.int64)
        table = self.table
        kernels.remove_keys(
            hashes,
            0,
            end,
            self.width,
            block.data,
            block.offsets,
            self._shards,
            table.bases,
            table.blocks,
            table.count,
            killed,
            killed_by,
            counts,
        )
        count = int(counts[0])
        return Killed(killed[:count], killed_by[:count])

    def remove_rows(self, rows: Longs) -> int:
        """Remove entries by row number, where they are still those. Returns how many."""
        table = self.table
        return kernels.remove_rows(
            rows, self.seed, self.width, self._shards, table.bases, table.blocks, table.count
        )

    def _grow(self, shard: int) -> None:
        homes = int(self._shards[shard, HOMES])
        homes = 2 * homes if homes < DOUBLED_BELOW else homes + homes // 8
        self._resize(shard, self._slots[shard], homes, int(self._shards[shard, COUNT]))

    def _resize(self, shard: int, slots: Longs, homes: int, count: int) -> None:
        while True:
            target = _empty_slots(homes)
            if kernels.spread(slots, homes, target):
                self._put_shard(shard, target, homes, count)
                return
            homes += homes // 8  # too many at its end

    def shrink(self) -> None:
        """Give back the memory of keys that were removed."""
        for shard, slots in enumerate(self._slots):
            count, homes = int(self._shards[shard, COUNT]), int(self._shards[shard, HOMES])
            if homes > HOMES_MIN and count < homes * SHRUNK_BELOW:
                self._resize(shard, slots, max(HOMES_MIN, int(count / LOAD_MAX * 2)), count)

    def packed(self) -> Iterator[Longs]:
        """Yield the slots of each shard, without empty ones, in order."""
        for shard, slots in enumerate(self._slots):
            target: Longs = np.empty(int(self._shards[shard, COUNT]), np.int64)
            kernels.pack(slots, target)
            yield target

    def shard_counts(self) -> Longs:
        return self._shards[:, COUNT].copy()

    def load(self, shard: int, slots: Longs) -> bool:
        """Fill an empty shard. Returns False if the slots are not sorted, or one is empty."""
        tags = slots >> kernels.ROW_BITS & kernels.TAG_MASK
        if len(slots) and (np.any(tags[1:] < tags[:-1]) or np.any(slots == EMPTY)):
            return False
        homes = max(HOMES_MIN, int(len(slots) / LOAD_MAX) + 1)
        self._resize(shard, slots, homes, len(slots))
        return True


def bytes_for(key_count: int) -> int:
    """Return the memory that an index of this many keys takes at most."""
    return int(8 * key_count / LOAD_MAX * 9 / 8) + 8 * SHARDS * (HOMES_MIN + SPARE_SLOTS)


def _empty_slots(homes: int) -> Longs:
    return np.full(homes + SPARE_SLOTS + (homes >> SPARE_SHIFT), EMPTY, np.int64)


def warm() -> None:
    """Compile, or load from the disk cache, so that no change waits for it."""
    key_array([pa.array(["a"]), pa.array([1])])
    block = block_of(pa.array(range(WARM_KEYS)))
    index = KeyIndex(block.width, 0)
    live: Bits = np.zeros(WARM_KEYS, np.uint8)  # the table has its address only
    index.table.replace(0, [TableEntry(0, block, None, live)])
    hashes, rows = block.hashes(0), np.arange(WARM_KEYS)
    index.put(block, hashes, rows, rows)
    list(index.packed())
    index.find(block)
    index.table.find_among(block_of(block.array[:1]), rows, 1)
    index.remove_rows(rows[:1])
    index.remove(block, hashes)
    index.table.put_bits(rows, is_live=False)
