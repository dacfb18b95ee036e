"""The words of a SQL text, as the engine's parser cuts them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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


def place_of(text: str, at: int) -> str:
    """`line 2, column 5`: where a character stands, counted from 1."""
    at = max(0, min(at, len(text)))
    before = text[:at]
    return f"line {before.count(chr(10)) + 1}, column {at - (before.rfind(chr(10)) + 1) + 1}"
