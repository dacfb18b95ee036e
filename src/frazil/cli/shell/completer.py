"""Words that the SQL shell can complete: of SQL, tables, columns, functions, attributes."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from frazil.cli.shell.commands import COMMANDS, SHOWN_FORMATS
from frazil.cli.shell.history import line_so_far
from frazil.errors import FrazilError

if TYPE_CHECKING:
    from frazil.query import Ask

_SQL = (
    "select from where group by order limit having join left inner on as and or not in is null "
    "like ilike between case when then else end distinct count sum avg min max desc asc union all "
    "with interval cast exists explain describe show tables offset over partition matches"
)
SAMPLE_ROWS = 2000
"""The newest rows of a table, in which attributes are looked for."""
WAIT_S = 10.0
"""Whoever asks for words before they are there waits for them, but not for ever."""
WORDS_MAX = 200
"""More than that is no help."""

_ATTRIBUTES = re.compile(r"(\w*attributes)\s*\[\s*'([^']*)$", re.IGNORECASE)
_TABLE = re.compile(r"\b(?:from|join)\s+\"?(\w+)", re.IGNORECASE)
_AFTER_FROM = re.compile(r"\b(?:from|join|describe)\s+\"?\w*$", re.IGNORECASE)
_AFTER_SCHEMA = re.compile(r"^\s*(?:\.schema|\\d)\s+\w*$", re.IGNORECASE)
_AFTER_FORMAT = re.compile(r"^\s*\.format\s+\w*$", re.IGNORECASE)
_TELEMETRY = ("logs", "spans", "metrics")


class Completer:
    """Looks words up once, in a thread, so that nobody waits for the first prompt."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._columns: dict[str, list[str]] = {}
        self._functions: list[str] = []
        self._keys: dict[tuple[str, str], list[str]] = {}
        self._found: list[str] = []
        self._is_looked_up = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._look, name="frazil-words", daemon=True).start()

    def _look(self) -> None:
        try:
            rows = self._ask(
                "SELECT table_name, column_name FROM information_schema.columns "
                "WHERE table_schema = 'public' ORDER BY table_name, ordinal_position"
            ).to_pylist()
            columns: dict[str, list[str]] = {}
            for row in rows:
                columns.setdefault(row["table_name"], []).append(row["column_name"])
            self._columns = columns
            found = self._ask("SELECT DISTINCT routine_name FROM information_schema.routines")
            self._functions = sorted(found["routine_name"].to_pylist())
        except FrazilError:
            return  # Words of SQL are still completed; the first statement says what is wrong.
        finally:
            self._is_looked_up.set()

    def complete(self, word: str, number: int) -> str | None:
        """One of the words that begin like this one, as readline asks for them."""
        if number == 0:
            self._is_looked_up.wait(WAIT_S)
            self._found = self.matching(line_so_far(), word)
        return self._found[number] if number < len(self._found) else None

    def matching(self, line: str, word: str) -> list[str]:
        """All words for the end of a line, the word that is being written included."""
        attributes = _ATTRIBUTES.search(line)
        if attributes is not None:
            keys = self._attribute_keys(line, attributes[1].lower())
            behind = attributes[2][: len(attributes[2]) - len(word)]
            return [f"{key[len(behind) :]}']" for key in keys if key.startswith(behind + word)]
        if _AFTER_FORMAT.search(line):
            return _beginning(SHOWN_FORMATS, word)
        if _AFTER_SCHEMA.search(line) or _AFTER_FROM.search(line):
            return _beginning(self._columns, word)
        if line.lstrip().startswith(".") and " " not in line.lstrip():
            return _beginning((f".{name}" for name in COMMANDS if name != "unknown"), word)
        front, dot, last = word.rpartition(".")
        named = [table.lower() for table in _TABLE.findall(line)]
        columns = [
            column
            for table, names in self._columns.items()
            if not named or table in named
            for column in names
        ]
        if dot:
            return [f"{front}.{name}" for name in _beginning(columns, last)]
        keywords = [w.upper() if word.isupper() else w for w in _SQL.split()]
        functions = [f"{name}(" for name in self._functions]
        found = _beginning(keywords, word) + _beginning(columns, word)
        return list(
            dict.fromkeys([*found, *_beginning(self._columns, word), *_beginning(functions, word)])
        )[:WORDS_MAX]

    def _attribute_keys(self, line: str, column: str) -> list[str]:
        """Keys in the newest rows of the table that is meant."""
        named = [table.lower() for table in _TABLE.findall(line)]
        keys: set[str] = set()
        for table in [name for name in named if name in self._columns] or _TELEMETRY:
            if (table, column) not in self._keys:
                self._keys[table, column] = self._look_for_keys(table, column)
            keys.update(self._keys[table, column])
        return sorted(keys)

    def _look_for_keys(self, table: str, column: str) -> list[str]:
        if column not in self._columns.get(table, []):
            return []
        try:
            rows = self._ask(f"SELECT {column} FROM {table} ORDER BY time DESC LIMIT {SAMPLE_ROWS}")
        except FrazilError:
            return []
        return sorted({key for row in rows[column].to_pylist() for key, _ in row or ()})


def _beginning(words: Iterable[str], start: str) -> list[str]:
    lower = start.lower()
    return [word for word in words if word.lower().startswith(lower)]
