"""Errors of queries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from frazil.errors import FrazilError, Malformed, Rejected, TooLarge, Unknown
from frazil.query import Engine
from tests.query.build import engine_over, log, piece_of


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with engine_over({"logs": [piece_of("logs", [log(0)])]}) as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "SELECT servce_name FROM logs",
            Unknown,
            "no column servce_name in logs at line 1, column 8; did you mean service_name?",
        ),
        (
            "SELECT l.boby\nFROM logs l\nWHERE l.boby = ''",
            Unknown,
            "no column l.boby in logs at line 1, column 10; did you mean body?",
        ),
        (
            "SELECT percentile(severity_number, 0.5),\n  percentile(severty_number, 0.9) FROM logs",
            Unknown,
            "no column severty_number in logs at line 2, column 14; did you mean severity_number?",
        ),
        (
            "SELECT a.bdy FROM logs a JOIN spans b USING (trace_id)",
            Unknown,
            "no column a.bdy in logs, spans at line 1, column 10; did you mean body?",
        ),
        ("SELECT zzzzzzz FROM logs", Unknown, "no column zzzzzzz in logs at line 1, column 8"),
        ("SELECT * FROM lgs", Unknown, "no table lgs at line 1, column 15; did you mean logs?"),
        ("SELECT *\nFROM a.b.lgs", Unknown, "no table a.b.lgs at line 2, column 10"),
        (
            "SELECT * FROM nowhere",
            Unknown,
            "no table nowhere at line 1, column 15; the tables are copy_history, dead_letters, ",
        ),
        (
            "SELECT mtches(body, 'x') FROM logs",
            Unknown,
            "no function mtches at line 1, column 8; did you mean matches?",
        ),
        ("SELECT * FROM file('x')", Unknown, "no function file at line 1, column 15"),
        (
            "SELEC 1",
            Malformed,
            "this is not SQL at line 1, column 1: expected: an SQL statement, found: SELEC",
        ),
        (
            "SELECT percentile(_row, 0.5)\nFRM logs WHERE",
            Malformed,
            "this is not SQL at line 2, column 5: expected: end of statement, found: logs",
        ),
        ("SELECT percentile(_row, 1) x y", Malformed, "this is not SQL at line 1, column 30: "),
        ("SELECT (1", Malformed, "this is not SQL at the end: expected: )"),
        (
            "SELECT 'x",
            Malformed,
            "this is not SQL at line 1, column 8: unterminated string literal",
        ),
        ("", Malformed, "the query is empty"),
        ("-- nothing", Malformed, "the query is empty"),
        ("SELECT 1; SELECT 2", Malformed, "send one statement at a time"),
        ("SELECT 1 / 0", Malformed, "the query divides by zero"),
        (
            "SELECT 1 FROM logs WHERE time > 'soon'",
            Malformed,
            "a value in the query has the wrong type",
        ),
        ("SELECT CAST('x' AS INT)", Malformed, "a value in the query has the wrong type"),
        ("SELECT $1", Malformed, "the query has the placeholder $1; write the value instead"),
        (
            "SELECT time FROM logs, spans",
            Malformed,
            "column time is in more than one of the tables; write table.time",
        ),
        (
            "SELECT body, count(*) FROM logs",
            Malformed,
            "this query cannot be run: Column in SELECT must be in GROUP BY",
        ),
        ("SELECT sum(body) FROM logs", Malformed, "this query cannot be run: "),
        (
            "DROP TABLE logs",
            Rejected,
            "SQL is read-only: DROP TABLE is not allowed; use SELECT",
        ),
        (
            "CREATE TABLE t AS SELECT 1",
            Rejected,
            "SQL is read-only: CREATE TABLE is not allowed",
        ),
        ("INSERT INTO logs VALUES (1)", Rejected, "SQL is read-only: INSERT is not allowed"),
        ("UPDATE logs SET body = 1", Rejected, "SQL is read-only: UPDATE is not allowed"),
        ("INSTALL httpfs", Rejected, "SQL is read-only: INSTALL is not allowed"),
        ("SET x = 1", Rejected, "SQL is read-only: SET VARIABLE is not allowed"),
        ("SELECT " + "(" * 60 + "1" + ")" * 60, TooLarge, "more than 50 parentheses"),
        (
            "SELECT 1 FROM logs WHERE body ~ '((a{99}){99}){99}'",
            TooLarge,
            "a regular expression in the query is too large",
        ),
        (
            "SELECT '" + "x" * 300_000 + "'",
            TooLarge,
            "300009 bytes, which is more than query.text_bytes_max",
        ),
        ("SELECT '\ud800'", Malformed, "character 9 of the query is not Unicode"),
    ],
)
def test_errors_have_a_message_and_a_position(
    engine: Engine, text: str, kind: type[FrazilError], message: str
) -> None:
    """And a suggestion, if there is one."""
    with pytest.raises(FrazilError) as caught:
        engine.sql(text).fetchall()
    assert type(caught.value) is kind
    assert str(caught.value).startswith(message) or message in str(caught.value)


def test_no_error_names_datafusion(engine: Engine) -> None:
    for text in ("SELECT x FROM logs", "SELECT CAST('x' AS INT)", "SELECT 1 FROM logs LIMIT 'x'"):
        with pytest.raises(FrazilError) as caught:
            engine.sql(text).fetchall()
        assert "DataFusion" not in str(caught.value)
        assert "caused by" not in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["{}", "SELECT {}", "SELECT 1 FROM {}", "SELECT {}(1)"])
def test_a_long_name_does_not_make_a_long_error(engine: Engine, text: str) -> None:
    with pytest.raises(FrazilError) as caught:
        engine.sql(text.format("word" * 5000)).fetchall()
    assert "wordword" in str(caught.value)
    assert len(str(caught.value)) < 1000
