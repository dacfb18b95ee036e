"""Split a text into SQL statements, for a shell or a file."""

from __future__ import annotations

from frazil.results.tokens import tokens

QUOTES = ("'", '"', "`")
"""As a token of kind "sign", one of these starts a string or name that does not end."""


def split_statements(text: str) -> tuple[list[str], str]:
    """Return the statements that end with a semicolon, without it, and the text after the last
    one. Semicolons in strings, quoted names and comments do not count. Statements of only spaces
    and comments are left out."""
    statements = []
    begin = 0
    is_empty = True
    for token in tokens(text):
        if token.kind == "sign" and token.text in QUOTES:
            break
        if token.kind == "sign" and token.text == ";":
            if not is_empty:
                statements.append(text[begin : token.begin].strip())
            begin, is_empty = token.end, True
        else:
            is_empty = False
    return statements, text[begin:]


def is_blank(text: str) -> bool:
    """Return whether a text is only spaces and comments."""
    return not text.strip() or (next(tokens(text), None) is None and not _is_open(text))


def _is_open(text: str) -> bool:
    """Return whether a dollar-quoted string starts and does not end."""
    return "$" in text
