"""Encode columns as protobuf fields, with the checks of each kind."""

from __future__ import annotations

import re

import numpy as np

from frazil.model.arrow.encoder.protobuf import (
    BYTES,
    Message,
    column_of,
    fixed,
    offsets_of,
    packed_fixed,
    packed_varints,
    texts,
    varints,
    zigzag,
)
from frazil.model.arrow.encoder.rows import Cells, excerpt
from frazil.model.protobuf.memory import Words

INT32 = range(-(2**31), 2**31)
NUMBER = re.compile(r"-?[0-9]{1,10}", re.ASCII)
TRACE_ID_BYTES, SPAN_ID_BYTES = 16, 8
NO_DIGIT = 0xFF
DIGITS = np.full(256, NO_DIGIT, np.uint8)
"""Hex digit by character."""
for _number, _letter in enumerate("0123456789abcdef"):
    DIGITS[ord(_letter)] = _number
    DIGITS[ord(_letter.upper())] = _number


def text(field: int, cells: Cells) -> Message:
    """Encode text; empty equals null."""
    return texts(field, cells.filled().array)


def unsigned(field: int, cells: Cells) -> Message:
    """Encode a 64-bit time or count as fixed64."""
    return fixed(field, _not_negative(cells))


def dropped(field: int, cells: Cells) -> Message:
    """Encode a 32-bit count."""
    return varints(field, _not_negative(cells))


def flags_fixed(field: int, cells: Cells) -> Message:
    """Encode 32 bits as fixed32."""
    return fixed(field, _numbers(cells).astype(np.int32))


def flags(field: int, cells: Cells) -> Message:
    """Encode 32 bits as a varint."""
    return varints(field, _numbers(cells).astype(np.int32).view(np.uint32).astype(np.int64))


def enum(field: int, cells: Cells) -> Message:
    """Encode an enum number, which may have no name."""
    return varints(field, _numbers(cells))


def signed(field: int, cells: Cells) -> Message:
    """Encode a small signed number."""
    return varints(field, zigzag(_numbers(cells)))


def double(field: int, cells: Cells) -> Message:
    """Encode a double, omitted if 0, but not if -0."""
    return fixed(field, cells.given().numbers())


def optional_double(field: int, cells: Cells) -> Message:
    """Encode a double, omitted if null."""
    return fixed(field, cells.numbers(), cells.present())


def doubles(field: int, cells: Cells) -> Message:
    """Encode lists of doubles."""
    offsets, items = cells.given().items()
    return packed_fixed(field, items.numbers(), offsets)


def counts(field: int, cells: Cells) -> Message:
    """Encode lists of counts as fixed64."""
    offsets, items = cells.given().items()
    return packed_fixed(field, _not_negative(items), offsets)


def count_varints(field: int, cells: Cells) -> Message:
    """Encode lists of counts as varints; null is empty."""
    offsets, items = cells.items()
    return packed_varints(field, _not_negative(items), offsets)


def choice(field_double: int, cells_double: Cells, field_int: int, cells_int: Cells) -> Message:
    """Encode a double or an int, or neither."""
    has_double, has_int = cells_double.present(), cells_int.present()
    both = np.flatnonzero(has_double & has_int)
    if len(both):
        raise cells_int.bad(int(both[0]), f"there is also a value in {cells_double.name}")
    one = fixed(field_double, cells_double.numbers(), has_double)
    other = fixed(field_int, cells_int.numbers(), has_int)
    return Message(parts=one.parts + other.parts, lengths=one.lengths + other.lengths)


def word(field: int, cells: Cells, words: tuple[str, ...]) -> Message:
    """Encode a number given as a name, or as digits if it has none."""
    return varints(field, word_numbers(cells, words))


def word_numbers(cells: Cells, words: tuple[str, ...]) -> Words:
    """Return the numbers of names; 0 for null."""
    encoded = cells.array.fill_null(words[0]).dictionary_encode()
    indices = np.asarray(encoded.indices)
    known = {name: number for number, name in enumerate(words)}
    by_index = []
    for position, name in enumerate(encoded.dictionary.to_pylist()):
        number = known.get(name)
        if number is None and NUMBER.fullmatch(name) and int(name) in INT32:
            number = int(name)
        if number is None:
            index = int(np.argmax(indices == position))
            raise cells.bad(index, f"{excerpt(name)} is not one of {', '.join(words)}, or a number")
        by_index.append(number)
    numbers: Words = np.array(by_index, np.int64)[indices]
    return numbers


def trace_id(field: int, cells: Cells) -> Message:
    """Encode 16 bytes, or none, from hex."""
    return _id(field, cells, TRACE_ID_BYTES)


def span_id(field: int, cells: Cells) -> Message:
    """Encode 8 bytes, or none, from hex."""
    return _id(field, cells, SPAN_ID_BYTES)


def _id(field: int, cells: Cells, size: int) -> Message:
    column = cells.filled().array.cast(BYTES)
    offsets = offsets_of(column)
    lengths = np.diff(offsets)
    cells.check((lengths == 0) | (lengths == 2 * size), f"is not an id of {size} bytes in hex")
    if not lengths.any():
        return varints(field, lengths)
    digits = DIGITS[np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]]
    is_digit = digits != NO_DIGIT
    if not is_digit.all():
        wrong = np.searchsorted(offsets, offsets[0] + np.argmin(is_digit), "right") - 1
        raise cells.bad(int(wrong), f"{excerpt(cells.array[int(wrong)])} is not hex")
    packed = (digits[::2] << 4 | digits[1::2]).astype(np.uint8)
    return texts(field, column_of(packed, lengths // 2))


def _numbers(cells: Cells) -> Words:
    return cells.given().numbers().astype(np.int64)


def _not_negative(cells: Cells) -> Words:
    numbers = _numbers(cells)
    cells.check(numbers >= 0, "is below 0")
    return numbers
