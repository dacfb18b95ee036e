"""A warehouse in a bucket: the same rows through a real S3 server."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from frazil.disk import RealDisk
from frazil.lake.append.appender import Appender, Work
from frazil.lake.append.log_source import LogSource
from frazil.lake.append.task import WrittenSlice, run_slice
from frazil.lake.catalog.catalog import open_catalog, spark_settings
from frazil.lake.files.object_store import open_store
from frazil.lake.maintain.expire_snapshots import DAY_MS
from frazil.lake.maintain.maintenance import Maintenance
from frazil.log import Log
from frazil.settings import LakeConfig, TopicConfig
from tests.clients.buckets import Buckets
from tests.lake.append.test_appender import CLOCK, World, expected
from tests.lake.maintain.test_maintenance import Later, do_here, files_of

SECRET = "only-tests-know"
WAREHOUSE = "s3://tests/warehouse"


@pytest.fixture
def buckets() -> Iterator[Buckets]:
    with Buckets() as made:
        yield made


@pytest.fixture
def config(buckets: Buckets, tmp_path: Path) -> LakeConfig:
    return LakeConfig(
        slice_bytes=20_000,
        warehouse=WAREHOUSE,
        catalog={
            "uri": f"sqlite:///{tmp_path}/catalog.db",
            "s3.endpoint": buckets.endpoint,
            "s3.access-key-id": "tests",
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
        },
    )


@pytest.fixture
def world(config: LakeConfig, tmp_path: Path) -> Iterator[World]:
    folder = tmp_path / "data"
    with Log.open(RealDisk(folder), clock=CLOCK, rand=random.SystemRandom()) as log:
        for topic in ("otlp_logs", "otlp_spans"):
            log.create_topic(topic, TopicConfig(awaits_lake=True))
        catalog = open_catalog(config, folder)
        yield World(log=log, folder=folder, catalog=catalog)
        catalog.close()


def run_checked(work: Sequence[Work]) -> list[WrittenSlice]:
    for _, target in work:
        assert SECRET not in repr(target), "log lines contain no passwords"
    return [run_slice(*each) for each in work]


def open_appender(world: World, config: LakeConfig) -> Appender:
    return Appender.open(
        LogSource(world.log, world.folder),
        world.catalog,
        config,
        run=run_checked,
        clock=CLOCK,
        rand=random.SystemRandom(),
    )


def keys(buckets: Buckets) -> set[str]:
    # Arrow leaves an empty object for a folder that it has emptied.
    return {f"s3://{name}" for name in buckets.objects if not name.endswith("/")}


def test_a_table_in_a_bucket_has_each_row_once(
    world: World, config: LakeConfig, buckets: Buckets
) -> None:
    """After appends, compaction, expiry and another append."""
    appender = open_appender(world, config)
    for _ in range(12):
        world.add(2)
        appender.append()
    assert world.rows("logs") == world.rows("spans") == expected(24)
    later = Maintenance(
        lambda: world.catalog,
        config,
        do_here,
        clock=Later(2 * DAY_MS),
        rand=random.SystemRandom(),
    )
    done = {each.table: each for each in later.all()}
    assert not any(each.trouble for each in done.values())
    assert (done["logs"].files_joined, done["logs"].files_made) == (12, 1)
    assert done["logs"].snapshots_expired > 0
    world.add(2)
    appender.append()
    assert world.rows("logs") == world.rows("spans") == expected(26)
    table = world.catalog.load_table("frazil.logs")
    assert {file.file_path for file in files_of(table)} <= keys(buckets)


def test_an_object_exists_once_it_is_synced(config: LakeConfig, buckets: Buckets) -> None:
    catalog = open_catalog(config, Path("/nowhere"))
    from pyiceberg.io import load_file_io

    location = f"{WAREHOUSE}/table"
    store = open_store(location, load_file_io(catalog.properties, location))
    file = store.open("data/one.parquet", "create")
    file.append([b"12", memoryview(b"345")])
    assert keys(buckets) == set()
    file.sync()
    file.close()
    assert keys(buckets) == {f"{location}/data/one.parquet"}
    store.unlink("data/one.parquet")
    assert keys(buckets) == set()
    catalog.close()


def test_a_failed_task_deletes_its_objects(
    world: World, config: LakeConfig, buckets: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frazil.lake.files import writer

    appender = open_appender(world, config)
    before = keys(buckets)
    world.add(2)

    def failing(*_: Any) -> Any:
        raise RuntimeError("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(writer, "metrics_of", failing)
        with pytest.raises(RuntimeError, match="on purpose"):
            appender.append()
    assert keys(buckets) == before
    appender.append()
    assert world.rows("logs") == expected(2)


def test_spark_settings_have_the_bucket(
    config: LakeConfig, tmp_path: Path, buckets: Buckets
) -> None:
    settings = spark_settings(config, tmp_path)
    assert settings["spark.sql.catalog.frazil.s3.endpoint"] == buckets.endpoint
    assert settings["spark.sql.catalog.frazil.io-impl"].endswith("S3FileIO")
    assert settings["spark.sql.catalog.frazil.s3.path-style-access"] == "true"
