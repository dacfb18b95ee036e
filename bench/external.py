"""External tables and clones: what the first query over files costs, the next ones, and a clone.

One million rows of five columns as Parquet and as CSV in a local stage: time and CPU of the
engine's process for the first query, which fetches, and time of the same query again. Then a table
of ten million rows is loaded in this process and cloned. Prints one JSON line last; exits 1 when a
clone takes a second.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from bench.log import scratch_folder
from tests.load.loading import Loading
from tests.load.test_clones import clone
from tests.load.test_external import opened

ROWS = 1_000_000
CLONED_ROWS = 10_000_000
CLONE_S_MAX = 1.0
QUERY = "SELECT service_name, count(*), avg(ms) FROM {} GROUP BY 1"


def rows() -> pa.Table:
    rng = np.random.default_rng(7)
    times = rng.integers(1_700_000_000_000_000, 1_800_000_000_000_000, ROWS)
    return pa.table(
        {
            "id": rng.integers(0, 1 << 60, ROWS),
            "service_name": pa.array(rng.choice(["web", "db", "cart", "pay"], ROWS)),
            "ms": rng.random(ROWS),
            "at": pa.array(times, pa.timestamp("us", tz="UTC")),
            "path": pa.array([f"/a/{number % 5000}/x{number % 97}" for number in range(ROWS)]),
        }
    )


def took(work: Callable[[], object]) -> tuple[float, float]:
    """Return seconds and CPU seconds of this process."""
    begin, cpu = time.perf_counter(), time.process_time()
    work()
    return round(time.perf_counter() - begin, 3), round(time.process_time() - cpu, 3)


def external(folder: Path) -> dict[str, object]:
    table = rows()
    found: dict[str, object] = {}
    with opened(folder, in_use_ms=30_000) as there:
        for kind in ("parquet", "csv"):
            (there.files / kind).mkdir()
        pq.write_table(table, there.files / "parquet/1.parquet")
        pcsv.write_csv(
            table.set_column(3, "at", table["at"].cast(pa.string())), there.files / "csv/1.csv"
        )
        for kind in ("parquet", "csv"):
            there.do(f"CREATE EXTERNAL TABLE {kind}_t STORED AS {kind} LOCATION @s/{kind}/")
            query = QUERY.format(f"{kind}_t")
            first_s, cpu_s = took(lambda query=query: there.sql(query))  # type: ignore[misc]
            again_s, _ = took(lambda query=query: there.sql(query))  # type: ignore[misc]
            (file,) = (there.files / kind).iterdir()
            found[kind] = {
                "file_mb": round(file.stat().st_size / 1e6, 1),
                "first_s": first_s,
                "first_cpu_s": cpu_s,
                "again_s": again_s,
            }
    return found


def cloned(folder: Path) -> float:
    loading = Loading(folder)
    rng = np.random.default_rng(7)
    for number in range(20):
        part = pa.table({"a": rng.integers(0, 1 << 40, CLONED_ROWS // 20)})
        pq.write_table(part, loading.files / f"{number}.parquet")
    loading.copy("COPY INTO t FROM @s")
    clone(loading, "first", "t")  # imports
    seconds, _ = took(lambda: clone(loading, "second", "t"))
    return seconds


def main() -> int:
    with scratch_folder() as scratch:
        folder = scratch.absolute()
        (folder / "external").mkdir()
        result = external(folder / "external")
        result["clone_10m_rows_s"] = clone_s = cloned(folder / "clone")
    print(json.dumps(result))
    return int(clone_s > CLONE_S_MAX)


if __name__ == "__main__":
    sys.exit(main())
