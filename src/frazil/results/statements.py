"""Several statements in one text, as a shell or a file has them."""

from __future__ import annotations

from frazil.results.tokens import tokens

QUOTES = ("'", '"', "`")
"""As a sign of its own, one of these begins something that does not end."""


def split_statements(text: str) -> tuple[list[str], str]:
    """The statements of a text that end with a semicolon, without it, and what is left behind
    the last one. A semicolon inside a text, a quoted name or a comment ends nothing. Statements
    of which nothing but space and comments is there are left out."""
    found = []
    begin = 0
    is_empty = True
    for token in tokens(text):
        if token.kind == "sign" and token.text in QUOTES:
            break
        if token.kind == "sign" and token.text == ";":
            if not is_empty:
                found.append(text[begin : token.begin].strip())
            begin, is_empty = token.end, True
        else:
            is_empty = False
    return found, text[begin:]


def is_blank(text: str) -> bool:
    """Is there nothing but space and comments?"""
    return not text.strip() or (next(tokens(text), None) is None and not _is_open(text))


def _is_open(text: str) -> bool:
    """Does a text in dollars begin, which does not end?"""
    return "$" in text
