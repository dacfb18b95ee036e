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
    dictionary_array,
    int32_of,
    map_array,
    repeated_map,
    text_array,
)
from frazil.model.arrow.decoder.buffers import (
    build_hex,
    build_lists,
    build_maps,
    build_texts,
    find_keys,
    make_texts,
    number_keys,
    repeat_texts,
)
from frazil.model.arrow.decoder.dispatch import KEY, VALUE
from frazil.model.arrow.decoder.values.value_text import work_space
from frazil.model.arrow.decoder.values.value_types import (
    Values,
    build_present,
    join_parts,
    measure_types,
    sum_up_types,
    write_types,
)
from frazil.model.arrow.schemas import DICTIONARY, DICTIONARY_KEY_MAP, INT, MAP, STRING
from frazil.model.protobuf.memory import SLACK_BYTES, Bools, Bytes, Offsets, Words

INT32_MAX = 2**31 - 1
BATCH_BYTES_MAX = 1 << 28
"""Limit of the rows of one batch. A small request can have millions of rows, each with large
resource attributes; and Arrow's offsets have 32 bits."""


class Arena:
    """What a walk found, and the buffer for texts made from it. Lives for one call."""

    def __init__(
        self, words: Words, list_max: int, text_room: int, *, use_dictionaries: bool = False
    ) -> None:
        """With `use_dictionaries`, texts that many rows share are dictionary-encoded instead of
        repeated. They count towards the limit as if repeated."""
        self.words = words
        self.use_dictionaries = use_dictionaries
        self.saved_bytes = 0
        self._bytes = 0
        self.spend(text_room)
        self._work = work_space(list_max)
        self._texts = np.empty(text_room + SLACK_BYTES, np.uint8)
        self._at = self._texts.ctypes.data
        self._end = self._at + text_room

    def maps(self, nodes: Words, slot: int) -> Values:
        """Return the attributes of maps, sorted, all values as text."""
        offsets, attributes, letters, self._at = build_maps(
            self.words, nodes, slot, self._work, self._at
        )
        assert self._at <= self._end
        return Values(offsets, attributes, letters)

    def make_texts(self, nodes: Words, slot: int) -> None:
        """Convert each value at a slot to text."""
        self._at = make_texts(self.words, nodes, slot, self._work, self._at)
        assert self._at <= self._end

    def repeat(
        self, offsets: Offsets, data: Bytes, ends: Offsets, repeats: Words
    ) -> tuple[Offsets, Bytes]:
        """Repeat groups of texts. Raises `TooLarge` above the limit."""
        left = BATCH_BYTES_MAX - self._bytes
        offsets, data, byte_count = repeat_texts(offsets, data, ends, repeats, left)
        self.spend(byte_count)
        return offsets, data

    def save(self, offsets: Offsets, ends: Offsets, repeats: Words) -> None:
        """Count texts that are not repeated as if they were. Raises `TooLarge` above the limit."""
        bounds = np.concatenate([[0], ends])
        byte_count = np.diff(offsets[bounds]) + 4 * np.diff(bounds)
        saved = int(np.dot(byte_count.astype(np.int64), repeats))
        self.spend(saved)
        self.saved_bytes += saved

    def types(self, count: int, values: Sequence[Values]) -> tuple[Offsets, Bytes]:
        """Return the type letters of values, grouped by number; empty if all of a group are
        strings."""
        lengths, is_plain = np.zeros(count, np.int64), np.ones(count, np.bool_)
        for group in values:
            measure_types(self.words, *group, lengths, is_plain)
        offsets = sum_up_types(lengths, is_plain)
        self.spend(int(offsets[-1]))
        data = np.empty(int(offsets[-1]) + SLACK_BYTES, np.uint8)
        ats = offsets[:-1] + np.int64(data.ctypes.data)
        for group in values:
            write_types(self.words, *group, offsets, ats)
        return offsets, data

    def join(self, addresses: Words, lengths: Words) -> tuple[Offsets, Bytes]:
        """Join the parts of each row with bars. Raises `TooLarge` above the limit."""
        left = BATCH_BYTES_MAX - self._bytes
        offsets, data, byte_count = join_parts(addresses, lengths, left)
        self.spend(byte_count)
        return offsets, data

    def spend(self, byte_count: int) -> None:
        """Take bytes from the batch's limit. Raises `TooLarge` if none are left."""
        self._bytes += byte_count
        if self._bytes > BATCH_BYTES_MAX:
            raise TooLarge(
                f"the rows would take more than {BATCH_BYTES_MAX} bytes; each has its own copy of"
                " the attributes of its resource, scope and metric"
            )


class Keys:
    """Attribute keys to look up."""

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
        """Return per column the matching attribute of each map, 0 if there is none."""
        found = find_keys(words, values.offsets, values.nodes, self._places, self._by_length)
        rows = dict(zip(self._keys, found, strict=True))
        nodes = {}
        for column, (first, *others) in self.columns.items():
            nodes[column] = rows[first]
            for other in others:
                nodes[column] = np.where(nodes[column] != 0, nodes[column], rows[other])
        return nodes


class NodeLevel:
    """Nodes of one kind, and how many rows each stands for; None for one each."""

    def __init__(
        self, arena: Arena, slots: Mapping[str, int], nodes: Words, repeats: Words | None = None
    ) -> None:
        self.arena = arena
        self.slots = slots
        self.nodes = nodes
        self.repeats = repeats
        self.row_count = len(nodes) if repeats is None else int(repeats.sum())
        self._ends = np.arange(1, len(nodes) + 1, dtype=np.int32)
        self.types: tuple[Offsets, Bytes] | None = None
        """Type letters of the values of each node; None if all are strings."""

    def words(self, place: str, after: int = 0) -> Words:
        """Return the numbers at a place."""
        words: Words = self.repeated(self.arena.words[self.nodes + (self.slots[place] + after)])
        return words

    def count(self, place: str) -> pa.Array:
        """Return unsigned 32-bit numbers, clamped to INT32_MAX."""
        return array_of(INT, np.minimum(self.words(place), INT32_MAX).astype(np.int32))

    def bits(self, place: str, after: int = 0) -> pa.Array:
        """Return flags or signed 32-bit numbers."""
        return array_of(INT, int32_of(self.words(place, after)))

    def text(self, place: str, *, is_optional: bool = False) -> pa.Array:
        """Return texts; empty ones are null if optional."""
        offsets, data = build_texts(self.arena.words, self.nodes, self.slots[place])
        return self._texts(offsets, data, offsets[1:] != offsets[:-1] if is_optional else None)

    def promoted(self, attributes: Words, *, is_optional: bool = True) -> pa.Array:
        """Return values of attributes, null if there is no attribute."""
        offsets, data = build_texts(self.arena.words, attributes, VALUE + 1)
        return self._texts(offsets, data, attributes != 0 if is_optional else None)

    def body(self, place: str, valid: Bools) -> pa.Array:
        """Return values converted to text."""
        offsets, data = build_texts(self.arena.words, self.nodes, self.slots[place] + 1)
        return self._texts(offsets, data, valid)

    def _texts(self, offsets: Offsets, data: Bytes, valid: Bools | None) -> pa.Array:
        use_dictionaries = self.arena.use_dictionaries and self.repeats is not None
        if valid is not None and not valid.any():
            return pa.nulls(self.row_count, DICTIONARY if use_dictionaries else STRING)
        rows = None if valid is None else self.repeated(valid)
        if self.repeats is not None:
            if use_dictionaries:
                self.arena.save(offsets, self._ends, self.repeats)
                numbers = self.repeated(np.arange(len(self.nodes), dtype=np.int32))
                return dictionary_array(numbers, text_array(offsets, data), rows)
            offsets, data = self.arena.repeat(offsets, data, self._ends, self.repeats)
        return text_array(offsets, data, rows)

    def hex(self, place: str, *, is_optional: bool = False) -> pa.Array:
        """Return ids in hex."""
        offsets, data = build_hex(self.arena.words, self.nodes, self.slots[place])
        return text_array(offsets, data, offsets[1:] != offsets[:-1] if is_optional else None)

    def maps(self, place: str) -> Values:
        """Return the attributes of maps."""
        return self.arena.maps(self.nodes, self.slots[place])

    def map_of(self, attributes: Values) -> pa.Array:
        """Return a column of attribute maps."""
        offsets = attributes.offsets
        keys = build_texts(self.arena.words, attributes.nodes, KEY)
        values = build_texts(self.arena.words, attributes.nodes, VALUE + 1)
        if self.arena.use_dictionaries and self.repeats is not None:
            self.arena.save(keys[0], offsets[1:], self.repeats)
            self.arena.save(values[0], offsets[1:], self.repeats)
            return repeated_map(offsets, text_array(*keys), text_array(*values), self.repeats)
        if len(attributes.nodes) == 0:
            offsets = np.zeros(self.row_count + 1, np.int32)
        elif self.repeats is not None:
            ends = offsets[1:]
            keys = self.arena.repeat(*keys, ends, self.repeats)
            values = self.arena.repeat(*values, ends, self.repeats)
            lengths = np.repeat(ends - offsets[:-1], self.repeats)
            offsets = np.zeros(self.row_count + 1, np.int32)
            np.cumsum(lengths, out=offsets[1:])
        children = [text_array(*keys), text_array(*values)]
        return map_array(MAP, offsets, children)

    def record_map_of(self, attributes: Values) -> pa.Array:
        """Return a column of attribute maps of records. Most have the same keys, which may be
        dictionary-encoded."""
        if not self.arena.use_dictionaries:
            return self.map_of(attributes)
        numbers, firsts = number_keys(self.arena.words, attributes.nodes)
        offsets, data = build_texts(self.arena.words, firsts, KEY)
        self.arena.saved_bytes += int(np.diff(offsets)[numbers].sum(dtype=np.int64))
        keys = dictionary_array(numbers, text_array(offsets, data))
        values = text_array(*build_texts(self.arena.words, attributes.nodes, VALUE + 1))
        return map_array(DICTIONARY_KEY_MAP, attributes.offsets, [keys, values])

    def present(self, sent: str, place: str) -> Values:
        """Return the values at a place that were sent, as attributes."""
        slots = self.slots
        return Values(*build_present(self.arena.words, self.nodes, slots[sent], slots[place]))

    def set_types(self, *values: Values) -> None:
        """Store the type letters of the values of each node, in their order."""
        if not all(group.is_plain() for group in values):
            self.types = self.arena.types(len(self.nodes), values)

    def inner(self, place: str, slots: Mapping[str, int]) -> tuple[Offsets, NodeLevel]:
        """Return the messages of lists."""
        offsets, nodes = build_lists(self.arena.words, self.nodes, self.slots[place])
        return offsets, NodeLevel(self.arena, slots, nodes)

    def repeated(self, array: NDArray[Any]) -> NDArray[Any]:
        return array if self.repeats is None else np.repeat(array, self.repeats)


def types_column(levels: Sequence[NodeLevel]) -> pa.Array:
    """Return the type letters of each row, from its outermost level to the record; null if all
    are strings."""
    shape = len(levels), levels[-1].row_count
    if all(level.types is None for level in levels):
        return pa.nulls(levels[-1].row_count, STRING)
    addresses, lengths = np.empty(shape, np.int64), np.zeros(shape, np.int64)
    for number, level in enumerate(levels):
        if level.types is not None:
            offsets, data = level.types
            addresses[number] = level.repeated(offsets[:-1] + np.int64(data.ctypes.data))
            lengths[number] = level.repeated(np.diff(offsets))
    offsets, data = levels[-1].arena.join(addresses, lengths)
    return text_array(offsets, data, offsets[1:] != offsets[:-1])
