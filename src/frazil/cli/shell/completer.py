"""Completion in the SQL shell: keywords, tables, columns, functions, attributes."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from frazil.cli.shell.commands import COMMANDS, FORMATS
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
"""Newest rows of a table that are searched for attribute names."""
WAIT_S = 10.0
"""How long Tab waits for the names to be loaded."""
WORDS_MAX = 200
"""Longer lists are cut."""

_ATTRIBUTES = re.compile(r"(\w*attributes)\s*\[\s*'([^']*)$", re.IGNORECASE)
_TABLE = re.compile(r"\b(?:from|join)\s+\"?(\w+)", re.IGNORECASE)
_AFTER_FROM = re.compile(r"\b(?:from|join|describe)\s+\"?\w*$", re.IGNORECASE)
_AFTER_SCHEMA = re.compile(r"^\s*(?:\.schema|\\d)\s+\w*$", re.IGNORECASE)
_AFTER_FORMAT = re.compile(r"^\s*\.format\s+\w*$", re.IGNORECASE)
_TELEMETRY = ("logs", "spans", "metrics")


class Completer:
    """Loads names once, in a thread, so that the first prompt appears at once."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._columns: dict[str, list[str]] = {}
        self._functions: list[str] = []
        self._keys: dict[tuple[str, str], list[str]] = {}
        self._completions: list[str] = []
        self._is_loaded = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._load, name="frazil-words", daemon=True).start()

    def _load(self) -> None:
        try:
            rows = self._ask(
                "SELECT table_name, column_name FROM information_schema.columns "
                "WHERE table_schema = 'public' ORDER BY table_name, ordinal_position"
            ).to_pylist()
            columns: dict[str, list[str]] = {}
            for row in rows:
                columns.setdefault(row["table_name"], []).append(row["column_name"])
            self._columns = columns
            names = self._ask("SELECT DISTINCT routine_name FROM information_schema.routines")
            self._functions = sorted(names["routine_name"].to_pylist())
        except FrazilError:
            return  # Keywords still complete; the first statement reports the error.
        finally:
            self._is_loaded.set()

    def complete(self, word: str, number: int) -> str | None:
        """Return the n-th completion of a word, as readline asks for it."""
        if number == 0:
            self._is_loaded.wait(WAIT_S)
            self._completions = self.matching(line_so_far(), word)
        return self._completions[number] if number < len(self._completions) else None

    def matching(self, line: str, word: str) -> list[str]:
        """Return all completions of the last word of a line."""
        attributes = _ATTRIBUTES.search(line)
        if attributes is not None:
            keys = self._attribute_keys(line, attributes[1].lower())
            typed = attributes[2][: len(attributes[2]) - len(word)]
            return [f"{key[len(typed) :]}']" for key in keys if key.startswith(typed + word)]
        if _AFTER_FORMAT.search(line):
            return _with_prefix(FORMATS, word)
        if _AFTER_SCHEMA.search(line) or _AFTER_FROM.search(line):
            return _with_prefix(self._columns, word)
        if line.lstrip().startswith(".") and " " not in line.lstrip():
            return _with_prefix((f".{name}" for name in COMMANDS if name != "unknown"), word)
        front, dot, last = word.rpartition(".")
        tables = [table.lower() for table in _TABLE.findall(line)]
        columns = [
            column
            for table, names in self._columns.items()
            if not tables or table in tables
            for column in names
        ]
        if dot:
            return [f"{front}.{name}" for name in _with_prefix(columns, last)]
        keywords = [w.upper() if word.isupper() else w for w in _SQL.split()]
        functions = [f"{name}(" for name in self._functions]
        names = _with_prefix(keywords, word) + _with_prefix(columns, word)
        return list(
            dict.fromkeys(
                [*names, *_with_prefix(self._columns, word), *_with_prefix(functions, word)]
            )
        )[:WORDS_MAX]

    def _attribute_keys(self, line: str, column: str) -> list[str]:
        """Return attribute names in the newest rows of the tables of a query."""
        tables = [table.lower() for table in _TABLE.findall(line)]
        keys: set[str] = set()
        for table in [name for name in tables if name in self._columns] or _TELEMETRY:
            if (table, column) not in self._keys:
                self._keys[table, column] = self._load_keys(table, column)
            keys.update(self._keys[table, column])
        return sorted(keys)

    def _load_keys(self, table: str, column: str) -> list[str]:
        if column not in self._columns.get(table, []):
            return []
        try:
            rows = self._ask(f"SELECT {column} FROM {table} ORDER BY time DESC LIMIT {SAMPLE_ROWS}")
        except FrazilError:
            return []
        return sorted({key for row in rows[column].to_pylist() for key, _ in row or ()})


def _with_prefix(words: Iterable[str], prefix: str) -> list[str]:
    lower = prefix.lower()
    return [word for word in words if word.lower().startswith(lower)]
