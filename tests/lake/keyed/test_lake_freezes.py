"""Keyed tables of a data folder, frozen by its lake on Spark, and rebuilt from it."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import SystemRandom

import pyarrow as pa
import pytest

from frazil.config import Config
from frazil.disk import RealDisk
from frazil.embedded import Embedded, flush_folder, open_lake
from frazil.log import Log
from frazil.model import MiB, SystemClock
from frazil.settings import LakeConfig, LogConfig
from frazil.tables import Operation, new_definition
from tests.lake.keyed.engines import with_pyiceberg

# PySpark leaves result sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

CLOCK = SystemClock()
ROWS = pa.table({"id": pa.array(range(1000)), "name": [f"n{n}" * 20 for n in range(1000)]})


def test_a_lake_freezes_and_rebuilds_keyed_tables(tmp_path: Path) -> None:
    """`flush` includes them; the log may trim what is frozen; local files that are lost come back
    from the lake, with the rows that are only in the log."""
    config = Config(
        data=str(tmp_path),
        lake=LakeConfig(driver_memory_bytes=512 * MiB),
        log=LogConfig(segment_bytes_max=16 * 1024),
    )
    definition = new_definition(
        "orders", [("id", "int64"), ("name", "string")], ["id"], rand=SystemRandom()
    )
    expected = {n: {"id": n, "name": f"n{n}" * 20} for n in range(1000)}
    with Log.open(RealDisk(tmp_path), config.log, clock=CLOCK, rand=SystemRandom()) as log:
        lake = open_lake(log, config, clock=CLOCK, rand=SystemRandom(), auto_flush=False)
        assert lake is not None
        opened = Embedded.over(log, RealDisk(tmp_path), config, clock=CLOCK, lake=lake, owns=[lake])
        with opened:
            opened.tables.create(definition)
            for begin in range(0, 1000, 50):
                opened.tables.write("orders", Operation.UPSERT, ROWS.slice(begin, 50))
            done = [each for each in opened.flush() if each.table == "orders"]
            assert sum(each.row_count for each in done) == 1000
            assert done[-1].covered[0].end == 20
            assert log.lake_watermark(definition.topic, 0) == 20
            opened.tables.write("orders", Operation.DELETE, pa.table({"id": range(10)}))
            for number in range(10):
                del expected[number]
            found = lake.run(lambda: with_pyiceberg(lake.catalog.load_table("frazil.orders")))
            assert len(found) == 1000
        # As if retention had removed what is frozen.
        assert log.delete_records(definition.topic, 0, 20) == 20
    shutil.rmtree(tmp_path / "tables" / "orders" / "0")
    (done,) = [each for each in flush_folder(config) if each.table == "orders"]
    assert (done.row_count, done.covered[0].begin, done.covered[0].end) == (0, 20, 21)
    with Log.open(RealDisk(tmp_path), config.log, clock=CLOCK, rand=SystemRandom()) as log:
        lake = open_lake(log, config, clock=CLOCK, rand=SystemRandom(), auto_flush=False)
        assert lake is not None
        with Embedded.over(
            log, RealDisk(tmp_path), config, clock=CLOCK, lake=lake, owns=[lake]
        ) as opened:
            rows = [
                row for batch in opened.tables.view("orders").batches() for row in batch.to_pylist()
            ]
            assert {row["id"]: row for row in rows} == expected
            found = lake.run(lambda: with_pyiceberg(lake.catalog.load_table("frazil.orders")))
            assert found == expected
