"""The appender on Spark: all engines read the same rows."""

from __future__ import annotations

import os
import random
import signal
import sys
import zipimport
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyspark
import pytest

from frazil.disk import RealDisk
from frazil.errors import Unavailable
from frazil.lake import LakeView
from frazil.lake.append.appender import Appender
from frazil.lake.append.log_source import LogSource
from frazil.lake.catalog.catalog import open_catalog, spark_settings
from frazil.lake.read.table_reader import TableReader
from frazil.lake.spark.fork_server import without_archives
from frazil.lake.spark.jobs import do_on, run_on
from frazil.lake.spark.session import Session
from frazil.log import Log
from frazil.model import SystemClock
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.settings import LakeConfig, QueryConfig, TopicConfig
from tests.lake.append.test_appender import ROWS, SMALL, World, expected
from tests.lake.inline_tasks import run_inline

CLOCK = SystemClock()
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Session]]:
    folder: Path = tmp_path_factory.mktemp("lake") / "data"
    with Log.open(RealDisk(folder), clock=CLOCK, rand=random.SystemRandom()) as log:
        for topic in ("otlp_logs", "otlp_spans"):
            log.create_topic(topic, TopicConfig(awaits_lake=True))
        config: LakeConfig = SMALL
        catalog = open_catalog(config, folder)
        session = Session(config, spark_settings(config, folder))
        yield World(log=log, folder=folder, catalog=catalog), session
        session.close()
        catalog.close()


def test_spark_pyiceberg_and_duckdb_read_the_same_rows(world: tuple[World, Session]) -> None:
    made, session = world
    made.add(120)
    appender = Appender.open(
        LogSource(made.log, made.folder),
        made.catalog,
        SMALL,
        run=run_on(session),
        clock=CLOCK,
        rand=random.SystemRandom(),
    )
    assert [done.row_count for done in appender.append()] == [120 * ROWS, 120 * ROWS]
    assert made.rows("logs") == made.rows("spans") == expected(120)
    counted = "SELECT count(*), count(DISTINCT _offset * 100 + _row), sum(_offset) FROM {}"
    wanted = (120 * ROWS, 120 * ROWS, ROWS * sum(range(120)))
    for table in ("logs", "spans"):
        spark = session.spark().sql(counted.format(f"frazil.frazil.{table}")).collect()
        assert tuple(spark[0]) == wanted
        folder = made.catalog.load_table(f"frazil.{table}").location().removeprefix("file://")
        files = f"'{folder}/data/**/*.parquet'"
        found = duckdb.sql(counted.format(files))
        assert found is not None
        assert found.fetchall() == [wanted]
        assert ours(made, counted.format(table)) == [wanted]


def ours(made: World, text: str) -> list[tuple[int, ...]]:
    """Query the tables with our own SQL, with an empty hot tier."""
    view = LakeView(SMALL, made.folder)
    try:
        with Engine.open(dict, TABLES, QueryConfig(), CLOCK, view) as engine:
            return engine.sql(text).fetchall()
    finally:
        view.close()


def test_tables_with_delete_files_are_refused(world: tuple[World, Session]) -> None:
    """Only Spark applies delete files; counting the deleted rows would be wrong."""
    made, session = world
    spark = session.spark()
    name = "frazil.frazil.spans"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    spark.sql(f"DELETE FROM {name} WHERE _offset = 0 AND _row = 0")
    with pytest.raises(Unavailable, match=r"delete files.*rewrite_data_files"):
        ours(made, "SELECT count(*) FROM spans")
    options = "map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')"
    spark.sql(
        "CALL frazil.system.rewrite_data_files(table => 'frazil.frazil.spans', "
        f"options => {options})"
    )
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('write.delete.mode')")
    text = "SELECT count(*), min(_offset * 100 + _row) FROM {}"
    wanted = tuple(spark.sql(text.format(name)).collect()[0])
    assert ours(made, text.format("spans")) == [wanted]


def test_a_reader_continues_after_maintenance(world: tuple[World, Session]) -> None:
    """Files rewritten by Spark have the same rows in the same order, even if the snapshots that the
    reader knew have expired."""
    made, session = world
    appender = Appender.open(
        LogSource(made.log, made.folder),
        made.catalog,
        SMALL,
        run=run_inline,
        clock=CLOCK,
        rand=random.SystemRandom(),
    )
    reader = TableReader.open(open_catalog(SMALL, made.folder), SMALL, "logs")
    found: list[tuple[int, int]] = []
    begins = {0: 0}
    for statement in (
        None,
        "CALL frazil.system.rewrite_data_files(table => 'frazil.frazil.logs', "
        "options => map('rewrite-all', 'true'))",
        "CALL frazil.system.expire_snapshots(table => 'frazil.frazil.logs', "
        "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)",
    ):
        made.add(40)
        appender.append()
        if statement is not None:
            session.spark().sql(statement).collect()
        reader.refresh()
        for rows in reader.read(begins):
            places = rows.batch.select(["_offset", "_row"]).to_pydict()
            found += zip(places["_offset"], places["_row"], strict=True)
            begins[0] = rows.end
        assert found == expected(made.count)
    (whole,) = reader.read({0: 0})
    assert whole.batch.num_rows == made.count * ROWS
    reader.close()


def archives_looked_into(_: int) -> tuple[list[str], bool]:
    """Runs in a task: archives on the module path, and whether our modules were loaded."""
    known = [
        path
        for path, finder in sys.path_importer_cache.items()
        if isinstance(finder, zipimport.zipimporter)
    ]
    return known, "frazil.lake.files.writer" in sys.modules


def test_task_modules_are_loaded_and_archives_removed(world: tuple[World, Session]) -> None:
    _, session = world
    ((found, was_there),) = do_on(session)(archives_looked_into, [1])
    assert found == []
    assert was_there


def test_archives_of_another_spark_are_kept(tmp_path: Path) -> None:
    """Their modules are nowhere else, or of another version."""
    home = Path(pyspark.__file__).parent
    (tmp_path / "pyspark.zip").touch()
    paths = [str(tmp_path / "pyspark.zip"), "x.jar", str(home / "y.zip"), str(home.parent)]
    assert without_archives(paths) == [paths[0], paths[3]]
    assert without_archives(paths[:3]) == [paths[0], paths[2]]


def test_the_next_round_restarts_a_killed_spark(world: tuple[World, Session]) -> None:
    made, session = world
    before = len(made.rows("logs"))
    appender = Appender.open(
        LogSource(made.log, made.folder),
        made.catalog,
        SMALL,
        run=run_on(session),
        clock=CLOCK,
        rand=random.SystemRandom(),
    )
    pid = session.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    made.add(10)
    while not appender.append():
        pass
    assert len(made.rows("logs")) == before + 10 * ROWS
    assert session.pid not in (None, pid)
