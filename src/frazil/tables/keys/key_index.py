"""KeyIndex: from a key to the row version that is live.

Slots of 8 bytes, in 256 shards that grow one by one. A slot has 24 bits of the key's hash; the key
itself is compared in the column of its row. Owned by one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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


class KeyTable:
    """Where the keys of all row segments are, for compiled code. The last ones may be replaced."""

    def __init__(self) -> None:
        self.count = 0
        self.bases: Longs = np.zeros(16, np.int64)
        self.blocks: Longs = np.zeros((16, 2), np.int64)

    def replace(self, begin: int, bases: list[int], blocks: list[KeyBlock]) -> None:
        """Put these row segments at `begin`, in place of all that follow."""
        end = begin + len(bases)
        if end > len(self.bases):
            size = max(end, 2 * len(self.bases))
            self.bases = np.concatenate([self.bases, np.zeros(size - len(self.bases), np.int64)])
            more = np.zeros((size - len(self.blocks), 2), np.int64)
            self.blocks = np.concatenate([self.blocks, more])
        for number, (base, block) in enumerate(zip(bases, blocks, strict=True), begin):
            self.bases[number] = base
            self.blocks[number] = block.data, block.offsets
        self.count = end


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

    def put(
        self, block: KeyBlock, hashes: Longs, positions: Longs, base_row: int, live: Bits
    ) -> Killed:
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
                at,
                end,
                base_row,
                self.width,
                block.data,
                block.offsets,
                self._shards,
                table.bases,
                table.blocks,
                table.count,
                live,
                killed,
                killed_by,
                counts,
            )
            if at == end:
                count = int(counts[0])
                return Killed(killed[:count], killed_by[:count])
            self._grow(int(hashes[at]) >> kernels.SHARD_SHIFT & kernels.SHARD_MASK)

    def remove(self, block: KeyBlock, hashes: Longs, live: Bits) -> Killed:
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
            live,
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

    def find_among(self, block: KeyBlock, rows: Longs) -> int:
        """Return the first of some rows that has the one key of a block, -1 if none has."""
        length = block.width or block.array[0].as_buffer().size
        table = self.table
        return kernels.find_in_rows(
            block.data, length, rows, self.width, table.bases, table.blocks, table.count
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
    index.table.replace(0, [0], [block])
    live: Bits = np.zeros(WARM_KEYS, np.uint8)
    hashes, rows = block.hashes(0), np.arange(WARM_KEYS)
    index.put(block, hashes, rows, 0, live)
    list(index.packed())
    index.find(block)
    index.find_among(block_of(block.array[:1]), rows)
    index.remove_rows(rows[:1])
    index.remove(block, hashes, live)
    kernels.set_bits(live, rows)
    kernels.clear_bits(live, rows)
