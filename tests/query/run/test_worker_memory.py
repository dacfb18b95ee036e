"""The memory limit of a worker counts what is in use, not what allocators and threads reserve."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.query.run.fork_client import ENVIRONMENT

FILES = 700
READ = """
import resource, sys
import datafusion
from frazil.query.run import worker_main as worker
base = worker._data_bytes()
limit = base + worker.RESERVE_BYTES + worker.STACKS_BYTES
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
context = datafusion.SessionContext()
context.register_parquet("t", sys.argv[1])
for _ in range(3):
    (batch,) = context.sql("SELECT count(*) AS n FROM t WHERE body LIKE '%1%'").collect()
print(batch.column(0)[0])
"""


def test_many_files_are_read_within_the_limit(tmp_path: Path) -> None:
    """DataFusion reads them in a hundred threads and more; each has a stack and an arena. Without
    the settings of the environment this process ends: a small allocation fails."""
    table = pa.table({"body": [f"text {number}" for number in range(500)]})
    for number in range(FILES):
        pq.write_table(table, tmp_path / f"{number}.parquet")
    done = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path)],
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    matching = sum("1" in f"text {number}" for number in range(500))
    assert done.stdout.strip() == str(FILES * matching), done.stderr[-2000:]
