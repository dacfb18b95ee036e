"""External tables: files beside live telemetry, listed, pruned, fetched and never mixed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.definitions import Audit, Definitions, StatementExecutor, parse_statement
from frazil.disk import RealDisk
from frazil.errors import Conflict, FrazilError, Malformed, Overloaded, TooLarge
from frazil.lake import TaskRunner
from frazil.load import ExternalTables, register_external
from frazil.load.stages.local_folder import LocalFolder
from frazil.model import SystemClock
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.results import CancelToken
from frazil.settings import ExternalConfig, QueryConfig, StagesConfig
from tests.load.loading import run_inline
from tests.query.build import log, piece_of

LOGS = {"logs": (piece_of("logs", [log(0), log(1, service_name="cart")]),)}


class Place:
    """A stage `s`, by default a folder, an engine with two log records, and the statements."""

    def __init__(
        self,
        folder: Path,
        config: ExternalConfig,
        in_use_ms: int = 0,
        url: str = "",
        connections: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.files = folder / "in"
        self.files.mkdir(exist_ok=True)
        self.data = folder / "data"
        disk, clock = RealDisk(self.data), SystemClock()
        definitions = Definitions(disk)
        self.executor = StatementExecutor(definitions, Audit(disk, clock), clock)
        stages = StagesConfig(roots=[url or str(folder)])
        self.tables = ExternalTables(
            definitions,
            config,
            stages,
            connections,
            disk,
            self.data,
            in_use_ms=in_use_ms,
            clock=clock,
        )
        self.engine = Engine.open(
            lambda: LOGS,
            TABLES,
            QueryConfig(),
            clock,
            definitions=definitions,
            external=self.tables,
        )
        register_external(self.executor, self.tables, self.engine, inline)
        if not definitions.all("stage"):
            connection = f" CONNECTION={next(iter(connections)).partition('.')[0]}" if url else ""
            text = f"CREATE STAGE s URL='{url or f'file://{self.files}'}'{connection}"
            definitions.put(parse_statement(text))

    def do(self, text: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.executor.execute(text, who="test").to_pylist()
        return found

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        rows = self.engine.sql(text).arrow()
        return [tuple(row.values()) for row in rows.to_pylist()]

    def put(self, name: str, **columns: list[Any]) -> None:
        path = self.files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)

    def text(self, name: str, text: str) -> None:
        path = self.files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def random_texts(count: int) -> list[str]:
    return [os.urandom(8).hex() for _ in range(count)]


@contextmanager
def inline(_: CancelToken) -> Iterator[TaskRunner]:
    yield run_inline


@contextmanager
def opened(folder: Path, *, in_use_ms: int = 0, **settings: int) -> Iterator[Place]:
    place = Place(folder, ExternalConfig(**settings), in_use_ms)
    try:
        yield place
    finally:
        place.engine.close()


def test_archive_beside_live_rows(tmp_path: Path) -> None:
    """Partition columns are typed; folders and footers prune; hot rows and files meet in one
    query."""
    with opened(tmp_path) as there:
        for year in (2024, 2025):
            for month in (1, 2):
                there.put(
                    f"a/year={year}/month={month:02d}/part.parquet",
                    service_name=["web", "db"],
                    n=[year * 100 + month, year * 100 + month + 50],
                )
        there.put("a/year=2025/month=__HIVE_DEFAULT_PARTITION__/x.parquet", n=[7])
        there.do(
            "CREATE EXTERNAL TABLE a STORED AS PARQUET LOCATION @s/a/ PARTITIONED BY (year, month)"
        )
        columns = there.sql(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'a'"
        )
        assert dict(columns)["year"] == dict(columns)["month"] == "Int64"
        assert there.sql("SELECT sum(n) FROM a WHERE year = 2024 AND month = 1") == [
            (202401 + 202451,)
        ]
        (line,) = (
            text
            for kind, text in there.sql("EXPLAIN SELECT n FROM a WHERE year=2024 AND n >= 202452")
            if kind == "pieces"
        )
        assert "1 of 5 files" in line and "skips 3: without the year" in line
        assert "skips 1: without the n" in line
        # Only what was read was fetched.
        fetched = [pq.read_schema(path).names for path in there.data.glob("external/a/*.parquet")]
        assert fetched == [["n", "year", "month"]] * 2
        # No column, all columns, and those of a subquery.
        assert there.sql("SELECT count(*) FROM a") == [(9,)]
        assert len(there.sql("SELECT * FROM a WHERE service_name = 'web'")) == 4
        inner = "SELECT n FROM a WHERE n IN (SELECT max(n) FROM a WHERE service_name = 'web')"
        assert there.sql(inner) == [(202502,)]
        assert there.sql("SELECT count(*) FROM a WHERE month IS NULL") == [(1,)]
        joined = (
            "SELECT l.body, count(*) FROM logs l JOIN a ON a.service_name = l.service_name "
            "WHERE year = 2025 GROUP BY 1"
        )
        assert there.sql(joined) == [("line 0", 2)]
        both = "SELECT service_name FROM logs UNION SELECT service_name FROM a"
        assert {row[0] for row in there.sql(both)} == {"web", "cart", "db", None}
        with pytest.raises(Malformed, match="no AS OF"):
            there.sql("SELECT * FROM a FOR SYSTEM_TIME AS OF '2026-01-01'")


def test_strict_types(tmp_path: Path) -> None:
    """A value that does not fit names its file and line; columns stay as they were inferred."""
    with opened(tmp_path, list_age_ms=0) as there:
        there.text("c/1.csv", "id,at\n1,2026-01-01T00:00:00Z\n")
        there.do("CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '@s/c/'")
        after = "SELECT id FROM c WHERE at > '2025-06-01T00:00:00Z'"
        assert there.sql(after) == [(1,)]
        there.text("c/2.csv", "id,at\n2,2026-01-02T00:00:00Z\n007,\n")
        with pytest.raises(Malformed, match=r"2\.csv, line 3, column id: '007' is not"):
            there.sql("SELECT count(*) FROM c")
        there.text("c/2.csv", "id,more\n2,x\n")
        with pytest.raises(Malformed, match=r"'more', which the table has not\. It does"):
            there.sql("SELECT count(*) FROM c")
        there.do("CREATE OR REPLACE EXTERNAL TABLE c STORED AS CSV LOCATION '@s/c/'")
        assert there.sql("SELECT id, more FROM c ORDER BY 1") == [(1, None), (2, "x")]
        there.text("n/a.ndjson", '{"a": 1}\n{"a": "x"}\n')
        there.do("CREATE EXTERNAL TABLE n (a BIGINT) STORED AS NDJSON LOCATION @s/n/")
        with pytest.raises(Malformed, match=r"a\.ndjson, line 2, column a"):
            there.sql("SELECT * FROM n")
        there.put("p/k=x/1.parquet", a=[1])
        there.put("p/k=2/1.parquet", a=[1])
        there.do("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION @s/p/ PARTITIONED BY (k)")
        assert there.sql("SELECT k FROM p ORDER BY k") == [("2",), ("x",)]
        text = "STORED AS PARQUET LOCATION @s/p/ PARTITIONED BY (k BIGINT)"
        there.do(f"CREATE OR REPLACE EXTERNAL TABLE p {text}")
        with pytest.raises(Malformed, match="k=x is not of type int64"):
            there.sql("SELECT * FROM p")


def test_overwritten_files_are_never_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that changes after it was listed is listed again; one that always changes is
    refused."""
    with opened(tmp_path, list_age_ms=3_600_000) as there:
        there.put("t/1.parquet", a=[1, 1])
        there.put("t/2.parquet", a=[1])
        there.do("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION @s/t/")
        assert there.tables.problem("t") is None  # lists
        there.put("t/1.parquet", a=[2, 2, 2])
        assert there.sql("SELECT sum(a), count(*) FROM t") == [(7, 4)]
        (there.files / "t/2.parquet").unlink()
        # Its bytes are here: the list is young enough.
        assert there.sql("SELECT sum(a), count(*) FROM t") == [(7, 4)]

        real: Callable[..., Any] = LocalFolder.open

        def overwriting(folder: LocalFolder, file: Any) -> Any:
            there.put("u/1.parquet", a=[os.urandom(4).hex()])
            return real(folder, file)

        there.put("u/1.parquet", a=["x"])
        there.do("CREATE EXTERNAL TABLE u STORED AS PARQUET LOCATION @s/u/")
        monkeypatch.setattr(LocalFolder, "open", overwriting)
        with pytest.raises(Conflict, match=r"u/1\.parquet was overwritten"):
            there.sql("SELECT * FROM u")


def test_limits_and_what_is_kept(tmp_path: Path) -> None:
    """Files, bytes and the cache are bounded; links are not followed; a restart keeps columns and
    fetched files."""
    with opened(tmp_path, query_bytes_max=30_000, cache_bytes_max=9_000, files_max=4) as there:
        for index in range(3):
            there.put(f"t/k={index}/f.parquet", a=random_texts(250))
        secret = tmp_path / "secret.parquet"
        pq.write_table(pa.table({"a": ["secret"]}), secret)
        (there.files / "t/k=0/link.parquet").symlink_to(secret)
        (there.files / "t/k=9").symlink_to(tmp_path)
        there.do("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION @s/t/ PARTITIONED BY (k)")
        for index in range(3):
            assert there.sql(f"SELECT count(a) FROM t WHERE k = {index}") == [(250,)]
        assert sum(f.stat().st_size for f in there.data.glob("external/t/*.parquet")) <= 9_000
        # Nothing is counted as in use here: a file that is evicted too early is an error.
        with pytest.raises(FrazilError, match="is missing"):
            there.sql("SELECT count(a) FROM t")
        there.put("t/k=3/f.parquet", a=random_texts(4000))
        there.do(
            "CREATE OR REPLACE EXTERNAL TABLE t STORED AS PARQUET LOCATION @s/t/ PARTITIONED BY (k)"
        )
        with pytest.raises(TooLarge, match=r"query_bytes_max.*conditions on k"):
            there.sql("SELECT * FROM t WHERE k = 3")
        there.put("t/k=4/f.parquet", a=["x"])
        with pytest.raises(TooLarge, match="more than 4 files"):
            there.do("CREATE EXTERNAL TABLE many STORED AS PARQUET LOCATION @s/t/")
    (tmp_path / "in/t/k=3/f.parquet").unlink()
    with (
        opened(tmp_path, in_use_ms=60_000, cache_bytes_max=9_000) as there,
        pytest.raises(Overloaded, match=r"external\.cache_bytes_max"),
    ):
        there.sql("SELECT count(a) FROM t")
    for cached in (tmp_path / "data/external/t").glob("*.parquet"):
        cached.write_bytes(b"damaged")  # fetched again
    with opened(tmp_path) as there:
        assert there.sql("SELECT count(a) FROM t") == [(751,)]
        (shown,) = there.do("SHOW EXTERNAL TABLES")
        assert (shown["name"], shown["problem"]) == ("t", None)
        for name in ("logs", "gauges", "topic_x", "snapshots"):
            with pytest.raises(Conflict):
                there.do(f"CREATE EXTERNAL TABLE {name} STORED AS CSV LOCATION @s/t/")
        with pytest.raises(Conflict):
            there.engine.check_loaded_name("t")
        with pytest.raises(Conflict):
            there.engine.check_view("t", "SELECT 1")
        assert there.do("DROP EXTERNAL TABLE t") == [{"status": "dropped external table t"}]
        assert not (there.data / "external/t").exists()
        with pytest.raises(FrazilError, match="no table t"):
            there.sql("SELECT * FROM t")
