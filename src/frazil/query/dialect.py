"""The words of a SQL text, as the engine's parser cuts them, and how ours are spelled for it.

Frazil has two names that the engine has not; they are respelled before it sees the text:

    time_bucket('1 minute', time)    date_bin('1 minute', time)
    percentile(duration_nano, 0.99)  percentile_cont(duration_nano, 0.99)

What is allowed is not decided here: the engine judges the text that comes out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

RESPELLED = {"time_bucket": "date_bin", "percentile": "percentile_cont"}

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*)
    | (?P<comment>/\*)
    | (?P<string>[eE]'(?:\\.|''|[^'\\])*'|(?:[nNbBxXrR]|[uU]&)?'(?:''|[^'])*')
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<quoted>"(?:""|[^"])*"|`(?:``|[^`])*`)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<number>\d[\w.]*)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a quoted name, a text, a number or a sign, and where it stands."""

    kind: str
    text: str
    begin: int
    end: int

    @property
    def name(self) -> str:
        """As a name: bare ones in lower case, quoted ones as they are."""
        if self.kind == "quoted":
            quote = self.text[0]
            return self.text[1:-1].replace(quote * 2, quote)
        return self.text.lower()


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text, without spaces and comments. One that does not end is left out."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None, "every character is at least a sign"
        kind = str(found.lastgroup)
        end = found.end()
        if kind == "comment":
            end = _comment_end(text, end)
        elif kind == "dollar":
            end = text.find(found.group(), end) + len(found.group())
            kind = "string"
            if end <= at + len(found.group()):
                return
        if kind not in ("space", "comment"):
            yield Token(kind, text[at:end], at, end)
        at = end


def _comment_end(text: str, at: int) -> int:
    """Comments nest."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelled:
    """A text as the engine gets it, and where its parts were in the text as it was written."""

    text: str
    written: str
    begins: tuple[int, ...] = (0,)
    """Places in `text` from which on a shift holds."""
    shifts: tuple[int, ...] = (0,)
    """How much further to the left the same thing was written."""

    def place(self, line: int, column: int) -> str:
        """`line 2, column 5` of what was written, for a place in what the engine got."""
        lines = self.text.split("\n")
        at = sum(len(part) + 1 for part in lines[: line - 1]) + column - 1
        return place_of(self.written, at - self.shifts[bisect_right(self.begins, at) - 1])


def place_of(text: str, at: int) -> str:
    """`line 2, column 5`: where a character stands, counted from 1."""
    at = max(0, min(at, len(text)))
    before = text[:at]
    return f"line {before.count(chr(10)) + 1}, column {at - (before.rfind(chr(10)) + 1) + 1}"


def spell(written: str) -> Spelled:
    """Write our names as the engine's."""
    parts: list[str] = []
    begins, shifts = [0], [0]
    at = length = 0
    for token in _ours(list(tokens(written))):
        instead = RESPELLED[token.name]
        parts += [written[at : token.begin], instead]
        length += token.begin - at + len(instead)
        begins.append(length)
        shifts.append(length - token.end)
        at = token.end
    text = "".join(parts) + written[at:]
    return Spelled(text=text, written=written, begins=tuple(begins), shifts=tuple(shifts))


def _ours(found: list[Token]) -> Iterator[Token]:
    """Names of functions that are ours: bare, not behind a point, before a parenthesis."""
    before = ""
    for token, after in pairwise(found):
        is_called = token.kind == "word" and after.text == "(" and before != "."
        if is_called and token.name in RESPELLED:
            yield token
        before = token.text
