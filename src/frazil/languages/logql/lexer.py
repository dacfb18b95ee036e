"""Tokens of LogQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from frazil.errors import Malformed

LENGTH_MAX = 16 * 1024
"""Characters of a query."""

TokenKind = Literal["name", "text", "number", "quantity", "flag", "sign", "end"]

_SPACE = re.compile(r"(?:\s|#[^\n]*)*")
_FLAG = re.compile(r"--(?:strict|keep-empty)\b")
_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_QUANTITY = re.compile(r"(?:\d++\.?+\d*+[A-Za-zµμ]++)++")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?\d++)?+(?![A-Za-zµμ.])")
_RAW = re.compile(r"`([^`]*)`")
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_SIGN = re.compile(r"\|=|\|~|\|>|!=|!~|!>|=~|==|>=|<=|[{}()\[\],=|<>+\-*/%^]")
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL
)
_SHORT = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", '"': '"', "'": "'",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LogqlToken:
    """A word of a query; `text` is the value of a string, and what is written otherwise."""

    kind: TokenKind
    text: str
    begin: int
    end: int


def logql_tokens(query: str) -> list[LogqlToken]:
    """Split a query. The last token is the end. `Malformed` has the position."""
    if len(query) > LENGTH_MAX:
        raise Malformed(f"the query has {len(query)} characters; use at most {LENGTH_MAX}")
    tokens: list[LogqlToken] = []
    at = _skip(query, 0)
    while at < len(query):
        token = _token(query, at)
        tokens.append(token)
        at = _skip(query, token.end)
    return [*tokens, LogqlToken("end", "the end of the query", at, at)]


def _skip(query: str, at: int) -> int:
    space = _SPACE.match(query, at)
    assert space is not None, "it matches nothing as well"
    return space.end()


def _token(query: str, at: int) -> LogqlToken:
    if (raw := _RAW.match(query, at)) is not None:
        return LogqlToken("text", raw[1], at, raw.end())
    if (quoted := _QUOTED.match(query, at)) is not None:
        return LogqlToken("text", _unescaped(query, quoted), at, quoted.end())
    if query[at] in '"`':
        raise syntax_error(query, at, "this text has no closing quote")
    for kind, pattern in _PATTERNS:
        if (match := pattern.match(query, at)) is not None:
            return LogqlToken(kind, match[0], at, match.end())
    raise syntax_error(query, at, f"unexpected character {query[at]!r}")


_PATTERNS: tuple[tuple[TokenKind, re.Pattern[str]], ...] = (
    ("flag", _FLAG),
    ("name", _NAME),
    ("number", _NUMBER),
    ("quantity", _QUANTITY),
    ("sign", _SIGN),
)


def _unescaped(query: str, quoted: re.Match[str]) -> str:
    def value(escape: re.Match[str]) -> str:
        code = escape[1] or escape[2] or escape[3]
        if code is not None or escape[4] is not None:
            number = int(code, 16) if code is not None else int(escape[4], 8)
            if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
                return chr(number)
        elif escape[5] in _SHORT:
            return _SHORT[escape[5]]
        where = quoted.start(1) + escape.start()
        raise syntax_error(query, where, f"{escape[0]} is no escape; write \\\\ or use backquotes")

    return _ESCAPE.sub(value, quoted[1])


def syntax_error(query: str, at: int, message: str) -> Malformed:
    """An error as Loki's clients show it: with line and column, from 1."""
    line = query.count("\n", 0, at) + 1
    column = at - (query.rfind("\n", 0, at) + 1) + 1
    return Malformed(
        f"parse error at line {line}, col {column}: {message}",
        begin=at,
        end=min(at + 1, len(query)),
    )
