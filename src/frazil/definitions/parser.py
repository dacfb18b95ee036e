"""From a text to statements.

A text is lexed once, completely, before anything of it is read: what is not closed is refused.
Every statement must begin with a head of `HEADS` and end where its grammar ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frazil.definitions.heads import HEADS, StatementHead
from frazil.definitions.statements import Statement
from frazil.definitions.token_reader import TokenReader
from frazil.errors import Malformed, TooLarge
from frazil.results import Token, line_and_column, tokens

TEXT_CHARS_MAX = 64 * 1024
STATEMENTS_MAX = 200
"""In one text."""
_QUOTES = ("'", '"', "`")
_CHANGING = frozenset(
    {"create", "alter", "copy", "drop", "pause", "resume", "execute", "list", "validate"}
)
"""First words of statements. No query that the engine accepts begins with one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedStatement:
    """A statement, and its text exactly as written, without comments around it and semicolon."""

    statement: Statement
    text: str
    rest: str
    """The text after CREATE [OR REPLACE]; all of it for other statements."""

    @property
    def definition(self) -> str:
        """The text as it is stored: without OR REPLACE."""
        return f"CREATE {self.rest}"

    @property
    def replacement(self) -> str:
        """The text that replaces an earlier definition."""
        return f"CREATE OR REPLACE {self.rest}"


def parse_statements(text: str) -> tuple[ParsedStatement, ...]:
    """Parse a text of one or more statements, separated by semicolons. Nothing of a text counts if
    any of it is wrong: `Malformed` or `TooLarge`."""
    groups = _split(lex(text))
    if not groups:
        raise Malformed(f"there is no statement; write one of: {examples()}")
    if len(groups) > STATEMENTS_MAX:
        raise TooLarge(f"a text may have {STATEMENTS_MAX} statements; split it")
    return tuple(_parse(text, group) for group in groups)


def parse_statement(text: str) -> ParsedStatement:
    """Parse a text of exactly one statement."""
    parsed = parse_statements(text)
    if len(parsed) > 1:
        raise Malformed(f"the text has {len(parsed)} statements; send one at a time")
    return parsed[0]


def is_statement(text: str) -> bool:
    """Whether a text belongs to the door of statements: by its first words, right or wrong
    otherwise. Everything else belongs to the door of queries."""
    parsed: list[Token] = []
    for token in tokens(text):
        if token.text != ";" or parsed:
            parsed.append(token)
        if len(parsed) == 4:
            break
    if not parsed or parsed[0].kind != "word":
        return False
    return parsed[0].name in _CHANGING or _head_of(TokenReader(text, parsed)) is not None


def examples() -> str:
    """Return one example of each head."""
    return "; ".join(head.example for head in HEADS)


def lex(text: str) -> list[Token]:
    """Return all tokens of a text. `Malformed` if a string, a name or a comment is not closed."""
    if len(text) > TEXT_CHARS_MAX:
        raise TooLarge(f"the text has {len(text)} characters; the limit is {TEXT_CHARS_MAX}")
    if "\0" in text:
        raise Malformed("the text has a NUL character; remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Malformed(f"character {error.start + 1} is not Unicode; remove it") from None
    # The semicolon is a token of its own exactly if everything before it is closed.
    parsed = list(tokens(f"{text}\n;"))
    for token in parsed:
        if token.kind == "sign" and token.text in _QUOTES:
            raise Malformed(
                f"the quote {token.text} at {line_and_column(text, token.begin)} is not closed",
                begin=token.begin,
            )
    if not parsed or parsed[-1].begin != len(text) + 1:
        raise Malformed("a comment or a string is not closed", begin=len(text))
    return parsed[:-1]


def _split(parsed: Sequence[Token]) -> list[list[Token]]:
    """Return the tokens of each statement; empty ones are left out."""
    groups: list[list[Token]] = [[]]
    for token in parsed:
        if token.kind == "sign" and token.text == ";":
            groups.append([])
        else:
            groups[-1].append(token)
    return [group for group in groups if group]


def _parse(text: str, group: Sequence[Token]) -> ParsedStatement:
    reader = TokenReader(text, group)
    head = _head_of(reader)
    written = text[group[0].begin : group[-1].end]
    if head is None:
        start = " ".join(token.text for token in group[:3])[:60]
        place = line_and_column(text, group[0].begin)
        raise Malformed(
            f"{start} at {place} is not a statement of this node. These are: {examples()}. "
            "Queries (SELECT, WITH, EXPLAIN) go to /api/v1/sql",
            begin=group[0].begin,
            end=group[0].end,
        )
    or_replace = reader.skip_words("create", "or", "replace")
    is_create = or_replace or reader.skip_words("create")
    rest = reader.rest()
    reader.take_words(*(head.words[1:] if is_create else head.words))
    statement = head.parse(reader, or_replace)
    reader.take_end()
    return ParsedStatement(statement=statement, text=written, rest=rest)


def _head_of(reader: TokenReader) -> StatementHead | None:
    """Return the head with which the statement begins; the longest, if several fit."""
    found = [head for head in HEADS if _begins(reader, head)]
    return max(found, key=lambda head: len(head.words), default=None)


def _begins(reader: TokenReader, head: StatementHead) -> bool:
    if head.replaces and reader.is_word("create", "or", "replace", *head.words[1:]):
        return True
    if not reader.is_word(*head.words):
        return False
    return not head.before_path or reader.is_path(ahead=len(head.words))
