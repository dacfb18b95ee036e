"""Dictionary encoding: values as small integers. Compiled, without the GIL.

Each pass writes the codes of its rows, counts them and notes the first row of each value. It gives
up if there are more values than the hash table is good for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from frazil.model.protobuf import compiled, part
from frazil.query.functions.string_buffers import Bytes, Ints, Longs

CODES_MAX = 1024
"""Distinct values."""
HEAP_BYTES_MAX = 64 * 1024
"""Bytes of all distinct texts."""
SLOT_BITS = 12
"""Four slots per value, so that collisions are rare."""
BLOCK_ROWS = 64
"""Rows compared with the previous one at once; most runs of equal values are longer."""
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


def _word_at(typing: Any, letters: Any, position: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(letters, types.int64), generate


_ints = _pointer(types.int32)
_bytes = _pointer(types.uint8)
word_at = cast(Callable[[Bytes, Any], np.uint64], intrinsic(_word_at))
"""Eight bytes at a position, as one integer."""


@compiled
def encode_texts(
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
    """Write the `codes` of texts. Returns the number of distinct values; -1 if they are too many.

    A row of `arrays` is the address of the offsets, the address of the letters, the number of rows
    and the number of letters. Per value, `words` has the first eight letters, `tails` the last
    eight, `heap` all of them, up to `ends`. A slot of -1 is empty.
    """
    count = 0
    base_row = 0
    for number in range(len(arrays)):
        row_count = arrays[number, 2]
        offsets = carray(_ints(arrays[number, 0]), row_count + 1)
        letters = carray(_bytes(arrays[number, 1]), arrays[number, 3])
        array_codes = codes[base_row : base_row + row_count]
        before = count
        count = _encode_array(
            offsets,
            letters,
            slots,
            words,
            tails,
            lengths,
            ends,
            heap,
            firsts,
            counts,
            count,
            array_codes,
        )
        if count < 0:
            return -1
        firsts[before:count] += base_row
        base_row += row_count
    return count


@part
def _encode_array(
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
    """Return whether all these rows equal the previous one. Then the bytes equal themselves shifted
    by the length of one, which is compared many at a time without a branch."""
    length = offsets[row] - offsets[row - 1]
    lengths = np.int32(0)
    for at in range(row, end):
        lengths |= (offsets[at + 1] - offsets[at]) ^ length
    if lengths != 0:
        return False
    previous = letters[offsets[row - 1] : offsets[end - 1]]
    shifted = letters[offsets[row] : offsets[end]]
    differences = np.uint8(0)
    for at in range(len(previous)):
        differences |= previous[at] ^ shifted[at]
    return bool(differences == 0)


@part
def _last_letters(letters: Bytes, begin: np.int64, end: np.int64) -> np.uint64:
    """Return a short text at the end of the buffer as `word_at` does, shifted to the top."""
    word = np.uint64(0)
    for at in range(begin, end):
        word = (word >> _EIGHT) | (np.uint64(letters[at]) << _LAST_SHIFT)
    return word


@part
def _is_same(
    letters: Bytes, begin: np.int64, length: np.int64, heap: Bytes, ends: Longs, code: np.int32
) -> bool:
    """Compare a text with a value of the same length, first and last eight letters."""
    known = ends[code] - length
    at = np.int64(WORD_BYTES)
    while at < length - WORD_BYTES:
        if word_at(letters, begin + at) != word_at(heap, known + at):
            return False
        at += WORD_BYTES
    return True


@compiled
def encode_numbers(
    numbers: Longs,
    slots: Ints,
    values: Longs,
    firsts: Longs,
    counts: Longs,
    codes: Ints,
) -> int:
    """Write the `codes` of numbers; returns as `encode_texts`."""
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
