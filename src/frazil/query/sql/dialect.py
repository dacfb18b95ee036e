"""Translates our SQL to DataFusion's.

Frazil has two functions that DataFusion lacks, AS OF tables (as_of.py), and changes of keyed tables
(changes.py). They are rewritten:

    time_bucket('1 minute', time)    date_bin('1 minute', time)
    percentile(duration_nano, 0.99)  percentile_cont(duration_nano, 0.99)

Nothing is validated here: DataFusion checks the translated text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from frazil.query.sql.as_of import AsOf, clauses
from frazil.query.sql.changes import ChangesOf, change_calls
from frazil.results import Token, line_and_column, tokens

RENAMED = {"time_bucket": "date_bin", "percentile": "percentile_cont"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineText:
    """A text translated for DataFusion, with a map of positions back to the original."""

    text: str
    original: str
    begins: tuple[int, ...] = (0,)
    """Positions in `text` from which the shift of the same index applies."""
    shifts: tuple[int, ...] = (0,)
    """Position in `text` minus position in `original`."""
    as_ofs: tuple[AsOf, ...] = ()
    """AS OF tables in the text."""
    changes: tuple[ChangesOf, ...] = ()
    """Calls of `changes(…)` in the text."""
    keyed: tuple[str, ...] = ()
    """Which of the other tables are keyed tables."""
    topics: tuple[str, ...] = ()
    """Tables of topics that the text may name; set by the engine."""
    tables: tuple[tuple[str, bytes], ...] = ()
    """Keyed tables and other tables of the lake that the text may name, with their schemas as Arrow
    IPC."""
    views: tuple[tuple[str, str], ...] = ()
    """Views of users that the text may name, and their queries, translated; bases first."""

    @property
    def expanded(self) -> str:
        """The text and the queries of its views: everything that names tables and columns."""
        return "\n".join((self.text, *(query for _, query in self.views)))

    def place(self, line: int, column: int) -> str:
        """Return `line 2, column 5` of the original, for a line and column of `text`."""
        lines = self.text.split("\n")
        at = sum(len(part) + 1 for part in lines[: line - 1]) + column - 1
        return line_and_column(self.original, at - self.shifts[bisect_right(self.begins, at) - 1])


def translate(original: str) -> EngineText:
    """Translate a text. `Malformed` if an AS OF clause has no valid time or version."""
    parsed = list(tokens(original))
    as_of_clauses = list(clauses(parsed, original))
    calls = list(change_calls(parsed, original))
    changes = [(token.begin, token.end, RENAMED[token.name]) for token in _renamed(parsed)]
    changes += [(clause.begin, clause.end, clause.text) for clause in as_of_clauses]
    changes += [(call.begin, call.end, call.text) for call in calls]
    parts: list[str] = []
    begins, shifts = [0], [0]
    at = length = 0
    for begin, end, replacement in sorted(changes):
        parts += [original[at:begin], replacement]
        length += begin - at + len(replacement)
        begins.append(length)
        shifts.append(length - end)
        at = end
    return EngineText(
        text="".join(parts) + original[at:],
        original=original,
        begins=tuple(begins),
        shifts=tuple(shifts),
        as_ofs=tuple(clause.as_of for clause in as_of_clauses),
        changes=tuple(call.changes for call in calls),
    )


def _renamed(parsed: list[Token]) -> Iterator[Token]:
    """Yield the names of our functions: unquoted, not after a dot, before a parenthesis."""
    before = ""
    for token, after in pairwise(parsed):
        is_called = token.kind == "word" and after.text == "(" and before != "."
        if is_called and token.name in RENAMED:
            yield token
        before = token.text
