"""Protobuf bytes for many messages at once: a column of bytes has one message, or some of its
fields, per row.

A `Message` consists of such columns, which are concatenated row by row. They are joined only when
the bytes are needed, so a nested field is copied once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from frazil.model.protobuf.memory import Bytes, Words

BYTES = pa.large_binary()
"""With 64-bit offsets: nothing overflows."""
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Protobuf's wire types."""
VARINT_BITS = 7
MORE = 0x80
"""Set in each byte of a varint except the last."""

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Message:
    """Messages, or some of their fields, one per row."""

    parts: tuple[pa.Array, ...]
    """Columns of bytes, concatenated per row."""
    lengths: Words
    """Length per row, all parts together."""


def joined(message: Message) -> pa.Array:
    """Return the bytes as one column."""
    if len(message.parts) == 1:
        return message.parts[0]
    if not message.parts:
        return column_of(np.empty(0, np.uint8), message.lengths)
    return pc.binary_join_element_wise(*message.parts, pa.scalar(b"", BYTES))


def together(*messages: Message) -> Message:
    """Concatenate fields of the same messages."""
    lengths = messages[0].lengths.copy()
    for message in messages[1:]:
        lengths += message.lengths
    return Message(
        parts=tuple(part for message in messages for part in message.parts), lengths=lengths
    )


def of_column(column: pa.Array) -> Message:
    """Wrap a column of bytes or text."""
    column = column.cast(BYTES)
    return Message(parts=(column,), lengths=lengths_of(column))


def inside(field: int | Words, message: Message, present: Bools | None = None) -> Message:
    """Wrap messages as a field of others: of one number, or one below 16 per row. By default all
    are present; messages that are not must be empty."""
    prefix = varints(field, message.lengths, _everywhere(message, present), wire_type=LENGTH)
    return together(prefix, message)


def texts(field: int, column: pa.Array) -> Message:
    """Encode text or bytes as a field, omitted if empty."""
    message = of_column(column)
    return inside(field, message, message.lengths != 0)


def varints(
    field: int | Words,
    numbers: Words,
    present: Bools | None = None,
    *,
    wire_type: int = VARINT,
) -> Message:
    """Encode numbers as varints. By default 0 is omitted. Numbers count as unsigned, which is
    how protobuf encodes negative ones."""
    if present is None:
        present = numbers != 0
    if not present.any():
        return _nothing(len(numbers))
    tags = _tags(field, wire_type)
    bare = numbers.view(np.uint64)
    digits, lengths = varint_digits(bare)
    table = np.empty((len(numbers), tags.shape[-1] + digits.shape[1]), np.uint8)
    table[:, : tags.shape[-1]] = tags
    table[:, tags.shape[-1] :] = digits
    return _of_table(table, np.where(present, lengths + tags.shape[-1], 0))


def fixed(field: int, numbers: NDArray[np.generic], present: Bools | None = None) -> Message:
    """Encode numbers of 8 or 4 bytes. By default omitted if all bits are 0."""
    size = numbers.dtype.itemsize
    numbers = np.ascontiguousarray(numbers)
    if present is None:
        present = numbers.view(f"u{size}") != 0
    if not present.any():
        return _nothing(len(numbers))
    tag = _tags(field, FIXED64 if size == 8 else FIXED32)
    table = np.empty((len(numbers), len(tag) + size), np.uint8)
    table[:, : len(tag)] = tag
    table[:, len(tag) :] = numbers.view(np.uint8).reshape(-1, size)
    return _of_table(table, np.where(present, table.shape[1], 0))


def packed_fixed(field: int, numbers: NDArray[np.generic], offsets: Words) -> Message:
    """Encode lists of 8-byte numbers as one field each, omitted if empty."""
    flat = column_of(np.ascontiguousarray(numbers).view(np.uint8), np.full(len(numbers), 8))
    return texts(field, gathered(flat, offsets))


def packed_varints(field: int, numbers: Words, offsets: Words) -> Message:
    """Encode lists of varints as one field each, omitted if empty."""
    flat = joined(_of_table(*varint_digits(numbers.view(np.uint64))))
    return texts(field, gathered(flat, offsets))


def zigzag(numbers: Words) -> Words:
    """Zigzag-encode signed numbers, as in protobuf's sint32."""
    return (numbers << 1) ^ (numbers >> 63)


def gathered(column: pa.Array, offsets: Words) -> pa.Array:
    """Concatenate the values between each two offsets. Copies nothing."""
    ends = offsets_of(column)[offsets]
    _, _, data = column.buffers()
    buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), data]
    return pa.Array.from_buffers(BYTES, len(offsets) - 1, buffers)


def column_of(data: Bytes, lengths: Words) -> pa.Array:
    """Split bytes into values of these lengths."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(BYTES, len(lengths), buffers)


def offsets_of(column: pa.Array) -> Words:
    """Return the offsets of a column of bytes."""
    if len(column) == 0:
        return np.zeros(1, np.int64)
    offsets = np.frombuffer(column.buffers()[1], np.int64)
    return offsets[column.offset : column.offset + len(column) + 1]


def lengths_of(column: pa.Array) -> Words:
    return np.diff(offsets_of(column))


def varint_digits(numbers: NDArray[np.uint64]) -> tuple[Bytes, Words]:
    """Return a row of bytes per number, and how many of them count."""
    largest = int(numbers.max(initial=0))
    width = max(1, -(-largest.bit_length() // VARINT_BITS))
    if width == 1:
        return numbers.astype(np.uint8).reshape(-1, 1), np.ones(len(numbers), np.int64)
    lengths = np.ones(len(numbers), np.int64)
    digits = np.empty((len(numbers), width), np.uint8)
    for place in range(width):
        rest = numbers >> np.uint64(place * VARINT_BITS)
        has_more = rest >= MORE
        digits[:, place] = (rest & np.uint64(MORE - 1)).astype(np.uint8) | (has_more * MORE)
        lengths += has_more
    return digits, lengths


def _of_table(table: Bytes, lengths: Words) -> Message:
    """Return a message from rows of bytes, of which `lengths` count."""
    width = table.shape[1]
    if len(lengths) and int(lengths.min()) == width:
        data = table.reshape(-1)
    else:
        data = table[np.arange(width) < lengths[:, None]]
    return Message(parts=(column_of(data, lengths),), lengths=lengths)


def _nothing(count: int) -> Message:
    return Message(parts=(), lengths=np.zeros(count, np.int64))


def _everywhere(message: Message, present: Bools | None) -> Bools:
    return np.ones(len(message.lengths), np.bool_) if present is None else present


def _tags(field: int | Words, wire_type: int) -> Bytes:
    """Return one tag for all, or a one-byte tag per row."""
    if isinstance(field, int):
        digits, lengths = varint_digits(np.array([field << 3 | wire_type], np.uint64))
        return digits[0, : lengths[0]]
    return (field << 3 | wire_type).astype(np.uint8).reshape(-1, 1)
