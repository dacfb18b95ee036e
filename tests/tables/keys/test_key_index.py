"""The key index equals a dictionary, whatever is put, removed, grown, stored and loaded."""

from __future__ import annotations

import struct
import weakref

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Corrupt
from frazil.model import Rand
from frazil.tables.keys import kernels, key_index
from frazil.tables.keys.index_file import NAME, IndexPosition, read_index, write_index
from frazil.tables.keys.key_block import KeyBlock, block_of
from frazil.tables.keys.key_index import KeyIndex, KeyTable, TableEntry, bytes_for
from tests.sim.disk import SimDisk

SEED = 0x1234567890ABCDEF
MASK = (1 << 64) - 1
POSITION = IndexPosition(identity=7, offset=9, row_count=1 << 39, death_count=3)


class Model:
    """An index and the dictionary that it must equal."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.index = KeyIndex(0 if kind == pa.string() else 8, SEED)
        self.rows: dict[object, int] = {}
        self.row_count = 0
        self.entries: list[TableEntry] = []

    def put(self, keys: list[object]) -> None:
        block = block_of(pa.array(keys, self.kind))
        bits = np.full((len(keys) + 7) // 8, 0xFF, np.uint8)
        self.entries.append(TableEntry(self.row_count, block, None, bits))
        self.index.table.replace(len(self.entries) - 1, self.entries[-1:])
        positions = np.arange(len(keys))
        hashes = block.hashes(SEED)
        killed = self.index.put(block, hashes, positions, self.row_count + positions)
        self.index.table.put_bits(killed.rows, is_live=False)
        expected = []
        for number, key in enumerate(keys):
            if key in self.rows:
                expected.append((self.rows[key], number))
            self.rows[key] = self.row_count + number
        assert list(zip(killed.rows.tolist(), killed.by.tolist(), strict=True)) == expected
        self.row_count += len(keys)

    def remove(self, keys: list[object]) -> None:
        block = block_of(pa.array(keys, self.kind))
        killed = self.index.remove(block, block.hashes(SEED))
        self.index.table.put_bits(killed.rows, is_live=False)
        expected = [self.rows.pop(key) for key in keys if key in self.rows]
        assert killed.rows.tolist() == expected

    def check(self, keys: list[object]) -> None:
        found = self.index.find(block_of(pa.array(keys, self.kind))).tolist()
        assert found == [self.rows.get(key, -1) for key in keys]
        assert len(self.index) == len(self.rows)
        live: set[int] = set()
        for base, block, _, bits in self.entries:
            positions = np.flatnonzero(np.unpackbits(bits, count=len(block), bitorder="little"))
            live |= set((base + positions).tolist())
        assert live == set(self.rows.values())
        for slots in self.index.packed():
            tags = slots >> kernels.ROW_BITS & kernels.TAG_MASK
            assert (tags[1:] >= tags[:-1]).all()


def test_the_table_keeps_the_memory_that_it_points_to() -> None:
    bits = np.full(1, 0xFF, np.uint8)
    kept = weakref.ref(bits)
    table = KeyTable([TableEntry(0, block_of(pa.array([7])), None, bits)])
    del bits
    assert table.put_bits(np.array([0, 1]), is_live=False) == 1
    assert kept() is not None and kept()[0] == 0xFE  # type: ignore[index]
    table.replace(0, [])
    assert kept() is None and table.put_bits(np.array([0]), is_live=False) == 0


numbers = st.lists(st.integers(-40, 40), max_size=60)
names = st.lists(st.text("ab\0", max_size=20), max_size=60)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.booleans(), numbers | names), max_size=10))
def test_the_index_equals_a_dictionary(steps: list[tuple[bool, list[object]]]) -> None:
    """Keys of one width and of any length, several times in a batch, removed and put again."""
    for kind, of_kind in ((pa.int64(), int), (pa.string(), str)):
        model = Model(kind)
        seen: list[object] = []
        for is_put, keys in steps:
            keys = [key for key in keys if isinstance(key, of_kind)]
            seen += keys
            if is_put:
                model.put(keys)
            else:
                model.remove(keys)
        model.check(seen)


@pytest.mark.parametrize("tag", [0, kernels.TAG_MASK, 77])
def test_keys_with_equal_tags_are_told_apart(tag: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key has the same shard and tag, at both ends of the shard: only keys differ."""

    def hashes(block: KeyBlock, _: int) -> kernels.Longs:
        return np.full(len(block), tag << kernels.TAG_SHIFT, np.int64)

    monkeypatch.setattr(KeyBlock, "hashes", hashes)
    model = Model(pa.int64())
    keys: list[object] = list(range(200))
    model.put(keys)
    model.remove(keys[::3])
    model.put(keys[::5])
    model.check(keys)


def test_shards_grow_past_their_small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "DOUBLED_BELOW", 32)
    model = Model(pa.int64())
    keys: list[object] = list(range(30_000))
    model.put(keys)
    model.check([*keys, -1])
    model.remove(keys[1::2])
    model.check(keys)
    assert model.index.size_bytes <= bytes_for(30_000)
    model.remove(keys[10:])
    model.index.shrink()
    model.check(keys)
    assert model.index.size_bytes <= bytes_for(100)


def reference_hash(key: bytes) -> int:
    hashed = SEED ^ len(key)
    for begin in range(0, len(key), 8):
        word = int.from_bytes(key[begin : begin + 8], "little")
        hashed = (hashed ^ word) * 0xD6E8FEB86659FD93 & MASK
        hashed ^= hashed >> 32
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        hashed ^= hashed >> 33
        hashed = hashed * multiplier & MASK
    return hashed ^ hashed >> 33


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_the_hash_is_that_of_the_format(texts: list[bytes], numbers: list[int]) -> None:
    packed = [struct.pack("<q", number) for number in numbers]
    for keys, array in (
        (texts, pa.array(texts, pa.binary())),
        (packed, pa.array(numbers, pa.int64())),
    ):
        found = block_of(array).hashes(SEED).view(np.uint64).tolist()
        assert found == [reference_hash(key) for key in keys]


def stored_model() -> tuple[Model, SimDisk, list[object]]:
    model, disk = Model(pa.int64()), SimDisk()
    keys: list[object] = list(range(3000))
    model.put(keys)
    model.remove(keys[::7])
    disk.make_directory("t")
    write_index(disk, "t", model.index, POSITION)
    return model, disk, keys


def test_an_index_that_was_stored_is_the_same() -> None:
    model, disk, keys = stored_model()
    loaded = KeyIndex(8, SEED)
    assert read_index(disk, "t", POSITION.identity, loaded) == POSITION
    loaded.table = model.index.table
    model.index = loaded
    model.check(keys)
    model.put(keys)
    model.check(keys)
    write_index(disk, "t", model.index, POSITION)  # replaces the file


def test_damage_is_noticed_in_every_part_of_the_file() -> None:
    _, disk, _ = stored_model()
    whole = disk.data(f"t/{NAME}")
    rand = Rand(3)
    for position in [*range(0, 1200, 7), *(rand.randrange(len(whole)) for _ in range(100))]:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << rand.randrange(8)
        disk.rot(f"t/{NAME}", rand, "replace", data=bytes(damaged))
        with pytest.raises(Corrupt):
            read_index(disk, "t", POSITION.identity, KeyIndex(8, SEED))
    for size in (0, 30, 64, 1088, len(whole) - 1):
        disk.rot(f"t/{NAME}", rand, "replace", data=whole[:size])
        with pytest.raises(Corrupt):
            read_index(disk, "t", POSITION.identity, KeyIndex(8, SEED))
    disk.rot(f"t/{NAME}", rand, "replace", data=whole)
    with pytest.raises(Corrupt):
        read_index(disk, "t", POSITION.identity + 1, KeyIndex(8, SEED))
