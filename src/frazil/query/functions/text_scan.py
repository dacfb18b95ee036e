"""The scanner behind `matches`: one compiled pass over the bytes of a column, without the GIL.

Every word of a search has one bit. A word of the text turns on the bits of the words it equals;
shifting them moves a phrase on by one word, so words and phrases are found alike (Shift-And).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.query.functions.compiling import compiled, part
from frazil.query.functions.string_buffers import Bytes, Ints, buffers_of, nulls_of
from frazil.query.functions.text_search import ALONE, AND, APART, INSIDE, NOT, OR, Search, classes

Bits = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

_ASCII = np.array(
    [INSIDE if chr(code).isalnum() or chr(code) == "_" else APART for code in range(128)],
    dtype=np.uint8,
)
_FOLD = np.array([ord(chr(code).lower()) if code < 128 else code for code in range(256)], np.uint8)


class Needles(NamedTuple):
    """A search as arrays: the words, which bits each turns on, and where phrases begin and end."""

    letters: Bytes
    places: Ints
    prefixes: Bytes
    bits: Bits
    first: Bits
    begins: np.uint64
    ends: Bits
    program: Ints
    is_rising: bool
    """More words can only make it true: it may stop looking once it is."""


@lru_cache(maxsize=256)
def needles_of(search: Search) -> Needles:
    words = list(dict.fromkeys(word for phrase in search.phrases for word in phrase))
    encoded = [word.text.encode() for word in words]
    bits = np.zeros(len(words), dtype=np.uint64)
    ends = np.zeros(len(search.phrases), dtype=np.uint64)
    begins, place = 0, 0
    for number, phrase in enumerate(search.phrases):
        begins |= 1 << place
        for word in phrase:
            bits[words.index(word)] |= np.uint64(1 << place)
            place += 1
        ends[number] = np.uint64(1 << (place - 1))
    first = np.zeros(256, dtype=np.uint64)
    for number, letters in enumerate(encoded):
        first[letters[0]] |= np.uint64(1 << number)
    return Needles(
        letters=np.frombuffer(b"".join(encoded), dtype=np.uint8),
        places=np.cumsum([0, *map(len, encoded)], dtype=np.int32),
        prefixes=np.array([word.is_prefix for word in words], dtype=np.uint8),
        bits=bits,
        first=first,
        begins=np.uint64(begins),
        ends=ends,
        program=np.array(search.program, dtype=np.int32),
        is_rising=NOT not in search.program,
    )


def found_in(column: pa.Array, search: Search) -> pa.Array:
    """Which of these texts match; null where there is no text."""
    if column.type != pa.string():
        column = column.cast(pa.string())
    offsets, letters = buffers_of(column)
    table = _ASCII
    if letters[offsets[0] : offsets[-1]].max(initial=0) > 0x7F:
        column = pc.utf8_lower(column)
        offsets, letters = buffers_of(column)
        table = classes()
    found = np.empty(len(column), dtype=np.bool_)
    scan(offsets, letters, table, _FOLD, *needles_of(search), found)
    return pa.array(found, mask=nulls_of(column))


@compiled
def scan(
    offsets: Ints,
    letters: Bytes,
    table: Bytes,
    fold: Bytes,
    words: Bytes,
    places: Ints,
    prefixes: Bytes,
    bits: Bits,
    first: Bits,
    begins: np.uint64,
    ends: Bits,
    program: Ints,
    is_rising: bool,
    found: Flags,
) -> None:
    """Fill `found`, row by row. Places are unsigned: numba then asks no index whether it counts
    from the end, which makes this a third faster."""
    zero = np.uint64(0)
    one = np.uint64(1)
    for row in range(len(found)):
        at = np.uint64(offsets[row])
        end = np.uint64(offsets[row + 1])
        state = zero
        seen = zero
        is_found = False
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
                lit = _lit(letters, begin, at, fold, words, places, prefixes, bits, first)
                state = ((state << one) | begins) & lit
                seen |= state
            if kind == ALONE:
                lit = _lit(letters, at, at + length, fold, words, places, prefixes, bits, first)
                state = ((state << one) | begins) & lit
                seen |= state
            if kind != INSIDE:
                at += length
            if is_rising and state != zero and _holds(program, ends, seen):
                is_found = True
                break
        found[row] = is_found or _holds(program, ends, seen)


@part
def _wide(letters: Bytes, at: Any, end: Any, table: Bytes) -> tuple[Any, Any]:
    """How many bytes a character beyond ASCII has, and what it does."""
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
        return end - at, np.uint8(APART)
    for step in range(at + np.uint64(1), at + length):
        number = (number << np.uint64(6)) | (np.uint64(letters[step]) & np.uint64(0x3F))
    if number >= len(table):
        return length, np.uint8(APART)
    return length, table[number]


@part
def _lit(
    letters: Bytes,
    begin: Any,
    end: Any,
    fold: Bytes,
    words: Bytes,
    places: Ints,
    prefixes: Bytes,
    bits: Bits,
    first: Bits,
) -> Any:
    """The bits that one word of the text turns on."""
    lit = np.uint64(0)
    candidates = first[fold[letters[begin]]]
    number = 0
    while candidates != np.uint64(0):
        if candidates & np.uint64(1):
            wanted = np.uint64(places[number + 1] - places[number])
            given = end - begin
            if wanted == given or (prefixes[number] != 0 and wanted < given):
                at = np.uint64(places[number])
                step = np.uint64(1)
                while step < wanted and fold[letters[begin + step]] == words[at + step]:
                    step += np.uint64(1)
                if step == wanted:
                    lit |= bits[number]
        candidates >>= np.uint64(1)
        number += 1
    return lit


@part
def _holds(program: Ints, ends: Bits, seen: Any) -> Any:
    """Run the program; its stack is the bits of one number."""
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
