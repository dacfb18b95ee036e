"""Tables on a terminal: never wider than it, aligned, control characters escaped."""

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
def test_escaped_text_is_printable(text: str) -> None:
    """One line, without characters that move the cursor, color or reorder text."""
    escaped = safe(text)
    assert all(c.isprintable() or c in "\u200d\ufe0f" for c in escaped)
    assert safe(escaped) == escaped


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("日本", 4), ("e\u0301", 1), ("🙂", 2), ("❤\ufe0f", 2), ("\u200d", 0), ("", 0)],
)
def test_width_counts_columns_not_characters(text: str, columns: int) -> None:
    assert width(text) == columns


@given(ANY, st.integers(0, 40))
def test_shortened_text_fits_and_ends_with_an_ellipsis(text: str, columns: int) -> None:
    escaped = safe(text)
    short = shortened(escaped, columns)
    assert width(short) <= columns
    if width(escaped) <= columns:
        assert short == escaped
    elif columns:
        assert short.endswith("…")
        assert escaped.startswith(short[:-1])


@given(ANY, st.integers(1, 40), st.booleans())
def test_padded_text_has_the_exact_width(text: str, columns: int, is_right: bool) -> None:
    assert width(padded(safe(text), columns, is_right=is_right)) == columns


@given(st.lists(st.integers(1, 100), min_size=1, max_size=20), st.integers(1, 200))
def test_shrunk_columns_share_the_room(natural: list[int], room: int) -> None:
    """Each gets at least 1 and at most its natural width; no room is wasted."""
    widths = shrunk(natural, room)
    assert all(1 <= actual <= limit for actual, limit in zip(widths, natural, strict=True))
    if room >= len(natural):
        assert sum(widths) == min(room, sum(natural))


@given(tables(), st.integers(20, 200))
def test_a_table_fits_the_terminal(table: tuple[list[Heading], list[Row]], columns: int) -> None:
    """All lines have the same width."""
    headings, rows = table
    lines = list(table_lines(headings, rows, columns))
    assert len({width(line) for line in lines}) == 1
    assert width(lines[0]) <= columns
    assert len(lines) == len(rows) + 4


@given(tables())
def test_a_table_without_a_terminal_is_not_cut(table: tuple[list[Heading], list[Row]]) -> None:
    """Nor are rows after those that determined the widths."""
    headings, rows = table
    lines = Table.fitting(headings, rows[:1], None)
    assert not lines.left_out
    for row in rows:
        for cell in row:
            assert ("NULL" if cell is None else safe(cell)) in lines.row(row)


@given(st.lists(CELLS, min_size=1, max_size=6), st.integers(46, 120))
def test_expanded_rows_wrap_long_values(row: list[str | None], columns: int) -> None:
    headings = [Heading(name=f"{index}" * 30) for index in range(len(row))]
    _, *lines = record_lines(1, headings, row, columns)
    assert max(map(width, lines)) <= columns
    values = "".join(line.split("│ ", 1)[1] for line in lines)
    assert values == "".join("NULL" if cell is None else safe(cell) for cell in row)


def test_numbers_are_aligned_right() -> None:
    headings = [Heading(name="n", is_number=True), Heading(name="text")]
    lines = list(table_lines(headings, [("5", "a"), ("1000", None)]))
    assert lines[1:5] == [
        "│    n │ text │",
        "├──────┼──────┤",
        "│    5 │ a    │",
        "│ 1000 │ NULL │",
    ]


def test_columns_that_do_not_fit_are_dropped_in_order() -> None:
    """Internal ones first, then empty ones, then those on the right."""
    names = ["_offset", "time", "empty", "body", "last"]
    wide = "x" * 30
    rows: list[Row] = [(wide, wide, "{}", wide, wide), (wide, wide, None, wide, wide)]
    headings = [Heading(name=name) for name in names]
    assert [h.name for h in Table.fitting(headings, rows, 200).headings] == names
    assert [h.name for h in Table.fitting(headings, rows, 60).headings] == names[1:]
    assert [h.name for h in Table.fitting(headings, rows, 45).headings] == ["time", "body", "last"]
    assert [h.name for h in Table.fitting(headings, rows, 30).headings] == ["time", "body"]
