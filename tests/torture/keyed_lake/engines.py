"""Rounds of random changes, freezes, compactions and expiries; five engines read every snapshot.

After each round Spark, PyIceberg, Polars, DuckDB with its extension `iceberg`, and our SQL, over
the table and over its snapshot, must return the fold of what was written, made by a dictionary.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random, SystemRandom
from unittest import mock

from frazil.disk import RealDisk
from frazil.lake import LakeView
from frazil.lake.catalog.catalog import spark_settings
from frazil.lake.keyed import freezer
from frazil.lake.spark.jobs import do_on
from frazil.lake.spark.session import Session
from frazil.log import Log
from frazil.model import MiB, SystemClock
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.settings import LakeConfig, QueryConfig
from tests.lake.keyed.engines import Rows, rows_by_key, with_polars, with_pyiceberg, with_spark
from tests.lake.keyed.world import NAME, KeyedWorld
from tests.lake.maintain.tables import data_files, expire
from tests.torture.checker import Verdict
from tests.torture.keyed_lake.duckdb_iceberg import DuckDBReader, duckdb_reader
from tests.torture.report import Report

CONFIG = LakeConfig(driver_memory_bytes=512 * MiB)
FULL_NAME = f"{CONFIG.catalog_name}.{CONFIG.namespace}.{NAME}"
READ = f"SELECT id, name, amount, big FROM {NAME}"
KEYS = int(os.environ.get("ENGINES_KEYS", "2000"))
CHANGES = KEYS // 2
PARTITIONS = 3
MUST_FIRE = ("frozen_here", "frozen_on_spark", "compacted", "compacted_all", "expired", "checked")


def run(cycles: int, seed: int) -> Report:
    """Run this many rounds on one table."""
    report = Report("keyed_engines", seed, must_fire=MUST_FIRE)
    rand = Random(seed)
    with (
        tempfile.TemporaryDirectory(prefix="frazil-engines-") as scratch,
        duckdb_reader() as duckdb,
    ):
        folder = Path(scratch) / "data"
        session = Session(CONFIG, spark_settings(CONFIG, folder))
        with Log.open(RealDisk(folder), clock=SystemClock(), rand=SystemRandom()) as log:
            world = KeyedWorld(folder, log, partitions=PARTITIONS, do=do_on(session))
            view = LakeView(CONFIG, folder)
            engine = Engine.open(
                dict, TABLES, QueryConfig(), SystemClock(), view, keyed=world.views
            )
            with engine:
                begun = time.monotonic()
                for number in range(1, cycles + 1):
                    _change(world, rand, report)
                    view.refresh()  # as a node does after each commit
                    _judge(_readers(world, engine, session, duckdb), world, number, report.verdict)
                    report.faults["checked"] += 1
                    report.cycles += 1
                    if number % 10 == 0:
                        took_s = time.monotonic() - begun
                        print(f"{number} rounds, {took_s:.0f} s", file=sys.stderr)
            view.close()
            world.close()
        session.close()
    return report


def _change(world: KeyedWorld, rand: Random, report: Report) -> None:
    """Change rows and freeze them, here or on Spark; then maybe compact, and maybe expire."""
    world.change(rand, CHANGES, KEYS)
    is_on_spark = rand.random() < 0.5
    files_max = -1 if is_on_spark else freezer.SMALL_FILES_MAX
    with mock.patch.object(freezer, "SMALL_FILES_MAX", files_max):
        world.freeze()
    report.faults["frozen_on_spark" if is_on_spark else "frozen_here"] += 1
    chance = rand.random()
    if chance < 0.3:
        is_all = chance < 0.1
        world.maintenance().compact(NAME, is_all=is_all)
        report.faults["compacted_all" if is_all else "compacted"] += 1
    if rand.random() < 0.2:
        expire(world.table())
        report.faults["expired"] += 1


def _readers(
    world: KeyedWorld, engine: Engine, session: Session, duckdb: DuckDBReader
) -> dict[str, Callable[[], Rows]]:
    table = world.table()
    snapshot = table.current_snapshot()
    assert snapshot is not None

    def sql(text: str) -> Rows:
        return rows_by_key(engine.sql(text).arrow().to_pylist())

    return {
        "PyIceberg": lambda: with_pyiceberg(table),
        "Polars": lambda: with_polars(table),
        "DuckDB": lambda: rows_by_key(duckdb.rows(table.metadata_location)),
        "Spark": lambda: with_spark(session.spark(), FULL_NAME),
        "SQL": lambda: sql(READ),
        "SQL of the snapshot": lambda: sql(
            f"{READ} FOR SYSTEM_VERSION AS OF {snapshot.snapshot_id}"
        ),
    }


def _judge(
    readers: dict[str, Callable[[], Rows]], world: KeyedWorld, number: int, verdict: Verdict
) -> None:
    world.keyed.catch_up()
    for name, read in readers.items():
        try:
            rows = read()
        except AssertionError as error:
            verdict.add("duplicate", f"round {number}, {name}: {error}")
            continue
        wrong = [key for key in {*rows, *world.rows} if rows.get(key) != world.rows.get(key)]
        if wrong:
            kind = "lost" if any(key not in rows for key in wrong) else "untrue"
            verdict.add(kind, f"round {number}, {name}: {len(wrong)} keys, such as {wrong[:5]}")
    contents = [file.content.value for file in data_files(world.table())]
    if contents.count(1) > contents.count(0) or contents.count(2):
        verdict.add("untrue", f"round {number}: contents of files {contents}")
