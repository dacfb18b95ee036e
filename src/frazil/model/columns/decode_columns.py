"""Columns of Arrow from the nodes of one level.

A `Level` is what one row each is made of: records, events, or the resources above them. The last
have `repeats`, how many rows each of them stands for: their columns are made once and repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from frazil.errors import TooLarge
from frazil.model.columns.decode_lay import (
    find_keys,
    lay_hex,
    lay_lists,
    lay_maps,
    lay_texts,
    make_texts,
    repeat_texts,
)
from frazil.model.columns.decode_memory import SLACK_BYTES, Bytes, Offsets, Words
from frazil.model.columns.decode_sort import KEY
from frazil.model.columns.decode_text import VALUE, work_space
from frazil.model.columns.schemas import BOOLEAN, INT, MAP, STRING

ENTRY = pa.struct([MAP.key_field, MAP.item_field])
INT32_MAX = 2**31 - 1
BATCH_BYTES_MAX = 1 << 30
"""Of the rows of one batch. A small request can say that it has millions of rows, each with large
attributes of its resource; and Arrow's offsets have 32 bits."""

Bools = NDArray[np.bool_]


class Heap:
    """What a walk found, and room for the texts that are made of it. For one call."""

    def __init__(self, words: Words, list_max: int, text_room: int) -> None:
        self.words = words
        self._bytes = 0
        self.spend(text_room)
        self._work = work_space(list_max)
        self._texts = np.empty(text_room + SLACK_BYTES, np.uint8)
        self._at = self._texts.ctypes.data
        self._end = self._at + text_room

    def maps(self, nodes: Words, slot: int) -> tuple[Offsets, Words]:
        """Offsets and attributes, sorted, all with a text for a value."""
        offsets, entries, self._at = lay_maps(self.words, nodes, slot, self._work, self._at)
        assert self._at <= self._end
        return offsets, entries

    def make_texts(self, nodes: Words, slot: int) -> None:
        """Make a text of each value at a slot."""
        self._at = make_texts(self.words, nodes, slot, self._work, self._at)
        assert self._at <= self._end

    def repeat(
        self, offsets: Offsets, data: Bytes, ends: Offsets, repeats: Words
    ) -> tuple[Offsets, Bytes]:
        """Texts in groups, each as often as it says. `TooLarge` when that is too much."""
        left = BATCH_BYTES_MAX - self._bytes
        offsets, data, byte_count = repeat_texts(offsets, data, ends, repeats, left)
        self.spend(byte_count)
        return offsets, data

    def spend(self, byte_count: int) -> None:
        """Take this much of what a batch may have. `TooLarge` when it is not there."""
        self._bytes += byte_count
        if self._bytes > BATCH_BYTES_MAX:
            raise TooLarge(
                f"the rows would take more than {BATCH_BYTES_MAX} bytes; each has its own copy of"
                " what is said once about its resource, its scope and its metric"
            )


class Keys:
    """Keys of attributes that are looked for."""

    def __init__(self, columns: Mapping[str, tuple[str, ...]]) -> None:
        self.columns = columns
        self._keys = [key for keys in columns.values() for key in keys]
        encoded = [key.encode() for key in self._keys]
        self._bytes = np.frombuffer(b"".join(encoded) + bytes(SLACK_BYTES), np.uint8)
        lengths = np.array([len(key) for key in encoded])
        begins = np.cumsum(lengths) - lengths + self._bytes.ctypes.data
        self._places = np.stack([begins, lengths], axis=1).ravel()
        self._by_length = np.zeros(lengths.max() + 1, np.int64)
        for number, length in enumerate(lengths):
            self._by_length[length] |= 1 << number

    def find(self, words: Words, offsets: Offsets, entries: Words) -> dict[str, Words]:
        """For each column the attributes that it shows, one per map, 0 where there is none."""
        found = find_keys(words, offsets, entries, self._places, self._by_length)
        rows = dict(zip(self._keys, found, strict=True))
        nodes = {}
        for column, (first, *others) in self.columns.items():
            nodes[column] = rows[first]
            for other in others:
                nodes[column] = np.where(nodes[column] != 0, nodes[column], rows[other])
        return nodes


class Level:
    """Nodes of one kind, and how many rows each of them stands for; None for one each."""

    def __init__(
        self, heap: Heap, slots: Mapping[str, int], nodes: Words, repeats: Words | None = None
    ) -> None:
        self.heap = heap
        self.slots = slots
        self.nodes = nodes
        self.repeats = repeats
        self._row_count = len(nodes) if repeats is None else int(repeats.sum())
        self._ends = np.arange(1, len(nodes) + 1, dtype=np.int32)

    def words(self, place: str, after: int = 0) -> Words:
        """The numbers at a place."""
        words: Words = self._repeated(self.heap.words[self.nodes + (self.slots[place] + after)])
        return words

    def count(self, place: str) -> pa.Array:
        """An unsigned number of 32 bits; one that is too large is the largest."""
        return array_of(INT, np.minimum(self.words(place), INT32_MAX).astype(np.int32))

    def bits(self, place: str, after: int = 0) -> pa.Array:
        """Flags, or a signed number, of 32 bits."""
        return array_of(INT, int32_of(self.words(place, after)))

    def text(self, place: str, *, is_optional: bool = False) -> pa.Array:
        """A text; an empty one is null when that is an option."""
        offsets, data = lay_texts(self.heap.words, self.nodes, self.slots[place])
        return self._texts(offsets, data, offsets[1:] != offsets[:-1] if is_optional else None)

    def shown(self, attributes: Words, *, is_optional: bool = True) -> pa.Array:
        """Values of attributes, null where there is no attribute."""
        offsets, data = lay_texts(self.heap.words, attributes, VALUE + 1)
        return self._texts(offsets, data, attributes != 0 if is_optional else None)

    def body(self, place: str, valid: Bools) -> pa.Array:
        """Values that have been made texts."""
        offsets, data = lay_texts(self.heap.words, self.nodes, self.slots[place] + 1)
        return self._texts(offsets, data, valid)

    def _texts(self, offsets: Offsets, data: Bytes, valid: Bools | None) -> pa.Array:
        if valid is not None and not valid.any():
            return pa.nulls(self._row_count, STRING)
        if self.repeats is not None:
            offsets, data = self.heap.repeat(offsets, data, self._ends, self.repeats)
        return text_array(offsets, data, None if valid is None else self._repeated(valid))

    def hex(self, place: str, *, is_optional: bool = False) -> pa.Array:
        """An id."""
        offsets, data = lay_hex(self.heap.words, self.nodes, self.slots[place])
        return text_array(offsets, data, offsets[1:] != offsets[:-1] if is_optional else None)

    def maps(self, place: str) -> tuple[Offsets, Words]:
        """Offsets and attributes of maps."""
        return self.heap.maps(self.nodes, self.slots[place])

    def map(self, place: str) -> pa.Array:
        """A map of attributes."""
        return self.map_of(*self.maps(place))

    def map_of(self, offsets: Offsets, entries: Words) -> pa.Array:
        keys = lay_texts(self.heap.words, entries, KEY)
        values = lay_texts(self.heap.words, entries, VALUE + 1)
        if len(entries) == 0:
            offsets = np.zeros(self._row_count + 1, np.int32)
        elif self.repeats is not None:
            ends = offsets[1:]
            keys = self.heap.repeat(*keys, ends, self.repeats)
            values = self.heap.repeat(*values, ends, self.repeats)
            lengths = np.repeat(ends - offsets[:-1], self.repeats)
            offsets = np.zeros(self._row_count + 1, np.int32)
            np.cumsum(lengths, out=offsets[1:])
        children = [text_array(*keys), text_array(*values)]
        inner = pa.Array.from_buffers(ENTRY, int(offsets[-1]), [None], 0, children=children)
        return list_array(MAP, offsets, inner)

    def inner(self, place: str, slots: Mapping[str, int]) -> tuple[Offsets, Level]:
        """The messages of lists."""
        offsets, nodes = lay_lists(self.heap.words, self.nodes, self.slots[place])
        return offsets, Level(self.heap, slots, nodes)

    def _repeated(self, array: NDArray[Any]) -> NDArray[Any]:
        return array if self.repeats is None else np.repeat(array, self.repeats)


def int32_of(words: Words) -> NDArray[np.int32]:
    """The lower 32 bits."""
    return words.astype(np.uint32).view(np.int32)


def array_of(kind: pa.DataType, values: NDArray[Any], valid: Bools | None = None) -> pa.Array:
    """A column of numbers; doubles may be given by their bits."""
    bitmap, null_count = _validity(valid)
    return pa.Array.from_buffers(kind, len(values), [bitmap, pa.py_buffer(values)], null_count)


def text_array(offsets: Offsets, data: Bytes, valid: Bools | None = None) -> pa.Array:
    bitmap, null_count = _validity(valid)
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(data[: int(offsets[-1])])]
    return pa.Array.from_buffers(STRING, len(offsets) - 1, buffers, null_count)


def list_array(
    kind: pa.DataType, offsets: Offsets, inner: pa.Array, valid: Bools | None = None
) -> pa.Array:
    """A column of lists, or of maps, whose items are inside."""
    bitmap, null_count = _validity(valid)
    return pa.Array.from_buffers(
        kind, len(offsets) - 1, [bitmap, pa.py_buffer(offsets)], null_count, children=[inner]
    )


def bool_array(values: Bools, valid: Bools) -> pa.Array:
    bitmap, null_count = _validity(valid)
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(BOOLEAN, len(values), [bitmap, bits], null_count)


def struct_list(
    kind: pa.DataType,
    offsets: Offsets,
    columns: Mapping[str, pa.Array],
    valid: Bools | None = None,
) -> pa.Array:
    """A column of lists of structs; no struct is null."""
    struct = kind.value_type
    children = [columns[struct.field(index).name] for index in range(struct.num_fields)]
    inner = pa.Array.from_buffers(struct, int(offsets[-1]), [None], 0, children=children)
    return list_array(kind, offsets, inner, valid)


def word_array(codes: Words, words: tuple[str, ...], valid: Bools | None = None) -> pa.Array:
    """A column of words for numbers; a number that has no word is written as it is."""
    numbers = int32_of(codes)
    is_strange = (numbers < 0) | (numbers >= len(words))
    if is_strange.any():
        strange, places = np.unique(numbers[is_strange], return_inverse=True)
        numbers[is_strange] = places + len(words)
        words = (*words, *map(str, strange))
    return pa.array(words, STRING).take(array_of(INT, numbers, valid))


def _validity(valid: Bools | None) -> tuple[pa.Buffer | None, int]:
    if valid is None:
        return None, 0
    null_count = len(valid) - int(np.count_nonzero(valid))
    if null_count == 0:
        return None, 0
    return pa.py_buffer(np.packbits(valid, bitorder="little")), null_count
