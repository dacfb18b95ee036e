"""COPY INTO with a SELECT and conditions: rows are computed one by one, and nothing is loaded
unless every condition holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.errors import Malformed, Rejected
from tests.load.loading import CONFIG, Loading

ROWS = b'{"id":1,"name":"x","amount":5.5,"tags":["p","q"]}\n{"id":2,"name":"y","amount":-1}\n'
MORE = b'{"id":3,"name":"x","amount":7}\n'


@pytest.fixture
def loading(tmp_path: Path) -> Loading:
    loading = Loading(tmp_path)
    loading.put("a.ndjson", ROWS)
    loading.put("b.ndjson", MORE)
    return loading


def test_rows_are_computed(loading: Loading) -> None:
    """Into a new table, an existing one, and one that gets a column; each file once."""
    text = "COPY INTO t FROM (SELECT id, upper(name) AS name FROM @s/ WHERE amount > 0)"
    assert loading.copy(f"{text} FILES=('a.ndjson')").row_count == 1
    again = loading.copy(text)
    assert (again.row_count, again.known_count) == (1, 1)
    assert loading.copy(text).snapshot_id is None
    assert sorted(row["id"] for row in loading.rows("t")) == [1, 3]
    loading.put("c.ndjson", b'{"id":4,"name":"z","amount":2}\n')
    loading.copy("COPY INTO t FROM (SELECT id, amount * 2 AS twice FROM @s) ADD_COLUMNS=true")
    assert [row for row in loading.rows("t") if row["id"] == 4] == [
        {"id": 4, "name": None, "twice": 4}
    ]
    done = loading.copy("COPY INTO u FROM (SELECT r.id, unnest(r.tags) AS tag FROM @s r)")
    assert done.row_count == 2
    assert [(row["id"], row["tag"]) for row in loading.rows("u")] == [(1, "p"), (1, "q")]


def test_columns_that_files_need_not_have(loading: Loading) -> None:
    """They are declared: one that is only misspelled is an error."""
    loading.copy("COPY INTO t FROM (SELECT id, amount FROM @s (amount DOUBLE, coupon VARCHAR))")
    loading.put("c.ndjson", b'{"id":4,"amount":8}\n')
    text = (
        "COPY INTO t FROM (SELECT id, upper(r.coupon) AS coupon, amount "
        "FROM @s/ (coupon VARCHAR, amount DOUBLE) r WHERE coupon IS NULL) ADD_COLUMNS=true"
    )
    assert loading.copy(text).row_count == 1
    assert {"id": 4, "amount": 8.0, "coupon": None} in loading.rows("t")
    loading.put("d.ndjson", b'{"id":5,"coupon":7}\n')
    with pytest.raises(Malformed, match="column coupon: 7 is not a string"):
        loading.copy(text)


def test_empty_files(loading: Loading) -> None:
    """They are loaded, without rows; a row without fields is nothing that a SELECT could read."""
    text = "COPY INTO t FROM (SELECT id FROM @s WHERE id > 0)"
    loading.copy(text)
    loading.put("empty.ndjson", b"")
    done = loading.copy(text)
    assert (len(done.reports), done.row_count, done.known_count) == (1, 0, 2)
    assert loading.copy(text).known_count == 3
    loading.put("odd.ndjson", b"{}\n")
    with pytest.raises(Malformed, match="no fields"):
        loading.copy(text)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM @s",
        "SELECT name, sum(amount) AS total FROM @s GROUP BY name",
        "SELECT DISTINCT name FROM @s",
        "SELECT id FROM @s ORDER BY id",
        "SELECT id FROM @s LIMIT 1",
        "SELECT row_number() OVER () AS n FROM @s",
        "SELECT id FROM @s WHERE amount > (SELECT avg(amount) FROM staged_rows)",
        "SELECT id, (SELECT max(id) FROM staged_rows) AS last FROM @s",
        "SELECT id FROM @s WHERE EXISTS (SELECT 1 FROM staged_rows)",
        "SELECT a.id FROM @s a JOIN staged_rows b ON a.id = b.id",
        "SELECT id FROM @s UNION ALL SELECT 5",
    ],
)
def test_a_select_that_combines_rows_is_refused(loading: Loading, query: str) -> None:
    """Its result would depend on which files come together."""
    with pytest.raises(Malformed, match="computes each row from one row"):
        loading.copy(f"COPY INTO t FROM ({query})")
    assert not loading.catalog.table_exists(f"{CONFIG.namespace}.t")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT id + 1 FROM @s", "AS name"),
        ("SELECT idd FROM @s", "did you mean id"),
        ("SELECT CAST(name AS INT) AS n FROM @s", "Cannot cast string 'x'"),
        ("SELECT id FROM @s, '/etc/passwd'", "no table /etc/passwd"),
    ],
)
def test_errors_of_a_select(loading: Loading, query: str, why: str) -> None:
    with pytest.raises(Rejected, match=why):
        loading.copy(f"COPY INTO t FROM ({query})")


def test_computed_values_are_not_changed(loading: Loading) -> None:
    """A value that does not fit its column is an error, as in a file."""
    text = "COPY INTO t (id INT) FROM (SELECT id * 1000000000 AS id FROM @s)"
    with pytest.raises(Malformed, match="3000000000 is not an INT"):
        loading.copy(text)
    done = loading.copy(f"{text} ON_ERROR=CONTINUE")
    assert (done.row_count, done.error_count) == (2, 1)
    with pytest.raises(Malformed, match="values are not converted"):
        loading.copy("COPY INTO t FROM (SELECT name AS id FROM @s) FORCE=true")


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("NOT EMPTY", None),
        ("UNIQUE (id)", None),
        ("UNIQUE (name, id)", None),
        ("UNIQUE (name)", "UNIQUE (name): found name = x, occurrences = 2"),
        ("RANGE amount BETWEEN -5 AND 100", None),
        ("RANGE amount BETWEEN 0 AND 100", "found amount = -1.0"),
        ("RANGE name BETWEEN 'a' AND 'z'", None),
        ("CHECK (SELECT id FROM new_rows WHERE amount < -1)", None),
        ("CHECK (SELECT id FROM new_rows WHERE amount < 0)", "found id = 2"),
        ("CHECK (SELECT count(*) AS n FROM new_rows HAVING count(*) < 4)", "found n = 3"),
        ("NOT EMPTY, UNIQUE (id), CHECK (SELECT x FROM new_rows)", "no column x"),
        ("CHECK (SELECT * FROM t)", "the tables are new_rows"),
    ],
)
def test_conditions(loading: Loading, tmp_path: Path, condition: str, why: str | None) -> None:
    """They see the rows of all files, before anything is committed; a failed one leaves no file."""
    text = f"COPY INTO t FROM @s VALIDATE ({condition})"
    if why is None:
        assert loading.copy(text).row_count == 3
        return
    with pytest.raises(Malformed) as refused:
        loading.copy(text)
    assert why in str(refused.value)
    assert not loading.catalog.table_exists(f"{CONFIG.namespace}.t")
    assert not list(tmp_path.rglob("*.parquet"))


def test_conditions_on_counts_and_on_an_existing_table(loading: Loading) -> None:
    loading.copy("COPY INTO t FROM @s")
    loading.put("c.ndjson", b'bad\n{"id":9}\n')
    with pytest.raises(Malformed, match="1 of 2 rows are errors"):
        loading.copy("COPY INTO t FROM @s ON_ERROR=CONTINUE VALIDATE (MAX_ERROR_RATE 0.4)")
    before = loading.rows("t")
    with pytest.raises(Malformed, match="no rows to load"):
        loading.copy("COPY INTO t FROM @s ON_ERROR=SKIP_FILE VALIDATE (NOT EMPTY)")
    # Conditions are on new rows: the table has each name already.
    text = "COPY INTO t FROM @s ON_ERROR=CONTINUE VALIDATE (MAX_ERROR_RATE 0.5, UNIQUE (id))"
    assert loading.rows("t") == before
    assert loading.copy(text).row_count == 1
    assert loading.copy(text).snapshot_id is None, "without new files there is nothing to check"
