"""Statements as they are read: every head, what is kept exactly, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.definitions import (
    AddColumn,
    CloneTable,
    ClusterBy,
    ColumnSpec,
    CopyIntoStage,
    CopyIntoTable,
    CreateExternalTable,
    CreatePipe,
    CreateSink,
    CreateSource,
    CreateStage,
    CreateTable,
    CreateView,
    DeleteRows,
    DescribeStage,
    Drop,
    ExecutePipe,
    FileFormat,
    InsertRows,
    ListStage,
    LoadCheck,
    PartitionField,
    Pause,
    Resume,
    SetBloom,
    Show,
    ShowKeyedTables,
    StagePath,
    TableColumnSpec,
    UpdateRows,
    ValidateStage,
    WidenColumn,
    is_statement,
    parse_statement,
    parse_statements,
)
from frazil.errors import Malformed, Rejected, TooLarge

S = StagePath(stage="s", path="2026/")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "CREATE STAGE s URL='s3://b/p/' CONNECTION=name "
            "FILE_FORMAT=(TYPE=NDJSON COMPRESSION=AUTO)",
            CreateStage(
                name="s",
                url="s3://b/p/",
                connection="name",
                file_format=FileFormat(type="ndjson"),
            ),
        ),
        (
            "create or replace stage S url = 'file:///x'",
            CreateStage(name="s", or_replace=True, url="file:///x"),
        ),
        ("LIST @s/2026/", ListStage(path=S)),
        (
            'create table if not exists t (a bigint, "B c" decimal(10,2) not null, '
            "c timestamp with time zone null, d int unsigned, primary key (a, d)) partitions 4",
            CreateTable(
                name="t",
                if_not_exists=True,
                columns=(
                    TableColumnSpec(name="a", type="BIGINT"),
                    TableColumnSpec(name="B c", type="DECIMAL(10, 2)", not_null=True),
                    TableColumnSpec(name="c", type="TIMESTAMPTZ"),
                    TableColumnSpec(name="d", type="INT UNSIGNED"),
                ),
                key=("a", "d"),
                partitions=4,
            ),
        ),
        (
            "CREATE TABLE t (a TEXT PRIMARY KEY)",
            CreateTable(name="t", columns=(TableColumnSpec(name="a", type="VARCHAR"),), key=("a",)),
        ),
        (
            "CREATE TABLE t (a TEXT PRIMARY KEY) FROM TOPIC 'shop.orders' FORMAT debezium",
            CreateTable(
                name="t",
                columns=(TableColumnSpec(name="a", type="VARCHAR"),),
                key=("a",),
                topic="shop.orders",
                topic_format="debezium",
            ),
        ),
        (
            "ALTER TABLE t ADD c TEXT",
            AddColumn(table="t", column=TableColumnSpec(name="c", type="VARCHAR")),
        ),
        (
            "ALTER TABLE t ALTER COLUMN c SET DATA TYPE bigint",
            WidenColumn(table="t", column=TableColumnSpec(name="c", type="BIGINT")),
        ),
        (
            "INSERT INTO t (a, b) VALUES (1, 'x,)'), (f(2, 3), [1, (2)])",
            InsertRows(
                table="t", columns=("a", "b"), rows=(("1", "'x,)'"), ("f(2, 3)", "[1, (2)]"))
            ),
        ),
        (
            "UPSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x",
            InsertRows(table="t", query="WITH x AS (SELECT 1) SELECT * FROM x", is_upsert=True),
        ),
        (
            "UPDATE t SET a = CASE WHEN b THEN 1 END, c = (SELECT 1 WHERE true) WHERE a = ','",
            UpdateRows(
                table="t",
                assignments=(("a", "CASE WHEN b THEN 1 END"), ("c", "(SELECT 1 WHERE true)")),
                where="a = ','",
            ),
        ),
        ("DELETE FROM t WHERE a IN (1, 2)", DeleteRows(table="t", where="a IN (1, 2)")),
        ("DELETE FROM t", DeleteRows(table="t")),
        ("SHOW KEYED TABLES", ShowKeyedTables()),
        ("LIST '@s/with -- signs/*'", ListStage(path=StagePath(stage="s", path="with -- signs/*"))),
        ("DESCRIBE @s/2026/", DescribeStage(path=S)),
        ("VALIDATE @s/2026/ PATTERN='.*[.]json'", ValidateStage(path=S, pattern=".*[.]json")),
        ("COPY INTO t FROM @s/2026/", CopyIntoTable(table="t", source=S)),
        (
            "COPY INTO t (a BIGINT, b NUMERIC(10,2), c) FROM @s/2026/ FILES=('x.csv','d/y.csv') "
            "FILE_FORMAT=(TYPE=CSV HEADER=false FIELD_DELIMITER=';' NULL_IF=('', 'NA')) "
            "ON_ERROR=SKIP_FILE_5 MAX_FILES=3 MAX_ERRORS=0 FORCE=true PURGE=true ADD_COLUMNS=true "
            "VALIDATION_MODE=RETURN_ERRORS PARTITION BY (day(time), bucket(16, u), region)",
            CopyIntoTable(
                table="t",
                columns=(
                    ColumnSpec(name="a", type="BIGINT"),
                    ColumnSpec(name="b", type="DECIMAL(10, 2)"),
                    ColumnSpec(name="c"),
                ),
                source=S,
                files=("x.csv", "d/y.csv"),
                file_format=FileFormat(
                    type="csv", header=False, field_delimiter=";", null_if=("", "NA")
                ),
                on_error="skip_file",
                skip_file_errors=5,
                max_files=3,
                max_errors=0,
                force=True,
                purge=True,
                add_columns=True,
                return_errors=True,
                partition_by=(
                    PartitionField(column="time", transform="day"),
                    PartitionField(column="u", transform="bucket", argument=16),
                    PartitionField(column="region"),
                ),
            ),
        ),
        (
            'COPY INTO logs FROM @s/2026/ MAPPING=(body=message, time="Time Stamp")',
            CopyIntoTable(
                table="logs", source=S, mapping=(("body", "message"), ("time", "Time Stamp"))
            ),
        ),
        (
            "COPY INTO @s/2026/ FROM (SELECT a, ')' FROM t /* ) */ WHERE f(a)) OVERWRITE=true",
            CopyIntoStage(
                target=S, query="SELECT a, ')' FROM t /* ) */ WHERE f(a)", overwrite=True
            ),
        ),
        (
            "CREATE PIPE p SCHEDULE '5 minutes' AS COPY INTO t FROM @s/2026/;",
            CreatePipe(
                name="p",
                every_s=300,
                copy=CopyIntoTable(table="t", source=S),
                copy_text="COPY INTO t FROM @s/2026/",
            ),
        ),
        (
            "CREATE PIPE p CRON '0 3 * * *' AS COPY INTO t FROM @s/2026/",
            CreatePipe(
                name="p",
                cron="0 3 * * *",
                copy=CopyIntoTable(table="t", source=S),
                copy_text="COPY INTO t FROM @s/2026/",
            ),
        ),
        (
            "CREATE PIPE p ON NEW FILES RETRIES=0 AS COPY INTO t FROM (SELECT a, '@x' AS b "
            "FROM @s/2026/ (a BIGINT) r WHERE (a > 1)) ON_ERROR=CONTINUE VALIDATE (NOT EMPTY, "
            'MAX_ERROR_RATE 0.05, UNIQUE (a, "B"), RANGE a BETWEEN -1.5 AND 9, '
            "CHECK (SELECT * FROM new_rows WHERE f(a)))",
            CreatePipe(
                name="p",
                on_new_files=True,
                retries=0,
                copy=CopyIntoTable(
                    table="t",
                    source=S,
                    query="SELECT a, '@x' AS b FROM staged_rows r WHERE (a > 1)",
                    staged_columns=(ColumnSpec(name="a", type="BIGINT"),),
                    on_error="continue",
                    checks=(
                        LoadCheck(kind="not_empty", text="NOT EMPTY"),
                        LoadCheck(kind="max_error_rate", text="MAX_ERROR_RATE 0.05", rate=0.05),
                        LoadCheck(kind="unique", text='UNIQUE (a, "B")', columns=("a", "B")),
                        LoadCheck(
                            kind="range",
                            text="RANGE a BETWEEN -1.5 AND 9",
                            columns=("a",),
                            low="-1.5",
                            high="9",
                        ),
                        LoadCheck(
                            kind="query",
                            text="CHECK (SELECT * FROM new_rows WHERE f(a))",
                            query="SELECT * FROM new_rows WHERE f(a)",
                        ),
                    ),
                ),
                copy_text="COPY INTO t FROM (SELECT a, '@x' AS b FROM @s/2026/ (a BIGINT) r "
                "WHERE (a > 1)) "
                'ON_ERROR=CONTINUE VALIDATE (NOT EMPTY, MAX_ERROR_RATE 0.05, UNIQUE (a, "B"), '
                "RANGE a BETWEEN -1.5 AND 9, CHECK (SELECT * FROM new_rows WHERE f(a)))",
            ),
        ),
        (
            "CREATE EXTERNAL TABLE a STORED AS PARQUET LOCATION '@s/2026/' "
            "PARTITIONED BY (year, month)",
            CreateExternalTable(
                name="a",
                file_format=FileFormat(type="parquet"),
                location=S,
                partitioned_by=(ColumnSpec(name="year"), ColumnSpec(name="month")),
            ),
        ),
        (
            "CREATE EXTERNAL TABLE a (id BIGINT, x) STORED AS CSV LOCATION @s/2026/ HEADER=false "
            "PARTITIONED BY (zip VARCHAR)",
            CreateExternalTable(
                name="a",
                columns=(ColumnSpec(name="id", type="BIGINT"), ColumnSpec(name="x")),
                file_format=FileFormat(type="csv", header=False),
                location=S,
                partitioned_by=(ColumnSpec(name="zip", type="VARCHAR"),),
            ),
        ),
        (
            "CREATE OR REPLACE VIEW v AS\n  SELECT *, 'a;''b' AS x -- why; not\n  FROM logs",
            CreateView(
                name="v",
                or_replace=True,
                query="SELECT *, 'a;''b' AS x -- why; not\n  FROM logs",
            ),
        ),
        ("CREATE TABLE b CLONE a", CloneTable(name="b", source="a")),
        (
            "CREATE TABLE b CLONE a FOR SYSTEM_VERSION AS OF 42",
            CloneTable(name="b", source="a", version=42),
        ),
        (
            "CREATE TABLE b CLONE \"a.b-c\" FOR SYSTEM_TIME AS OF TIMESTAMP '2026-09-21 14:00:00'",
            CloneTable(name="b", source="a.b-c", time=datetime(2026, 9, 21, 14, tzinfo=UTC)),
        ),
        ('ALTER TABLE t CLUSTER BY (a, "B")', ClusterBy(table="t", columns=("a", "B"))),
        ("ALTER TABLE t CLUSTER BY NONE", ClusterBy(table="t", columns=())),
        ("ALTER TABLE t SET BLOOM (id)", SetBloom(table="t", columns=("id",))),
        ("ALTER TABLE t SET BLOOM NONE", SetBloom(table="t", columns=())),
        ("SHOW VIEWS", Show(kind="view")),
        ("SHOW EXTERNAL TABLES", Show(kind="external_table")),
        ("SHOW DEFINITIONS", Show(kind=None)),
        ("DROP VIEW IF EXISTS v", Drop(kind="view", name="v", if_exists=True)),
        ("DROP TABLE t", Drop(kind="table", name="t")),
        ("DROP TABLE t PURGE", Drop(kind="table", name="t", purge=True)),
        ("PAUSE PIPE p", Pause(kind="pipe", name="p")),
        ("RESUME PIPE p", Resume(kind="pipe", name="p")),
        ("EXECUTE PIPE p", ExecutePipe(name="p")),
        (
            "CREATE SOURCE s TYPE files CONNECTION=c FOLDER='/a' MODE=Log, N=-3 X=1.5 ON=TRUE "
            "NAMES=('a', 'b') INTO TOPIC 'shop.{table}'",
            CreateSource(
                name="s",
                type="files",
                connection="c",
                topic="shop.{table}",
                options=(
                    ("folder", "/a"),
                    ("mode", "log"),
                    ("n", -3),
                    ("x", 1.5),
                    ("on", True),
                    ("names", ("a", "b")),
                ),
            ),
        ),
        (
            "CREATE OR REPLACE SINK s TYPE http FROM TOPIC 'x'",
            CreateSink(name="s", or_replace=True, type="http", topic="x"),
        ),
        ("SHOW SOURCES", Show(kind="source")),
        ("DROP SINK s", Drop(kind="sink", name="s")),
        ("PAUSE SOURCE s", Pause(kind="source", name="s")),
        ("RESUME SINK s", Resume(kind="sink", name="s")),
    ],
)
def test_every_head_is_read(text: str, wanted: object) -> None:
    """Each kind of statement becomes its dataclass, and is sent to the door of statements."""
    assert parse_statement(text).statement == wanted
    assert is_statement(text)
    assert is_statement(f"/* first */ ; {text}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no statement"),
        (" -- nothing\n;;", "no statement"),
        ("SELECT 1", "not a statement of this node"),
        ("CREATE SOURCE s TYPE files", "ends too early"),
        ("CREATE SOURCE s TYPE files A=1 A=2 INTO TOPIC 'x'", "A only once"),
        ("CREATE SOURCE s TYPE files CONNECTION=a CONNECTION=b INTO TOPIC 'x'", "only once"),
        ("CREATE SOURCE s TYPE files A=1 B INTO TOPIC 'x'", "expected ="),
        ("CREATE SINK s TYPE http INTO TOPIC 'x'", "expected ="),
        ("CREATE SINK s TYPE http FROM TOPIC x", "topic in single quotes"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", "not a statement of this node"),
        ("CREATE STREAM s INTO TOPIC t", "not a statement of this node"),
        ("CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION '/etc'", "path of a stage"),
        ("MERGE INTO t USING s ON true", "not a statement of this node"),
        ("INSERT INTO t", "VALUES, SELECT or WITH"),
        ("INSERT INTO t VALUES (1), (1, 2)", "differ in their number"),
        ("INSERT INTO t VALUES (1", "ends too early"),
        ("INSERT INTO t VALUES ()", "a value"),
        ("INSERT INTO t (a, a) VALUES (1, 2)", "named twice"),
        ("UPDATE t SET a = 1, a = 2", "twice"),
        ("UPDATE t SET a = 1 WHERE", "a condition"),
        ("UPDATE t SET a = b) WHERE true", "the end of the statement"),
        ("DELETE t WHERE a = 1", "not a statement of this node"),
        ("DELETE FROM t WHERE (a = 1", "matching parenthesis"),
        ("CREATE TABLE t (a INT)", "no PRIMARY KEY"),
        ("CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))", "one PRIMARY KEY"),
        ("CREATE TABLE t (a JSON, PRIMARY KEY (a))", "one of"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a)) PARTITIONS 257", "1 to 256"),
        ("CREATE TABLE t AS SELECT 1", "columns in parentheses, or CLONE"),
        ("CREATE TABLE t (a INT PRIMARY KEY) FROM TOPIC orders FORMAT UPSERT", "single quotes"),
        ("CREATE TABLE t (a INT PRIMARY KEY) FROM TOPIC 'orders' FORMAT AVRO", "UPSERT, DEBEZIUM"),
        ("ALTER TABLE t ADD COLUMN c INT NOT NULL", "no NOT NULL"),
        ("ALTER TABLE t DROP COLUMN c", "ADD COLUMN, ALTER COLUMN, CLUSTER BY"),
        ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'", "path of a stage"),
        ("COPY t TO 'file'", "not a statement of this node"),
        ("CREATE VIEW v AS DROP TABLE t", "SELECT or WITH"),
        ("CREATE VIEW v AS SELECT 1)", "matching parenthesis"),
        ("CREATE VIEW v AS SELECT (1", "matching parenthesis"),
        ("CREATE VIEW v AS SELECT 'open", "not closed"),
        ('CREATE VIEW v AS SELECT "open', "not closed"),
        ("CREATE VIEW v AS SELECT 1 /* open", "not closed"),
        ("CREATE VIEW v AS SELECT $a$ open", "not closed"),
        ("CREATE VIEW v AS SELECT 1 /* /* */", "not closed"),
        ('CREATE VIEW "../v" AS SELECT 1', "cannot be the name"),
        (f"CREATE VIEW {'v' * 64} AS SELECT 1", "cannot be the name"),
        ("CREATE STAGE s URL='s3://key:secret@b/p'", "credentials belong"),
        ("CREATE STAGE s URL='s3://b/p?sig=1'", "credentials belong"),
        ("CREATE STAGE s URL='s3://b/../p'", "without .."),
        ("CREATE STAGE s URL='/etc'", "an address such as"),
        ("CREATE STAGE s URL='s3://b' URL='s3://c'", "only once"),
        ("CREATE STAGE s URL='s3://b' SECRET='x'", "an option"),
        ("CREATE STAGE s CONNECTION=c", "URL="),
        ("LIST @s/../x", "without .."),
        ("LIST '@s/a\\b'", "without .."),
        ("LIST @s//x", "without .."),
        ("LIST @", "path of a stage"),
        ("LIST @s extra", "an option"),
        ("COPY INTO t FROM @s FILES=('../x')", "without .."),
        ("COPY INTO t FROM @s FILES=('x') PATTERN='y'", "not both"),
        ("COPY INTO t FROM @s ON_ERROR=SKIP_FILE_0", "SKIP_FILE_n"),
        ("COPY INTO t FROM (SELECT 1)", "FROM @stage/path once"),
        ("COPY INTO t FROM (SELECT 1 FROM @s JOIN @s)", "after FROM only"),
        ("COPY INTO t FROM (SELECT 1 FROM @s UNION SELECT 1 FROM @s)", "FROM @stage/path once"),
        ("COPY INTO t FROM (SELECT a FROM @s (a))", "needs a type"),
        ("COPY INTO t FROM @s VALIDATE ()", "NOT EMPTY, MAX_ERROR_RATE"),
        ("COPY INTO t FROM @s VALIDATE (MAX_ERROR_RATE 0.1)", "needs ON_ERROR=CONTINUE"),
        ("COPY INTO t FROM @s ON_ERROR=CONTINUE VALIDATE (MAX_ERROR_RATE 5)", "from 0 to 1"),
        ("COPY INTO t FROM @s VALIDATE (RANGE a BETWEEN b AND c)", "a number"),
        ("COPY INTO t FROM @s VALIDATE (CHECK (DROP TABLE t))", "SELECT or WITH"),
        (
            "COPY INTO t FROM @s VALIDATE (NOT EMPTY) VALIDATION_MODE=RETURN_ERRORS",
            "leave VALIDATION_MODE out",
        ),
        ("CREATE PIPE p AS COPY INTO t FROM @s", "ON NEW FILES"),
        ("CREATE PIPE p ON NEW FILES RETRIES=21 AS COPY INTO t FROM @s", "from 0 to 20"),
        ("CREATE PIPE p ON NEW FILES AS COPY INTO t FROM @s FORCE=true", "each file once"),
        ("CREATE PIPE p CRON '61 * * * *' AS COPY INTO t FROM @s", "minute '61'"),
        ("COPY INTO @s FROM (SELECT 1; SELECT 2)", "matching parenthesis"),
        ("CREATE PIPE p SCHEDULE '0 minutes' AS COPY INTO t FROM @s", "between 1 second"),
        ("CREATE PIPE p CRON '* *' AS COPY INTO t FROM @s", "cron has five"),
        ("CREATE PIPE p SCHEDULE '1 minute' AS SELECT 1", "COPY INTO"),
        ("CREATE TABLE b AS SELECT 1", "CLONE"),
        ("CREATE OR REPLACE TABLE b CLONE a", "not a statement of this node"),
        ("DROP VIEW v CASCADE", "the end of the statement"),
        ("SHOW VIEWS; SELECT 1", "not a statement of this node"),
        ("SHOW VIEWS\0", "NUL"),
        ("CREATE VIEW v AS SELECT '\ud800'", "not Unicode"),
    ],
)
def test_what_is_not_known_is_refused(text: str, why: str) -> None:
    """A refusal says what is wrong, or what can be written."""
    with pytest.raises(Malformed, match=why):
        parse_statements(text)


def test_sizes_are_bounded() -> None:
    """Length, nesting and number of statements have limits, and nothing recurses without one."""
    for text in (
        f"CREATE VIEW v AS SELECT {'(' * 100_000}",
        f"CREATE VIEW v AS SELECT {'(' * 20_000}1{')' * 20_000}",
        "SHOW VIEWS;" * 201,
        f"LIST '@s/{'x' * 1025}'",
        f"COPY INTO t FROM @s FILES=({', '.join(['1'] * 3000)})".replace("1", "'a'"),
    ):
        with pytest.raises(TooLarge):
            parse_statements(text)


def test_statements_keep_their_text() -> None:
    """Each statement of a text is kept exactly as written, without what is around it."""
    first, second = parse_statements("-- one\nSHOW  VIEWS /* x */ ;;\n DROP VIEW\tv; -- end")
    assert (first.text, second.text) == ("SHOW  VIEWS", "DROP VIEW\tv")


@pytest.mark.parametrize(
    "text",
    [
        *("SELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a", "EXPLAIN SELECT 1", "SHOW TABLES"),
        *(
            "DESCRIBE logs",
            "DESC logs",
            "SHOW COLUMNS FROM logs",
            "",
            "'CREATE VIEW'",
            "(SELECT 1)",
        ),
        *('"create" view', "VALUES (1)", "SHOW ALL", "/* CREATE VIEW */ SELECT 1"),
    ],
)
def test_queries_belong_to_the_other_door(text: str) -> None:
    """What the engine reads is not taken for a statement."""
    assert not is_statement(text)


WORDS = """create or replace stage view table external pipe clone as select from @ s / ( ) = , ; ' "
$$ -- /* */ url 'x' '@s/..' copy into files pattern 1 drop if exists show views cron schedule
file_format type csv"""
words = st.sampled_from(WORDS.split())


@given(st.one_of(st.text(max_size=80), st.lists(words, max_size=30).map("\n".join)))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """Parsing ends with statements or with a refusal; what is parsed is sent to this door."""
    try:
        parsed = parse_statements(text)
    except Rejected as error:
        assert str(error)
        return
    assert is_statement(text)
    for each in parsed:
        assert parse_statement(each.text) == each
