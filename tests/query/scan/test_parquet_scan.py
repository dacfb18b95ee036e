"""Data files: which are skipped, and that all others are read."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Unavailable
from frazil.lake import TableFile, TableView
from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan.predicates import Conditions, Predicate
from frazil.query.plan.pruning import prune
from frazil.query.plan.session import open_session
from frazil.query.run.frozen_files import frozen_part
from frazil.query.run.references import FrozenRef
from frazil.query.scan.parquet_scan import _field, _fields, parquet_frame
from frazil.query.scan.table_rows import ParquetScan
from frazil.query.scan.tiers import TierRows

US = 1_000_000
FILE = TableFile(
    location="file:///a.parquet",
    path="a.parquet",
    row_count=10,
    size_bytes=100,
    time_min_us=100 * US,
    time_max_us=200 * US,
    bounds={
        "time": (100 * US, 200 * US),
        "ingest_time": (300 * US, 400 * US),
        "severity_number": (5, 9),
        "service_name": ("cart", "mail"),
        "trace_id": ("0a", "7f"),
    },
    empty=frozenset({"host_name"}),
)


def text(*values: str) -> Predicate:
    return Predicate(values=frozenset(values))


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        ({}, None),
        ({"time": Predicate(low=200 * US * 1000)}, None),
        ({"time": Predicate(low=200 * US * 1000 + 1000)}, "outside the time range"),
        ({"time": Predicate(high=99 * US * 1000)}, "outside the time range"),
        ({"ingest_time": Predicate(low=400 * US * 1000)}, None),
        ({"ingest_time": Predicate(low=401 * US * 1000)}, "without the ingest_time"),
        ({"severity_number": Predicate(low=9)}, None),
        ({"severity_number": Predicate(low=10)}, "without the severity_number"),
        ({"severity_number": Predicate(high=4)}, "without the severity_number"),
        ({"service_name": text("mail", "zoo")}, None),
        ({"service_name": text("ad", "zoo")}, "without the service"),
        ({"trace_id": text("80")}, "without the trace_id"),
        ({"body": text("x"), "time_unix_nano": Predicate(low=5)}, None),
        ({"host_name": text("node")}, "without the host_name"),
        ({"host_name": Predicate(values=frozenset())}, "no row can match"),
    ],
)
def test_files_are_skipped_by_their_statistics(conditions: Conditions, reason: str | None) -> None:
    """Only if no row can match."""
    kept = prune([TierRows(files=(FILE,))], conditions)
    assert kept.files == ((FILE,) if reason is None else ())
    assert kept.skipped == (() if reason is None else ((reason, 1),))


def test_bounds_of_all_times_are_microseconds() -> None:
    """Columns of loaded tables have any name; conditions on times are in nanoseconds."""
    schema = pa.schema([("sold_at", pa.timestamp("us", tz="UTC")), ("n", pa.int64())])
    file = replace(
        FILE, bounds={"sold_at": (100 * US, 200 * US), "n": (1, 9)}, times=frozenset({"sold_at"})
    )
    rows = TierRows(files=(file,), view=TableView(name="sales", schema=schema))
    for low, is_read in ((200 * US * 1000, True), (201 * US * 1000, False)):
        kept = prune([rows], {"sold_at": Predicate(low=low), "n": Predicate(low=9)})
        assert bool(kept.files) is is_read
    assert not prune([rows], {"n": Predicate(low=10)}).files


def test_frozen_files_are_read_without_dead_rows(tmp_path: Path) -> None:
    """In the types of the keyed table, which Iceberg may not have; later columns are null."""
    schema = pa.schema([("k", pa.int8()), ("u", pa.uint64()), ("s", pa.string())])
    stored = pa.table({"k": pa.array([1, 2, 3], pa.int32()), "s": ["a", "b", "c"]})
    pq.write_table(stored, tmp_path / "data.parquet")
    dead = pa.table({"file_path": ["x"], "pos": pa.array([1], pa.int64())})
    pq.write_table(dead, tmp_path / "dead.parquet")
    ref = FrozenRef("data.parquet", "dead.parquet")
    part = frozen_part(str(tmp_path), ref, ["k", "u"], schema)
    (batch,) = part.batches
    assert batch.schema == schema
    assert batch.select(["k", "u"]).to_pylist() == [{"k": 1, "u": None}, {"k": 3, "u": None}]
    (batch,) = frozen_part(str(tmp_path), ref, ["u"], schema).batches
    assert batch.num_rows == 2
    with pytest.raises(Unavailable, match="cannot be read"):
        frozen_part(str(tmp_path), FrozenRef("gone.parquet", None), ["k"], schema)


ENDS = (".parquet", "", ".parq", " a%20b", "+c=d&e", "#f?g", "*[h]", "{i}", "é")
"""Names that other writers may use."""


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(ENDS)), min_size=1, max_size=12))
def test_exactly_the_listed_files_are_read(made: list[tuple[int, str]]) -> None:
    """Among other files, and with columns that some files lack."""
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    with tempfile.TemporaryDirectory() as name:
        paths = [f"day=1/{number}{end}" for number, (_, end) in enumerate(made)]
        (Path(name) / "day=1").mkdir()
        for number, (count, _) in enumerate(made):
            table = pa.table({"b": ["x"] * count, "a": pa.array([number] * count, pa.int64())})
            few = table.select(["a"]) if number % 2 else table
            pq.write_table(few, Path(name) / paths[number])
        wanted = range(0, len(made), 3) if len(made) > 4 else range(len(made))
        scan = ParquetScan(root=f"{name}/", paths=tuple(paths[number] for number in wanted))
        session = open_session(1 << 24, SingleQueryContext(0))
        rows = parquet_frame(session, schema, scan, "t").to_arrow_table()
    assert rows.schema.names == ["a", "b"]
    expected = [
        (number, None if number % 2 else "x") for number in wanted for _ in range(made[number][0])
    ]
    found = zip(rows["a"].to_pylist(), rows["b"].to_pylist(), strict=True)
    assert sorted(found, key=str) == sorted(expected, key=str)


@given(st.lists(st.tuples(st.integers(1, 500), st.binary(max_size=300) | st.integers(0, 1 << 62))))
def test_protobuf_fields_round_trip(fields: list[tuple[int, bytes | int]]) -> None:
    message = b"".join(_field(number, body) for number, body in fields)
    assert list(_fields(message)) == fields
