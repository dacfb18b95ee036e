"""What was written in the SQL shell before, kept in a file that only its owner reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import readline
except ImportError:  # Python was built without it; then there is a plain line to write on
    readline = None  # type: ignore[assignment]

LINES_MAX = 10_000
DELIMITERS = " \t\n;,()=<>!+-*/%|&[]'\""
"""What ends a word. A point does not: `.tables` is one, and so is a name behind its table."""


class LineHistory:
    """The lines of a terminal: those of before, and completion of the one being written."""

    @staticmethod
    @contextmanager
    def open(complete: Callable[[str, int], str | None]) -> Iterator[None]:
        """While this lasts, lines are read with what was written before, and kept afterwards."""
        if readline is None:
            yield
            return
        path = _path()
        readline.set_completer(complete)
        readline.set_completer_delims(DELIMITERS)
        readline.parse_and_bind("tab: complete")
        readline.parse_and_bind("set enable-bracketed-paste on")
        readline.set_auto_history(False)
        readline.clear_history()
        _load(path)
        try:
            yield
        finally:
            readline.set_completer(None)
            _save(path)

    @staticmethod
    def remember(text: str) -> None:
        """Keep a statement, on one line if it can be written on one."""
        text = text.strip()
        if readline is None or not text:
            return
        lines = text.splitlines() if "--" in text else [" ".join(text.split("\n"))]
        for line in lines:
            count = readline.get_current_history_length()
            if not count or readline.get_history_item(count) != line:
                readline.add_history(line)


def line_so_far() -> str:
    """What is written on the line, up to the end of the word that is being completed."""
    return "" if readline is None else readline.get_line_buffer()[: readline.get_endidx()]


def _path() -> Path:
    """Where programs keep what is nice to have the next time."""
    base = os.environ.get("XDG_STATE_HOME")
    folder = Path(base) if base else Path.home() / ".local" / "state"
    return folder / "frazil" / "history"


def _load(path: Path) -> None:
    try:
        readline.read_history_file(path)
    except OSError:
        return  # There is none, or it cannot be read: the shell works without.


def _save(path: Path) -> None:
    """Nobody else may read it: statements may hold names of customers."""
    readline.set_history_length(LINES_MAX)
    before = os.umask(0o077)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        readline.write_history_file(path)
        path.chmod(0o600)
    except OSError:
        return  # A read-only home is no reason to fail at the very end.
    finally:
        os.umask(before)
