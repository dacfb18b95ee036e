"""Splits a TraceQL query into lexemes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from frazil.errors import Malformed

QUERY_CHARS_MAX = 16_384
"""Length of a query."""

LexemeKind = Literal["attribute", "intrinsic", "text", "duration", "number", "word", "sign", "end"]

SCOPES = ("span", "resource", "event", "link", "instrumentation")

_PLAIN = r"[^\s{}()=~!<>&|^,\"`]"
"""A character that an attribute may have without quotes."""
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_LEXEMES = re.compile(
    rf"""
    (?P<space> \s+ | //[^\n]* | /\*.*?\*/ )
  | (?P<attribute> (?:(?:parent|{"|".join(SCOPES)})(?=\.))? (?:\.(?:{_PLAIN}|{_QUOTED})+) )
  | (?P<intrinsic> (?:trace|{"|".join(SCOPES)}):[A-Za-z]+ )
  | (?P<text> {_QUOTED} | `[^`]*` )
  | (?P<duration> (?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d))+(?![A-Za-z0-9_]) )
  | (?P<number> \d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![A-Za-z_]) )
  | (?P<word> [A-Za-z_][A-Za-z0-9_]* )
  | (?P<sign> [!&]>> | [!&]<< | [!&][><~] | [!=]~ | [!<>]= | >> | << | && | \|\|
            | [-+*/%^!=<>~|(){{}},] )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_QUOTED_PART = re.compile(_QUOTED, re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)")
_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
}


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A part of a query, from character `begin` to before `end`."""

    kind: LexemeKind
    text: str
    begin: int
    end: int


def lexemes_of(query: str) -> Iterator[Lexeme]:
    """Yield the lexemes of a query, the last one of kind "end". `Malformed` has the position."""
    if len(query) > QUERY_CHARS_MAX:
        raise Malformed(f"the query has {len(query)} characters; use at most {QUERY_CHARS_MAX}")
    place = 0
    while place < len(query):
        match = _LEXEMES.match(query, place)
        if match is None:
            raise Malformed(
                f"{query[place : place + 10]!r} is not TraceQL (character {place + 1} of the "
                "query)",
                begin=place,
                end=place + 1,
            )
        if match.lastgroup != "space":
            yield Lexeme(_kind_of(match), match[0], place, match.end())
        place = match.end()
    yield Lexeme("end", "", place, place)


def _kind_of(match: re.Match[str]) -> LexemeKind:
    kind: LexemeKind = match.lastgroup  # type: ignore[assignment]  # the names of the groups
    return kind


def text_of(lexeme: str) -> str:
    """Return the text of a literal in quotes."""
    if lexeme.startswith("`"):
        return lexeme[1:-1]
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), lexeme[1:-1])


def attribute_of(lexeme: str) -> tuple[str, str]:
    """Return scope and key of an attribute; parts in quotes may have any characters."""
    scope, _, key = lexeme.partition(".")
    return scope, _QUOTED_PART.sub(lambda match: text_of(match[0]), key)


def nanos_of(lexeme: str) -> int:
    """Return the nanoseconds of a duration, such as 1.5s or 1h30m."""
    return round(sum(float(part[1]) * _UNIT_NS[part[2]] for part in _PIECE.finditer(lexeme)))
