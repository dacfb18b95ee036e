"""The grammar of searches, shared by the search box and the SQL function `matches`.

Both have words, "phrases", pre*, AND, OR, NOT and parentheses; words without an operator between
them mean AND, which binds tighter than OR:

    payment timeout                         both words
    payment AND (timeout OR refused) NOT test
    "connection refused"                    these words in a row
    pay*                                    words with this prefix

The search box has fields as well, and `-` for NOT:

    service:checkout severity:>=WARN        fields and their values
    http.route:/api/* -http.route:/api/health
    duration:>100ms status:500..599
    service_name:(cart OR checkout) AND (timeout OR refused)
    service=checkout status>=500 kind!=CLIENT

`parse` returns a tree whose nodes know their position in the text, so that errors can point at it.
search/to_sql.py gives names and values their meaning; text_search.py compiles for `matches`. Why
the two differ: docs/decisions/0016-one-grammar-for-searches.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from frazil.errors import Malformed
from frazil.query.functions.word_split import words_of

POSITIONS_MAX = 64
"""Words of one search, phrases counted word by word: each has a bit of a machine word."""
DEPTH_MAX = 32
"""Nested parentheses and NOTs."""
LENGTH_MAX = 4096
"""Characters of a query in the search box."""
TERMS_MAX = 64
"""Words, phrases and values of a query in the search box."""
SHOWN_MAX = 40
"""Characters of a name that an error repeats."""

Sign = Literal["<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSpan:
    """Part of the text, from character `begin` to before `end`."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase(TextSpan):
    """These words in a row; if `is_prefix`, the last one is a prefix."""

    text: str
    is_prefix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Equals(TextSpan):
    """The value equals this."""

    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Like(TextSpan):
    """The value has these texts in order, with anything in between: `a*b` is ("a", "b")."""

    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exists(TextSpan):
    """The field has a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare(TextSpan):
    """The value is less or greater than this."""

    sign: Sign
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Between(TextSpan):
    """The value is from `low` to `high`, inclusive; None is unbounded."""

    low: str | None
    high: str | None


Test = Equals | Like | Exists | Compare | Between


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldQuery(TextSpan):
    """The field passes one of these tests."""

    name: str
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Not(TextSpan):
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class All(TextSpan):
    """All of at least two nodes."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Any(TextSpan):
    """Any of at least two nodes."""

    nodes: tuple[Node, ...]


Node = Phrase | FieldQuery | Not | All | Any

_SPACE = re.compile(r"\s*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_QUOTED_PLAIN = re.compile(r'"([^"]*)"')
_ESCAPE = re.compile(r'\\(["\\])')
_AFTER_NAME = r"""(?::(?!//|:)|!=(?=[^\s)])|==?(?=[^\s)=])|(?=[<>]=[^\s()]|[<>][-+.]?\d))"""
_NAME = re.compile(r'((?:@|[^\W\d])[^\s()":=<>!]*)' + _AFTER_NAME)
"""A name and its colon, equals sign or comparison. `http://…`, `std::map`, `Vec<u8>` and `YQ==` are
words."""
_SEPARATOR = re.compile(_AFTER_NAME)
_BARE = re.compile(r'[^\s()"]+')
_SIGN = re.compile("[<>]=?")
_EDGE = re.compile(r"\*|[-+]?\.?\d.*|[a-z]+\d?", re.IGNORECASE | re.ASCII)
"""A bound of a range `a..b`: a number, a time or a severity, but no part of a path."""
_OPERATORS = ("AND", "OR", "NOT")


def parse(text: str) -> Node | None:
    """Parse a query of the search box; None if it is blank. `Malformed` has the position."""
    if len(text) > LENGTH_MAX:
        raise Malformed(
            f"the query has {len(text)} characters; use at most {LENGTH_MAX}",
            begin=LENGTH_MAX,
            end=len(text),
        )
    parser = _Parser(text, "query", has_fields=True)
    return None if parser.is_over else parser.parse()


def parse_words(text: str) -> Node:
    """Parse a search of `matches`, which has no fields. `Malformed` has the position."""
    return _Parser(text, "search", has_fields=False).parse()


class _Parser:
    """A recursive descent parser. Its position is always before the next token, never at space."""

    def __init__(self, text: str, noun: str, *, has_fields: bool) -> None:
        self._text = text
        self._noun = noun
        self._has_fields = has_fields
        self._at = 0
        self._end = 0
        """Where the last token ends."""
        self._term_count = 0
        self._word_count = 0
        self._skip()

    @property
    def is_over(self) -> bool:
        return self._at == len(self._text)

    @property
    def _next(self) -> str:
        """The next character; empty at the end."""
        return self._text[self._at : self._at + 1]

    def _error(self, what: str, length: int = 0, *, begin: int | None = None) -> Malformed:
        """Return an error about the next `length` characters, or about everything from `begin`."""
        first = self._at if begin is None else begin
        end = first + length if begin is None else max(self._at, first)
        return Malformed(
            f"{what} (character {first + 1} of the {self._noun})",
            begin=first,
            end=min(end, len(self._text)),
        )

    def _skip(self) -> None:
        """End a token here, and skip the space after it."""
        self._end = self._at
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space is not None else self._at

    def parse(self) -> Node:
        node = self._any(0)
        if not self.is_over:
            raise self._error("there is no ( for this ); remove it, or add one before", 1)
        return node

    def _any(self, depth: int) -> Node:
        begin = self._at
        nodes = [self._all(depth)]
        while self._operator() == "OR":
            self._take("OR")
            nodes.append(self._all(depth))
        if len(nodes) == 1:
            return nodes[0]
        return Any(nodes=tuple(nodes), begin=begin, end=self._end)

    def _all(self, depth: int) -> Node:
        begin = self._at
        nodes = [self._one(depth)]
        while not self.is_over and self._next != ")" and self._operator() != "OR":
            if self._operator() == "AND":
                self._take("AND")
            nodes.append(self._one(depth))
        if len(nodes) == 1:
            return nodes[0]
        return All(nodes=tuple(nodes), begin=begin, end=self._end)

    def _one(self, depth: int) -> Node:
        if depth > DEPTH_MAX:
            raise self._error(f"use at most {DEPTH_MAX} nested parentheses and NOTs", 1)
        begin = self._at
        if self._operator() == "NOT":
            self._take("NOT")
            return Not(node=self._one(depth + 1), begin=begin, end=self._end)
        if self._has_fields and self._next == "-":
            self._at += 1
            if self.is_over or self._next.isspace():
                raise self._error("write what to exclude directly after the -", begin=begin)
            return Not(node=self._one(depth + 1), begin=begin, end=self._end)
        if self._next == "(":
            return self._group(depth)
        if self.is_over or self._next == ")" or self._operator() is not None:
            raise self._error(f"a word{' or a field' * self._has_fields} is missing; add one", 1)
        return self._term()

    def _group(self, depth: int) -> Node:
        begin = self._at
        self._take("(")
        node = self._any(depth + 1)
        self._close(begin)
        return node

    def _close(self, begin: int) -> None:
        if self._next != ")":
            raise self._error("this ( is not closed; add a ) after it", begin=begin)
        self._take(")")

    def _take(self, token: str) -> None:
        self._at += len(token)
        self._skip()

    def _operator(self) -> str | None:
        bare = _BARE.match(self._text, self._at)
        return bare[0] if bare is not None and bare[0] in _OPERATORS else None

    def _term(self) -> Node:
        begin = self._at
        quoted = self._quoted()
        if quoted is None:
            named = _NAME.match(self._text, self._at) if self._has_fields else None
            if named is None:
                return self._words(self._bare(), begin, is_quoted=False)
            self._at = named.end(1)
            return self._field(named[1], begin)
        if not self._has_fields or _SEPARATOR.match(self._text, self._at) is None:
            return self._words(quoted, begin, is_quoted=True)
        return self._field(quoted, begin)

    def _words(self, text: str, begin: int, *, is_quoted: bool) -> Phrase:
        self._check_term_ends(begin)
        stem = text if is_quoted else text.rstrip("*")
        is_prefix = stem != text
        words = words_of(stem)
        if not words:
            raise self._error("there is no letter or digit to search for; add a word", begin=begin)
        if not is_quoted and "*" in stem:
            raise self._error("a * may only end a word; remove it, or use quotes", begin=begin)
        if is_prefix and not words_of(stem[-1]):
            raise self._error("a * must follow a letter or digit; remove it", begin=begin)
        self._word_count += len(words)
        if self._has_fields and self._word_count > POSITIONS_MAX:
            raise self._error(f"search for at most {POSITIONS_MAX} words", begin=begin)
        self._count_term(begin)
        self._skip()
        return Phrase(text=stem, is_prefix=is_prefix, begin=begin, end=self._end)

    def _field(self, name: str, begin: int) -> FieldQuery | Not:
        """Take what follows a name: a colon or its like, and the values."""
        separator = _SEPARATOR.match(self._text, self._at)
        assert separator is not None, "the caller has checked that a separator follows"
        self._at = separator.end()
        if not name:
            raise self._error(f"a name is missing before {separator[0]}; add one", begin=begin)
        tests = self._list(begin) if self._next == "(" else (self._test(begin),)
        field = FieldQuery(name=name, tests=tests, begin=begin, end=self._end)
        return field if separator[0] != "!=" else Not(node=field, begin=begin, end=self._end)

    def _list(self, name_begin: int) -> tuple[Test, ...]:
        begin = self._at
        self._take("(")
        tests = [self._test(name_begin)]
        while self._operator() == "OR":
            self._take("OR")
            tests.append(self._test(name_begin))
        if not self.is_over and self._next != ")":
            raise self._error("write OR between values, or put a value with spaces in quotes", 1)
        self._close(begin)
        return tuple(tests)

    def _test(self, name_begin: int) -> Test:
        begin = self._at
        sign = _SIGN.match(self._text, self._at)
        if sign is not None:
            self._at = sign.end()
        quoted = self._quoted()
        if quoted is None and (self.is_over or _BARE.match(self._text, self._at) is None):
            raise self._error(
                "a value is missing directly after this; add one, or * for any", begin=name_begin
            )
        value = self._bare() if quoted is None else quoted
        self._check_term_ends(begin)
        self._count_term(begin)
        self._skip()
        if sign is not None:
            return Compare(sign=_SIGNS[sign[0]], value=value, begin=begin, end=self._end)
        if quoted is not None:
            return Equals(value=value, begin=begin, end=self._end)
        return _unquoted(value, begin, self._end)

    def _quoted(self) -> str | None:
        """Take a text in quotes; None if none begins here. `matches` has no escapes."""
        if self._next != '"':
            return None
        pattern = _QUOTED if self._has_fields else _QUOTED_PLAIN
        quoted = pattern.match(self._text, self._at)
        if quoted is None:
            raise self._error('a closing " is missing; add one', len(self._text) - self._at)
        self._at = quoted.end()
        return _ESCAPE.sub(r"\1", quoted[1]) if self._has_fields else quoted[1]

    def _bare(self) -> str:
        bare = _BARE.match(self._text, self._at)
        assert bare is not None, "the caller has checked that a bare text begins here"
        self._at = bare.end()
        return bare[0]

    def _check_term_ends(self, begin: int) -> None:
        """Reject `a"b"` in the search box; `matches` takes it as two words."""
        is_end = self.is_over or self._next == ")" or self._next.isspace()
        if self._has_fields and not is_end:
            raise self._error(
                "put all of this in quotes, or a space before what follows", begin=begin
            )

    def _count_term(self, begin: int) -> None:
        self._term_count += 1
        if self._has_fields and self._term_count > TERMS_MAX:
            raise self._error(f"use at most {TERMS_MAX} words and values", begin=begin)


_SIGNS: dict[str, Sign] = {"<": "<", "<=": "<=", ">": ">", ">=": ">="}


def _unquoted(value: str, begin: int, end: int) -> Test:
    """Return the test for a value without quotes."""
    if not value.strip("*"):
        return Exists(begin=begin, end=end)
    low, dots, high = value.partition("..")
    is_range = dots and _EDGE.fullmatch(low) and _EDGE.fullmatch(high)
    if is_range and (low, high) != ("*", "*"):
        return Between(
            low=None if low == "*" else low,
            high=None if high == "*" else high,
            begin=begin,
            end=end,
        )
    if "*" in value:
        return Like(pieces=tuple(value.split("*")), begin=begin, end=end)
    return Equals(value=value, begin=begin, end=end)
