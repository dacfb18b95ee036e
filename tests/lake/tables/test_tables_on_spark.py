"""The tables in Spark, DuckDB, Arrow and the server code of REST catalogs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import (
    CommitTableRequest,
    CommitTableResponse,
    Namespace,
    Table,
    TableIdentifier,
)
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyspark.sql import SparkSession

from frazil.errors import Unavailable
from frazil.lake import CloneSource, clone_table
from frazil.lake.catalog.catalog import catalog_properties, open_catalog, spark_settings
from frazil.lake.spark.session import Session
from frazil.lake.tables.field_ids import FIELD_IDS
from frazil.lake.tables.properties import properties_of
from frazil.lake.tables.schema import schema_of
from frazil.lake.tables.tables import ensure_table
from frazil.model import SystemClock
from frazil.model.arrow import TABLES
from tests.lake.table_builder import CONFIG, ensure_all, make, without

# PySpark leaves result sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

BODY = FIELD_IDS["logs"]["body"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, SparkSession]]:
    """Empty tables, and Spark over them."""
    folder = tmp_path_factory.mktemp("lake")
    ensure_all(folder)
    session = Session(CONFIG, spark_settings(CONFIG, folder))
    yield folder, session.spark()
    session.close()


def example(kind: pa.DataType, number: int) -> object:
    """Return a value of a type, different for each number."""
    if pa.types.is_map(kind):
        return [("a.b", f"v{number}"), ("z", "")]
    if pa.types.is_list(kind):
        return [example(kind.value_type, number + index) for index in range(number)]
    if pa.types.is_struct(kind):
        return {field.name: example(field.type, number) for field in kind}
    if pa.types.is_timestamp(kind):
        return datetime(2026, 1, 1 + number, 23, 59, 59, number, tzinfo=UTC)
    if pa.types.is_integer(kind):
        return number - 1
    return {"string": f"s{number}", "double": number / 2, "bool": number > 1, "binary": b"\0\xff"}[
        str(kind)
    ]


def rows_of(schema: pa.Schema) -> pa.Table:
    """Return four rows; in the last, all optional columns are null."""
    rows = [{field.name: example(field.type, n) for field in schema} for n in range(3)]
    rows.append({f.name: None if f.nullable else example(f.type, 3) for f in schema})
    return pa.Table.from_pylist(rows, schema=schema)


@pytest.mark.parametrize("name", TABLES)
def test_spark_and_others_read_and_write_the_tables(
    lake: tuple[Path, SparkSession], name: str
) -> None:
    """Columns, comments and ids are kept; PyIceberg and DuckDB read what Spark writes."""
    folder, spark = lake
    table = spark.table(f"frazil.frazil.{name}")
    assert table.count() == 0
    described = spark.sql(f"DESCRIBE frazil.frazil.{name}").collect()[: len(TABLES[name])]
    assert [(row["col_name"], row["comment"]) for row in described] == [
        (field.name, field.metadata[b"comment"].decode()) for field in TABLES[name]
    ]
    rows = rows_of(TABLES[name])
    frame = spark.createDataFrame(rows)
    frame.writeTo(f"frazil.frazil.{name}").option("check-nullability", "false").append()
    assert spark.table(f"frazil.frazil.{name}").count() == 4

    catalog = open_catalog(CONFIG, folder)
    found = catalog.load_table((CONFIG.namespace, name))
    assert found.scan().count() == 4
    files = [task.file.file_path.removeprefix("file:") for task in found.scan().plan_files()]
    # Not with PyIceberg, which returns an empty list of structs for a null list.
    read = pa.concat_tables(pq.ParquetFile(file).read().cast(TABLES[name]) for file in files)
    assert read.sort_by("time").to_pylist() == rows.to_pylist()
    assert len(files) == 4
    catalog.close()
    with duckdb.connect() as database:
        ids = database.execute(
            "SELECT name, field_id FROM parquet_schema(?) WHERE field_id IS NOT NULL", [files[0]]
        ).fetchall()
        count = database.execute("SELECT count(*) FROM read_parquet(?)", [files]).fetchone()
    assert sorted(ids) == sorted(
        (path.rpartition(".")[2], number) for path, number in FIELD_IDS[name].items()
    )
    assert count == (4,)


def test_columns_altered_by_spark_are_repaired(lake: tuple[Path, SparkSession]) -> None:
    """A dropped column comes back with its values; a renamed one is an error with its repair."""
    folder, spark = lake
    catalog = open_catalog(CONFIG, folder)
    ensure_table(catalog, CONFIG, "logs")
    before = spark.sql("SELECT body FROM frazil.frazil.logs ORDER BY time").collect()
    spark.sql("ALTER TABLE frazil.frazil.logs DROP COLUMN body")
    ensure_table(catalog, CONFIG, "logs")
    assert spark.sql("SELECT body FROM frazil.frazil.logs ORDER BY time").collect() == before
    spark.sql("ALTER TABLE frazil.frazil.logs RENAME COLUMN body TO message")
    with pytest.raises(Unavailable) as caught:
        ensure_table(catalog, CONFIG, "logs")
    repair = re.search(r"\((ALTER TABLE \S+ RENAME COLUMN [^)]*)\)", str(caught.value))
    assert repair is not None
    spark.sql(repair[1])
    assert ensure_table(catalog, CONFIG, "logs").schema().find_field("body").field_id == BODY
    catalog.close()


def test_a_clone_outlives_what_spark_does_to_its_source(
    lake: tuple[Path, SparkSession],
) -> None:
    """Spark reads and writes the clone of a table, while it rewrites, expires, cleans and purges
    the table itself."""
    folder, spark = lake
    catalog = open_catalog(CONFIG, folder)
    table = "frazil.frazil.source"
    spark.sql(f"CREATE TABLE {table} (a INT, p STRING) USING iceberg PARTITIONED BY (p)")
    for number in range(3):
        spark.sql(f"INSERT INTO {table} VALUES ({number}, 'x'), ({number}, 'y')")
    clone_table(
        catalog, CONFIG, "copy", CloneSource(name="source"), unique="c" * 32, clock=SystemClock()
    )
    copy = "SELECT a, p FROM frazil.frazil.copy ORDER BY 1, 2"
    before = [tuple(row) for row in spark.sql(copy).collect()]
    assert before == [(number, p) for number in range(3) for p in "xy"]
    now = "TIMESTAMP '2100-01-01 00:00:00'"
    for call in (
        f"rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))",
        f"expire_snapshots(table => '{table}', older_than => {now}, retain_last => 1)",
        f"expire_snapshots(table => 'frazil.frazil.copy', older_than => {now}, retain_last => 1)",
    ):
        spark.sql(f"CALL frazil.system.{call}").collect()
    assert spark.table(table).count() == 6
    spark.sql(f"DROP TABLE {table} PURGE")
    spark.sql("INSERT INTO frazil.frazil.copy VALUES (3, 'z')")
    assert [tuple(row) for row in spark.sql(copy).collect()] == [*before, (3, "z")]
    assert catalog.load_table((CONFIG.namespace, "copy")).scan().count() == 7
    catalog.close()


class Recording(SqlCatalog):
    """Records the requests that a REST catalog would receive."""

    def __init__(self, **properties: str) -> None:
        super().__init__(CONFIG.catalog_name, **properties)
        self.sent: list[str] = []

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        namespace, name = table.name()
        identifier = TableIdentifier(namespace=Namespace([namespace]), name=name)
        request = CommitTableRequest(
            identifier=identifier, requirements=requirements, updates=updates
        )
        self.sent.append(request.model_dump_json())
        return super().commit_table(table, requirements, updates)


def test_servers_of_rest_catalogs_keep_our_ids(
    lake: tuple[Path, SparkSession], tmp_path: Path
) -> None:
    """Iceberg's own handlers create and evolve the table as expected, and create it once."""
    ensure_all(tmp_path)
    recording = Recording(**catalog_properties(CONFIG, tmp_path))
    recording.drop_table((CONFIG.namespace, "spans"))
    make(recording, "spans", without(schema_of("spans"), "events", "name"))
    expected = ensure_table(recording, CONFIG, "spans")
    recording.close()

    java = lake[1].sparkContext._gateway
    assert java is not None
    iceberg = java.jvm.org.apache.iceberg
    server = iceberg.inmemory.InMemoryCatalog()
    server.initialize("server", java.jvm.java.util.HashMap())
    path = java.new_array(java.jvm.java.lang.String, 1)
    path[0] = CONFIG.namespace
    namespace = iceberg.catalog.Namespace.of(path)
    server.createNamespace(namespace)
    identifier = iceberg.catalog.TableIdentifier.of(namespace, "spans")
    requests = [
        iceberg.rest.requests.UpdateTableRequestParser.fromJson(sent) for sent in recording.sent
    ]
    create, evolve = requests
    for request in (create, evolve):
        response = iceberg.rest.CatalogHandlers.updateTable(server, identifier, request)
    found = iceberg.TableMetadataParser.toJson(response.tableMetadata())
    metadata = TableMetadataUtil.parse_raw(found)
    assert metadata.schema() == expected.schema()
    assert set(metadata.schema().field_ids) == set(FIELD_IDS["spans"].values())
    assert metadata.spec() == expected.spec()
    assert metadata.sort_orders == expected.metadata.sort_orders
    assert metadata.properties.items() >= properties_of("spans").items()
    with pytest.raises(Py4JJavaError, match="table already exists"):
        iceberg.rest.CatalogHandlers.updateTable(server, identifier, create)
