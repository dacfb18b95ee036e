"""Count queries over cached counts of distinct rows."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.query.counts.cache import CACHED_MAX, Counts
from frazil.query.counts.dictionary_encode import CODES_MAX, HEAP_BYTES_MAX
from frazil.query.counts.group_count import count_distinct
from frazil.query.plan.count_rewrite import ROW_COUNT
from frazil.query.run.executor import Executor
from frazil.query.scan.table_rows import ScanParts
from tests.query.build import log, part_of
from tests.query.in_process import InProcess

LONG = "a longer name of something"
TEXTS = st.sampled_from(
    ["", "\0", "a", "a\0", "b", "ab", "ba", "é", "eight by", "eight by eight b", LONG, None]
    + [LONG.replace("name", word) for word in ("mane", "NAME", "names")]
)
NUMBERS = st.sampled_from([0, 1, -1, 1024, 2**63 - 1, -(2**63), None])
RUNS = st.lists(
    st.tuples(st.tuples(TEXTS, NUMBERS, TEXTS), st.sampled_from([1, 2, 3, 63, 64, 65, 200])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=300)
@given(RUNS, st.integers(0, 3), st.integers(1, 400), st.sampled_from(["t", "n", "tu", "tnu"]))
def test_distinct_rows_are_counted_like_in_python(
    runs: list[tuple[tuple[Any, ...], int]], skipped: int, batch_rows: int, names: str
) -> None:
    """Each different row once, with how many there are, in the order in which they first come;
    whatever is in them, also of slices and over many batches."""
    rows = [row for row, count in runs for _ in range(count)]
    kinds = {"t": pa.string(), "n": pa.int64(), "u": pa.string()}
    columns = {
        name: pa.array([row["tnu".index(name)] for row in rows], kinds[name]) for name in names
    }
    whole = pa.record_batch(columns).slice(min(skipped, len(rows) - 1))
    batches = [whole.slice(at, batch_rows) for at in range(0, whole.num_rows, batch_rows)]
    found = count_distinct(batches)
    assert found is not None
    expected = Counter(tuple(row.values()) for row in whole.to_pylist())
    counts = found.column(ROW_COUNT).to_pylist()
    places = found.select(list(names)).to_pylist()
    assert [(tuple(row.values()), n) for row, n in zip(places, counts, strict=True)] == list(
        expected.items()
    )


@pytest.mark.parametrize(
    ("values", "is_counted"),
    [
        ([str(n) for n in range(CODES_MAX)], True),
        ([str(n) for n in range(CODES_MAX + 1)], False),
        (list(range(CODES_MAX)), True),
        (list(range(CODES_MAX + 1)), False),
        (["x" * HEAP_BYTES_MAX], True),
        (["x" * HEAP_BYTES_MAX, "y"], False),
    ],
)
def test_too_many_distinct_values_are_not_counted(values: list[Any], is_counted: bool) -> None:
    batch = pa.record_batch({"a": pa.array(values * 3)})
    found = count_distinct([batch])
    assert (found is not None) == is_counted
    if found is not None:
        assert found.column(ROW_COUNT).to_pylist() == [3] * len(values)


def test_too_many_combinations_of_two_columns_are_not_counted() -> None:
    rows = range(CODES_MAX + 1)
    columns = {"a": [str(n % 40) for n in rows], "b": [n // 40 for n in rows]}
    assert count_distinct([pa.record_batch(columns)]) is None


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
def worker() -> InProcess:
    return InProcess({"logs": [part_of("logs", rows()), part_of("logs", rows()[:60])]})


COUNT_QUERIES = [
    "SELECT service_name, count(*) FROM logs GROUP BY 1",
    "SELECT service_name AS s, host_name, Count ( 1 ) AS n FROM logs AS l GROUP BY 1, 2",
    "SELECT service_name, count(*) FROM logs WHERE host_name = 'h1' GROUP BY service_name",
    "SELECT count(*) * 2 AS n, upper(host_name) FROM logs GROUP BY 2 HAVING count(*) > 40",
    "SELECT host_name, count(*) FROM logs GROUP BY 1 ORDER BY count(*) DESC LIMIT 1",
    "SELECT DISTINCT host_name FROM logs",
    "SELECT 'count(*)' AS what, service_name, count(*) FROM logs GROUP BY 2",
    "SELECT service_name, count(*) FROM logs WHERE severity_number = 1 GROUP BY 1",
    "SELECT severity_number + 1, count(*) FROM logs GROUP BY 1 ORDER BY 1",
]
OTHER_QUERIES = [
    "SELECT service_name, count() FROM logs GROUP BY 1",
    "SELECT service_name, count(service_name) FROM logs GROUP BY 1",
    "SELECT service_name, count(host_name) FROM logs GROUP BY 1",
    "SELECT service_name, count(DISTINCT host_name) FROM logs GROUP BY 1",
    "SELECT service_name, count(*) FILTER (WHERE host_name = 'h1') FROM logs GROUP BY 1",
    "SELECT service_name, count(*), count() FROM logs GROUP BY 1",
    "SELECT service_name, count(*), max(host_name) FROM logs GROUP BY 1",
    "SELECT service_name, count(*) FROM logs WHERE time > to_timestamp(0) GROUP BY 1",
    "SELECT attributes['k'], count(*) FROM logs GROUP BY 1",
    "SELECT service_name, count(*) FROM logs WHERE random() >= 0 GROUP BY 1",
    "SELECT service_name, count(*) FROM (SELECT * FROM logs LIMIT 7) GROUP BY 1",
    "SELECT s, count(*) FROM (SELECT service_name AS s FROM logs) GROUP BY 1",
    f"SELECT s, count(*) FROM (SELECT service_name AS s, 5 AS {ROW_COUNT} FROM logs) GROUP BY 1",
    "SELECT s, count(*) FROM (SELECT service_name AS s, count(*) AS n FROM logs GROUP BY 1) "
    "GROUP BY 1",
    "SELECT count(*) FROM logs WHERE service_name = 'web'",
    "SELECT count(*) FROM logs WHERE service_name = 'nobody'",
]


@pytest.mark.parametrize("text", [*COUNT_QUERIES, *OTHER_QUERIES])
def test_count_queries_return_the_counts_of_all_rows(
    worker: InProcess, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same names and types. Other queries do not run this way."""
    began = []
    start_count = Executor._start_count

    def noting(self: Executor, *given: Any) -> Any:
        run = start_count(self, *given)
        began.append(run is not None)
        return run

    monkeypatch.setattr(Executor, "_start_count", noting)
    counted = worker.sql(text)
    monkeypatch.setattr(Executor, "_start_count", lambda *_: None)
    expected = worker.sql(text)

    assert any(began) == (text in COUNT_QUERIES)
    assert counted.schema == expected.schema
    assert sorted(map(repr, counted.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_cached_counts_live_as_long_as_their_piece() -> None:
    """The same is not counted twice; few sets of columns are kept; nothing keeps a piece that is
    gone."""
    counts = Counts()
    pieces = [part_of("logs", rows()) for _ in range(3)]
    first, again = (counts.of(ScanParts(pieces=tuple(pieces)), ("service_name",)) for _ in range(2))
    assert first is not None
    assert again is not None
    assert all(one is other for one, other in zip(first, again, strict=True))
    for place in range(CACHED_MAX + 1):
        counts.of(ScanParts(pieces=tuple(pieces)), ("service_name",) * (place + 1))
    assert len(counts._cached[pieces[0]]) <= CACHED_MAX
    gone = weakref.ref(pieces[0])
    pieces.clear()
    gc.collect()
    assert gone() is None
    assert not counts._cached


def test_one_piece_with_too_many_values_disables_counts() -> None:
    few = part_of("logs", [log(1)])
    many = part_of("logs", [log(n, body=f"{n}") for n in range(CODES_MAX + 1)])
    for pieces in ([few, many], [many, few], [many]):
        assert Counts().of(ScanParts(pieces=tuple(pieces)), ("body",)) is None
    assert Counts().of(ScanParts(pieces=(few,)), ("body",)) is not None
