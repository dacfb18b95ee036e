"""Tables in a terminal: never wider than it, never broken, nothing in them that it would obey."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.cli.terminal.table import Heading, Row, Table, record_lines, shrunk, table_lines
from frazil.cli.terminal.text_width import padded, safe, shortened, width

ANY = st.text(max_size=30)
CELLS = st.one_of(st.none(), ANY)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Heading], list[Row]]:
    count = draw(st.integers(1, 12))
    headings = [Heading(name=draw(ANY), is_number=draw(st.booleans())) for _ in range(count)]
    rows: list[Row] = draw(st.lists(st.tuples(*[CELLS] * count), max_size=6))
    return headings, rows


@given(ANY)
def test_what_is_safe_is_printable(text: str) -> None:
    """One line, without a character that moves a cursor, colours, or turns text around."""
    shown = safe(text)
    assert all(c.isprintable() or c in "\u200d\ufe0f" for c in shown)
    assert safe(shown) == shown


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("日本", 4), ("e\u0301", 1), ("🙂", 2), ("❤\ufe0f", 2), ("\u200d", 0), ("", 0)],
)
def test_widths(text: str, columns: int) -> None:
    """Columns, not characters."""
    assert width(text) == columns


@given(ANY, st.integers(0, 40))
def test_shortened(text: str, columns: int) -> None:
    """Fits; is the same where it fitted already, and else says that something is missing."""
    shown = safe(text)
    short = shortened(shown, columns)
    assert width(short) <= columns
    if width(shown) <= columns:
        assert short == shown
    elif columns:
        assert short.endswith("…")
        assert shown.startswith(short[:-1])


@given(ANY, st.integers(1, 40), st.booleans())
def test_padded(text: str, columns: int, is_right: bool) -> None:
    """Exactly as wide as asked for."""
    assert width(padded(safe(text), columns, is_right=is_right)) == columns


@given(st.lists(st.integers(1, 100), min_size=1, max_size=20), st.integers(1, 200))
def test_shrunk(wanted: list[int], room: int) -> None:
    """All have something, none more than it wants, and nothing is left while one wants more."""
    widths = shrunk(wanted, room)
    assert all(1 <= got <= want for got, want in zip(widths, wanted, strict=True))
    if room >= len(wanted):
        assert sum(widths) == min(room, sum(wanted))


@given(tables(), st.integers(20, 200))
def test_a_table_fits_the_terminal(table: tuple[list[Heading], list[Row]], columns: int) -> None:
    """All lines are equally wide, and none is wider than the terminal."""
    headings, rows = table
    lines = list(table_lines(headings, rows, columns))
    assert len({width(line) for line in lines}) == 1
    assert width(lines[0]) <= columns
    assert len(lines) == len(rows) + 4


@given(tables())
def test_a_table_without_a_terminal_has_it_all(table: tuple[list[Heading], list[Row]]) -> None:
    """Nothing is shortened, also not in rows that came after the table was fitted."""
    headings, rows = table
    drawn = Table.fitting(headings, rows[:1], None)
    assert not drawn.left_out
    for row in rows:
        for cell in row:
            assert ("NULL" if cell is None else safe(cell)) in drawn.row(row)


@given(st.lists(CELLS, min_size=1, max_size=6), st.integers(46, 120))
def test_a_record_fits_and_has_it_all(row: list[str | None], columns: int) -> None:
    """A line for each column, and more where a value goes on; together they are the values."""
    headings = [Heading(name=f"{place}" * 30) for place in range(len(row))]
    _, *lines = record_lines(1, headings, row, columns)
    assert max(map(width, lines)) <= columns
    values = "".join(line.split("│ ", 1)[1] for line in lines)
    assert values == "".join("NULL" if cell is None else safe(cell) for cell in row)


def test_numbers_stand_below_each_other() -> None:
    """Right, and text left; NULL is told from the text."""
    headings = [Heading(name="n", is_number=True), Heading(name="text")]
    drawn = list(table_lines(headings, [("5", "a"), ("1000", None)]))
    assert drawn[1:5] == [
        "│    n │ text │",
        "├──────┼──────┤",
        "│    5 │ a    │",
        "│ 1000 │ NULL │",
    ]


def test_columns_without_room_go_in_order() -> None:
    """First ours, then those that say nothing, then those on the right."""
    names = ["_offset", "time", "empty", "body", "last"]
    wide = "x" * 30
    rows: list[Row] = [(wide, wide, "{}", wide, wide), (wide, wide, None, wide, wide)]
    headings = [Heading(name=name) for name in names]
    assert [h.name for h in Table.fitting(headings, rows, 200).headings] == names
    assert [h.name for h in Table.fitting(headings, rows, 60).headings] == names[1:]
    assert [h.name for h in Table.fitting(headings, rows, 45).headings] == ["time", "body", "last"]
    assert [h.name for h in Table.fitting(headings, rows, 30).headings] == ["time", "body"]
