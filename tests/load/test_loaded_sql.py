"""SQL over tables that were loaded from files."""

from __future__ import annotations

from pathlib import Path

from tests.load.loading import Loading, sql_over


def test_times_of_loaded_tables(tmp_path: Path) -> None:
    """Bounds of times and of numbers are compared in their own units, whatever the column's
    name."""
    loading = Loading(tmp_path)
    loading.put("1.csv", b"at,time,ingest_time\n2026-01-01T00:00:00Z,5,6\n")
    loading.copy("COPY INTO t FROM @s")
    with sql_over(loading) as sql:
        assert sql("SELECT time FROM t WHERE at > '2025-12-31T00:00:00Z'") == [(5,)]
        assert sql("SELECT time FROM t WHERE at < '2025-12-31T00:00:00Z'") == []
        assert sql("SELECT time FROM t WHERE time = 5 AND ingest_time >= 6") == [(5,)]
        (line,) = (
            text
            for kind, text in sql("EXPLAIN SELECT 1 FROM t WHERE at < '2025-12-31T00:00:00Z'")
            if kind == "pieces"
        )
        assert "0 of 1 files" in line
