"""The load ledger of a table: which files it was loaded from.

A Parquet file below `metadata/`, named by a table property that is swapped in the same commit as
the data files. So a file is in the ledger exactly if its rows are in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.model.arrow import LEDGER_SCHEMA, LedgerEntry, with_entries

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

LEDGER = "frazil.load-ledger"
"""Table property: location of the ledger."""


def read_ledger(location: str | None, io: FileIO) -> pa.Table:
    """Return the ledger of a table; empty if it was never loaded."""
    if location is None:
        return LEDGER_SCHEMA.empty_table()
    with io.new_input(location).open() as stream:
        return pq.read_table(stream).cast(LEDGER_SCHEMA)


def write_ledger(
    ledger: pa.Table,
    entries: Iterable[LedgerEntry],
    *,
    location: str,
    io: FileIO,
    commit_id: str,
    now_ms: int,
) -> None:
    """Write a ledger with these entries added, durably."""
    table = with_entries(ledger, entries, commit_id=commit_id, now_ms=now_ms)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    with io.new_output(location).create() as stream:
        stream.write(sink.getvalue().to_pybytes())


def entries_of(ledger: pa.Table) -> Sequence[dict[str, object]]:
    """Return the entries as dictionaries, in the order of their commits."""
    rows: list[dict[str, object]] = ledger.to_pylist()
    return rows
