"""The examples of docs/spark.md run under spark-submit while a node uses the data folder."""

from __future__ import annotations

import re
import subprocess
import time
from contextlib import closing
from pathlib import Path

from frazil.lake.catalog.catalog import open_catalog
from frazil.settings import LakeConfig
from tests.clients.node import COMMAND, Node
from tests.live.spark.test_streams import Feeder

ROOT = Path(__file__).parents[3]
WAIT_S = 600


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


def wait_for_tables(folder: Path) -> None:
    """Wait for the tables, which a node creates soon after its start."""
    deadline = time.monotonic() + WAIT_S
    with closing(open_catalog(LakeConfig(), folder)) as catalog:
        while not catalog.table_exists("frazil.metrics"):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def submit_command() -> list[str]:
    import pyspark

    return [str(Path(pyspark.__file__).parent / "bin" / "spark-submit")]


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    """They run as one program. The tables are empty; the rows are in the log."""
    page = (ROOT / "docs" / "spark.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 3
    (tmp_path / "page.py").write_text("\n".join(blocks))
    with Node(tmp_path / "data") as node:
        Feeder(node, 10).send(10)
        wait_for_tables(tmp_path / "data")
        settings = run([*COMMAND, "pyspark", "--data", "data", "--settings"], tmp_path)
        (tmp_path / "spark.conf").write_text(settings)
        output = run([*submit_command(), "--properties-file", "spark.conf", "page.py"], tmp_path)
        assert node.stop() == 0
    assert "shop-0" in output
    assert "shop-1" in output
