"""Keyed tables frozen by tasks on Spark, and read by Spark, PyIceberg, DuckDB and Polars."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from frazil.disk import RealDisk
from frazil.errors import Conflict
from frazil.lake.catalog.catalog import spark_settings
from frazil.lake.keyed import freezer
from frazil.lake.spark.jobs import do_on
from frazil.lake.spark.session import Session
from frazil.log import Log
from frazil.model import MiB, SystemClock
from frazil.settings import LakeConfig
from frazil.tables import KeyedTable, LogChanges, Operation, create_table, new_definition
from tests.lake.keyed.engines import with_duckdb, with_polars, with_pyiceberg, with_spark
from tests.lake.keyed.world import NAME, KeyedWorld
from tests.lake.maintain.tables import data_files, expire

# PySpark leaves result sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

CONFIG = LakeConfig(driver_memory_bytes=512 * MiB)
FULL_NAME = f"frazil.frazil.{NAME}"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KeyedWorld, Session]]:
    folder: Path = tmp_path_factory.mktemp("lake") / "data"
    session = Session(CONFIG, spark_settings(CONFIG, folder))
    with (
        pytest.MonkeyPatch.context() as patch,
        Log.open(RealDisk(folder), clock=SystemClock(), rand=SystemRandom()) as log,
    ):
        patch.setattr(freezer, "SMALL_FILES_MAX", -1)  # as if no round was small
        world = KeyedWorld(folder, log, partitions=3, do=do_on(session))
        yield world, session
        world.close()
    session.close()


def check(world: KeyedWorld, spark: SparkSession | None) -> None:
    """Every engine reads exactly the fold of what was written."""
    table = world.table()
    assert with_pyiceberg(table) == world.rows
    assert with_polars(table) == world.rows
    assert with_duckdb(table) == world.rows
    if spark is not None:
        assert with_spark(spark, FULL_NAME) == world.rows
    kinds = [file.content.value for file in data_files(table)]
    assert kinds.count(1) <= kinds.count(0), "more delete files than data files"
    assert kinds.count(2) == 0


def test_every_snapshot_is_the_fold_of_a_prefix(opened: tuple[KeyedWorld, Session]) -> None:
    """Random changes, freezes, compactions and expiries; older snapshots stay what they were."""
    world, session = opened
    rand = Random(20)
    for number in range(10):
        world.change(rand, 600, 500)
        done = world.freeze()
        assert [each.table for each in done] == [NAME]
        snapshot = world.table().current_snapshot()
        assert snapshot is not None
        if number == 2:
            tagged, past = snapshot.snapshot_id, dict(world.rows)
        if number in (4, 7):
            world.maintenance().compact(NAME, is_all=number == 7)
        if number == 5:
            assert (
                with_spark(session.spark(), f"{FULL_NAME} VERSION AS OF {tagged}") == past
            )  # read before its files are deleted
            expire(world.table())
        check(world, session.spark() if number % 3 == 0 else None)
    assert not world.freeze(), "nothing has changed"


def test_changes_of_other_programs_are_refused(opened: tuple[KeyedWorld, Session]) -> None:
    """By an append and by a compaction of Spark. After a rollback it goes on."""
    world, session = opened
    spark = session.spark()
    world.write(Operation.UPSERT, [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    world.freeze()
    before = world.table().metadata.current_snapshot_id
    foreign = (
        f"INSERT INTO {FULL_NAME} SELECT * FROM {FULL_NAME} LIMIT 1",
        "CALL frazil.system.rewrite_data_files(table => 'frazil.frazil.orders', "
        "options => map('rewrite-all', 'true'))",
        f"DELETE FROM {FULL_NAME} WHERE id = 1",
    )
    for text in foreign:
        spark.sql(text).collect()
        other = world.table().metadata.current_snapshot_id
        assert other != before
        world.write(Operation.UPSERT, [{"id": 1, "name": text}])
        for refused in (world.freeze, lambda: world.maintenance().compact(NAME)):
            with pytest.raises(Conflict, match=f"snapshot {other} of frazil.orders was not"):
                refused()
        assert world.table().metadata.current_snapshot_id == other
        spark.sql(
            f"CALL frazil.system.rollback_to_snapshot('frazil.frazil.orders', {before})"
        ).collect()
        world.freeze()
        check(world, spark)
        before = world.table().metadata.current_snapshot_id


def test_all_types_and_new_columns(opened: tuple[KeyedWorld, Session]) -> None:
    """Every type of a keyed table is read back by every engine, also after the columns of the table
    have changed."""
    world, session = opened
    time = datetime(1969, 1, 1, 1, 1, 1, 7, tzinfo=UTC)
    kinds: dict[str, tuple[str, list[Any]]] = {
        "id": ("int64", [1, 2, -3]),
        "flag": ("bool", [True, None, False]),
        "i8": ("int8", [-128, None, 127]),
        "i16": ("int16", [-(2**15), None, 2**15 - 1]),
        "i32": ("int32", [-(2**31), None, 2**31 - 1]),
        "u8": ("uint8", [0, None, 255]),
        "u16": ("uint16", [0, None, 2**16 - 1]),
        "u32": ("uint32", [0, None, 2**32 - 1]),
        "u64": ("uint64", [0, None, 2**64 - 1]),
        "f32": ("float32", [0.5, None, -1.25]),
        "f64": ("float64", [0.1, None, -1e300]),
        "day": ("date", [date(1969, 12, 31), None, date(2026, 11, 18)]),
        "local": ("timestamp", [time.replace(tzinfo=None), None, None]),
        "at": ("timestamptz", [time, None, None]),
        "text": ("string", ["", None, "ä€\U0001f600"]),
        "bytes": ("binary", [b"", None, b"\x00\xff"]),
        "small": ("decimal(9,2)", [Decimal("1.25"), None, Decimal("-9999999.75")]),
        "large": ("decimal(38,10)", [Decimal("1e-10"), None, Decimal("-1.5")]),
    }
    definition = new_definition(
        "kinds", [(name, kind) for name, (kind, _) in kinds.items()], ["id"], rand=SystemRandom()
    )
    create_table(world.disk, world.log, definition)
    table = KeyedTable(world.disk, LogChanges(world.log), definition)
    old, world.views.table = world.keyed, table
    try:
        rows = [
            {name: values[number] for name, (_, values) in kinds.items()} for number in range(3)
        ]
        world.write(Operation.UPSERT, rows)
        world.rows = {row["id"]: row for row in rows}
        world.freeze()
        _check_kinds(world, session.spark())
        wider = definition.add_column("more", "int32").widen_column("i8", "int64")
        wider = wider.widen_column("f32", "float64").widen_column("small", "decimal(20,2)")
        table.change_definition(wider)
        world.rows = {key: {**row, "more": None} for key, row in world.rows.items()}
        world.write(
            Operation.UPDATE,
            [{"id": 2, "i8": 2**40, "small": Decimal("123456789012.25"), "more": 7}],
        )
        world.freeze()
        _check_kinds(world, session.spark())
        world.maintenance().compact("kinds", is_all=True)
        _check_kinds(world, session.spark())
    finally:
        table.close()
        world.views.table = old


def _check_kinds(world: KeyedWorld, spark: SparkSession) -> None:
    table = world.catalog.load_table("frazil.kinds")
    expected = {key: _without_zones(row) for key, row in world.rows.items()}
    for found in (
        with_pyiceberg(table),
        with_polars(table),
        with_spark(spark, "frazil.frazil.kinds"),
    ):
        assert {key: _without_zones(row) for key, row in found.items()} == expected
    assert table.schema().identifier_field_names() == {"id"}
    assert pa.types.is_decimal(table.scan().to_arrow().schema.field("u64").type)


def _without_zones(row: dict[str, object]) -> dict[str, object]:
    """Spark returns local times; the machine of a test may be in any zone."""
    return {
        name: value.astimezone(UTC).replace(tzinfo=None)
        if isinstance(value, datetime) and name == "at"
        else value
        for name, value in row.items()
    }
