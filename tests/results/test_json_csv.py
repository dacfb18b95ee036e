"""Rows as JSON and CSV: readers get the original values."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.results import csv_head, csv_of, json_rows

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
rows = st.lists(
    st.tuples(
        st.none() | texts,
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(),
        st.none() | st.dictionaries(texts, texts, max_size=3),
        st.none() | st.lists(st.floats(), max_size=3),
    ),
    max_size=8,
)
SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("whole", pa.int64()),
        ("real", pa.float64()),
        ("map", pa.map_(pa.string(), pa.string())),
        ("list", pa.list_(pa.float64())),
    ]
)


def batch_of(values: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*values, strict=True)) or [()] * len(SCHEMA)
    arrays = [
        pa.array([list(v.items()) if isinstance(v, dict) else v for v in column], field.type)
        for column, field in zip(columns, SCHEMA, strict=True)
    ]
    return pa.record_batch(arrays, schema=SCHEMA)


def real(value: float | str | None) -> float | None:
    return None if value is None else float(value)


def same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return one == other or (math.isnan(one) and math.isnan(other))


@given(rows)
def test_json_reads_back(values: list[tuple[Any, ...]]) -> None:
    """With Python's parser, which accepts no NaN here."""
    found = [
        json.loads(row, parse_constant=lambda name: pytest.fail(name))
        for row in json_rows(batch_of(values))
    ]
    assert [row[:2] + row[3:4] for row in found] == [[v[0], v[1], v[3]] for v in values]
    for row, value in zip(found, values, strict=True):
        assert same(real(row[2]), value[2])
        assert (row[4] is None) == (value[4] is None)
        for one, other in zip(row[4] or [], value[4] or [], strict=True):
            assert same(real(one), other)


@given(rows)
def test_csv_reads_back(values: list[tuple[Any, ...]]) -> None:
    written = (csv_head(SCHEMA) + csv_of(batch_of(values))).decode()
    found = list(csv.DictReader(io.StringIO(written, newline="")))
    assert [row["text"] for row in found] == [value[0] or "" for value in values]
    assert [row["whole"] for row in found] == [
        "" if value[1] is None else str(value[1]) for value in values
    ]
    assert [json.loads(row["map"]) if row["map"] else None for row in found] == [
        value[3] for value in values
    ]


def test_null_and_empty_string_differ_in_csv() -> None:
    batch = pa.record_batch({"a": ["", None], "b": ["x", "y"]})
    assert csv_of(batch) == b'"",x\n,y\n'


def test_duckdb_reads_our_csv() -> None:
    batch = pa.record_batch({"a": ['1,"2"\n3', "é", None], "b": [1, 2, 3]})
    found = duckdb.read_csv(io.BytesIO(csv_head(batch.schema) + csv_of(batch))).fetchall()
    assert found == [('1,"2"\n3', 1), ("é", 2), (None, 3)]


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        (1, pa.timestamp("ns", "UTC"), "1970-01-01T00:00:00.000000001Z"),
        (1_500_000, pa.timestamp("us", "UTC"), "1970-01-01T00:00:01.5Z"),
        (3, pa.timestamp("s", "UTC"), "1970-01-01T00:00:03Z"),
        (3, pa.timestamp("s"), "1970-01-01T00:00:03"),
        (b"ab", pa.binary(), "YWI="),
        (datetime.date(2026, 1, 2), pa.date32(), "2026-01-02"),
        (1_500_000, pa.duration("us"), "PT1.5S"),
        (True, pa.bool_(), True),
        (2**60, pa.int64(), 2**60),
        (float("-inf"), pa.float64(), "-Infinity"),
    ],
)
def test_values_without_a_json_type(value: object, kind: pa.DataType, wanted: object) -> None:
    (row,) = json_rows(pa.record_batch([pa.array([value], kind)], names=["a"]))
    assert json.loads(row) == [wanted]
