"""The load ledger of a table: which files it was loaded from, one row per file of a load.

Where it is stored depends on the table; it always changes together with the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import pyarrow as pa

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
    """Return a ledger with the files of one more load."""
    rows = [
        {**asdict(entry), "loaded_at": now_ms * 1000, "commit_id": commit_id} for entry in entries
    ]
    return pa.concat_tables([ledger, pa.Table.from_pylist(rows, LEDGER_SCHEMA)])
