"""Text for a terminal: how many columns it takes, how it is shortened, and nothing in it that the
terminal would obey."""

from __future__ import annotations

import os
import unicodedata
from typing import TextIO

ELLIPSIS = "…"
WIDTH_DEFAULT = 80
WIDTH_MIN = 20
"""Narrower than that nothing can be drawn; lines are broken by the terminal then."""

_SAFE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    0x09: "\\t",
    0x0A: "\\n",
    0x0D: "\\r",
    0x1B: "\\e",
}
"""Control characters, as text that shows them."""

_JOINER = "\u200d"
_EMOJI_SIGN = "\ufe0f"
"""Behind a character, it asks for its picture, which is two columns wide."""


def safe(text: str) -> str:
    """The same text on one line: what would move a cursor, colour or hide is shown instead."""
    if text.isascii() and text.isprintable():
        return text
    text = text.translate(_SAFE)
    if text.isprintable():
        return text
    return "".join(c if _is_shown(c) else f"\\u{ord(c):04x}" for c in text)


def _is_shown(character: str) -> bool:
    """Printable, or one of the two that make one picture of several."""
    return character.isprintable() or character in (_JOINER, _EMOJI_SIGN)


def width(text: str) -> int:
    """Columns that a safe text takes."""
    if text.isascii():
        return len(text)
    columns = last = 0
    for character in text:
        here = _columns(character)
        if character == _EMOJI_SIGN and last == 1:
            here = 1
        columns += here
        last = here
    return columns


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def shortened(text: str, columns: int) -> str:
    """A safe text in at most so many columns; where something is left out there is a mark."""
    if width(text) <= columns:
        return text
    if columns < 1:
        return ""
    end, taken = 0, 0
    for end, character in enumerate(text):  # noqa: B007 # it is where the loop has stopped
        taken += _columns(character) + (character == _EMOJI_SIGN)
        if taken > columns - 1:
            break
    return text[:end] + ELLIPSIS


def padded(text: str, columns: int, *, is_right: bool = False) -> str:
    """A safe text in exactly so many columns."""
    text = shortened(text, columns)
    space = " " * (columns - width(text))
    return space + text if is_right else text + space


def terminal_width(stream: TextIO) -> int:
    """Columns of the terminal behind a stream; without one, those that COLUMNS names, or 80."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return max(WIDTH_MIN, columns or _columns_wanted() or WIDTH_DEFAULT)


def _columns_wanted() -> int:
    wanted = os.environ.get("COLUMNS", "")
    return int(wanted) if wanted.isdecimal() else 0
