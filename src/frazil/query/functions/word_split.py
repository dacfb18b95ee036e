"""Splits text into words.

A word is a run of letters, digits and underscores, in any case; other characters separate words.
Characters of scripts without spaces are words by themselves.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

SEPARATOR, INSIDE, ALONE = 0, 1, 2
"""Classes of characters: between words, part of a word, a word by itself."""

_ALONE_RANGES = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0x312F),
    (0x31A0, 0x31FF),
    (0x3400, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
"""Thai and Lao, Burmese, Khmer, Han with its radicals, kana, bopomofo."""


@lru_cache(maxsize=1)
def classes() -> npt.NDArray[np.uint8]:
    """Return the class of each character, by code point."""
    table = np.zeros(0x110000, dtype=np.uint8)
    for code in range(0x110000):
        character = chr(code)
        if character.isalnum() or (code > 0x7F and _is_mark(character)):
            table[code] = INSIDE
    table[ord("_")] = INSIDE
    for low, high in _ALONE_RANGES:
        script = table[low : high + 1]
        script[script == INSIDE] = ALONE
    return table


def _is_mark(character: str) -> bool:
    """Return whether this is an accent or vowel sign, which belongs to the letter before it."""
    return f"a{character}".isidentifier() and not character.isidentifier()


def folded(text: str) -> str:
    """Return text as words are compared, folded to lower case as columns are."""
    lower: str = pc.utf8_lower(text).as_py()
    return lower


def words_of(text: str) -> list[str]:
    """Return the words of a text, folded, in order."""
    words: list[str] = []
    is_open = False
    for character in folded(text):
        kind = INSIDE if character.isascii() and _is_inside(character) else SEPARATOR
        if not character.isascii():
            kind = int(classes()[ord(character)])
        if kind == INSIDE and is_open:
            words[-1] += character
        elif kind != SEPARATOR:
            words.append(character)
        is_open = kind == INSIDE
    return words


def _is_inside(character: str) -> bool:
    return character.isalnum() or character == "_"
