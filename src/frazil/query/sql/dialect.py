"""How a SQL text of ours is spelled for the engine.

Frazil has two names that the engine has not, and tables of other times (as_of.py); they are
respelled before it sees the text:

    time_bucket('1 minute', time)    date_bin('1 minute', time)
    percentile(duration_nano, 0.99)  percentile_cont(duration_nano, 0.99)

What is allowed is not decided here: the engine judges the text that comes out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from frazil.query.sql.as_of import AsOf, clauses
from frazil.results import Token, line_and_column, tokens

RESPELLED = {"time_bucket": "date_bin", "percentile": "percentile_cont"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineText:
    """A text as the engine gets it, and where its parts were in the text as it was written."""

    text: str
    written: str
    begins: tuple[int, ...] = (0,)
    """Places in `text` from which on a shift holds."""
    shifts: tuple[int, ...] = (0,)
    """How much further to the left the same thing was written."""
    as_ofs: tuple[AsOf, ...] = ()
    """Tables of other times that it names."""
    topics: tuple[str, ...] = ()
    """Tables of topics that it may name; whoever knows which there are says so."""

    def place(self, line: int, column: int) -> str:
        """`line 2, column 5` of what was written, for a place in what the engine got."""
        lines = self.text.split("\n")
        at = sum(len(part) + 1 for part in lines[: line - 1]) + column - 1
        return line_and_column(self.written, at - self.shifts[bisect_right(self.begins, at) - 1])


def spell(written: str) -> EngineText:
    """Write our names as the engine's. `Malformed` when a time or a version is none."""
    found = list(tokens(written))
    others = list(clauses(found, written))
    changes = [(token.begin, token.end, RESPELLED[token.name]) for token in _ours(found)]
    changes += [(clause.begin, clause.end, clause.text) for clause in others]
    parts: list[str] = []
    begins, shifts = [0], [0]
    at = length = 0
    for begin, end, instead in sorted(changes):
        parts += [written[at:begin], instead]
        length += begin - at + len(instead)
        begins.append(length)
        shifts.append(length - end)
        at = end
    return EngineText(
        text="".join(parts) + written[at:],
        written=written,
        begins=tuple(begins),
        shifts=tuple(shifts),
        as_ofs=tuple(clause.as_of for clause in others),
    )


def _ours(found: list[Token]) -> Iterator[Token]:
    """Names of functions that are ours: bare, not behind a point, before a parenthesis."""
    before = ""
    for token, after in pairwise(found):
        is_called = token.kind == "word" and after.text == "(" and before != "."
        if is_called and token.name in RESPELLED:
            yield token
        before = token.text
