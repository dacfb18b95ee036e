"""Line editing of the SQL shell, and its history file, which only its owner can read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import readline
except ImportError:  # Python was built without it; lines are then read plainly
    readline = None  # type: ignore[assignment]

LINES_MAX = 10_000
DELIMITERS = " \t\n;,()=<>!+-*/%|&[]'\""
"""Characters that end a word. A dot does not: `.tables` and `table.column` are words."""


class LineHistory:
    """History and completion of the lines read from the terminal."""

    @staticmethod
    @contextmanager
    def open(complete: Callable[[str, int], str | None]) -> Iterator[None]:
        """Load the history, and save it at the end."""
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
        """Add a statement to the history, on one line if possible."""
        text = text.strip()
        if readline is None or not text:
            return
        lines = text.splitlines() if "--" in text else [" ".join(text.split("\n"))]
        for line in lines:
            count = readline.get_current_history_length()
            if not count or readline.get_history_item(count) != line:
                readline.add_history(line)


def line_so_far() -> str:
    """Return the line up to the end of the word being completed."""
    return "" if readline is None else readline.get_line_buffer()[: readline.get_endidx()]


def _path() -> Path:
    """Return the path of the history file, in the XDG state folder."""
    base = os.environ.get("XDG_STATE_HOME")
    folder = Path(base) if base else Path.home() / ".local" / "state"
    return folder / "frazil" / "history"


def _load(path: Path) -> None:
    try:
        readline.read_history_file(path)
    except OSError:
        return  # It does not exist or cannot be read: the shell works without it.


def _save(path: Path) -> None:
    """Write the file, readable only by its owner: statements may contain personal data."""
    readline.set_history_length(LINES_MAX)
    before = os.umask(0o077)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        readline.write_history_file(path)
        path.chmod(0o600)
    except OSError:
        return  # A read-only home must not make the exit fail.
    finally:
        os.umask(before)
