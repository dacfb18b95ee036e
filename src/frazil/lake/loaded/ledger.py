"""The load ledger of a table: which files it was loaded from.

A Parquet file below `metadata/`, named by a table property that is swapped in the same commit as
the data files. So a file is in the ledger exactly if its rows are in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

LEDGER = "frazil.load-ledger"
"""Table property: location of the ledger."""
LOADED, SKIPPED = "loaded", "skipped"
LEDGER_SCHEMA = pa.schema(
    [
        pa.field("uri", pa.string(), nullable=False),
        pa.field("etag", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("errors", pa.int64(), nullable=False),
        pa.field("first_error", pa.string()),
        pa.field("first_error_line", pa.int64()),
        pa.field("loaded_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("commit_id", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One file of one load."""

    uri: str
    etag: str
    size_bytes: int
    status: str
    """`loaded`, or `skipped` because of errors: only the first is not loaded again."""
    rows: int
    errors: int
    first_error: str | None = None
    first_error_line: int | None = None


def read_ledger(location: str | None, io: FileIO) -> pa.Table:
    """Return the ledger of a table; empty if it was never loaded."""
    if location is None:
        return LEDGER_SCHEMA.empty_table()
    with io.new_input(location).open() as stream:
        return pq.read_table(stream).cast(LEDGER_SCHEMA)


def loaded_keys(ledger: pa.Table) -> set[tuple[str, str]]:
    """Return URI and ETag of the files whose rows the table has."""
    columns = [ledger.column(name).to_pylist() for name in ("uri", "etag", "status")]
    return {(uri, etag) for uri, etag, status in zip(*columns, strict=True) if status == LOADED}


def tried_keys(ledger: pa.Table) -> set[tuple[str, str]]:
    """Return URI and ETag of all files, loaded or skipped."""
    return set(zip(ledger["uri"].to_pylist(), ledger["etag"].to_pylist(), strict=True))


def with_entries(
    ledger: pa.Table, entries: Iterable[LedgerEntry], *, commit_id: str, now_ms: int
) -> pa.Table:
    """Return a ledger with these entries added."""
    rows = [
        {
            **{name: getattr(entry, name) for name in LedgerEntry.__dataclass_fields__},
            "loaded_at": now_ms * 1000,
            "commit_id": commit_id,
        }
        for entry in entries
    ]
    return pa.concat_tables([ledger, pa.Table.from_pylist(rows, LEDGER_SCHEMA)])


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
