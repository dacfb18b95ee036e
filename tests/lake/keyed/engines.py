"""Reads the rows of a keyed table with other engines, in the same form."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Any
from unittest import mock

import duckdb
import polars
import pyarrow as pa
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from tests.lake.keyed.world import Row
from tests.lake.maintain.tables import data_files, local

Rows = dict[Any, Row]


def rows_by_key(rows: list[dict[str, Any]], key: str = "id") -> Rows:
    """Return rows by key, without our columns. Fails if a key is there twice."""
    found = {
        row[key]: {name: _plain(value) for name, value in row.items() if not name.startswith("_")}
        for row in rows
    }
    assert len(found) == len(rows), "a key is there twice"
    return found


def _plain(value: Any) -> Any:
    """Engines return decimals, bytes and times as types of their own."""
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    return bytes(value) if isinstance(value, bytearray) else value


def with_pyiceberg(table: Table) -> Rows:
    return rows_by_key(table.scan().to_arrow().to_pylist())


def with_polars(table: Table) -> Rows:
    """Planned with PyIceberg, read by Polars itself."""
    with mock.patch.dict(os.environ, {"POLARS_ICEBERG_PLANNER": "pyiceberg"}):
        scan = polars.scan_iceberg(table, reader_override="native")
        return rows_by_key(scan.collect().to_dicts())


def with_duckdb(table: Table) -> Rows:
    """Read data files and delete files: the extension `iceberg` is not part of DuckDB's package."""
    files = data_files(table)
    data = [f.file_path for f in files if f.content is DataFileContent.DATA]
    deletes = [str(local(f.file_path)) for f in files if f.content is not DataFileContent.DATA]
    if not data:
        return {}
    texts = pa.table({"location": data, "path": [str(local(path)) for path in data]})
    with duckdb.connect() as database:
        database.register("locations", texts)
        text = f"""
            SELECT d.* EXCLUDE (filename, file_row_number)
            FROM read_parquet({texts["path"].to_pylist()}, filename = true, file_row_number = true,
                              union_by_name = true) AS d JOIN locations AS l ON l.path = d.filename
        """
        if deletes:
            text += f"""
            ANTI JOIN read_parquet({deletes}) AS x
            ON x.file_path = l.location AND x.pos = d.file_row_number
            """
        return rows_by_key(database.sql(text).to_arrow_table().to_pylist())


def with_spark(spark: SparkSession, name: str) -> Rows:
    return rows_by_key([row.asDict() for row in spark.sql(f"SELECT * FROM {name}").collect()])
