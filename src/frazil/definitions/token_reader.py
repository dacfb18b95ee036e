"""TokenReader: the tokens of one statement, read from left to right.

Every `take_` reads what must be there, or raises `Malformed` with the place and what can be
written; every `skip_` reads what may be there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from frazil.definitions.statements import StagePath
from frazil.errors import Malformed, TooLarge
from frazil.results import Token, line_and_column

NAME_PATTERN = "[a-z_][a-z0-9_]{0,62}"
"""Of a thing that is defined. Safe as a file name, and cannot leave its folder."""
TABLE_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,248}"
"""Of a table that exists: topics may have any name that Kafka allows."""
COLUMN_CHARS_MAX = 255
STRING_CHARS_MAX = 4096
PATH_CHARS_MAX = 1024
LIST_MAX = 1000
"""Entries of one list in parentheses."""
NESTING_MAX = 64
"""Parentheses inside each other in a query."""
INTEGER_MAX = 2**63 - 1
_BARE_PATH = re.compile(r"[A-Za-z0-9_./=+:%~-]*")
_INSIDE = frozenset("()[]")
T = TypeVar("T")


class TokenReader:
    """Reads the tokens of one statement of `text`."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self._tokens = tokens
        self._at = 0

    @property
    def token(self) -> Token | None:
        """The next token; None at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def fail(self, wanted: str, token: Token | None = None) -> NoReturn:
        """Refuse the statement: `wanted` says what can be written at this place."""
        token = token or self.token
        if token is None:
            raise Malformed(
                f"the statement ends too early: expected {wanted}", begin=len(self.text)
            )
        place = line_and_column(self.text, token.begin)
        found = token.text if len(token.text) <= 40 else f"{token.text[:40]}…"
        raise Malformed(
            f"expected {wanted} at {place}, found {found}", begin=token.begin, end=token.end
        )

    def is_word(self, *words: str) -> bool:
        """Whether these unquoted words come next."""
        following = self._tokens[self._at : self._at + len(words)]
        return [t.name if t.kind == "word" else "" for t in following] == list(words)

    def skip_words(self, *words: str) -> bool:
        """Read these words, if they come next."""
        if not self.is_word(*words):
            return False
        self._at += len(words)
        return True

    def take_words(self, *words: str) -> None:
        """Read these words."""
        if not self.skip_words(*words):
            self.fail(" ".join(words).upper())

    def skip_sign(self, sign: str) -> bool:
        """Read a sign, if it comes next."""
        token = self.token
        if token is None or token.kind != "sign" or token.text != sign:
            return False
        self._at += 1
        return True

    def take_sign(self, sign: str) -> None:
        """Read a sign."""
        if not self.skip_sign(sign):
            self.fail(sign)

    def take_end(self) -> None:
        """Check that nothing follows."""
        if self.token is not None:
            self.fail("the end of the statement")

    def take_choice(self, words: Sequence[str]) -> str:
        """Read one of some words."""
        token = self.token
        if token is None or token.kind != "word" or token.name not in words:
            self.fail(f"one of {', '.join(words).upper()}")
        self._at += 1
        return token.name

    def take_word(self, wanted: str) -> str:
        """Read any unquoted word, in lower case."""
        token = self.token
        if token is None or token.kind != "word":
            self.fail(wanted)
        self._at += 1
        return token.name

    def take_name(self, wanted: str) -> str:
        """Read the name of a thing that is defined."""
        return self._name(wanted, NAME_PATTERN, "lower-case letters, digits and _, at most 63")

    def take_table(self) -> str:
        """Read the name of a table."""
        return self._name("a table", TABLE_PATTERN, "letters, digits, _, - and ., at most 249")

    def _name(self, wanted: str, pattern: str, rule: str) -> str:
        token = self.token
        if token is None or token.kind not in ("word", "quoted"):
            self.fail(f"the name of {wanted}")
        if re.fullmatch(pattern, token.name) is None:
            raise Malformed(
                f"{token.text[:80]} cannot be the name of {wanted}: use {rule}",
                begin=token.begin,
                end=token.end,
            )
        self._at += 1
        return token.name

    def take_column(self) -> str:
        """Read the name of a column."""
        token = self.token
        if token is None or token.kind not in ("word", "quoted") or not token.name:
            self.fail("the name of a column")
        if len(token.name) > COLUMN_CHARS_MAX:
            raise TooLarge(f"a column's name may have {COLUMN_CHARS_MAX} characters")
        self._at += 1
        return token.name

    def take_string(self, wanted: str = "a text in single quotes") -> str:
        """Read a text in single quotes. Escapes other than '' do not exist."""
        token = self.token
        if token is None or token.kind != "string" or not token.text.startswith("'"):
            self.fail(wanted)
        value = token.text[1:-1].replace("''", "'")
        if len(value) > STRING_CHARS_MAX:
            raise TooLarge(
                f"the text at {line_and_column(self.text, token.begin)} has {len(value)} "
                f"characters; the limit is {STRING_CHARS_MAX}"
            )
        if not value.isprintable() and value.strip("\t") != "":
            self.fail("a text without control characters")
        self._at += 1
        return value

    def take_number(self, wanted: str) -> str:
        """Read a number of any spelling."""
        token = self.token
        if token is None or token.kind != "number" or not token.text.isascii():
            self.fail(wanted)
        self._at += 1
        return token.text

    def take_integer(self, wanted: str, least: int = 1) -> int:
        """Read a whole number."""
        token = self.token
        if token is None or token.kind != "number" or not token.text.isascii():
            self.fail(wanted)
        if not token.text.isdecimal() or len(token.text) > 19:
            self.fail(wanted)
        value = int(token.text)
        if not least <= value <= INTEGER_MAX:
            self.fail(f"{wanted}, at least {least}")
        self._at += 1
        return value

    def is_integer(self) -> bool:
        """Whether a number comes next."""
        return self.token is not None and self.token.kind == "number"

    def is_string(self) -> bool:
        """Whether a text in single quotes comes next."""
        return self.token is not None and self.token.text.startswith("'")

    def is_sign(self, sign: str) -> bool:
        """Whether a sign comes next."""
        token = self.token
        return token is not None and token.kind == "sign" and token.text == sign

    def take_boolean(self) -> bool:
        """Read TRUE or FALSE."""
        return self.take_choice(("true", "false")) == "true"

    def is_path(self, ahead: int = 0) -> bool:
        """Whether a path of a stage comes next, or after some tokens: @s/x/ or '@s/x/'."""
        following = self._tokens[self._at + ahead : self._at + ahead + 1]
        return any(token.text == "@" or token.text.startswith("'@") for token in following)

    def take_path(self) -> StagePath:
        """Read a path of a stage. In quotes it may have any printable character."""
        wanted = "a path of a stage, such as @s/2026/ or '@s/with spaces/'"
        token = self.token
        if not self.is_path() or token is None:
            self.fail(wanted)
        if token.kind == "string":
            written = self.take_string(wanted)
        else:
            begin, written = token.begin, "@"
            self._at += 1
            while self.token is not None and self.token.begin == begin + len(written):
                if _BARE_PATH.fullmatch(self.token.text) is None:
                    break
                written += self.token.text
                self._at += 1
        stage, _, path = written[1:].partition("/")
        stage = stage.lower()
        if re.fullmatch(NAME_PATTERN, stage) is None:
            self.fail(wanted, token)
        return StagePath(stage=stage, path=self.check_path(path, token))

    def check_path(self, path: str, token: Token | None = None) -> str:
        """Check that a path stays below where it begins."""
        if len(path) > PATH_CHARS_MAX:
            raise TooLarge(f"a path may have {PATH_CHARS_MAX} characters")
        parts = path.split("/")
        if "\\" in path or ".." in parts or "." in parts or "" in parts[:-1]:
            self.fail("a path without .., without \\ and without empty parts", token)
        return path

    def take_query(self) -> str:
        """Read SELECT or WITH to the end of the statement, exactly as written."""
        return self._query(closed_by_parenthesis=False)

    def take_query_in_parentheses(self) -> str:
        """Read (SELECT …), exactly as written between the parentheses."""
        self.take_sign("(")
        query = self._query(closed_by_parenthesis=True)
        self.take_sign(")")
        return query

    def take_staged_query(
        self, name: str, take_after: Callable[[TokenReader], T]
    ) -> tuple[str, StagePath, T]:
        """Read (SELECT … FROM @stage/path …): the query with `name` in place of the path and what
        `take_after` reads behind it, the path, and that."""
        self.take_sign("(")
        first = self._at
        query = self._query(closed_by_parenthesis=True)
        inner = TokenReader(self.text, self._tokens[first : self._at])
        self.take_sign(")")
        begin = self._tokens[first].begin
        found: list[tuple[StagePath, T, int, int]] = []
        while inner.token is not None:
            if inner.is_word("from") and inner.is_path(ahead=1):
                inner.take_words("from")
                at = inner.token.begin
                path = inner.take_path()
                after = take_after(inner)
                found.append((path, after, at - begin, inner.position - begin))
            elif inner.token.text == "@":
                inner.fail("a path of a stage after FROM only")
            else:
                inner.skip_token()
        if len(found) != 1:
            self.fail("FROM @stage/path once in the query", self._tokens[first])
        path, after, at, end = found[0]
        return f"{query[:at]}{name}{query[end:]}", path, after

    def skip_token(self) -> None:
        """Read any token."""
        self._at += 1

    @property
    def position(self) -> int:
        """The end of the last token that was read."""
        return self._tokens[self._at - 1].end if self._at else 0

    def text_from(self, token: Token | None) -> str:
        """Return what was read from a token on, exactly as written."""
        return "" if token is None else self.text[token.begin : self.position]

    def _query(self, *, closed_by_parenthesis: bool) -> str:
        first = self.token
        if first is None or not (self.is_word("select") or self.is_word("with")):
            self.fail("SELECT or WITH")
        last, depth = first, 0
        while (token := self.token) is not None:
            if token.kind == "sign" and token.text in _INSIDE:
                depth += 1 if token.text in "([" else -1
                if depth > NESTING_MAX:
                    raise TooLarge(f"a query may have {NESTING_MAX} parentheses inside each other")
                if depth < 0:
                    break
            last = token
            self._at += 1
        if depth > 0 or (depth < 0) != closed_by_parenthesis:
            self.fail("a matching parenthesis")
        return self.text[first.begin : last.end]

    def rest(self) -> str:
        """Return what was not read yet, exactly as written."""
        token = self.token
        return "" if token is None else self.text[token.begin : self._tokens[-1].end]
