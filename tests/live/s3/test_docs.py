"""docs/lake-tables.md "On S3", followed literally against a real S3 server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from frazil.config import load
from frazil.embedded import Embedded
from frazil.errors import Unavailable
from frazil.model import MiB
from tests.clients.node import COMMAND
from tests.lake.append.test_appender import World, expected
from tests.live.rest_catalog.test_rest_catalog import PLACES, opened, places
from tests.live.s3.jars import spark_jar
from tests.live.s3.server import KEY_ID, SECRET, S3Server
from tests.pages import blocks_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # of PySpark
]

PAGE = Path(__file__).parents[3] / "docs" / "lake-tables.md"
COUNT = 7
LITTLE = {"driver_memory_bytes": 512 * MiB}
WAIT_S = 600


def settings_of(server: S3Server, secret: str = SECRET) -> str:
    """Return the files of the page with the keys, address and jar of this machine."""
    _, bucket, spark, *_ = (block.text for block in blocks_of(PAGE, "toml"))
    for written, real in (
        ('"s3.access-key-id" = "…"', f'"s3.access-key-id" = "{KEY_ID}"'),
        ('"s3.secret-access-key" = "…"', f'"s3.secret-access-key" = "{secret}"'),
        ("https://s3.example", server.endpoint),
    ):
        assert bucket.count(written) == 1
        bucket = bucket.replace(written, real)
    jar = "/opt/jars/iceberg-aws-bundle-1.12.0.jar"
    assert spark.count(jar) == 1
    return bucket + spark.replace(jar, str(spark_jar()))


def warehouse(folder: Path) -> dict[str, Any]:
    """Return what the doctor finds out about the bucket."""
    command = [*COMMAND, "doctor", "--config", "frazil.toml", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=WAIT_S)
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    (found,) = (each for each in findings if each["check"] == "warehouse")
    return dict(found)


def test_the_page_is_followed_to_rows_in_a_bucket(tmp_path: Path) -> None:
    """The doctor names what is missing; then rows are committed and read."""
    settings = tmp_path / "frazil.toml"
    with S3Server(tmp_path / "s3") as server:
        settings.write_text(settings_of(server))
        missing = warehouse(tmp_path)
        assert missing["level"] == "failure" and "NO_SUCH_BUCKET" in missing["found"]
        server.make_bucket("bucket")
        settings.write_text(settings_of(server, secret="wrong"))
        assert "SIGNATURE_DOES_NOT_MATCH" in warehouse(tmp_path)["found"]
        settings.write_text(settings_of(server))
        assert warehouse(tmp_path)["level"] == "ok"
        assert not [path for path in server.objects.rglob("*") if path.is_file()]
        config = load(str(settings), {"data": str(tmp_path / "data"), "lake": LITTLE})
        with opened(config) as (world, embedded):
            world.add(COUNT)
            embedded.flush()
            assert list((server.objects / "bucket" / "folder").rglob("*.parquet"))
            check_reads(world, embedded)


def check_reads(world: World, embedded: Embedded) -> None:
    """PyIceberg and Spark read the tables; SQL here says that it cannot."""
    scan = world.catalog.load_table("frazil.logs").scan().select("_offset", "_row")
    assert places(scan.to_arrow().to_pylist()) == expected(COUNT)
    by_spark = embedded.sql(PLACES.format("logs"), engine="spark").fetchall()
    assert places(by_spark) == expected(COUNT)
    with pytest.raises(Unavailable, match="SQL reads local files only; use Spark"):
        embedded.sql(PLACES.format("logs")).fetchall()
