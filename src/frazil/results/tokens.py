"""Tokens of a SQL text, as the engine's parser splits it."""

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
    """A word, quoted name, string, number or sign, and its position in the text."""

    kind: str
    text: str
    begin: int
    end: int

    @property
    def name(self) -> str:
        """The token as a name: bare words in lower case, quoted names unquoted."""
        if self.kind == "quoted":
            quote = self.text[0]
            return self.text[1:-1].replace(quote * 2, quote)
        return self.text.lower()


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, without spaces and comments. An unterminated one is left out."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None, "every character is at least a sign"
        kind = str(match.lastgroup)
        end = match.end()
        if kind == "comment":
            end = _comment_end(text, end)
        elif kind == "dollar":
            end = text.find(match.group(), end) + len(match.group())
            kind = "string"
            if end <= at + len(match.group()):
                return
        if kind not in ("space", "comment"):
            yield Token(kind, text[at:end], at, end)
        at = end


def _comment_end(text: str, at: int) -> int:
    """Return the end of a comment; comments nest."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def line_and_column(text: str, at: int) -> str:
    """Return the position of a character as `line 2, column 5`, counted from 1."""
    at = max(0, min(at, len(text)))
    before = text[:at]
    return f"line {before.count(chr(10)) + 1}, column {at - (before.rfind(chr(10)) + 1) + 1}"
