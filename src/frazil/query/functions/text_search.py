"""The language of `matches`: words, "phrases", pre*, AND, OR, NOT and parentheses.

    payment timeout             both, anywhere
    payment AND (timeout OR refused) NOT test
    "connection refused"        these words in a row
    pay*                        words that begin so

A word is a run of letters, digits and underscores, in any case. Signs between words say nothing:
`http.method` looks for the two words in a row, as a phrase does. Signs of scripts without spaces
are words by themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from frazil.errors import Malformed, TooLarge

POSITIONS_MAX = 64
"""Words of one search, phrases counted word by word: each has a bit of a machine word."""
DEPTH_MAX = 32
"""Parentheses and NOTs inside each other."""

SHOWN_MAX = 80
"""Characters of a search that an error repeats."""

AND, OR, NOT = -1, -2, -3

APART, INSIDE, ALONE = 0, 1, 2
"""What a character does: it separates words, is part of one, or is one."""

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

_LEXEME = re.compile(r'\s*(?:(?P<sign>[()])|"(?P<phrase>[^"]*)(?P<end>"?)|(?P<bare>[^\s()"]+))')


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word to look for, folded."""

    text: str
    is_prefix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search as a program: numbers of phrases, and operators behind what they join."""

    phrases: tuple[tuple[Word, ...], ...]
    program: tuple[int, ...]


@lru_cache(maxsize=1)
def classes() -> npt.NDArray[np.uint8]:
    """What each character does, by its number."""
    table = np.zeros(0x110000, dtype=np.uint8)
    for number in range(0x110000):
        character = chr(number)
        if character.isalnum() or (number > 0x7F and _is_mark(character)):
            table[number] = INSIDE
    table[ord("_")] = INSIDE
    for low, high in _ALONE_RANGES:
        part = table[low : high + 1]
        part[part == INSIDE] = ALONE
    return table


def _is_mark(character: str) -> bool:
    """Accents and vowel signs, which belong to the letter before them."""
    return f"a{character}".isidentifier() and not character.isidentifier()


def folded(text: str) -> str:
    """Text as words are compared: the fold is the one that columns get."""
    lower: str = pc.utf8_lower(text).as_py()
    return lower


def words_of(text: str) -> list[str]:
    """The words of a text, folded, in order."""
    found: list[str] = []
    is_open = False
    for character in folded(text):
        kind = INSIDE if character.isascii() and _is_inside(character) else APART
        if not character.isascii():
            kind = int(classes()[ord(character)])
        if kind == INSIDE and is_open:
            found[-1] += character
        elif kind != APART:
            found.append(character)
        is_open = kind == INSIDE
    return found


def _is_inside(character: str) -> bool:
    return character.isalnum() or character == "_"


@lru_cache(maxsize=256)
def parse(text: str) -> Search:
    """A search as a program. `Malformed` names the place where it cannot be understood."""
    parser = _Parser(text)
    parser.either(0)
    if parser.kind is not None:
        raise parser.wrong("there is no ( for this )")
    count = sum(len(phrase) for phrase in parser.phrases)
    if count > POSITIONS_MAX:
        raise TooLarge(f"a search has {count} words; at most {POSITIONS_MAX} are looked for")
    return Search(phrases=tuple(parser.phrases), program=tuple(parser.program))


class _Parser:
    """Reads a search from left to right; `kind` and `value` are what comes next."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._next = 0
        self.kind: str | None = None
        self.value = ""
        self.phrases: list[tuple[Word, ...]] = []
        self.program: list[int] = []
        self._step()

    def wrong(self, what: str) -> Malformed:
        text = self._text if len(self._text) <= SHOWN_MAX else f"{self._text[:SHOWN_MAX]}..."
        return Malformed(f"the search {text!r} at character {self._at + 1}: {what}")

    def either(self, depth: int) -> None:
        self._both(depth)
        while self.kind == "OR":
            self._step()
            self._both(depth)
            self.program.append(OR)

    def _both(self, depth: int) -> None:
        self._one(depth)
        while self.kind not in (None, "OR", ")"):
            if self.kind == "AND":
                self._step()
            self._one(depth)
            self.program.append(AND)

    def _one(self, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise self.wrong(f"more than {DEPTH_MAX} parentheses or NOTs inside each other")
        if self.kind == "NOT":
            self._step()
            self._one(depth + 1)
            self.program.append(NOT)
        elif self.kind == "(":
            self._step()
            self.either(depth + 1)
            if self.kind != ")":
                raise self.wrong("a ) is missing")
            self._step()
        elif self.kind == "words":
            self._look_for()
            self._step()
        else:
            raise self.wrong("a word is missing")

    def _look_for(self) -> None:
        is_phrase = self._text[self._at] == '"'
        is_prefix = not is_phrase and self.value.endswith("*")
        words = words_of(self.value)
        if not words:
            raise self.wrong(f"{self.value!r} has no letter or digit to look for")
        if not is_phrase and "*" in self.value.rstrip("*"):
            raise self.wrong("a * may only end a word")
        if is_prefix and not words_of(self.value.rstrip("*")[-1:]):
            raise self.wrong("a * must follow a letter or digit")
        phrase = [Word(text=word) for word in words]
        phrase[-1] = Word(text=words[-1], is_prefix=is_prefix)
        self.program.append(len(self.phrases))
        self.phrases.append(tuple(phrase))

    def _step(self) -> None:
        found = _LEXEME.match(self._text, self._next)
        if found is None:
            self._at, self.kind = len(self._text), None
            return
        self._next = found.end()
        if found["sign"]:
            self._at, self.kind = found.start("sign"), found["sign"]
        elif found["phrase"] is not None:
            self._at, self.kind, self.value = found.start("phrase") - 1, "words", found["phrase"]
            if not found["end"]:
                raise self.wrong('a closing " is missing')
        else:
            self._at, self.value = found.start("bare"), found["bare"]
            self.kind = self.value if self.value in ("AND", "OR", "NOT") else "words"
