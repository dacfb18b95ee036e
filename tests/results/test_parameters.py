"""Values of parameters come out of a real engine as they went in, and never become SQL."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from datafusion import SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.query import Engine
from frazil.results import bind_parameters
from tests.query.build import engine_over, log, piece_of

SESSION = SessionContext()
"""Which parses as our engine does."""


def value_of(text: str, parameters: Any) -> Any:
    (batch,) = SESSION.sql(bind_parameters(text, parameters)).collect()
    return batch.column(0)[0].as_py()


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.text(),
        st.text(alphabet="'\\$\"-/*;\0\n1 "),
        st.binary(),
        st.dates(date(1700, 1, 1), date(2200, 1, 1)),
    )
)
def test_every_value_comes_back(value: Any) -> None:
    found = value_of("SELECT $v AS v -- $v is not a parameter here", {"v": value})
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "parameters", "expected"),
    [
        ("SELECT 5-$1", [-3], 8),
        ("SELECT 5 - -$1", [-3], 2),
        ("SELECT $2 || $1", ["a", "b"], "ba"),
        ("SELECT '$1' || $1", ["x"], "$1x"),
        ('SELECT "$1" FROM (SELECT 1 AS "$1") WHERE 2 = $1', [2], 1),
        ("SELECT $$ $1 $$ || $1", ["x"], " $1 x"),
        ("SELECT $1", ["'; DROP TABLE logs; --"], "'; DROP TABLE logs; --"),
        ("SELECT $1", [Decimal("12.50")], Decimal("12.50")),
        ("SELECT $1 + $2", [date(2026, 1, 1), timedelta(days=1)], date(2026, 1, 2)),
        ("SELECT $1", [2**64 - 1], 2**64 - 1),
    ],
)
def test_places_of_parameters(text: str, parameters: list[Any], expected: object) -> None:
    assert value_of(text, parameters) == expected


def test_no_number_is_a_number() -> None:
    assert math.isnan(value_of("SELECT $1", [math.nan]))


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ("SELECT $2", [1], r"\$2 at line 1, column 8 has no value; given: \$1"),
        ("SELECT $a", {"b": 1}, r"\$a .* given: \$b"),
        ("SELECT 1", [1], r"does not use the parameter \$1"),
        ("SELECT '$1'", [1], r"does not use the parameter \$1"),
        ("SELECT $1", [[1]], "a list; use"),
        ("SELECT $1", [2**64], "an? int; use"),
        ("SELECT $1", [datetime.fromisoformat("2026-01-01T00:00")], "without a time zone"),
        ("SELECT $1", "x", "not a text"),
    ],
)
def test_mistakes_are_explained(text: str, parameters: Any, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        bind_parameters(text, parameters)


def test_spark_takes_none() -> None:
    """Its dialect knows backslashes in strings."""
    with pytest.raises(Malformed, match="spark"):
        bind_parameters("SELECT $1", ["\\'"], "spark")


@pytest.fixture
def engine() -> Iterator[Engine]:
    with engine_over({"logs": [piece_of("logs", [log(1), log(2)])]}) as opened:
        yield opened


def test_times_compare_with_the_time_of_rows(engine: Engine) -> None:
    (first, second) = engine.sql("SELECT time FROM logs ORDER BY 1").arrow()["time"].to_pylist()
    text = "SELECT count(*) FROM logs WHERE time > $from"
    for value, count in ((first, 1), (second, 0), (datetime(1970, 1, 1, tzinfo=UTC), 2)):
        assert engine.sql(bind_parameters(text, {"from": value})).fetchall() == [(count,)]
