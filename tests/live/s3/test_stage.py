"""A stage in a bucket of a real server: list, read with ETags, write, load."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.definitions import CreateStage
from frazil.errors import Conflict, FrazilError
from frazil.load.stages.stage import Stage, open_stage, staged_files
from frazil.settings import ExternalConfig, StagesConfig
from tests.live.s3.server import KEY_ID, SECRET, S3Server
from tests.load.loading import Loading
from tests.load.test_external import Place


def connections_of(server: S3Server, secret: str = SECRET) -> dict[str, str]:
    return {
        "s3.endpoint": server.endpoint,
        "s3.access_key_id": KEY_ID,
        "s3.secret_access_key": secret,
        "s3.region": "us-east-1",
        "s3.allow_http": "true",
    }


def stage_of(server: S3Server, secret: str = SECRET) -> Stage:
    return open_stage(
        CreateStage(name="s", url="s3://files/in/", connection="s3"),
        StagesConfig(roots=["s3://files"]),
        connections_of(server, secret),
    )


def test_a_bucket(tmp_path: Path) -> None:
    with S3Server(tmp_path / "server") as server:
        server.make_bucket("files")
        stage = stage_of(server)
        store = stage.open()
        store.put("2026/a.ndjson.gz", [gzip.compress(b'{"a":1}\n{"a":2}\n')], overwrite=True)
        store.put("2026/b.ndjson", [b'{"a":3}\n'], overwrite=False)
        store.put("2027/c.ndjson", [b'{"a":4}\n'], overwrite=True)
        listed = staged_files(stage, "2026/", files_max=10)
        assert [file.uri for file in listed] == [
            "s3://files/in/2026/a.ndjson.gz",
            "s3://files/in/2026/b.ndjson",
        ]
        loading = Loading(tmp_path / "loading")
        loading.stage = stage
        text = "COPY INTO t FROM @s/2026/ FILE_FORMAT=(TYPE=NDJSON)"
        assert loading.copy(text).row_count == 3
        assert sorted(row["a"] for row in loading.rows("t")) == [1, 2, 3]
        assert loading.copy(text).known_count == 2

        store.put("2026/b.ndjson", [b'{"a":5}\n'], overwrite=True)
        with store.open(listed[1]) as stream, pytest.raises(Conflict, match="was overwritten"):
            stream.read()
        assert loading.copy(text).replaced == ("s3://files/in/2026/b.ndjson",)
        with pytest.raises(FrazilError):
            staged_files(stage_of(server, "wrong"), "", files_max=10)


def test_an_external_table_in_a_bucket(tmp_path: Path) -> None:
    """Objects are pruned by folder and footer, fetched by ETag, and listed again if overwritten."""
    with S3Server(tmp_path / "server") as server:
        server.make_bucket("files")
        store = stage_of(server).open()

        def put(day: int, values: list[int]) -> None:
            sink = pa.BufferOutputStream()
            pq.write_table(pa.table({"a": values}), sink)
            path = f"archive/day=2026-01-{day:02d}/f.parquet"
            store.put(path, [sink.getvalue().to_pybytes()], overwrite=True)

        for day in range(1, 10):
            put(day, [day, day * 100])
        there = Place(
            tmp_path,
            ExternalConfig(list_age_ms=3_600_000),
            url="s3://files/in",
            connections=connections_of(server),
        )
        with there.engine:
            there.do(
                "CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION @s/archive/ "
                "PARTITIONED BY (day)"
            )
            text = "SELECT day, a FROM x WHERE day >= DATE '2026-01-05' AND a > 750 ORDER BY 2"
            assert [row[1] for row in there.sql(text)] == [800, 900]
            # By day two more than needed are kept, because a cast may round; by footer, none.
            assert len(list(there.data.glob("external/x/*.parquet"))) == 2
            put(1, [7])
            assert there.sql("SELECT sum(a) FROM x WHERE day = DATE '2026-01-01'") == [(7,)]
