"""The severity of a log record as a word and a color."""

from __future__ import annotations

from frazil.cli.terminal.colors import BLUE, BOLD, DIM, GREEN, RED, YELLOW, Colors
from frazil.cli.terminal.text_width import safe, shortened

WORDS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""Each covers four severity numbers, from 1."""
COLORS = ((DIM,), (BLUE,), (GREEN,), (YELLOW,), (RED,), (RED, BOLD))
PER_WORD = 4
WORD_COLUMNS = 5


def severity_word(number: int, text: str | None) -> str:
    """Return the word of a severity number, or else the sender's text."""
    index = (number - 1) // PER_WORD
    if 0 <= index < len(WORDS):
        return WORDS[index]
    return shortened(safe(text), WORD_COLUMNS) if text else "-"


def paint_severity(text: str, number: int, paint: Colors) -> str:
    """Return text in the color of a severity."""
    index = (number - 1) // PER_WORD
    return paint(text, *COLORS[index]) if 0 <= index < len(COLORS) else text
