"""Tables for people: rows in boxes that fit the terminal.

Columns that are too wide are shortened, the widest first; a row is always one line. Widths come
from the first rows, so that any number of rows can be streamed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from frazil.cli.terminal.colors import BOLD, DIM, Colors
from frazil.cli.terminal.text_width import (
    ELLIPSIS,
    padded,
    safe,
    shortened,
    terminal_width,
    width,
)

NULL = "NULL"
COLUMN_MIN = 10
"""Minimum width of a column that is shortened."""
EMPTY = (None, "", "{}", "[]")
"""Values without information."""
SIDES = 3
"""Width of a column besides its text: a line and two spaces."""
ROOM_MIN = 2
"""Minimum width of a value beside its name: the widest character."""
LABEL_MAX = 40
"""Maximum width of a column name in expanded rows."""

PLAIN = Colors(is_on=False)

Row = Sequence[str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A column. Numbers are aligned right."""

    name: str
    is_number: bool = False


def headings_of(*names: str, numbers: Sequence[str] = ()) -> list[Heading]:
    """Headings of text columns, then of columns with numbers."""
    texts = [Heading(name=name) for name in names]
    return texts + [Heading(name=name, is_number=True) for name in numbers]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Formats rows. Cells are any text; None is NULL."""

    headings: Sequence[Heading]
    indices: Sequence[int]
    """Indices of the cells that are shown."""
    widths: Sequence[int]
    paint: Colors = PLAIN
    is_elastic: bool = False
    """Whether cells wider than their column are written in full."""
    left_out: int = 0
    """Number of columns that did not fit."""

    @classmethod
    def fitting(
        cls,
        headings: Sequence[Heading],
        rows: Sequence[Row],
        columns: int | None,
        paint: Colors = PLAIN,
    ) -> Table:
        """Return a table sized for these rows; `columns` None means unlimited width."""
        natural = [max(1, width(safe(heading.name))) for heading in headings]
        for row in rows:
            for index, cell in enumerate(row):
                natural[index] = max(natural[index], width(_text(cell)))
        indices = list(range(len(headings)))
        if columns is not None:
            indices = _fitting_columns(headings, rows, natural, columns)
            room = columns - 1 - SIDES * len(indices)
            widths = shrunk([natural[index] for index in indices], room)
        else:
            widths = natural
        return cls(
            headings=[headings[index] for index in indices],
            indices=indices,
            widths=widths,
            paint=paint,
            is_elastic=columns is None,
            left_out=len(headings) - len(indices),
        )

    def head(self) -> Iterator[str]:
        """Yield the first lines."""
        names = [
            self.paint(padded(safe(heading.name), columns, is_right=heading.is_number), BOLD)
            for heading, columns in zip(self.headings, self.widths, strict=True)
        ]
        yield self._edge("┌", "┬", "┐")
        yield self._line(names)
        yield self._edge("├", "┼", "┤")

    def row(self, row: Row) -> str:
        """Return the line of a row."""
        cells = [
            self._cell(row[index], columns, heading.is_number)
            for index, columns, heading in zip(
                self.indices, self.widths, self.headings, strict=True
            )
        ]
        return self._line(cells)

    def foot(self) -> str:
        """Return the last line."""
        return self._edge("└", "┴", "┘")

    def _cell(self, cell: str | None, columns: int, is_number: bool) -> str:
        text = _text(cell)
        if self.is_elastic:
            columns = max(columns, width(text))
        drawn = padded(text, columns, is_right=is_number)
        return drawn if cell is not None else self.paint(drawn, DIM)

    def _line(self, cells: Sequence[str]) -> str:
        bar = self.paint("│", DIM)
        return f"{bar} {f' {bar} '.join(cells)} {bar}"

    def _edge(self, left: str, middle: str, right: str) -> str:
        line = middle.join("─" * (columns + 2) for columns in self.widths)
        return self.paint(f"{left}{line}{right}", DIM)


def _text(cell: str | None) -> str:
    return NULL if cell is None else safe(cell)


def _fitting_columns(
    headings: Sequence[Heading], rows: Sequence[Row], natural: Sequence[int], columns: int
) -> list[int]:
    """Return the indices of the columns that fit. Internal columns (`_...`) are dropped first, then
    columns that are empty in all rows, then those on the right."""
    indices = list(range(len(headings)))
    internal = [index for index in indices if headings[index].name.startswith("_")]
    empty = [index for index in indices if all(row[index] in EMPTY for row in rows)]
    for index in (*reversed(internal), *reversed(empty), *reversed(indices)):
        if len(indices) == 1 or _width_min([natural[index] for index in indices]) + 1 <= columns:
            break
        if index in indices:
            indices.remove(index)
    return indices


def _width_min(natural: Sequence[int]) -> int:
    """Return the minimum width of these columns."""
    return sum(min(index, COLUMN_MIN) + SIDES for index in natural)


def shrunk(natural: Sequence[int], room: int) -> list[int]:
    """Return widths that add up to at most `room`, but at least 1 each. Columns narrower than their
    share keep their width; the others share the rest."""
    widths = list(natural)
    waiting = sorted(range(len(natural)), key=lambda index: natural[index])
    while waiting:
        share = max(1, room // len(waiting))
        index = waiting.pop(0)
        widths[index] = min(natural[index], share)
        room -= widths[index]
    return widths


def table_lines(
    headings: Sequence[Heading],
    rows: Sequence[Row],
    columns: int | None = None,
    paint: Colors = PLAIN,
) -> Iterator[str]:
    """Yield the lines of a whole table."""
    table = Table.fitting(headings, rows, columns, paint)
    yield from table.head()
    yield from map(table.row, rows)
    yield table.foot()


def print_table(headings: Sequence[Heading], rows: Sequence[Row]) -> None:
    """Print a table on standard output, in the width of the terminal."""
    columns = terminal_width(sys.stdout) if sys.stdout.isatty() else None
    for line in table_lines(headings, rows, columns, Colors.of(sys.stdout)):
        print(line)


def print_facts(
    facts: Sequence[dict[str, Any]],
    headings: Sequence[Heading],
    row_of: Callable[[dict[str, Any]], Row],
    when_empty: str,
    *,
    is_json: bool,
) -> None:
    """Print facts as a table, or with `is_json` as one JSON object per line."""
    if is_json:
        for fact in facts:
            print(json.dumps(fact))
    elif facts:
        print_table(headings, list(map(row_of, facts)))
    else:
        print(when_empty)


def record_lines(
    number: int,
    headings: Sequence[Heading],
    row: Row,
    columns: int | None = None,
    paint: Colors = PLAIN,
) -> Iterator[str]:
    """Yield one row with a line per column. Long values wrap."""
    labels = [safe(heading.name) for heading in headings]
    label_width = min(LABEL_MAX, max(map(width, labels), default=0))
    title = f"─ row {number} "
    yield paint(title + "─" * max(0, min(columns or 60, 60) - width(title)), DIM)
    room = None if columns is None else max(ROOM_MIN, columns - label_width - SIDES)
    bar = paint("│", DIM)
    for label, cell in zip(labels, row, strict=True):
        front = paint(padded(label, label_width), BOLD)
        for part in _wrapped(_text(cell), room):
            yield f"{front} {bar} {paint(part, DIM) if cell is None else part}"
            front = " " * label_width


def _wrapped(text: str, room: int | None) -> Iterator[str]:
    """Yield escaped text in pieces of at most `room` columns."""
    while room is not None and width(text) > room:
        piece = shortened(text, room + 1)[: -len(ELLIPSIS)]
        yield piece
        text = text[len(piece) :]
    yield text
