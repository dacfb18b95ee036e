"""Tokens of a PromQL text with their positions, which promql-parser does not give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from frazil.errors import Malformed, TooLarge

QUERY_CHARACTERS_MAX = 128 * 1024
TOKENS_MAX = 20_000
DEPTH_MAX = 100
"""Parentheses and operators in one another: the parsers of a query are recursive."""
OPERATORS_MAX = 500

DURATION = re.compile(r"(?:\d+(?:ms|[smhdwy]))+")
DURATION_PART = re.compile(r"(\d+)(ms|[smhdwy])")
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
UNITS_MS |= {"w": 7 * UNITS_MS["d"], "y": 365 * UNITS_MS["d"]}

_ESCAPE = re.compile(
    rb"\\(?:([abfnrtv\\'\"])|([0-7]{3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))"
)
_LETTERS = dict(zip(b"abfnrtv\\'\"", b"\a\b\f\n\r\t\v\\'\"", strict=True))

_TOKEN = re.compile(
    r"""(?P<space>(?:\s|\#[^\n]*)+)
    |(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`)
    |(?P<number>0[xX][0-9a-fA-F]+
        |\d+(?:ms|[smhdwy])(?:\d+(?:ms|[smhdwy]))*
        |(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
    |(?P<sign>==|!=|=~|!~|>=|<=|</|>/|[-+*/%^<>=@(){}\[\],:!])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
TRIM_SIGNS = frozenset(("</", ">/"))
_CLAUSES = frozenset(("by", "without", "on", "ignoring", "group_left", "group_right"))
_FILLS = frozenset(("fill", "fill_left", "fill_right"))
_ARITHMETIC = frozenset(("+", "-", "*", "/", "%", "^", "("))
_OPENING = {"(": ")", "{": "}", "[": "]"}
_WORDS = frozenset(("and", "or", "unless", "atan2"))
_SIGNS = frozenset(("+", "-", "*", "/", "%", "^", "==", "!=", ">", "<", ">=", "<=", ">/", "</"))


class PromqlToken(NamedTuple):
    """A piece of the text."""

    kind: str
    text: str
    begin: int


class TokenOutline(NamedTuple):
    """The tokens that begin expressions, and what follows each `@`."""

    tokens: Sequence[PromqlToken]
    times: Sequence[str]
    has_fill: bool


def tokens_of(query: str) -> list[PromqlToken]:
    """Return all tokens but spaces and comments. Refuses a text that no query needs."""
    if len(query) > QUERY_CHARACTERS_MAX:
        raise TooLarge(f"the query has {len(query)} characters; use at most {QUERY_CHARACTERS_MAX}")
    found = [
        PromqlToken(str(match.lastgroup), match.group(), match.start())
        for match in _TOKEN.finditer(query)
        if match.lastgroup != "space"
    ]
    _check_size(found)
    return found


def _check_size(tokens: Sequence[PromqlToken]) -> None:
    depth = deepest = operators = 0
    for token in tokens:
        if token.kind == "sign" and token.text in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif token.kind == "sign" and token.text in ")}]":
            depth -= 1
        elif token.text in _SIGNS or token.text.lower() in _WORDS:
            operators += 1
    for what, count, most in (
        ("tokens", len(tokens), TOKENS_MAX),
        ("nested parentheses", deepest, DEPTH_MAX),
        ("operators", operators, OPERATORS_MAX),
    ):
        if count > most:
            raise TooLarge(f"the query has {count} {what}; use at most {most}")


def outline_of(tokens: Sequence[PromqlToken]) -> TokenOutline:
    """Leave out matchers, ranges, clauses and modifiers: what is left is in the order of the
    expressions."""
    left: list[PromqlToken] = []
    times: list[str] = []
    has_fill = False
    at = 0
    while at < len(tokens):
        token = tokens[at]
        word = token.text.lower()
        following = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.text == "{":
            if not _ends_name(tokens, at):
                left.append(token)
            at = _after_group(tokens, at)
        elif token.text == "[":
            at = _after_group(tokens, at)
        elif token.text == "@":
            at, time = _after_time(tokens, at + 1)
            times.append(time)
        elif token.kind == "name" and word == "offset" and _ends_operand(left, tokens, at):
            at += 3 if following in ("-", "+") else 2
        elif token.kind == "name" and word in _CLAUSES | _FILLS and following == "(":
            has_fill = has_fill or word in _FILLS
            at = _after_group(tokens, at + 1)
        elif token.kind == "name" and word in ("group_left", "group_right", "bool"):
            at += 1
        else:
            left.append(token)
            at += 1
    return TokenOutline(left, times, has_fill)


def _ends_name(tokens: Sequence[PromqlToken], at: int) -> bool:
    return at > 0 and tokens[at - 1].kind == "name" and _is_metric(tokens, at - 1)


def _is_metric(tokens: Sequence[PromqlToken], at: int) -> bool:
    word = tokens[at].text.lower()
    return word not in _CLAUSES | _WORDS | {"bool"}


def _ends_operand(left: Sequence[PromqlToken], tokens: Sequence[PromqlToken], at: int) -> bool:
    before = tokens[at - 1] if at else None
    if not left or before is None:
        return False
    return before.text in ("}", "]", ")") or before.kind in ("name", "number")


def _after_group(tokens: Sequence[PromqlToken], at: int) -> int:
    """The place after the bracket that closes the one at `at`."""
    depth = 0
    for place in range(at, len(tokens)):
        if tokens[place].kind != "sign":
            continue
        depth += (tokens[place].text in _OPENING) - (tokens[place].text in ")}]")
        if depth == 0:
            return place + 1
    return len(tokens)


def _after_time(tokens: Sequence[PromqlToken], at: int) -> tuple[int, str]:
    """The place after the time of an `@`, and that time."""
    sign = ""
    while at < len(tokens) and tokens[at].text in ("+", "-"):
        sign, at = tokens[at].text, at + 1
    if at >= len(tokens):
        return at, ""
    if tokens[at].text in ("start", "end"):
        return _after_group(tokens, at + 1), tokens[at].text
    return at + 1, sign + tokens[at].text


def readable_by_parser(query: str, tokens: Sequence[PromqlToken]) -> str:
    """Write the trim operators as comparisons, which bind as strongly: promql-parser does not know
    them. No position changes."""
    letters = list(query)
    for token in tokens:
        if token.text in TRIM_SIGNS:
            letters[token.begin + 1] = " "
    return "".join(letters)


def experiment_in(tokens: Sequence[PromqlToken]) -> str | None:
    """Return which experimental syntax a text has that promql-parser does not know."""
    for at, token in enumerate(tokens[1:], start=1):
        if token.text in ("anchored", "smoothed") and tokens[at - 1].text in ("]", "}"):
            return f"the modifier {token.text}"
        if token.text == "[":
            inside = tokens[at + 1 : _after_group(tokens, at) - 1]
            if any(each.text in _ARITHMETIC or each.kind == "name" for each in inside):
                return "arithmetic in durations"
        if token.text == "offset" and "(" in [each.text for each in tokens[at + 1 : at + 3]]:
            return "arithmetic in durations"
    return None


def unquoted(literal: str) -> str:
    """Return the text of a literal. Bytes that are not UTF-8 become U+FFFD."""
    inner = literal[1:-1]
    if literal.startswith("`"):
        return inner
    return _ESCAPE.sub(_unescaped, inner.encode()).decode("utf-8", "replace")


def _unescaped(match: re.Match[bytes]) -> bytes:
    letter, octal, byte, *points = match.groups()
    if letter:
        return bytes((_LETTERS[letter[0]],))
    if octal or byte:
        return bytes((int(octal, 8) & 0xFF if octal else int(byte, 16),))
    return chr(int(next(filter(None, points)), 16)).encode("utf-8", "surrogatepass")


class TokenCursor:
    """Goes along the tokens of an outline."""

    def __init__(self, outline: TokenOutline) -> None:
        self._tokens = outline.tokens
        self._place = 0
        self._times: Iterator[str] = iter(outline.times)

    @property
    def begin(self) -> int:
        """Where the next token begins."""
        return self._peek().begin

    def _peek(self) -> PromqlToken:
        if self._place >= len(self._tokens):
            raise Malformed("the query ends too early; complete it")
        return self._tokens[self._place]

    def take(self) -> PromqlToken:
        """Return the next token, and go on."""
        token = self._peek()
        self._place += 1
        return token

    def take_if(self, *texts: str) -> PromqlToken | None:
        """Go on if the next token is one of some."""
        if self._place < len(self._tokens) and self._tokens[self._place].text in texts:
            return self.take()
        return None

    def time(self) -> str:
        """Return what follows the next `@`."""
        return next(self._times)
