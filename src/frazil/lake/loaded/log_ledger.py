"""The load ledger of a table that is filled from the log: `loads/<table>/ledger.ckpt`.

Its rows are in the log, so its ledger cannot be swapped with them. Instead each load has an id,
which the log remembers as the position of a source: entries after those of that load are not valid.
"""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.disk import RealDisk, make_directories, read_checkpoint, write_checkpoint
from frazil.model.arrow import LEDGER_SCHEMA

LOADS_FOLDER = "loads"
LEDGER_NAME = "ledger.ckpt"
LEDGER_KIND, LEDGER_VERSION = b"LEDG", 1
LEDGER_HINT = (
    "without it, files that were loaded may be loaded again; restore it from a backup, or remove "
    "it and name new files in FILES=(…) with FORCE=true"
)


class LogLedger:
    """Owned by whoever loads into the table; any thread may read."""

    def __init__(self, disk: RealDisk, table: str) -> None:
        self._disk = disk
        self._folder = f"{LOADS_FOLDER}/{table}"

    def read(self) -> pa.Table:
        """Return all entries. Raises `Corrupt` if the file is damaged."""
        path = f"{self._folder}/{LEDGER_NAME}"
        body = read_checkpoint(self._disk, path, LEDGER_KIND, LEDGER_VERSION, LEDGER_HINT)
        if body is None:
            return LEDGER_SCHEMA.empty_table()
        return pq.read_table(io.BytesIO(body)).cast(LEDGER_SCHEMA)

    def write(self, ledger: pa.Table) -> None:
        """Replace all entries, durably."""
        sink = pa.BufferOutputStream()
        pq.write_table(ledger, sink, compression="zstd")
        make_directories(self._disk, self._folder)
        write_checkpoint(
            self._disk,
            f"{self._folder}/{LEDGER_NAME}",
            LEDGER_KIND,
            LEDGER_VERSION,
            sink.getvalue().to_pybytes(),
        )


def log_ledgers(disk: RealDisk) -> list[tuple[str, pa.Table]]:
    """Return each table that is filled from the log and was loaded from files, with its ledger."""
    ledgers = [(name, LogLedger(disk, name).read()) for name in sorted(disk.list(LOADS_FOLDER))]
    return [(name, ledger) for name, ledger in ledgers if ledger.num_rows]
