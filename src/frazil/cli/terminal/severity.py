"""How bad a log record is, as a word and a colour."""

from __future__ import annotations

from frazil.cli.terminal.colors import BLUE, BOLD, DIM, GREEN, RED, YELLOW, Colors
from frazil.cli.terminal.text_width import safe, shortened

WORDS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""Each stands for four numbers, from 1 on."""
COLOURS = ((DIM,), (BLUE,), (GREEN,), (YELLOW,), (RED,), (RED, BOLD))
PER_WORD = 4
WORD_COLUMNS = 5


def severity_word(number: int, text: str | None) -> str:
    """The word for a number; where there is none, what the sender wrote."""
    place = (number - 1) // PER_WORD
    if 0 <= place < len(WORDS):
        return WORDS[place]
    return shortened(safe(text), WORD_COLUMNS) if text else "-"


def paint_severity(text: str, number: int, paint: Colors) -> str:
    """A text in the colour of a severity."""
    place = (number - 1) // PER_WORD
    return paint(text, *COLOURS[place]) if 0 <= place < len(COLOURS) else text
