"""The catalog: local or remote, and the same for PyIceberg and Spark."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import text

from frazil.errors import Malformed, Unavailable
from frazil.lake.catalog.catalog import (
    LOCAL_IO,
    catalog_properties,
    ensure_namespace,
    open_catalog,
    spark_settings,
)
from frazil.settings import LakeConfig

DATA = Path("/data")
PREFIX = "spark.sql.catalog.frazil"
POSTGRES = "postgresql+psycopg2://ann:p%40ss@db.example:5432/lake?sslmode=require"


def test_the_default_catalog_is_a_durable_sqlite_file(tmp_path: Path) -> None:
    """It has the tables that Spark expects."""
    catalog = open_catalog(LakeConfig(), tmp_path)
    assert isinstance(catalog, SqlCatalog)
    with catalog.engine.connect() as connection:
        pragmas = {
            pragma: connection.execute(text(f"PRAGMA {pragma}")).scalar()
            for pragma in ("journal_mode", "synchronous", "busy_timeout")
        }
        columns = connection.execute(text("SELECT name FROM pragma_table_info('iceberg_tables')"))
        assert "iceberg_type" in columns.scalars().all()
    catalog.close()
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 30_000}
    assert (tmp_path / "lake" / "catalog.db").is_file()


def test_default_catalog_and_warehouse_are_in_the_data_folder() -> None:
    """Metadata is synced."""
    assert catalog_properties(LakeConfig(), DATA) == {
        "type": "sql",
        "uri": "sqlite:////data/lake/catalog.db?timeout=30",
        "warehouse": "file:///data/lake/warehouse",
        "py-io-impl": LOCAL_IO,
    }


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            LakeConfig(),
            {
                "type": "jdbc",
                "uri": "jdbc:sqlite:/data/lake/catalog.db"
                "?journal_mode=WAL&synchronous=FULL&busy_timeout=30000",
                "jdbc.schema-version": "V1",
                "warehouse": "file:///data/lake/warehouse",
            },
        ),
        (
            LakeConfig(catalog={"uri": POSTGRES, "pool_pre_ping": "true"}, warehouse="/mnt/lake"),
            {
                "type": "jdbc",
                "uri": "jdbc:postgresql://db.example:5432/lake?sslmode=require",
                "jdbc.user": "ann",
                "jdbc.password": "p@ss",
                "jdbc.schema-version": "V1",
                "warehouse": "file:///mnt/lake",
            },
        ),
        (
            LakeConfig(
                catalog={"uri": "https://polaris.example/api", "credential": "a:b"},
                warehouse="prod",
            ),
            {
                "type": "rest",
                "uri": "https://polaris.example/api",
                "credential": "a:b",
                "warehouse": "prod",
            },
        ),
        (
            LakeConfig(catalog={"uri": "http://rest", "s3.endpoint": "http://minio"}),
            {
                "type": "rest",
                "uri": "http://rest",
                "s3.endpoint": "http://minio",
                "s3.path-style-access": "true",
            },
        ),
        (
            LakeConfig(
                catalog={"type": "glue", "glue.region": "eu-north-1", "s3.endpoint": "http://s3"},
                warehouse="s3://bucket/lake",
            ),
            {
                "type": "glue",
                "client.region": "eu-north-1",
                "warehouse": "s3://bucket/lake",
                "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
                "s3.endpoint": "http://s3",
                "s3.path-style-access": "true",
            },
        ),
    ],
    ids=["sqlite", "postgresql", "rest", "rest on s3", "glue on s3"],
)
def test_spark_has_the_same_catalog(config: LakeConfig, expected: dict[str, str]) -> None:
    """PyIceberg's properties become Spark settings, and Spark caches nothing."""
    assert spark_settings(config, DATA) == {
        PREFIX: "org.apache.iceberg.spark.SparkCatalog",
        f"{PREFIX}.cache-enabled": "false",
        **{f"{PREFIX}.{name}": value for name, value in expected.items()},
    }


@pytest.mark.parametrize(
    ("catalog", "data", "words"),
    [
        ({"type": "dynamodb", "uri": "x://y"}, "/data", "'dynamodb'.*glue, hive, rest, sql"),
        ({"uri": "ftp://ann:secret@there"}, "/data", "'ftp://there'"),
        ({"type": "rest"}, "/data", "uri none"),
        ({}, "/da?ta", "choose another folder"),
        ({}, "/100%", "choose another folder"),
    ],
)
def test_invalid_settings_are_rejected(catalog: dict[str, str], data: str, words: str) -> None:
    """The message names the problem and contains no password."""
    with pytest.raises(Malformed, match=words) as caught:
        catalog_properties(LakeConfig(catalog=catalog), Path(data))
    assert "secret" not in str(caught.value)


def test_an_unreachable_catalog_is_unavailable(tmp_path: Path) -> None:
    """No server, or not a database: the error names the catalog."""
    (tmp_path / "text.db").write_text("this is no database, whatever its name says" * 100)
    for uri in ("http://127.0.0.1:1", f"sqlite:///{tmp_path}/text.db", "sqlite:////proc/no/x.db"):
        with pytest.raises(Unavailable, match=r"catalog frazil does not respond.*lake\.catalog"):
            open_catalog(LakeConfig(catalog={"uri": uri}), tmp_path)


def test_environment_variables_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would not see what PyIceberg reads there."""
    monkeypatch.setenv("PYICEBERG_CATALOG__FRAZIL__WAREHOUSE", "file:///elsewhere")
    monkeypatch.setenv("PYICEBERG_CATALOG__FRAZIL__LOCATION", "file:///elsewhere")
    catalog = open_catalog(LakeConfig(), tmp_path)
    assert catalog.properties == catalog_properties(LakeConfig(), tmp_path)
    catalog.close()


def open_with_namespace(folder: Path) -> list[tuple[str, ...]]:
    catalog = open_catalog(LakeConfig(), folder)
    ensure_namespace(catalog, LakeConfig())
    ensure_namespace(catalog, LakeConfig())
    names = catalog.list_namespaces()
    catalog.close()
    return names


def test_several_processes_open_a_new_catalog_at_once(tmp_path: Path) -> None:
    """One process creates it, and all open it."""
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        for attempt in range(5):
            folders = [tmp_path / str(attempt)] * 4
            assert pool.map(open_with_namespace, folders, chunksize=1) == [[("frazil",)]] * 4


def test_a_locked_catalog_is_waited_for(tmp_path: Path) -> None:
    """Our commit follows the one of another process."""
    catalog = open_catalog(LakeConfig(), tmp_path)
    path = tmp_path / "lake" / "catalog.db"
    with closing(sqlite3.connect(path, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.2, other.commit)
        release.start()
        ensure_namespace(catalog, LakeConfig())
        release.join()
    assert catalog.list_namespaces() == [("frazil",)]
    catalog.close()


def test_file_options_alone_keep_the_embedded_catalog() -> None:
    """As docs/lake-tables.md shows for S3. A name that says more needs a type or a uri."""
    files = {"s3.region": "eu-west-1", "s3.endpoint": "http://127.0.0.1:9000"}
    config = LakeConfig(catalog=files, warehouse="s3://bucket/folder")
    properties = catalog_properties(config, DATA)
    assert properties["uri"].startswith("sqlite:////data/lake/catalog.db")
    assert properties["warehouse"] == "s3://bucket/folder"
    assert files.items() <= properties.items()
    with pytest.raises(Malformed, match=r"lake\.catalog has type"):
        catalog_properties(LakeConfig(catalog={**files, "urii": "http://x"}), DATA)


def test_parsed_metadata_follows_the_catalog(tmp_path: Path) -> None:
    """Commits of others, a rename, and a table of the same name created again."""
    ours, theirs = (open_catalog(LakeConfig(), tmp_path) for _ in range(2))
    ours.create_namespace("frazil")
    schema = pa.schema([("a", pa.int32())])
    ours.create_table("frazil.t", schema)
    first = ours.load_table("frazil.t").metadata
    assert ours.load_table("frazil.t").metadata is first, "the file was parsed again"
    with theirs.load_table("frazil.t").transaction() as transaction:
        transaction.set_properties({"x": "1"})
    assert ours.load_table("frazil.t").properties["x"] == "1"
    assert "x" not in first.properties
    theirs.rename_table("frazil.t", "frazil.u")
    theirs.create_table("frazil.t", schema)
    assert ours.load_table("frazil.u").name() == ("frazil", "u")
    assert ours.load_table("frazil.u").metadata.table_uuid == first.table_uuid
    assert ours.load_table("frazil.t").metadata.table_uuid != first.table_uuid
    for catalog in (ours, theirs):
        catalog.close()
