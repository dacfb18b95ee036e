"""SQL tokens, and the translation of our dialect."""

from __future__ import annotations

import pytest

from frazil.query.sql.dialect import translate
from frazil.results.tokens import line_and_column, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select a.b", ["select", "a", ".", "b"]),
        ("'it''s' x", ["'it''s'", "x"]),
        ("E'it\\'s' x", ["E'it\\'s'", "x"]),
        ("'a\\' x", ["'a\\'", "x"]),
        ('"a""b" `c`', ['"a""b"', "`c`"]),
        ("$$ ' $$ x", ["$$ ' $$", "x"]),
        ("$t$ $$ ' $t$ x", ["$t$ $$ ' $t$", "x"]),
        ("$1 x", ["$", "1", "x"]),
        ("a -- 'b\nc", ["a", "c"]),
        ("a /* ' /* */ ' */ c", ["a", "c"]),
        ("a /* b", ["a"]),
        ("1.5e3", ["1.5e3"]),
        ("größe 支付", ["größe", "支付"]),
    ],
)
def test_tokens_are_those_of_datafusion(text: str, expected: list[str]) -> None:
    """Strings, quoted names, dollar quotes and nested comments."""
    assert [token.text for token in tokens(text)] == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("percentile(a, 0.9)", "percentile_cont(a, 0.9)"),
        ("PERCENTILE (a, 0.9)", "percentile_cont (a, 0.9)"),
        ("time_bucket('1m', t) > 1", "date_bin('1m', t) > 1"),
        ("percentile", "percentile"),
        ("percentile + (1)", "percentile + (1)"),
        ("x.percentile(1)", "x.percentile(1)"),
        ('"percentile"(1)', '"percentile"(1)'),
        ("'percentile(1)'", "'percentile(1)'"),
        ("$$percentile(1)$$", "$$percentile(1)$$"),
        ("-- percentile(1)\n1", "-- percentile(1)\n1"),
        ("/* percentile(1) */ 1", "/* percentile(1) */ 1"),
        ("percentile(percentile(1))", "percentile_cont(percentile_cont(1))"),
    ],
)
def test_our_functions_are_renamed(written: str, expected: str) -> None:
    """Only where they are called."""
    assert translate(written).text == expected


def test_positions_are_those_of_the_original_text() -> None:
    """Errors of DataFusion have positions of the translated text."""
    written = "select percentile(a, 1),\n percentile(b, 2), zzz,\n yyy"
    spelled = translate(written)
    for word in ("select", "a,", "b,", "zzz", "yyy"):
        at = spelled.text.index(word)
        line = spelled.text[:at].count("\n") + 1
        column = at - spelled.text.rfind("\n", 0, at)
        assert spelled.place(line, column) == line_and_column(written, written.index(word))
