"""The scanner of `matches`: one compiled pass over the bytes of a column, without the GIL.

Every word of a search has one bit. A word of the text sets the bits of the words it equals; a shift
advances phrases by one word, so words and phrases are found in the same way (Shift-And).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.model.protobuf import compiled, part
from frazil.query.functions.string_buffers import Bytes, Ints, buffers_of, nulls_of
from frazil.query.functions.text_search import AND, NOT, OR, Search
from frazil.query.functions.word_split import ALONE, INSIDE, SEPARATOR, classes

Bits = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

_ASCII = np.array(
    [INSIDE if chr(code).isalnum() or chr(code) == "_" else SEPARATOR for code in range(128)],
    dtype=np.uint8,
)
_FOLD = np.array([ord(chr(code).lower()) if code < 128 else code for code in range(256)], np.uint8)


class Needles(NamedTuple):
    """A search as arrays: distinct words, their bits, the first and last bits of phrases."""

    letters: Bytes
    starts: Ints
    prefixes: Bytes
    bits: Bits
    first: Bits
    begins: np.uint64
    ends: Bits
    program: Ints
    is_rising: bool
    """It has no NOT, so once it holds it holds to the end of the row."""


@lru_cache(maxsize=256)
def needles_of(search: Search) -> Needles:
    words = list(dict.fromkeys(word for phrase in search.phrases for word in phrase))
    encoded = [word.text.encode() for word in words]
    bits = np.zeros(len(words), dtype=np.uint64)
    ends = np.zeros(len(search.phrases), dtype=np.uint64)
    begins, bit = 0, 0
    for number, phrase in enumerate(search.phrases):
        begins |= 1 << bit
        for word in phrase:
            bits[words.index(word)] |= np.uint64(1 << bit)
            bit += 1
        ends[number] = np.uint64(1 << (bit - 1))
    first = np.zeros(256, dtype=np.uint64)
    for number, letters in enumerate(encoded):
        first[letters[0]] |= np.uint64(1 << number)
    return Needles(
        letters=np.frombuffer(b"".join(encoded), dtype=np.uint8),
        starts=np.cumsum([0, *map(len, encoded)], dtype=np.int32),
        prefixes=np.array([word.is_prefix for word in words], dtype=np.uint8),
        bits=bits,
        first=first,
        begins=np.uint64(begins),
        ends=ends,
        program=np.array(search.program, dtype=np.int32),
        is_rising=NOT not in search.program,
    )


def match_column(column: pa.Array, search: Search) -> pa.Array:
    """Return which texts match; null for a null text."""
    if column.type != pa.string():
        column = column.cast(pa.string())
    offsets, letters = buffers_of(column)
    table = _ASCII
    if letters[offsets[0] : offsets[-1]].max(initial=0) > 0x7F:
        column = pc.utf8_lower(column)
        offsets, letters = buffers_of(column)
        table = classes()
    matched = np.empty(len(column), dtype=np.bool_)
    scan(offsets, letters, table, _FOLD, *needles_of(search), matched)
    return pa.array(matched, mask=nulls_of(column))


@compiled
def scan(
    offsets: Ints,
    letters: Bytes,
    table: Bytes,
    fold: Bytes,
    words: Bytes,
    starts: Ints,
    prefixes: Bytes,
    bits: Bits,
    first: Bits,
    begins: np.uint64,
    ends: Bits,
    program: Ints,
    is_rising: bool,
    matched: Flags,
) -> None:
    """Fill `matched`, row by row. Positions are unsigned: numba then compiles no check for negative
    indexes, which makes this a third faster."""
    zero = np.uint64(0)
    one = np.uint64(1)
    for row in range(len(matched)):
        at = np.uint64(offsets[row])
        end = np.uint64(offsets[row + 1])
        state = zero
        seen = zero
        is_match = False
        while at < end:
            begin = at
            kind = INSIDE
            length = one
            while at < end:
                if letters[at] < 0x80:
                    length, kind = one, table[letters[at]]
                else:
                    length, kind = _wide(letters, at, end, table)
                if kind != INSIDE:
                    break
                at += length
            if at > begin:
                hits = _hits(letters, begin, at, fold, words, starts, prefixes, bits, first)
                state = ((state << one) | begins) & hits
                seen |= state
            if kind == ALONE:
                hits = _hits(letters, at, at + length, fold, words, starts, prefixes, bits, first)
                state = ((state << one) | begins) & hits
                seen |= state
            if kind != INSIDE:
                at += length
            if is_rising and state != zero and _holds(program, ends, seen):
                is_match = True
                break
        matched[row] = is_match or _holds(program, ends, seen)


@part
def _wide(letters: Bytes, at: Any, end: Any, table: Bytes) -> tuple[Any, Any]:
    """Return the length in bytes and the class of a character beyond ASCII."""
    lead = np.uint64(letters[at])
    length = np.uint64(2)
    number = lead & np.uint64(0x1F)
    if lead >= 0xF0:
        length = np.uint64(4)
        number = lead & np.uint64(0x07)
    elif lead >= 0xE0:
        length = np.uint64(3)
        number = lead & np.uint64(0x0F)
    if at + length > end:
        return end - at, np.uint8(SEPARATOR)
    for step in range(at + np.uint64(1), at + length):
        number = (number << np.uint64(6)) | (np.uint64(letters[step]) & np.uint64(0x3F))
    if number >= len(table):
        return length, np.uint8(SEPARATOR)
    return length, table[number]


@part
def _hits(
    letters: Bytes,
    begin: Any,
    end: Any,
    fold: Bytes,
    words: Bytes,
    starts: Ints,
    prefixes: Bytes,
    bits: Bits,
    first: Bits,
) -> Any:
    """Return the bits of the words that one word of the text equals."""
    hits = np.uint64(0)
    candidates = first[fold[letters[begin]]]
    number = 0
    while candidates != np.uint64(0):
        if candidates & np.uint64(1):
            length = np.uint64(starts[number + 1] - starts[number])
            available = end - begin
            if length == available or (prefixes[number] != 0 and length < available):
                at = np.uint64(starts[number])
                step = np.uint64(1)
                while step < length and fold[letters[begin + step]] == words[at + step]:
                    step += np.uint64(1)
                if step == length:
                    hits |= bits[number]
        candidates >>= np.uint64(1)
        number += 1
    return hits


@part
def _holds(program: Ints, ends: Bits, seen: Any) -> Any:
    """Run the program. Its stack is the bits of one integer."""
    stack = np.uint64(0)
    one = np.uint64(1)
    for step in program:
        if step >= 0:
            stack = (stack << one) | (one if seen & ends[step] else np.uint64(0))
        elif step == NOT:
            stack ^= one
        else:
            top = stack & one
            stack >>= one
            if step == AND:
                stack = (stack >> one << one) | (stack & top)
            elif step == OR:
                stack |= top
    return stack & one != np.uint64(0)
