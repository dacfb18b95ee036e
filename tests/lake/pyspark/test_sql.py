"""Spark over a data folder: data source, user sessions, and SQL over log and lake."""

from __future__ import annotations

import io
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import frazil
from frazil.disk import RealDisk
from frazil.embedded import Embedded
from frazil.errors import FrazilError, Malformed, Overloaded, TooLarge, Unavailable
from frazil.lake import open_shell, run_script, session, whole
from frazil.log import Log, Record, append_of_records
from frazil.model import SystemClock
from frazil.results import CancelToken, Limits
from frazil.settings import LakeConfig, TopicConfig
from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs
from tests.lake.rows import bodies

CLOCK = SystemClock()
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
SETTINGS = """\
[lake]
driver_memory_bytes = 536870912
[[promote]]
table = "logs"
key = "it's order"
type = "BIGINT"
column = "order"
"""
ROWS = 3
COUNT = 40


def put(log: Log, topic: str, body: bytes) -> None:
    record = Record(offset=0, timestamp_ms=CLOCK.wall_ms(), key=None, value=body)
    log.append(topic, append_of_records([record])).result()


def put_logs(log: Log, begin: int, end: int) -> None:
    for number in range(begin, end):
        put(log, "otlp_logs", logs(*(log_record(number, event_name=f"{r}") for r in range(ROWS))))


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A folder with rows in lake and log. All tests share its Spark."""
    folder: Path = tmp_path_factory.mktemp("spark")
    (folder / "frazil.toml").write_text(SETTINGS)
    with Log.open(RealDisk(folder / "data"), clock=CLOCK, rand=random.SystemRandom()) as log:
        for topic in ("otlp_logs", "otlp_spans", "otlp_metrics"):
            log.create_topic(topic, TopicConfig(awaits_lake=True))
        put_logs(log, 0, COUNT)
        for body in bodies("traces", 7, 10):
            put(log, "otlp_spans", body)
        for body in bodies("metrics", 7, 10):
            put(log, "otlp_metrics", body)
    with frazil.open(folder / "data", config=folder / "frazil.toml") as made:
        made.flush()
        yield made


def log_of(opened: Embedded) -> Log:
    log = opened.tier._log
    assert isinstance(log, Log)
    return log


def folder_of(opened: Embedded) -> Path:
    assert opened.lake is not None
    return opened.lake.data_folder


def one(opened: Embedded, text: str) -> tuple[Any, ...]:
    (row,) = opened.sql(text, engine="spark").fetchall()
    return row


COUNTED = "SELECT count(*), count(DISTINCT _offset, _row), sum(_offset) FROM logs"


def counted(count: int) -> tuple[int, int, int]:
    return ROWS * count, ROWS * count, ROWS * sum(range(count))


def test_sql_returns_rows_of_lake_and_log_once(opened: Embedded) -> None:
    """With all rows in the lake, with some in the log only, and with all in the lake again."""
    assert one(opened, COUNTED) == counted(COUNT)
    put_logs(log_of(opened), COUNT, COUNT + 5)
    assert one(opened, COUNTED) == counted(COUNT + 5)
    opened.flush()
    assert one(opened, COUNTED) == counted(COUNT + 5)
    for table in ("spans", "metrics"):
        text = f"SELECT count(*), sum(_offset) FROM {table}"
        opened.catch_up()
        assert one(opened, text) == opened.sql(text).fetchall()[0]


def test_spark_reads_promoted_columns_that_its_tasks_have_written(opened: Embedded) -> None:
    """Also by a name that is a word of SQL; SQL on the node sees the same."""
    begin = log_of(opened).partition("otlp_logs", 0).durable_watermark
    records = [log_record(number) for number in range(ROWS)]
    for record, value in zip(records, ("7", "-8", "many"), strict=True):
        record.attributes.add(key="it's order").value.string_value = value
    put(log_of(opened), "otlp_logs", logs(*records))
    opened.catch_up()
    text = f'SELECT "order" FROM logs WHERE _offset = {begin} ORDER BY _row'
    assert opened.sql(text).fetchall() == [(7,), (-8,), (None,)]
    opened.flush()
    spark = session(folder_of(opened))
    rows = spark.table("logs").where(f"_offset = {begin}").orderBy("_row").select("`order`")
    assert [row.order for row in rows.collect()] == [7, -8, None]
    assert spark.sql("SELECT count(*) FROM logs WHERE `order` = -8").collect()[0][0] == 1
    assert opened.sql(text).fetchall() == [(7,), (-8,), (None,)]


def test_a_user_session_shares_the_spark_of_the_process(opened: Embedded) -> None:
    """It has short table names and the data source."""
    spark = session(folder_of(opened))
    assert {row.tableName for row in spark.sql("SHOW TABLES").collect()} >= {"logs", "spans"}
    opened.flush()
    end = spark.table("logs").count()
    assert end == spark.sql("SELECT * FROM logs").count() > 0
    begin = log_of(opened).partition("otlp_logs", 0).durable_watermark
    put_logs(log_of(opened), begin, begin + 2)
    assert spark.table("logs").count() == end
    assert whole(spark, "logs", folder_of(opened)).count() == end + 2 * ROWS
    source = spark.read.format("frazil").option("table", "logs")
    assert source.load().count() == end + 2 * ROWS
    some = source.option("columns", "_offset, event_name").option(
        "startingOffsets", f'{{"otlp_logs": {{"0": {begin}}}}}'
    )
    found = some.load()
    assert found.columns == ["_offset", "event_name"]
    assert found.count() == 2 * ROWS
    named = source.schema("_row int, time timestamp").load()
    assert named.columns == ["_row", "time"]
    for wrong, message in (("_row string", "_row is int"), ("nothing int", "no column 'nothing'")):
        with pytest.raises(Exception, match=message):
            source.schema(wrong).load().count()


def test_a_process_may_have_several_user_sessions(opened: Embedded) -> None:
    """Even if Spark has made one of them the active session of the thread."""
    first = session(folder_of(opened))
    assert first.createDataFrame([(7,)], "n int").count() == 1
    second = session(folder_of(opened))
    assert second is not first
    for spark in (first, second):
        assert spark.read.format("frazil").option("table", "logs").load().count() > 0


def test_a_restarted_stream_continues(opened: Embedded, tmp_path: Path) -> None:
    """It reads every offset once, in limited batches."""
    spark = session(folder_of(opened))
    seen: list[tuple[int, int]] = []
    sizes: list[int] = []

    def take(batch: Any, _: int) -> None:
        rows = [(row._offset, row._row) for row in batch.select("_offset", "_row").collect()]
        sizes.append(len(rows))
        seen.extend(rows)

    for _ in range(2):
        put_logs(log_of(opened), 0, 10)
        source = spark.readStream.format("frazil").options(
            table="logs",
            columns="_offset,_row",
            maxOffsetsPerTrigger="30",
            endingOffsets="latest",
        )
        query = source.load().writeStream.foreachBatch(take)
        running = query.option("checkpointLocation", str(tmp_path / "ckpt")).start()
        running.processAllAvailable()
        running.stop()
    end = log_of(opened).partition("otlp_logs", 0).durable_watermark
    assert sorted(seen) == [(offset, row) for offset in range(end) for row in range(ROWS)]
    assert max(sizes) <= 30 * ROWS


@pytest.mark.parametrize("begin", ["earliest", "latest"])
def test_a_failed_first_batch_is_repeated_unchanged(
    opened: Embedded, tmp_path: Path, begin: str
) -> None:
    """Spark asks for the initial offset again, although rows were added since."""
    spark = session(folder_of(opened))
    log = log_of(opened)
    first = log.partition("otlp_logs", 0).durable_watermark if begin == "latest" else 0
    seen: list[tuple[int, int]] = []
    tries: list[int] = []

    def take(batch: Any, number: int) -> None:
        tries.append(number)
        if len(tries) == 1:
            raise RuntimeError("not yet")
        seen.extend((row._offset, row._row) for row in batch.collect())

    def start() -> Any:
        source = spark.readStream.format("frazil").options(
            table="logs", columns="_offset,_row", maxOffsetsPerTrigger="7", startingOffsets=begin
        )
        query = source.load().writeStream.foreachBatch(take)
        return query.option("checkpointLocation", str(tmp_path / "ckpt")).start()

    with pytest.raises(StreamingQueryException, match="not yet"):
        start().processAllAvailable()
    put_logs(log, 0, 10)
    running = start()
    running.processAllAvailable()
    running.stop()
    end = log.partition("otlp_logs", 0).durable_watermark
    assert sorted(seen) == [(offset, row) for offset in range(first, end) for row in range(ROWS)]


def test_scripts_and_the_shell_have_a_session(
    opened: Embedded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As `frazil pyspark` runs them."""
    spark = session(folder_of(opened))
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(sys.argv[1:], spark.sql('SELECT 7 AS n').first().n)\n")
    run_script(spark, str(script), ["--drain", "x"])
    assert capsys.readouterr().out == "['--drain', 'x'] 7\n"
    with pytest.raises(Malformed, match="there is no script"):
        run_script(spark, "nothing.py", [])
    monkeypatch.setattr("sys.stdin", io.StringIO("print(whole('logs').limit(5).count())\n"))
    open_shell(spark, folder_of(opened), LakeConfig())
    output = capsys.readouterr()
    assert "5\n" in output.out
    assert str(folder_of(opened)) in output.err


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "WITH a AS (SELECT * FROM logs) SELECT count(*) FROM a JOIN spans ON true WHERE false",
        "EXPLAIN SELECT * FROM logs",
        "SELECT service_name, count(*) FROM logs GROUP BY ALL HAVING count(*) > 1 ORDER BY 1",
        "SELECT * FROM (VALUES (1, 2)) AS t(a, b) UNION ALL SELECT 3, 4 INTERSECT SELECT 3, 4",
        "SELECT explode(map_keys(attributes)) FROM logs LIMIT 3 OFFSET 1",
        "SELECT row_number() OVER w FROM logs WINDOW w AS (ORDER BY time) LIMIT 1",
        "FROM logs |> WHERE _offset < 3 |> SELECT _row",
        "SELECT _row FROM logs TABLESAMPLE (50 PERCENT)",
        "SELECT (SELECT max(_offset) FROM logs) IN (SELECT _offset FROM logs)",
        "SELECT * FROM logs PIVOT (count(*) FOR _row IN (0, 1)) LIMIT 1",
        "SELECT count(*) FROM frazil.frazil.logs.snapshots",
    ],
)
def test_queries_are_allowed(opened: Embedded, text: str) -> None:
    assert opened.sql(text, engine="spark").schema.names


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE logs",
        "DELETE FROM frazil.frazil.logs",
        "INSERT INTO frazil.frazil.logs SELECT * FROM logs",
        "FROM logs INSERT INTO a SELECT _row INSERT INTO b SELECT _row",
        "WITH a AS (SELECT 1) INSERT INTO frazil.frazil.logs SELECT * FROM a",
        "CREATE TABLE t AS SELECT * FROM logs",
        "CREATE TEMPORARY VIEW logs AS SELECT 1",
        "CALL frazil.system.expire_snapshots('frazil.logs')",
        "SET spark.sql.runSQLOnFiles = true",
        "CACHE TABLE logs",
        "USE frazil",
        "ADD JAR '/tmp/x.jar'",
        "EXPLAIN DELETE FROM frazil.frazil.logs",
        "INSERT OVERWRITE DIRECTORY '/tmp/x' USING parquet SELECT 1",
        "EXECUTE IMMEDIATE 'DROP TABLE frazil.frazil.logs'",
        "BEGIN DROP TABLE frazil.frazil.logs; END",
        "SELECT TRANSFORM (_row) USING 'cat' AS (a) FROM logs",
        "SELECT * FROM (SELECT TRANSFORM (_row) USING 'cat' AS (a) FROM logs)",
        "WITH a AS (SELECT TRANSFORM (_row) USING 'cat' AS (a) FROM logs) SELECT * FROM a",
        "SELECT (SELECT max(a) FROM (SELECT TRANSFORM (1) USING 'cat' AS (a)))",
        "SELECT reflect('java.lang.System', 'getProperty', 'user.home')",
        "SELECT java_method('java.lang.System', 'getProperty', 'user.home')",
        "SELECT try_reflect('java.lang.System', 'getProperty', 'user.home')",
        "WITH a AS (SELECT reflect('java.lang.System', 'exit', 1)) SELECT * FROM a",
        "SELECT * FROM logs WHERE (SELECT reflect('java.lang.System', 'exit', 1)) IS NULL",
        "SELECT * FROM parquet.`/tmp`",
        "SELECT * FROM text.`/etc/passwd`",
        "SELECT * FROM nothing",
        "SELECT nothing FROM logs",
        "SELEC 1",
        "",
        "SELECT 1; SELECT 2",
    ],
)
def test_other_statements_are_rejected(opened: Embedded, text: str) -> None:
    with pytest.raises(Malformed):
        opened.sql(text, engine="spark")


def test_queries_can_be_cancelled_and_are_limited_in_number(opened: Embedded) -> None:
    """A client that leaves ends its query, and others get its place."""
    long = "SELECT count(*) FROM range(1000000000000) WHERE cos(id) > 2"
    tokens = [CancelToken(), CancelToken()]
    errors: list[FrazilError] = []

    def ask(token: CancelToken) -> None:
        try:
            opened.sql(long, engine="spark", cancel_token=token)
        except FrazilError as error:
            errors.append(error)

    askers = [threading.Thread(target=ask, args=(token,)) for token in tokens]
    for asker in askers:
        asker.start()
    while opened._questions._value:
        threading.Event().wait(0.01)
    with pytest.raises(Overloaded, match=r"lake\.questions_max"):
        opened.sql("SELECT 1", engine="spark")
    for token in tokens:
        token.cancel(Unavailable("the client left"))
    for asker in askers:
        asker.join(60)
        assert not asker.is_alive()
    assert [str(error) for error in errors] == ["the client left"] * 2
    assert opened.sql("SELECT 1 AS x", engine="spark").fetchall() == [(1,)]


def test_queries_have_a_timeout_and_a_row_limit(opened: Embedded) -> None:
    with pytest.raises(TooLarge, match="took longer than 1500 ms"):
        opened.sql(
            "SELECT count(*) FROM range(1000000000000) WHERE cos(id) > 2",
            engine="spark",
            limits=Limits(timeout_ms=1500),
        )
    few = opened.sql("SELECT * FROM range(10)", engine="spark", limits=Limits(rows_max=4))
    assert [batch.num_rows for batch in few] == [4]
    assert few.is_cut
    with pytest.raises(TooLarge, match="has more than"):
        opened.sql("SELECT * FROM range(9)", engine="spark", limits=Limits(rows_max=4)).arrow()
    assert opened.sql("SELECT id FROM range(4)", engine="spark").fetchall() == [
        (number,) for number in range(4)
    ]


def test_spark_sql_without_a_lake_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "frazil.toml").write_text("[lake]\nenabled = false\n")
    with Log.open(RealDisk(tmp_path / "data"), clock=CLOCK, rand=random.SystemRandom()):
        pass
    with (
        frazil.open(tmp_path / "data", config=tmp_path / "frazil.toml") as opened,
        pytest.raises(Unavailable, match="there is no lake"),
    ):
        opened.sql("SELECT 1", engine="spark")
