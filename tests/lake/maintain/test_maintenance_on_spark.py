"""Maintenance on a real Spark: by a lake's thread, by schedule and on demand, beside rounds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil.disk import RealDisk
from frazil.lake import Lake
from frazil.log import Log
from frazil.model import GiB, SystemClock
from frazil.settings import LakeConfig, TopicConfig
from tests.lake.append.test_appender import World, expected
from tests.lake.maintain.test_maintenance import files_of, load, offsets_of

CLOCK = SystemClock()
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Lake]]:
    folder: Path = tmp_path_factory.mktemp("lake") / "data"
    config = LakeConfig(
        slice_bytes=20_000,
        flush_age_ms=1,
        maintain_interval_ms=1,
        driver_memory_bytes=GiB // 2,
    )
    rand = random.SystemRandom()
    with Log.open(RealDisk(folder), clock=CLOCK, rand=rand) as log:
        for topic in ("otlp_logs", "otlp_spans"):
            log.create_topic(topic, TopicConfig(awaits_lake=True))
        with Lake.open(log, folder, config, clock=CLOCK, rand=rand, auto_flush=True) as lake:
            yield World(log=log, folder=folder, catalog=lake.run(lambda: lake.catalog)), lake


def test_maintenance_runs_by_schedule_and_on_request(made: tuple[World, Lake]) -> None:
    """Every row is there once, and Spark reads the merged files."""
    world, lake = made
    for _ in range(6):
        world.add(6)
        lake.flush()
    # The day of these rows is over, so that the schedule joins whatever is worth it.
    for _ in range(600):
        if len(lake.run(lambda: files_of(load(world)))) <= 2:
            break
        CLOCK.sleep(0.1)
    else:
        pytest.fail("the schedule has joined nothing for a minute")
    assert lake.run(lambda: world.rows()) == expected(36)
    done = {each.table: each for each in lake.maintain()}
    assert done.keys() == {"dead_letters", "logs", "metrics", "spans"}
    assert not any(each.trouble for each in done.values())
    table = lake.run(lambda: load(world))
    assert len(files_of(table)) == 1
    assert offsets_of(table) == {"otlp_logs": {"0": 36}}
    counted = "SELECT count(*), count(DISTINCT _offset * 100 + _row), max(_offset) FROM {}"
    for name in ("logs", "spans"):
        text = counted.format(f"frazil.frazil.{name}")
        (row,) = lake.run(lambda text=text: lake.session.spark().sql(text).collect())  # type: ignore[misc]
        assert tuple(row) == (108, 108, 35)
    world.add(1)
    lake.flush()
    assert lake.run(lambda: world.rows()) == expected(37)


def test_files_written_by_spark_are_not_orphans(made: tuple[World, Lake]) -> None:
    """Spark writes local paths differently."""
    world, lake = made
    lake.run(
        lambda: (
            lake.session.spark()
            .sql(
                "CALL frazil.system.rewrite_data_files(table => 'frazil.frazil.logs', "
                "options => map('rewrite-all', 'true'))"
            )
            .collect()
        )
    )
    paths = {file.file_path for file in files_of(load(world))}
    assert all(path.startswith("file:/") and not path.startswith("file:///") for path in paths)
    (done,) = (each for each in lake.maintain() if each.table == "logs")
    assert not done.trouble
    assert done.orphans_removed == 0
    assert len(lake.run(lambda: world.rows())) == world.count * 3
