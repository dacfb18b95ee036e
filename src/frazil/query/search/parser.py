"""The language of the search box: words, fields with values, AND, OR, NOT and parentheses.

    timeout "connection refused"            both, in the text of the row
    service:checkout severity:>=WARN        fields and their values
    http.route:/api/* -http.route:/api/health
    duration_ms:>100 status:500..599
    service_name:(cart OR checkout) AND (timeout OR refused)

`parse` makes a small tree of a text; what the names and values mean for a table is said by
box_sql.py. Every part knows where it was written, so that an error can point at it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from frazil.errors import Malformed
from frazil.query.functions.text_search import POSITIONS_MAX, words_of

LENGTH_MAX = 4096
"""Characters of a query."""
TERMS_MAX = 64
"""Phrase, phrases and values together; nobody types more."""
WORDS_MAX = POSITIONS_MAX
"""Words to look for, phrases counted word by word: so many one scan of a text can find."""
DEPTH_MAX = 32
"""Parentheses and NOTs inside each other."""
SHOWN_MAX = 40
"""Characters of a query that an error repeats."""

Sign = Literal["<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSpan:
    """Something that was written, from `begin` to before `end`, in characters of the text."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase(TextSpan):
    """The text has these words in a row; of the last one, `is_prefix`, only the beginning."""

    text: str
    is_prefix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Equals(TextSpan):
    """The value is exactly this."""

    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Like(TextSpan):
    """The value has these texts in this order, with anything in between: `a*b` is ("a", "b")."""

    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exists(TextSpan):
    """There is a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare(TextSpan):
    """The value is above or below this."""

    sign: Sign
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Between(TextSpan):
    """The value is from `low` to `high`, both included; None is without end."""

    low: str | None
    high: str | None


Test = Equals | Like | Exists | Compare | Between


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldQuery(TextSpan):
    """What has this name passes one of these tests."""

    name: str
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Not(TextSpan):
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class All(TextSpan):
    """Every one of these, two at least."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Any(TextSpan):
    """One of these, two at least."""

    nodes: tuple[Node, ...]


Node = Phrase | FieldQuery | Not | All | Any

_SPACE = re.compile(r"\s*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r'\\(["\\])')
_NAME = re.compile(r'((?:@|[^\W\d])[^\s()":]*):(?!//|:)')
"""A name and its colon. `http://…` and `std::map` are words."""
_BARE = re.compile(r'[^\s()"]+')
_SIGN = re.compile("[<>]=?")
_EDGE = re.compile(r"\*|[-+]?\.?\d.*|[a-z]+\d?", re.IGNORECASE | re.ASCII)
"""What may stand on either side of `..`: a number, a time, a severity; not a part of a path."""
_OPERATORS = ("AND", "OR", "NOT")


def parse(text: str) -> Node | None:
    """A query as a tree; None when it asks for nothing. `Malformed` says where it is wrong."""
    if len(text) > LENGTH_MAX:
        raise Malformed(
            f"the query has {len(text)} characters; use at most {LENGTH_MAX}",
            begin=LENGTH_MAX,
            end=len(text),
        )
    reader = _Reader(text)
    if reader.is_over:
        return None
    node = reader.either(0)
    if not reader.is_over:
        raise reader.wrong("there is no ( for this ); remove it, or write it before", 1)
    return node


class _Reader:
    """Reads a query from left to right, and stands before what comes next, never before space."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._end = 0
        """Where what was read last ends."""
        self._term_count = 0
        self._word_count = 0
        self._skip()

    @property
    def is_over(self) -> bool:
        return self._at == len(self._text)

    @property
    def _sign(self) -> str:
        return self._text[self._at : self._at + 1]

    def wrong(self, what: str, length: int = 0, *, begin: int | None = None) -> Malformed:
        """An error about what comes next, or about what began at `begin`."""
        first = self._at if begin is None else begin
        end = first + length if begin is None else max(self._at, first)
        return Malformed(
            f"{what} (character {first + 1} of the query)",
            begin=first,
            end=min(end, len(self._text)),
        )

    def _skip(self) -> None:
        """Past what was read, and the space behind it."""
        self._end = self._at
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found is not None else self._at

    def either(self, depth: int) -> Node:
        begin = self._at
        nodes = [self._both(depth)]
        while self._operator() == "OR":
            self._step("OR")
            nodes.append(self._both(depth))
        if len(nodes) == 1:
            return nodes[0]
        return Any(nodes=tuple(nodes), begin=begin, end=self._end)

    def _both(self, depth: int) -> Node:
        begin = self._at
        nodes = [self._one(depth)]
        while not self.is_over and self._sign != ")" and self._operator() != "OR":
            if self._operator() == "AND":
                self._step("AND")
            nodes.append(self._one(depth))
        if len(nodes) == 1:
            return nodes[0]
        return All(nodes=tuple(nodes), begin=begin, end=self._end)

    def _one(self, depth: int) -> Node:
        if depth > DEPTH_MAX:
            raise self.wrong(f"use at most {DEPTH_MAX} parentheses and NOTs inside each other", 1)
        begin = self._at
        if self._operator() == "NOT":
            self._step("NOT")
            return Not(node=self._one(depth + 1), begin=begin, end=self._end)
        if self._sign == "-":
            self._at += 1
            if self.is_over or self._sign.isspace():
                raise self.wrong("write what is not wanted right behind the -", begin=begin)
            return Not(node=self._one(depth + 1), begin=begin, end=self._end)
        if self._sign == "(":
            return self._group(depth)
        if self.is_over or self._sign == ")" or self._operator() is not None:
            raise self.wrong("a word or a field is missing; write one here", 1)
        return self._term()

    def _group(self, depth: int) -> Node:
        begin = self._at
        self._step("(")
        node = self.either(depth + 1)
        self._close(begin)
        return node

    def _close(self, begin: int) -> None:
        if self._sign != ")":
            raise self.wrong("this ( is not closed; write a ) behind it", begin=begin)
        self._step(")")

    def _step(self, what: str) -> None:
        self._at += len(what)
        self._skip()

    def _operator(self) -> str | None:
        found = _BARE.match(self._text, self._at)
        return found[0] if found is not None and found[0] in _OPERATORS else None

    def _term(self) -> Node:
        begin = self._at
        quoted = self._quoted()
        if quoted is not None and self._sign == ":":
            self._at += 1
            return self._field(quoted, begin)
        if quoted is not None:
            return self._words(quoted, begin, is_quoted=True)
        named = _NAME.match(self._text, self._at)
        if named is not None:
            self._at = named.end()
            return self._field(named[1], begin)
        return self._words(self._bare(), begin, is_quoted=False)

    def _words(self, text: str, begin: int, *, is_quoted: bool) -> Phrase:
        self._check_apart(begin)
        written = text if is_quoted else text.rstrip("*")
        is_prefix = written != text
        found = words_of(written)
        if not found:
            raise self.wrong("there is no letter or digit to look for; write a word", begin=begin)
        if not is_quoted and "*" in written:
            raise self.wrong("a * may only end a word; remove it, or use quotes", begin=begin)
        if is_prefix and not words_of(written[-1]):
            raise self.wrong("a * must follow a letter or digit; remove it", begin=begin)
        self._word_count += len(found)
        if self._word_count > WORDS_MAX:
            raise self.wrong(f"look for at most {WORDS_MAX} words", begin=begin)
        self._count(begin)
        self._skip()
        return Phrase(text=written, is_prefix=is_prefix, begin=begin, end=self._end)

    def _field(self, name: str, begin: int) -> FieldQuery:
        if not name:
            raise self.wrong("a name is missing before the colon; write one", begin=begin)
        tests = self._list(begin) if self._sign == "(" else (self._test(begin),)
        return FieldQuery(name=name, tests=tests, begin=begin, end=self._end)

    def _list(self, name_begin: int) -> tuple[Test, ...]:
        begin = self._at
        self._step("(")
        tests = [self._test(name_begin)]
        while self._operator() == "OR":
            self._step("OR")
            tests.append(self._test(name_begin))
        if not self.is_over and self._sign != ")":
            raise self.wrong("write OR between values, or put a value with spaces in quotes", 1)
        self._close(begin)
        return tuple(tests)

    def _test(self, name_begin: int) -> Test:
        begin = self._at
        sign = _SIGN.match(self._text, self._at)
        if sign is not None:
            self._at = sign.end()
        quoted = self._quoted()
        if quoted is None and (self.is_over or _BARE.match(self._text, self._at) is None):
            raise self.wrong(
                "a value is missing right behind this; write one, or * for any", begin=name_begin
            )
        value = self._bare() if quoted is None else quoted
        self._check_apart(begin)
        self._count(begin)
        self._skip()
        if sign is not None:
            return Compare(sign=_SIGNS[sign[0]], value=value, begin=begin, end=self._end)
        if quoted is not None:
            return Equals(value=value, begin=begin, end=self._end)
        return _unquoted(value, begin, self._end)

    def _quoted(self) -> str | None:
        """A text in quotes, if one begins here."""
        if self._sign != '"':
            return None
        found = _QUOTED.match(self._text, self._at)
        if found is None:
            raise self.wrong(
                'a " is missing at the end of this; write one', len(self._text) - self._at
            )
        self._at = found.end()
        return _ESCAPE.sub(r"\1", found[1])

    def _bare(self) -> str:
        found = _BARE.match(self._text, self._at)
        assert found is not None, "whoever calls this has looked"
        self._at = found.end()
        return found[0]

    def _check_apart(self, begin: int) -> None:
        """Does what was read end here? A sign right behind it belongs to nothing."""
        is_over = self.is_over or self._sign == ")" or self._sign.isspace()
        if not is_over:
            raise self.wrong(
                "put all of this in quotes, or a space before what follows", begin=begin
            )

    def _count(self, begin: int) -> None:
        self._term_count += 1
        if self._term_count > TERMS_MAX:
            raise self.wrong(f"use at most {TERMS_MAX} words and values", begin=begin)


_SIGNS: dict[str, Sign] = {"<": "<", "<=": "<=", ">": ">", ">=": ">="}


def _unquoted(value: str, begin: int, end: int) -> Test:
    """What a value without quotes means."""
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
