"""Compiles a search of `matches` to a program for the scanner in text_scan.py.

Characters between words have no meaning: `http.method` is a search for two words in a row, as
`"http method"` is. The grammar is in search_parser.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from frazil.errors import Malformed, TooLarge
from frazil.query.functions.search_parser import (
    POSITIONS_MAX,
    FieldQuery,
    Node,
    Not,
    Phrase,
    parse_words,
)
from frazil.query.functions.search_parser import Any as AnyNode
from frazil.query.functions.word_split import words_of

SHOWN_MAX = 80
"""Characters of a search that an error repeats."""

AND, OR, NOT = -1, -2, -3


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word to search for, folded."""

    text: str
    is_prefix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search as a postfix program of phrase numbers and operators."""

    phrases: tuple[tuple[Word, ...], ...]
    program: tuple[int, ...]


@lru_cache(maxsize=256)
def parse(text: str) -> Search:
    """Compile a search. `Malformed` says at which character it is wrong."""
    try:
        node = parse_words(text)
    except Malformed as error:
        shown = text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
        raise Malformed(f"the search {shown!r} of matches: {error}") from None
    phrases: list[tuple[Word, ...]] = []
    program: list[int] = []
    _compile(node, phrases, program)
    count = sum(len(phrase) for phrase in phrases)
    if count > POSITIONS_MAX:
        raise TooLarge(f"the search has {count} words; use at most {POSITIONS_MAX}")
    return Search(phrases=tuple(phrases), program=tuple(program))


def _compile(node: Node, phrases: list[tuple[Word, ...]], program: list[int]) -> None:
    assert not isinstance(node, FieldQuery), "matches has no fields"
    if isinstance(node, Phrase):
        *first, last = words_of(node.text)
        program.append(len(phrases))
        words = [Word(text=word) for word in first]
        phrases.append((*words, Word(text=last, is_prefix=node.is_prefix)))
    elif isinstance(node, Not):
        _compile(node.node, phrases, program)
        program.append(NOT)
    else:
        operator = OR if isinstance(node, AnyNode) else AND
        _compile(node.nodes[0], phrases, program)
        for other in node.nodes[1:]:
            _compile(other, phrases, program)
            program.append(operator)
