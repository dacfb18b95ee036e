"""DuckDB with its own extension `iceberg`, in a process of its own: it is another DuckDB than ours.

The extension comes from PyPI, for one release of DuckDB; both go to `.cache/duckdb-iceberg` once.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.clients.environments import python_with

PACKAGES = (
    "duckdb==1.5.5",
    "duckdb-extension-avro==1.5.5",
    "duckdb-extension-iceberg==1.5.5",
)
READER = """
import decimal, glob, json, os, sys
import duckdb, duckdb_extension_avro, duckdb_extension_iceberg

def plain(value):
    return int(value) if isinstance(value, decimal.Decimal) else value

database = duckdb.connect(config={"autoinstall_known_extensions": False})
for package in (duckdb_extension_avro, duckdb_extension_iceberg):
    folder = os.path.dirname(package.__file__)
    (path,) = glob.glob(folder + "/extensions/*/*.duckdb_extension")
    database.execute(f"LOAD '{path}'")
for line in sys.stdin:
    rows = database.execute("SELECT * FROM iceberg_scan(?)", [line.strip()])
    names = [column[0] for column in rows.description]
    found = [dict(zip(names, map(plain, row))) for row in rows.fetchall()]
    print(json.dumps(found), flush=True)
"""


class DuckDBReader:
    """Reads tables by the location of their metadata."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def rows(self, metadata: str) -> list[dict[str, Any]]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(metadata + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("DuckDB has ended; its error is above")
        rows: list[dict[str, Any]] = json.loads(line)
        return rows


@contextmanager
def duckdb_reader() -> Iterator[DuckDBReader]:
    command = [str(python_with("duckdb-iceberg", PACKAGES)), "-c", READER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield DuckDBReader(process)
        finally:
            process.kill()
