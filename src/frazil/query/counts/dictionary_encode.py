"""Values as small numbers, the same number for the same value: compiled passes, without the GIL.

Each pass fills in the codes of some rows, counts them, and notes where a value first occurred. It
gives up when there are more values than a table of this size is good for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from frazil.query.functions.compiling import compiled, part
from frazil.query.functions.string_buffers import Bytes, Ints, Longs

CODES_MAX = 1024
"""Different values."""
HEAP_BYTES_MAX = 64 * 1024
"""Of all of them, when they are texts."""
SLOT_BITS = 12
"""Four slots for a value: a look-up seldom needs a second look."""
BLOCK_ROWS = 64
"""Rows that are compared at once with the one before: most runs are longer."""
WORD_BYTES = 8

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - SLOT_BITS)
_ONE = np.uint64(1)
_MASK = np.uint64((1 << SLOT_BITS) - 1)
_EIGHT = np.uint64(8)
_LAST_SHIFT = np.uint64(56)

Words = npt.NDArray[np.uint64]


def _pointer(kind: Any) -> Callable[[int], Any]:
    def point(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), generate  # type: ignore[no-untyped-call]

    return cast(Callable[[int], Any], intrinsic(point))


def _word_at(typing: Any, letters: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(letters, types.int64), generate


_ints = _pointer(types.int32)
_bytes = _pointer(types.uint8)
word_at = cast(Callable[[Bytes, Any], np.uint64], intrinsic(_word_at))
"""Eight bytes from a place on, as one number."""


@compiled
def code_texts(
    arrays: npt.NDArray[np.int64],
    slots: Ints,
    words: Words,
    tails: Words,
    lengths: Longs,
    ends: Longs,
    heap: Bytes,
    firsts: Longs,
    counts: Longs,
    codes: Ints,
) -> int:
    """Fill in `codes` of texts; -1 is an empty slot. Returns how many values there are, or -1.

    Each of `arrays` is: where its offsets are, where its letters are, how many rows, how many
    letters. Of each value `words` has the first letters, `tails` the last ones, `heap` all of them,
    up to `ends`.
    """
    count = 0
    base_row = 0
    for number in range(len(arrays)):
        row_count = arrays[number, 2]
        offsets = carray(_ints(arrays[number, 0]), row_count + 1)
        letters = carray(_bytes(arrays[number, 1]), arrays[number, 3])
        some = codes[base_row : base_row + row_count]
        before = count
        count = _code_some(
            offsets, letters, slots, words, tails, lengths, ends, heap, firsts, counts, count, some
        )
        if count < 0:
            return -1
        firsts[before:count] += base_row
        base_row += row_count
    return count


@part
def _code_some(
    offsets: Ints,
    letters: Bytes,
    slots: Ints,
    words: Words,
    tails: Words,
    lengths: Longs,
    ends: Longs,
    heap: Bytes,
    firsts: Longs,
    counts: Longs,
    count: int,
    codes: Ints,
) -> int:
    safe = len(letters) - WORD_BYTES
    last = np.int32(-1)
    row = 0
    row_count = len(offsets) - 1
    while row < row_count:
        stop_row = min(row + BLOCK_ROWS, row_count)
        if row > 0 and _repeats(offsets, letters, row, stop_row):
            codes[row:stop_row] = last
            counts[last] += stop_row - row
            row = stop_row
            continue
        while row < stop_row:
            begin, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
            length = end - begin
            word = tail = np.uint64(0)
            if length >= WORD_BYTES:
                word = word_at(letters, begin)
                tail = word_at(letters, end - WORD_BYTES)
            elif length > 0 and begin <= safe:
                word = word_at(letters, begin) << (np.uint64(WORD_BYTES - length) * _EIGHT)
            elif length > 0:
                word = _last_letters(letters, begin, end)
            slot = _slot_of(word, tail, length)
            last = slots[slot]
            while last >= 0 and not (
                words[last] == word
                and tails[last] == tail
                and lengths[last] == length
                and (length <= 2 * WORD_BYTES or _is_same(letters, begin, length, heap, ends, last))
            ):
                slot = (slot + _ONE) & _MASK
                last = slots[slot]
            if last < 0:
                used = ends[count - 1] if count else np.int64(0)
                if count == CODES_MAX or used + length > len(heap):
                    return -1
                last = np.int32(count)
                heap[used : used + length] = letters[begin:end]
                ends[count] = used + length
                words[count] = word
                tails[count] = tail
                lengths[count] = length
                firsts[count] = row
                slots[slot] = last
                count += 1
            codes[row] = last
            counts[last] += 1
            row += 1
    return count


@part
def _slot_of(word: np.uint64, tail: np.uint64, length: np.int64) -> np.uint64:
    mixed = (word ^ (np.uint64(length) * _SPREAD)) * _SPREAD
    return np.uint64(((mixed ^ tail) * _SPREAD) >> _SHIFT)


@part
def _repeats(offsets: Ints, letters: Bytes, row: int, end: int) -> bool:
    """Are these rows all the same as the one before? Then their bytes, moved by the length of one,
    lie on themselves, which is compared without a branch, many at a time."""
    length = offsets[row] - offsets[row - 1]
    lengths = np.int32(0)
    for at in range(row, end):
        lengths |= (offsets[at + 1] - offsets[at]) ^ length
    if lengths != 0:
        return False
    some = letters[offsets[row - 1] : offsets[end - 1]]
    moved = letters[offsets[row] : offsets[end]]
    differences = np.uint8(0)
    for at in range(len(some)):
        differences |= some[at] ^ moved[at]
    return bool(differences == 0)


@part
def _last_letters(letters: Bytes, begin: np.int64, end: np.int64) -> np.uint64:
    """A short text at the very end, as `word_at` would have it, moved to the top."""
    word = np.uint64(0)
    for at in range(begin, end):
        word = (word >> _EIGHT) | (np.uint64(letters[at]) << _LAST_SHIFT)
    return word


@part
def _is_same(
    letters: Bytes, begin: np.int64, length: np.int64, heap: Bytes, ends: Longs, code: np.int32
) -> bool:
    """Is this text the value with this code, if both begin and end alike and are of one length?"""
    known = ends[code] - length
    at = np.int64(WORD_BYTES)
    while at < length - WORD_BYTES:
        if word_at(letters, begin + at) != word_at(heap, known + at):
            return False
        at += WORD_BYTES
    return True


@compiled
def code_numbers(
    numbers: Longs,
    slots: Ints,
    values: Longs,
    firsts: Longs,
    counts: Longs,
    codes: Ints,
) -> int:
    """The same for numbers."""
    count = 0
    for row in range(len(numbers)):
        number = numbers[row]
        slot = (np.uint64(number) * _SPREAD) >> _SHIFT
        code = slots[slot]
        while code >= 0 and values[code] != number:
            slot = (slot + _ONE) & _MASK
            code = slots[slot]
        if code < 0:
            if count == CODES_MAX:
                return -1
            code = np.int32(count)
            values[count] = number
            firsts[count] = row
            slots[slot] = code
            count += 1
        codes[row] = code
        counts[code] += 1
    return count
