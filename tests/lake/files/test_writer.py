"""Files hold the rows they were given, sorted, by day, and say the truth about them."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import TimestamptzType

from frazil.disk import Disk, RealDisk
from frazil.lake.files import writer
from frazil.lake.files.parquet_schema import FIELD_ID, file_layout_of
from frazil.lake.files.writer import TableWriter, WrittenFile
from frazil.lake.tables.field_ids import FIELD_IDS
from frazil.lake.tables.properties import BLOOM_COLUMNS, SORT_COLUMNS, properties_of
from frazil.lake.tables.schema import schema_of
from frazil.model import Rand, Signal
from frazil.model.arrow import TABLES, decode, decode_dictionary
from tests.lake.rows import SIGNALS, decoded, multiset, opened, requests_of, rows_of
from tests.sim.disk import Faults, PowerCut, SimDisk

DAY_US = 86_400_000_000
FAULTS_MAX = 200
"""More storage calls than the small write of the fault tests makes."""


def written(
    batch: pa.RecordBatch, table: str = "logs", disk: Disk | None = None
) -> list[WrittenFile]:
    files = TableWriter(disk or SimDisk(), file_layout_of(table), "name")
    files.write([batch], batch.nbytes)
    return files.sync()


def letters(times: list[int], payload: bytes = b"x", reason: str = "why") -> pa.RecordBatch:
    """Rows of dead letters, the smallest table, at these microseconds."""
    rows = [
        {
            "topic": f"topic-{number % 3}",
            "_log_partition": 0,
            "_offset": number,
            "_row": None,
            "time": time,
            "stage": "decode",
            "reason": reason,
            "payload": payload,
        }
        for number, time in enumerate(times)
    ]
    return pa.RecordBatch.from_pylist(rows, TABLES["dead_letters"])


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("seed", range(4))
def test_rows_out_are_rows_in(signal: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit: NaN, -0.0, the ends of 64 bits, nulls beside empty texts, nested values.

    Each file has one day, and is sorted; of rows that are alike the order stays.
    """
    monkeypatch.setattr(writer, "GROUP_ROWS_MAX", 5)
    table = Signal(signal).table
    batch, _ = decoded(signal, requests_of(signal, seed, 25))
    disk = SimDisk()
    files = written(batch, table, disk)
    tables = [opened(disk, file).read() for file in files]
    assert multiset(tables) == multiset([batch])
    assert sum(file.row_count for file in files) == batch.num_rows > 0
    days = [file.day for file in files if file.day is not None]
    assert len(days) == len(files) and days == sorted(set(days))
    for file, rows in zip(files, tables, strict=True):
        assert {time // DAY_US for time in rows["time"].cast(pa.int64()).to_pylist()} == {file.day}
        found = list(zip(*(rows[name].to_pylist() for name in keys(table)), strict=True))
        assert found == sorted(found)
        assert file.size_bytes == len(disk.data(file.path))


def keys(table: str) -> list[str]:
    """What rows are sorted by, and then as the log had them."""
    return [*SORT_COLUMNS[table], "_offset", "_row"]


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("group_rows", [3, 1 << 20])
def test_metrics_are_those_of_pyiceberg(
    signal: str, group_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What we say of a file is what PyIceberg would have said, and how many are no numbers."""
    monkeypatch.setattr(writer, "GROUP_ROWS_MAX", group_rows)
    table = Signal(signal).table
    batch, _ = decoded(signal, requests_of(signal, 7, 30))
    disk = SimDisk()
    for file in written(batch, table, disk):
        source = opened(disk, file)
        expected = oracle(source.metadata, schema_of(table), properties_of(table))
        found = file.metrics
        assert file.row_count == expected.record_count
        assert found.column_sizes == expected.column_sizes
        assert found.value_counts == expected.value_counts
        assert found.null_value_counts == expected.null_value_counts
        assert list(found.split_offsets) == expected.split_offsets
        serialized = expected.to_serialized_dict()
        assert found.lower_bounds == serialized["lower_bounds"]
        assert found.upper_bounds == serialized["upper_bounds"]
        assert found.nan_value_counts == nan_counts(source.read(), table)


def oracle(footer: pq.FileMetaData, schema: Schema, properties: dict[str, str]) -> Any:
    return data_file_statistics_from_parquet_metadata(
        footer, compute_statistics_plan(schema, properties), parquet_path_to_id_mapping(schema)
    )


def nan_counts(rows: pa.Table, table: str) -> dict[int, int]:
    return {
        FIELD_IDS[table][field.name]: sum(
            value is not None and value != value for value in rows[field.name].to_pylist()
        )
        for field in TABLES[table]
        if field.type == pa.float64()
    }


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_field_has_its_id(table: str) -> None:
    """In the file, at every level, as Iceberg's schema has it."""
    disk = SimDisk()
    rows = pa.RecordBatch.from_pylist([], TABLES[table])
    layout = file_layout_of(table)
    with pq.ParquetWriter(sink := pa.BufferOutputStream(), layout.schema) as writer:
        writer.write_batch(rows.cast(layout.schema))
    schema = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema_arrow
    found = dict(ids_of(pa.struct(list(schema))))
    assert found == FIELD_IDS[table]
    assert disk.files() == []


def ids_of(kind: pa.DataType, path: str = "") -> list[tuple[str, int]]:
    fields: list[pa.Field] = []
    if pa.types.is_struct(kind):
        fields = list(kind)
    elif pa.types.is_map(kind):
        fields = [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
    elif pa.types.is_list(kind):
        fields = [kind.value_field.with_name("element")]
    return [
        pair
        for field in fields
        for pair in (
            (path + field.name, int(field.metadata[FIELD_ID])),
            *ids_of(field.type, f"{path}{field.name}."),
        )
    ]


@pytest.mark.parametrize("signal", SIGNALS)
def test_numbers_and_the_texts_they_stand_for_make_the_same_files(signal: str) -> None:
    """As the decoder gives them: in several pieces, each with its own numbers."""
    requests = requests_of(signal, 12, 60)
    found = []
    for form in (decode, decode_dictionary):
        disk = SimDisk()
        files = TableWriter(disk, file_layout_of(Signal(signal).table), "name")
        batches = [form(signal, requests[at : at + 7]).batch for at in range(0, 60, 7)]
        files.write(batches, sum(batch.nbytes for batch in batches))
        found.append([(file.day, opened(disk, file).read()) for file in files.sync()])
    for (day, rows), (other_day, other_rows) in zip(*found, strict=True):
        assert day == other_day
        assert str(rows.to_pylist()) == str(other_rows.to_pylist())
    assert len(found[0]) > 1


@pytest.mark.parametrize("signal", SIGNALS)
def test_duckdb_reads_the_files(signal: str, tmp_path: Path) -> None:
    """A reader that is not Arrow finds the same rows, and all that helps to leave some out."""
    table = Signal(signal).table
    batch, _ = decoded(signal, requests_of(signal, 11, 25))
    disk = RealDisk(tmp_path)
    files = written(batch, table, disk)
    paths = [str(tmp_path / file.path) for file in files]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        names = [name for name in batch.schema.names if name not in ("time", "ingest_time")]
        found = connection.read_parquet(paths).project(", ".join(f'"{n}"' for n in names))
        expected = pa.concat_tables([opened(disk, file).read().select(names) for file in files])
        assert multiset([found.to_arrow_table()]) == multiset([expected])
        for path in paths:
            footer = pq.read_metadata(path)
            blooms = connection.sql(
                "SELECT DISTINCT path_in_schema FROM parquet_metadata(?) "
                "WHERE bloom_filter_offset IS NOT NULL",
                params=[path],
            ).fetchall()
            assert {name for (name,) in blooms} == set(BLOOM_COLUMNS[table])
            for at in range(footer.num_columns):
                chunk = footer.row_group(0).column(at)
                assert chunk.has_offset_index
                assert chunk.has_column_index == ("." not in chunk.path_in_schema)
                assert chunk.compression == "ZSTD"
            assert len(footer.row_group(0).sorting_columns) == len(SORT_COLUMNS[table])


def test_ids_are_found_by_their_bloom_filters(tmp_path: Path) -> None:
    """None that is there is excluded, and hardly any other is not."""
    rows, _ = decoded("traces", requests_of("traces", 11, 25))
    ids = [hashlib.md5(b"%d" % number).hexdigest() for number in range(3000)]
    rows = rows.take(pa.array([0] * len(ids)))
    at = rows.schema.get_field_index("trace_id")
    rows = rows.set_column(at, rows.schema.field(at), pa.array(ids))
    (file,) = written(rows, "spans", RealDisk(tmp_path))
    context = SessionContext()
    context.register_parquet("spans", str(tmp_path / file.path))

    def is_read(value: str) -> bool:
        query = f"EXPLAIN ANALYZE SELECT * FROM spans WHERE trace_id = '{value}'"
        plan = "".join(map(str, context.sql(query).to_pylist()))
        (matched,) = re.findall(r"row_groups_pruned_bloom_filter=1 total → (\d) matched", plan)
        return bool(int(matched))

    assert all(is_read(value) for value in ids[:50])
    # Those that lie between the least and the greatest id, so that nothing else excludes them.
    strangers = [hashlib.md5(b"stranger %d" % number).hexdigest() for number in range(52)]
    between = [value for value in strangers if min(ids) < value < max(ids)]
    assert sum(map(is_read, between)) < 5 < len(between)


TIMES = st.integers(-(2**63) + 1, 2**63 - 1)


@given(st.lists(TIMES | st.integers(-3, 3).map(lambda day: day * DAY_US), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_days_are_those_of_iceberg(times: list[int]) -> None:
    """Also before 1970, and further away than dates go."""
    disk = SimDisk()
    found = {file.day: file for file in written(letters(times), "dead_letters", disk)}
    day_of: Callable[[Any], int | None] = DayTransform().transform(TimestamptzType())
    assert set(found) == {day_of(time) for time in times}
    for file in found.values():
        rows = opened(disk, file).read()
        assert {day_of(t) for t in rows["time"].cast(pa.int64()).to_pylist()} == {file.day}


@pytest.mark.parametrize("day", [0, -1, 59, 60, 19_999, 20_773, 11_016, -719_162, 2_932_896])
def test_folders_are_named_by_the_day(day: int) -> None:
    (file,) = written(letters([day * DAY_US]), "dead_letters")
    date = datetime.fromordinal(day + datetime(1970, 1, 1, tzinfo=UTC).toordinal()).date()
    assert file.path == f"data/time_day={date.isoformat()}/name-00000.parquet"


def test_folders_of_days_that_have_no_date_differ() -> None:
    far = [2_932_897, 106_751_990, -719_163, -106_751_991]
    files = written(letters([day * DAY_US for day in far]), "dead_letters")
    assert sorted(file.day for file in files if file.day is not None) == sorted(far)
    assert len({file.path.rpartition("/")[0] for file in files}) == len(far)


@pytest.mark.parametrize(
    ("texts", "lower", "upper"),
    [
        (["b", "a"], "a", "b"),
        (["a" * 64], "a" * 64, "a" * 64),
        (["a" * 65], "a" * 64, "a" * 63 + "b"),
        (["é" * 65], "é" * 64, "é" * 63 + "ê"),
        (["a" * 63 + "\ud7ff" + "b"], "a" * 63 + "\ud7ff", "a" * 63 + "\ue000"),
        (["a" * 63 + "\U0010ffff" + "b"], "a" * 63 + "\U0010ffff", "a" * 62 + "b"),
        (["\U0010ffff" * 65], "\U0010ffff" * 64, None),
        (["x" * 5000], None, None),
        (["a", "x" * 5000, "b", "c"], None, None),
    ],
)
def test_bounds_of_texts_hold(
    texts: list[str], lower: str | None, upper: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut to what a manifest may hold, they still hold; without certainty there is none.

    Arrow leaves the bounds of long texts away: those of other row groups are then not the file's.
    """
    monkeypatch.setattr(writer, "GROUP_ROWS_MAX", 1)
    rows, _ = decoded("logs", requests_of("logs", 5, 20))
    rows = rows.slice(0, len(texts))
    at = rows.schema.get_field_index("service_name")
    rows = rows.set_column(at, rows.schema.field(at), pa.array(texts))
    time = rows.schema.get_field_index("time")
    same = pa.array([0] * len(texts), rows.schema.field(time).type)
    (file,) = written(rows.set_column(time, rows.schema.field(time), same))
    field_id = FIELD_IDS["logs"]["service_name"]
    found = (file.metrics.lower_bounds.get(field_id), file.metrics.upper_bounds.get(field_id))
    assert found == (lower and lower.encode(), upper and upper.encode())


def test_bounds_of_times_are_iceberg_values() -> None:
    days = {file.day: file for file in written(letters([7, -5, 3]), "dead_letters")}
    field_id = FIELD_IDS["dead_letters"]["time"]
    assert struct.unpack("<q", days[-1].metrics.upper_bounds[field_id]) == (-5,)
    assert struct.unpack("<q", days[0].metrics.upper_bounds[field_id]) == (7,)


def test_a_day_of_few_rows_makes_a_small_file() -> None:
    """It holds no text of other days."""
    rows, _ = decoded("logs", requests_of("logs", 5, 20))
    count = 5000
    rows = rows.take(pa.array([0] * count))
    changed = {
        "resource_attributes": [[("pod", f"pod-{number:040d}")] for number in range(count)],
        "time": [DAY_US if number == 7 else 0 for number in range(count)],
    }
    for name, values in changed.items():
        field = rows.schema.field(name)
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, field, pa.array(values, field.type))
    disk = SimDisk()
    files = written(rows, "logs", disk)
    assert [file.row_count for file in files] == [count - 1, 1]
    assert multiset(opened(disk, file).read() for file in files) == multiset([rows])
    assert b"pod-" + b"0" * 39 + b"7" in repr(opened(disk, files[1]).read().to_pylist()).encode()
    assert files[1].metrics.column_sizes[FIELD_IDS["logs"]["resource_attributes.value"]] < 300


def test_row_groups_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide rows make small row groups."""
    monkeypatch.setattr(writer, "GROUP_BYTES_MAX", 100_000)
    disk = SimDisk()
    (file,) = written(letters(list(range(50)), payload=b"x" * 10_000), "dead_letters", disk)
    footer = opened(disk, file).metadata
    assert footer.num_row_groups == len(file.metrics.split_offsets) >= 5
    assert all(footer.row_group(at).num_rows <= 10 for at in range(footer.num_row_groups))


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_what_is_synced_survives_a_power_cut(model: Any) -> None:
    """Once `sync` has returned, file, name and folder are there, whatever the disk had in hand."""
    batch = letters([0, DAY_US, 5 * DAY_US])
    for seed in range(20):
        disk = SimDisk(model=model)
        files = written(batch, "dead_letters", disk)
        after = disk.crash(Rand(seed))
        assert multiset(opened(after, file).read() for file in files) == multiset([batch])


def test_a_disk_that_fails_is_heard_of() -> None:
    """At whichever storage call: the error itself comes out, and `discard` leaves nothing."""
    batch = letters([0, DAY_US])
    for call in range(1, FAULTS_MAX):
        disk = SimDisk(faults=Faults(fail_at=(call, 5)))
        files = TableWriter(disk, file_layout_of("dead_letters"), "name")
        try:
            files.write([batch], batch.nbytes)
            files.sync()
        except OSError as error:
            assert error.errno == 5
            disk.faults = Faults()
            files.discard()
            assert disk.files() == []
            continue
        assert not disk.fired
        return
    raise AssertionError("the write makes more storage calls than were tried")


def test_a_power_cut_is_no_error_to_go_on_from() -> None:
    """A name that is taken is refused: nobody writes over the file of another try."""
    disk = SimDisk()
    written(letters([0]), "dead_letters", disk)
    with pytest.raises(FileExistsError):
        written(letters([0]), "dead_letters", disk)
    disk.faults = Faults(crash_at=disk.calls + 1)
    with pytest.raises(PowerCut):
        written(letters([DAY_US]), "dead_letters", disk)


def test_rows_show_every_bit() -> None:
    """The comparison of these tests would notice."""
    one, other = pa.table({"d": [0.0, None]}), pa.table({"d": [-0.0, None]})
    assert list(rows_of(one)) != list(rows_of(other))
