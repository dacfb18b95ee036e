"""Columns of Arrow from the nodes of one level.

A `NodeLevel` holds one node per row: records, events, or the resources above them. Resources have
`repeats`, the number of rows each stands for: their columns are built once and repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from frazil.errors import TooLarge
from frazil.model.arrow.decoder.arrays import (
    array_of,
    int32_of,
    map_array,
    numbered_array,
    repeated_map,
    text_array,
)
from frazil.model.arrow.decoder.buffers import (
    find_keys,
    lay_hex,
    lay_lists,
    lay_maps,
    lay_texts,
    make_texts,
    number_keys,
    repeat_texts,
)
from frazil.model.arrow.decoder.dispatch import KEY, VALUE
from frazil.model.arrow.decoder.values.value_text import work_space
from frazil.model.arrow.decoder.values.value_types import (
    Values,
    join_parts,
    lay_present,
    measure_types,
    sum_up_types,
    write_types,
)
from frazil.model.arrow.schemas import INT, KEYED_MAP, MAP, NUMBERED, STRING
from frazil.model.protobuf.memory import SLACK_BYTES, Bools, Bytes, Offsets, Words

INT32_MAX = 2**31 - 1
BATCH_BYTES_MAX = 1 << 30
"""Of the rows of one batch. A small request can say that it has millions of rows, each with large
attributes of its resource; and Arrow's offsets have 32 bits."""


class Arena:
    """What a walk found, and room for the texts that are made of it. For one call."""

    def __init__(
        self, words: Words, list_max: int, text_room: int, *, is_numbered: bool = False
    ) -> None:
        """With `is_numbered`, texts of nodes that stand for many rows are not repeated: numbers
        stand for them. They count as if they were."""
        self.words = words
        self.is_numbered = is_numbered
        self.saved_bytes = 0
        self._bytes = 0
        self.spend(text_room)
        self._work = work_space(list_max)
        self._texts = np.empty(text_room + SLACK_BYTES, np.uint8)
        self._at = self._texts.ctypes.data
        self._end = self._at + text_room

    def maps(self, nodes: Words, slot: int) -> Values:
        """The attributes of maps, sorted, all with a text for a value."""
        offsets, attributes, letters, self._at = lay_maps(
            self.words, nodes, slot, self._work, self._at
        )
        assert self._at <= self._end
        return Values(offsets, attributes, letters)

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

    def save(self, offsets: Offsets, ends: Offsets, repeats: Words) -> None:
        """Count texts that are not repeated as if they were. `TooLarge` when that is too much."""
        bounds = np.concatenate([[0], ends])
        byte_count = np.diff(offsets[bounds]) + 4 * np.diff(bounds)
        saved = int(np.dot(byte_count.astype(np.int64), repeats))
        self.spend(saved)
        self.saved_bytes += saved

    def types(self, count: int, values: Sequence[Values]) -> tuple[Offsets, Bytes]:
        """What values were, all those with the same number together; nothing when all of them were
        strings."""
        lengths, is_plain = np.zeros(count, np.int64), np.ones(count, np.bool_)
        for each in values:
            measure_types(self.words, *each, lengths, is_plain)
        offsets = sum_up_types(lengths, is_plain)
        self.spend(int(offsets[-1]))
        data = np.empty(int(offsets[-1]) + SLACK_BYTES, np.uint8)
        ats = offsets[:-1] + np.int64(data.ctypes.data)
        for each in values:
            write_types(self.words, *each, offsets, ats)
        return offsets, data

    def join(self, addresses: Words, lengths: Words) -> tuple[Offsets, Bytes]:
        """Rows of parts with bars between. `TooLarge` when that is too much."""
        left = BATCH_BYTES_MAX - self._bytes
        offsets, data, byte_count = join_parts(addresses, lengths, left)
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

    def find(self, words: Words, values: Values) -> dict[str, Words]:
        """For each column the attributes that it shows, one per map, 0 where there is none."""
        found = find_keys(words, values.offsets, values.nodes, self._places, self._by_length)
        rows = dict(zip(self._keys, found, strict=True))
        nodes = {}
        for column, (first, *others) in self.columns.items():
            nodes[column] = rows[first]
            for other in others:
                nodes[column] = np.where(nodes[column] != 0, nodes[column], rows[other])
        return nodes


class NodeLevel:
    """Nodes of one kind, and how many rows each of them stands for; None for one each."""

    def __init__(
        self, heap: Arena, slots: Mapping[str, int], nodes: Words, repeats: Words | None = None
    ) -> None:
        self.heap = heap
        self.slots = slots
        self.nodes = nodes
        self.repeats = repeats
        self.row_count = len(nodes) if repeats is None else int(repeats.sum())
        self._ends = np.arange(1, len(nodes) + 1, dtype=np.int32)
        self.types: tuple[Offsets, Bytes] | None = None
        """What the values of each node were; None when all of them were strings."""

    def words(self, place: str, after: int = 0) -> Words:
        """The numbers at a place."""
        words: Words = self.repeated(self.heap.words[self.nodes + (self.slots[place] + after)])
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
        is_numbered = self.heap.is_numbered and self.repeats is not None
        if valid is not None and not valid.any():
            return pa.nulls(self.row_count, NUMBERED if is_numbered else STRING)
        rows = None if valid is None else self.repeated(valid)
        if self.repeats is not None:
            if is_numbered:
                self.heap.save(offsets, self._ends, self.repeats)
                numbers = self.repeated(np.arange(len(self.nodes), dtype=np.int32))
                return numbered_array(numbers, text_array(offsets, data), rows)
            offsets, data = self.heap.repeat(offsets, data, self._ends, self.repeats)
        return text_array(offsets, data, rows)

    def hex(self, place: str, *, is_optional: bool = False) -> pa.Array:
        """An id."""
        offsets, data = lay_hex(self.heap.words, self.nodes, self.slots[place])
        return text_array(offsets, data, offsets[1:] != offsets[:-1] if is_optional else None)

    def maps(self, place: str) -> Values:
        """The attributes of maps."""
        return self.heap.maps(self.nodes, self.slots[place])

    def map_of(self, attributes: Values) -> pa.Array:
        """A map of attributes."""
        offsets = attributes.offsets
        keys = lay_texts(self.heap.words, attributes.nodes, KEY)
        values = lay_texts(self.heap.words, attributes.nodes, VALUE + 1)
        if self.heap.is_numbered and self.repeats is not None:
            self.heap.save(keys[0], offsets[1:], self.repeats)
            self.heap.save(values[0], offsets[1:], self.repeats)
            return repeated_map(offsets, text_array(*keys), text_array(*values), self.repeats)
        if len(attributes.nodes) == 0:
            offsets = np.zeros(self.row_count + 1, np.int32)
        elif self.repeats is not None:
            ends = offsets[1:]
            keys = self.heap.repeat(*keys, ends, self.repeats)
            values = self.heap.repeat(*values, ends, self.repeats)
            lengths = np.repeat(ends - offsets[:-1], self.repeats)
            offsets = np.zeros(self.row_count + 1, np.int32)
            np.cumsum(lengths, out=offsets[1:])
        children = [text_array(*keys), text_array(*values)]
        return map_array(MAP, offsets, children)

    def keyed_map_of(self, attributes: Values) -> pa.Array:
        """A map of attributes of records. Most have the same keys: numbers may stand for them."""
        if not self.heap.is_numbered:
            return self.map_of(attributes)
        numbers, firsts = number_keys(self.heap.words, attributes.nodes)
        offsets, data = lay_texts(self.heap.words, firsts, KEY)
        self.heap.saved_bytes += int(np.diff(offsets)[numbers].sum(dtype=np.int64))
        keys = numbered_array(numbers, text_array(offsets, data))
        values = text_array(*lay_texts(self.heap.words, attributes.nodes, VALUE + 1))
        return map_array(KEYED_MAP, attributes.offsets, [keys, values])

    def present(self, sent: str, place: str) -> Values:
        """The values at a place as if they were attributes, where they were sent."""
        slots = self.slots
        return Values(*lay_present(self.heap.words, self.nodes, slots[sent], slots[place]))

    def tell_types(self, *values: Values) -> None:
        """Say what the values of each node were that have become text, in their order."""
        if not all(each.is_plain() for each in values):
            self.types = self.heap.types(len(self.nodes), values)

    def inner(self, place: str, slots: Mapping[str, int]) -> tuple[Offsets, NodeLevel]:
        """The messages of lists."""
        offsets, nodes = lay_lists(self.heap.words, self.nodes, self.slots[place])
        return offsets, NodeLevel(self.heap, slots, nodes)

    def repeated(self, array: NDArray[Any]) -> NDArray[Any]:
        return array if self.repeats is None else np.repeat(array, self.repeats)


def types_column(levels: Sequence[NodeLevel]) -> pa.Array:
    """What the values of each row were, as told by its levels, from the outermost one to that of
    the records; null when there is nothing to tell."""
    shape = len(levels), levels[-1].row_count
    if all(level.types is None for level in levels):
        return pa.nulls(levels[-1].row_count, STRING)
    addresses, lengths = np.empty(shape, np.int64), np.zeros(shape, np.int64)
    for number, level in enumerate(levels):
        if level.types is not None:
            offsets, data = level.types
            addresses[number] = level.repeated(offsets[:-1] + np.int64(data.ctypes.data))
            lengths[number] = level.repeated(np.diff(offsets))
    offsets, data = levels[-1].heap.join(addresses, lengths)
    return text_array(offsets, data, offsets[1:] != offsets[:-1])
