"""Text for a terminal: its width in columns, shortening, and escaping of control characters."""

from __future__ import annotations

import os
import unicodedata
from typing import TextIO

ELLIPSIS = "…"
WIDTH_DEFAULT = 80
WIDTH_MIN = 20
"""Nothing useful can be drawn below this; the terminal wraps lines then."""

_SAFE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    0x09: "\\t",
    0x0A: "\\n",
    0x0D: "\\r",
    0x1B: "\\e",
}
"""Control characters as visible escapes."""

_JOINER = "\u200d"
_EMOJI_SIGN = "\ufe0f"
"""After a character, selects its emoji form, which is two columns wide."""


def safe(text: str) -> str:
    """Return the text on one line, with control and invisible characters escaped."""
    if text.isascii() and text.isprintable():
        return text
    text = text.translate(_SAFE)
    if text.isprintable():
        return text
    return "".join(c if _is_shown(c) else f"\\u{ord(c):04x}" for c in text)


def _is_shown(character: str) -> bool:
    """Printable, or one of the two characters that combine emoji."""
    return character.isprintable() or character in (_JOINER, _EMOJI_SIGN)


def width(text: str) -> int:
    """Return the columns that escaped text takes."""
    if text.isascii():
        return len(text)
    columns = last = 0
    for character in text:
        current = _columns(character)
        if character == _EMOJI_SIGN and last == 1:
            current = 1
        columns += current
        last = current
    return columns


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def shortened(text: str, columns: int) -> str:
    """Return escaped text in at most `columns`, with an ellipsis if it was cut."""
    if width(text) <= columns:
        return text
    if columns < 1:
        return ""
    end, used = 0, 0
    for end, character in enumerate(text):  # noqa: B007 used after the loop
        used += _columns(character) + (character == _EMOJI_SIGN)
        if used > columns - 1:
            break
    return text[:end] + ELLIPSIS


def padded(text: str, columns: int, *, is_right: bool = False) -> str:
    """Return escaped text in exactly `columns`."""
    text = shortened(text, columns)
    space = " " * (columns - width(text))
    return space + text if is_right else text + space


def terminal_width(stream: TextIO) -> int:
    """Return the columns of a stream's terminal; else of $COLUMNS, else 80."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return max(WIDTH_MIN, columns or _columns_variable() or WIDTH_DEFAULT)


def _columns_variable() -> int:
    value = os.environ.get("COLUMNS", "")
    return int(value) if value.isdecimal() else 0
