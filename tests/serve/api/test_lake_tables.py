"""The Iceberg tables over HTTP, as PyIceberg's own catalog has them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyiceberg.table import Table

from frazil.lake import TableFile, catalog_info_of, open_catalog
from frazil.serve.api.lake_tables import sizes_of
from frazil.settings import LakeConfig
from tests.lake.append.test_appender import ROWS
from tests.serve.frozen import BEHIND, COLUMN, LOGS, ROUNDS, freeze
from tests.serve.served import Served, served


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake_tables") / "data"


@pytest.fixture(scope="module")
def there(folder: Path) -> Iterator[Served]:
    freeze(folder)
    with served(folder, lake={"enabled": True}) as opened:
        yield opened


@pytest.fixture(scope="module")
def logs(folder: Path, there: Served) -> Iterator[Table]:
    catalog = open_catalog(LakeConfig(), folder)
    yield catalog.load_table("frazil.logs")
    catalog.close()


def get(there: Served, path: str) -> Any:
    said = there.ask("GET", f"/api/v1/{path}")
    assert said.status == 200, said.body
    return said.json


def test_list_of_tables(there: Served, logs: Table) -> None:
    """Numbers as PyIceberg counts them; how far behind, as the log says."""
    found = {table["name"]: table for table in get(there, "lake")["tables"]}
    assert set(found) == {"logs", "spans", "metrics", "dead_letters"}
    files = logs.inspect.files()
    table = found["logs"]
    assert table["rows"] == LOGS == sum(files["record_count"].to_pylist())
    assert table["bytes"] == sum(files["file_size_in_bytes"].to_pylist())
    assert table["files"] == table["small_files"] == files.num_rows
    current = logs.current_snapshot()
    assert current is not None
    assert table["snapshot_id"] == str(current.snapshot_id)
    assert table["committed_ms"] == current.timestamp_ms
    [reach] = table["reaches"]
    assert (reach["topic"], reach["partition"]) == ("otlp_logs", 0)
    assert (reach["lake_watermark"], table["lag_offsets"]) == (sum(ROUNDS), BEHIND)
    assert table["lag_bytes"] == reach["lag_bytes"] > 0
    assert (found["metrics"]["snapshot_id"], found["metrics"]["rows"]) == (None, 0)


def test_one_table(there: Served, logs: Table) -> None:
    found = get(there, "lake/tables/logs")
    snapshots = logs.inspect.snapshots().to_pylist()
    ids = [str(row["snapshot_id"]) for row in reversed(snapshots)]
    assert [each["snapshot_id"] for each in found["snapshots"]] == ids
    assert [each["added_rows"] for each in found["snapshots"]] == [
        ROWS * count for count in reversed(ROUNDS)
    ]
    assert [each["is_current"] for each in found["snapshots"]] == [True, False, False]
    assert found["snapshots"][0]["summary"]["added-records"] == str(ROWS * ROUNDS[-1])
    assert found["location"] == logs.location()
    assert found["partitioned_by"] == ["day(time)"]
    assert found["sorted_by"] == ["service_name asc", "time asc"]
    assert found["properties"] == dict(logs.properties)


def test_partitions_and_files(there: Served, logs: Table) -> None:
    found = get(there, "lake/tables/logs")
    theirs = logs.inspect.partitions().to_pylist()
    assert sorted((each["rows"], each["files"]) for each in found["partitions"]) == sorted(
        (row["record_count"], row["file_count"]) for row in theirs
    )
    assert found["partitions"][0]["partition"].startswith("time_day=")
    paths = {row["file_path"] for row in logs.inspect.files().to_pylist()}
    assert {f"{logs.location()}/{each['path']}" for each in found["files"]} == paths
    assert sum(each["files"] for each in found["sizes"]) == found["file_count"] == len(paths)


def test_files_by_size_and_by_partition(there: Served) -> None:
    everything = get(there, "lake/tables/logs")
    largest = get(there, "lake/tables/logs?order=largest&limit=1")["files"]
    assert largest[0]["bytes"] == max(each["bytes"] for each in everything["files"])
    smallest = get(there, "lake/tables/logs?order=smallest")["files"]
    assert [each["bytes"] for each in smallest] == sorted(each["bytes"] for each in smallest)
    none = get(there, "lake/tables/logs?partition=time_day%3D1999-01-01")
    assert (none["files"], none["file_count"], none["sizes"]) == ([], 0, [])
    assert none["table"]["files"] == everything["file_count"]


def test_schemas_list_added_columns(there: Served) -> None:
    newest, first = get(there, "lake/tables/logs")["schemas"]
    assert (newest["added"], newest["is_current"]) == ([COLUMN], True)
    assert newest["columns"][-1]["doc"] == "whose it is"
    assert (first["added"], first["dropped"], first["is_current"]) == ([], [], False)
    assert first["first_used_ms"] < newest["first_used_ms"]


@pytest.mark.parametrize("name", ["nothing", "topic_nothing", "%00", "..", "a'b"])
def test_an_unknown_table_is_404(there: Served, name: str) -> None:
    said = there.ask("GET", f"/api/v1/lake/tables/{name}")
    assert (said.status, said.json["error"]["kind"]) == (404, "not_found")


def test_parts_count_rows_by_tier(there: Served) -> None:
    """All commits from the lake, and what is behind them from the hot tier."""
    text = "SELECT count(DISTINCT _offset) FROM logs"
    said = there.sql(text, parts=True).json
    assert said["rows"] == [[sum(ROUNDS) + BEHIND]]
    [part] = said["parts"]
    assert (part["lake_rows"], part["hot_rows"]) == (LOGS, ROWS * BEHIND)
    now = get(there, "lake/tables/logs")["table"]
    assert part["snapshots"] == [now["snapshot_id"]]
    assert (part["lake_bytes"], part["lake_files"]) == (now["bytes"], now["files"])


def test_a_snapshot_id_works_for_time_travel(there: Served) -> None:
    first = get(there, "lake/tables/logs")["snapshots"][-1]["snapshot_id"]
    said = there.sql(f"SELECT count(*) FROM logs FOR SYSTEM_VERSION AS OF {first}")
    assert said.json["rows"] == [[ROWS * ROUNDS[0]]]


def test_without_a_lake_the_reason_is_given(tmp_path: Path) -> None:
    with served(tmp_path / "data") as opened:
        said = get(opened, "lake")
        assert "lake.enabled" in said["why_absent"]
        assert said["tables"] == []
        assert opened.ask("GET", "/api/v1/lake/tables/logs").status == 503


def test_secrets_are_hidden(tmp_path: Path) -> None:
    """Whoever may read rows need not know the catalog's password."""
    config = LakeConfig(
        catalog={
            "type": "rest",
            "uri": "https://me:hush1@catalog.example/api?token=hush2",
            "credential": "me:hush3",
            "s3.secret-access-key": "hush4",
            "s3.access-key-id": "hush5",
            "s3.region": "eu-central-1",
            "rest.authorization-url": "hush6",
        },
        warehouse="shop",
    )
    shown = catalog_info_of(config, tmp_path)
    assert "hush" not in repr(shown)
    assert shown.properties["s3.region"] == "eu-central-1"
    assert shown.properties["uri"] == "https://…@catalog.example/api?token=…"
    database = LakeConfig(catalog={"type": "sql", "uri": "postgresql://me:hush@db.example/lake"})
    assert "hush" not in repr(catalog_info_of(database, tmp_path))


def test_file_sizes_are_grouped_by_powers_of_two() -> None:
    def file(size: int) -> TableFile:
        return TableFile(location="", path="", row_count=1, size_bytes=size)

    found = [(each.bytes_min, each.files) for each in sizes_of([file(5), file(7), file(16)])]
    assert found == [(4, 2), (8, 0), (16, 1)]
    assert sizes_of([]) == []


def test_a_latency_heatmap_covers_hot_rows_and_tables(there: Served) -> None:
    """As DuckDB counts the rows of both."""
    sql = there.embedded.sql
    rows = sql("SELECT time, duration_nano, service_name FROM spans").arrow()
    assert rows.num_rows == ROWS * (sum(ROUNDS) + BEHIND)
    database = duckdb.connect()
    database.register("rows", rows)
    wanted = database.execute(
        "SELECT epoch_us(time) // 10000000 * 10, CAST(floor(log10(greatest(duration_nano, 1)) * 10 "
        "+ 1e-9) AS BIGINT), count(*) FROM rows GROUP BY 1, 2"
    ).fetchall()
    found = get(there, "services/heatmap?step=10s")
    since = datetime.datetime.fromisoformat(found["since"]).timestamp()
    lows = [round(10 * math.log10(max(bucket["low"], 1))) for bucket in found["buckets"]]
    cells = [
        (since + 10 * cell["step"], lows[cell["bucket"]], cell["count"]) for cell in found["cells"]
    ]
    assert sorted(cells) == sorted(wanted)
