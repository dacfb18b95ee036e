"""Rows that are much alike are counted together, and the counts are those of all rows."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.query import Engine
from frazil.query.runs import KEPT_MAX, ROW_COUNT, WORTHWHILE, Runs, shorten
from tests.query.build import engine_over, log, piece_of

TEXTS = st.sampled_from(["", "a", "b", "ab", "ba", "é", "a longer name of something", None])
STRETCHES = st.lists(
    st.tuples(TEXTS, TEXTS, st.sampled_from([1, 2, 3, 63, 64, 65, 200])), max_size=12
)


@settings(max_examples=200)
@given(STRETCHES, st.integers(0, 3), st.integers(1, 400))
def test_runs_say_what_the_rows_say(
    stretches: list[tuple[str | None, str | None, int]], skipped: int, batch_rows: int
) -> None:
    """Repeating each row as often as it says gives all rows back, also of slices; and there is one
    row for each stretch, and at most one more for each batch."""
    rows = [(one, other) for one, other, count in stretches for _ in range(count)]
    columns = {
        name: pa.array([row[place] for row in rows], pa.string())
        for place, name in enumerate(("one", "other"))
    }
    whole = pa.record_batch(columns).slice(skipped)
    cuts = range(0, whole.num_rows or 1, batch_rows)
    shortened = shorten([whole.slice(cut, batch_rows) for cut in cuts]).to_pylist()
    found = [(row["one"], row["other"]) for row in shortened]
    counts = [row[ROW_COUNT] for row in shortened]
    again = [row for row, count in zip(found, counts, strict=True) for _ in range(count)]
    assert again == rows[skipped:]
    assert sum(one == other for one, other in pairwise(found)) <= len(cuts) - 1


def rows() -> list[dict[str, Any]]:
    return [
        log(
            at,
            service_name=("web", "cart", "web", "db")[at // 25],
            host_name=(None, "h1", "h2")[at // 40],
            severity_number=at % 3,
        )
        for at in range(100)
    ]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    pieces = [piece_of("logs", rows()), piece_of("logs", rows()[:60], is_known=False)]
    with engine_over({"logs": pieces}) as opened:
        yield opened


TALLIED = [
    "SELECT service_name, count(*) FROM logs GROUP BY 1",
    "SELECT service_name AS s, host_name, Count ( 1 ) AS n FROM logs AS l GROUP BY 1, 2",
    "SELECT service_name, count(*) FROM logs WHERE host_name = 'h1' GROUP BY service_name",
    "SELECT count(*) * 2 AS n, upper(host_name) FROM logs GROUP BY 2 HAVING count(*) > 40",
    "SELECT host_name, count(*) FROM logs GROUP BY 1 ORDER BY count(*) DESC LIMIT 1",
    "SELECT DISTINCT host_name FROM logs",
    "SELECT 'count(*)' AS what, service_name, count(*) FROM logs GROUP BY 2",
]
NOT_TALLIED = [
    "SELECT service_name, count() FROM logs GROUP BY 1",
    "SELECT service_name, count(service_name) FROM logs GROUP BY 1",
    "SELECT service_name, count(host_name) FROM logs GROUP BY 1",
    "SELECT service_name, count(DISTINCT host_name) FROM logs GROUP BY 1",
    "SELECT service_name, count(*) FILTER (WHERE host_name = 'h1') FROM logs GROUP BY 1",
    "SELECT service_name, count(*), count() FROM logs GROUP BY 1",
    "SELECT service_name, count(*), max(host_name) FROM logs GROUP BY 1",
    "SELECT service_name, count(*) FROM logs WHERE severity_number = 1 GROUP BY 1",
    "SELECT service_name, count(*) FROM logs WHERE random() >= 0 GROUP BY 1",
    "SELECT service_name, count(*) FROM (SELECT * FROM logs LIMIT 7) GROUP BY 1",
    "SELECT s, count(*) FROM (SELECT service_name AS s FROM logs) GROUP BY 1",
    f"SELECT s, count(*) FROM (SELECT service_name AS s, 5 AS {ROW_COUNT} FROM logs) GROUP BY 1",
    "SELECT s, count(*) FROM (SELECT service_name AS s, count(*) AS n FROM logs GROUP BY 1) "
    "GROUP BY 1",
    "SELECT count(*) FROM logs WHERE service_name = 'web'",
    "SELECT count(*) FROM logs WHERE service_name = 'nobody'",
]


@pytest.mark.parametrize("text", [*TALLIED, *NOT_TALLIED])
def test_counts_are_those_of_all_rows(
    engine: Engine, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same names and types; and only queries run this way that can."""
    began = []
    count_here = Engine._count_here

    def noting(self: Engine, *given: Any) -> Any:
        run = count_here(self, *given)
        began.append(run is not None)
        return run

    monkeypatch.setattr(Engine, "_count_here", noting)
    counted = engine.sql(text).arrow()
    monkeypatch.setattr(Engine, "_count_here", lambda *_: None)
    expected = engine.sql(text).arrow()

    assert any(began) == (text in TALLIED)
    assert counted.schema == expected.schema
    assert sorted(map(repr, counted.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_what_is_kept_goes_with_its_piece() -> None:
    """The same runs are not looked for twice; few sets of columns are kept; nothing keeps a piece
    that is gone."""
    runs = Runs()
    piece = piece_of("logs", rows())
    assert runs.of(piece, ["service_name"]) is runs.of(piece, ["service_name"])
    names = ("host_name", "scope_name", "scope_version", "k8s_pod_name", "service_namespace")
    for name in names:
        runs.of(piece, [name])
    assert len(runs._kept[piece]) <= KEPT_MAX < len(names)
    gone = weakref.ref(piece)
    del piece
    gc.collect()
    assert gone() is None
    assert not runs._kept


def test_short_runs_are_read_row_by_row() -> None:
    """Where hardly a row repeats the one before, each counts for itself."""
    few = [log(at, service_name=f"s{at % 7}") for at in range(10 * WORTHWHILE)]
    (batch,) = Runs().of(piece_of("logs", few), ["service_name"])
    assert batch.num_rows == len(few)
    assert set(batch.column(ROW_COUNT).to_pylist()) == {1}
