"""Pruning of external tables never changes a result: compared with DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from random import Random

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.load.test_external import Place, opened

DAY = date(2026, 1, 1)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SIGNS = st.sampled_from(["=", "<", "<=", ">", ">=", "<>"])
ATOMS = st.one_of(
    st.builds("a {} {}".format, SIGNS, st.integers(-2, 22)),
    st.builds("{1} {0} a".format, SIGNS, st.integers(-2, 22)),
    st.builds("p {} {}".format, SIGNS, st.integers(-1, 4)),
    st.builds("s {} '{}'".format, SIGNS, st.sampled_from("abcdé")),
    st.builds("d {} DATE '2026-01-{:02d}'".format, SIGNS, st.integers(1, 9)),
    st.builds("t {} TIMESTAMPTZ '2026-01-01T{:02d}:00:00Z'".format, SIGNS, st.integers(0, 23)),
    st.builds("a IN ({}, {})".format, st.integers(-2, 22), st.integers(-2, 22)),
    st.builds("p BETWEEN {} AND {}".format, st.integers(0, 3), st.integers(0, 3)),
    st.sampled_from(["p IS NULL", "a IS NOT NULL", "s IS NULL"]),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, pa.Table]]:
    """Files whose columns cover different ranges, and all their rows."""
    rand, parts = Random(7), []
    with opened(tmp_path_factory.mktemp("external"), in_use_ms=3_600_000) as there:
        for number in range(10):
            p = None if number == 9 else number % 4
            day = DAY + timedelta(days=number % 7)
            count = 0 if number == 8 else 6
            rows = {
                "a": [rand.choice([None, number * 2, number * 2 + 1]) for _ in range(count)],
                "s": [rand.choice([None, "abcdé"[number % 5]]) for _ in range(count)],
                "t": [BEGIN + timedelta(hours=number + rand.random()) for _ in range(count)],
            }
            kinds = {"a": pa.int32(), "s": pa.string(), "t": pa.timestamp("ms", tz="UTC")}
            columns = {name: pa.array(rows[name], kinds[name]) for name in kinds}
            folder = f"p={'__HIVE_DEFAULT_PARTITION__' if p is None else p}/d={day}"
            there.put(f"x/{folder}/{number}.parquet", **columns)
            table = pa.table(columns)
            table = table.append_column("p", pa.array([p] * count, pa.int64()))
            parts.append(table.append_column("d", pa.array([day] * count, pa.date32())))
        there.do("CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION @s/x/ PARTITIONED BY (p, d)")
        yield there, pa.concat_tables(parts)


@given(condition=CONDITIONS)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_pruning_never_changes_a_result(made: tuple[Place, pa.Table], condition: str) -> None:
    there, rows = made
    text = f"SELECT count(*), sum(a), count(s) FROM x WHERE {condition}"
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("x", rows)
        expected = database.execute(text).fetchall()
    assert there.sql(text) == expected
