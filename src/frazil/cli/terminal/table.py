"""Tables for people: rows in boxes, in the width that there is.

Columns that are too wide are shortened, the widest first; a row is always one line. Widths are
those of the first rows, so that any number of rows can be drawn as they come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from frazil.cli.terminal.colors import BOLD, DIM, Colors
from frazil.cli.terminal.text_width import ELLIPSIS, padded, safe, shortened, width

NULL = "NULL"
COLUMN_MIN = 10
"""A column that has more to say keeps at least so many columns of the terminal."""
EMPTY = (None, "", "{}", "[]")
"""Values that say nothing."""
SIDES = 3
"""What a column takes besides its text: a line and two spaces."""
ROOM_MIN = 2
"""Of a value beside its name: the widest character."""
LABEL_MAX = 40
"""Of a name in front of a value, when rows are shown one below the other."""

PLAIN = Colors(is_on=False)

Row = Sequence[str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A column: its name, and whether its values are numbers, which stand on the right."""

    name: str
    is_number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Draws rows. Cells are texts of any kind; None is NULL."""

    headings: Sequence[Heading]
    places: Sequence[int]
    """Which cells of a row are drawn."""
    widths: Sequence[int]
    paint: Colors = PLAIN
    is_elastic: bool = False
    """Is a cell that is wider than its column written in full?"""
    left_out: int = 0
    """Columns for which there was no room."""

    @classmethod
    def fitting(
        cls,
        headings: Sequence[Heading],
        rows: Sequence[Row],
        columns: int | None,
        paint: Colors = PLAIN,
    ) -> Table:
        """A table for these rows and some that are alike, in so many columns; None is any."""
        wanted = [max(1, width(safe(heading.name))) for heading in headings]
        for row in rows:
            for place, cell in enumerate(row):
                wanted[place] = max(wanted[place], width(_text(cell)))
        places = list(range(len(headings)))
        if columns is not None:
            places = _kept(headings, rows, wanted, columns)
            room = columns - 1 - SIDES * len(places)
            widths = shrunk([wanted[place] for place in places], room)
        else:
            widths = wanted
        return cls(
            headings=[headings[place] for place in places],
            places=places,
            widths=widths,
            paint=paint,
            is_elastic=columns is None,
            left_out=len(headings) - len(places),
        )

    def head(self) -> Iterator[str]:
        """The first lines."""
        names = [
            self.paint(padded(safe(heading.name), columns, is_right=heading.is_number), BOLD)
            for heading, columns in zip(self.headings, self.widths, strict=True)
        ]
        yield self._edge("┌", "┬", "┐")
        yield self._line(names)
        yield self._edge("├", "┼", "┤")

    def row(self, row: Row) -> str:
        """The line of a row."""
        cells = [
            self._cell(row[place], columns, heading.is_number)
            for place, columns, heading in zip(self.places, self.widths, self.headings, strict=True)
        ]
        return self._line(cells)

    def foot(self) -> str:
        """The last line."""
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


def _kept(
    headings: Sequence[Heading], rows: Sequence[Row], wanted: Sequence[int], columns: int
) -> list[int]:
    """Which columns are drawn where not all can be: first those go that are ours, then those that
    say nothing in any of these rows, then those on the right."""
    places = list(range(len(headings)))
    ours = [place for place in places if headings[place].name.startswith("_")]
    silent = [place for place in places if all(row[place] in EMPTY for row in rows)]
    for place in (*reversed(ours), *reversed(silent), *reversed(places)):
        if len(places) == 1 or _least([wanted[each] for each in places]) + 1 <= columns:
            break
        if place in places:
            places.remove(place)
    return places


def _least(wanted: Sequence[int]) -> int:
    """What columns take when all are as narrow as they may get."""
    return sum(min(each, COLUMN_MIN) + SIDES for each in wanted)


def shrunk(wanted: Sequence[int], room: int) -> list[int]:
    """Widths that take at most `room` together, if it is enough for a column each. Those that ask
    for less than their share get what they ask for; what they leave is shared by the others."""
    widths = list(wanted)
    waiting = sorted(range(len(wanted)), key=lambda place: wanted[place])
    while waiting:
        share = max(1, room // len(waiting))
        place = waiting.pop(0)
        widths[place] = min(wanted[place], share)
        room -= widths[place]
    return widths


def table_lines(
    headings: Sequence[Heading],
    rows: Sequence[Row],
    columns: int | None = None,
    paint: Colors = PLAIN,
) -> Iterator[str]:
    """A whole table, line by line."""
    table = Table.fitting(headings, rows, columns, paint)
    yield from table.head()
    yield from map(table.row, rows)
    yield table.foot()


def record_lines(
    number: int,
    headings: Sequence[Heading],
    row: Row,
    columns: int | None = None,
    paint: Colors = PLAIN,
) -> Iterator[str]:
    """One row with a line for each column. A long value goes on below itself."""
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
    """A safe text in pieces of at most so many columns."""
    while room is not None and width(text) > room:
        piece = shortened(text, room + 1)[: -len(ELLIPSIS)]
        yield piece
        text = text[len(piece) :]
    yield text
