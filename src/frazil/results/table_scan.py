"""TableScan: what a query reads of one table, in the hot tier and in the lake."""

from __future__ import annotations

import msgspec


class TableScan(msgspec.Struct, frozen=True, kw_only=True):
    """What a query reads of one table. It may read less: one that has found enough rows stops, and
    of a file of the lake it reads only some columns."""

    table: str
    hot_rows: int
    hot_bytes: int
    """In memory."""
    hot_pieces: int
    hot_pieces_all: int
    """Those that were left out are counted here, too."""
    lake_rows: int
    lake_bytes: int
    """Of whole files, on disk."""
    lake_files: int
    lake_files_all: int
    rows_all: int
    """Rows of the table, in both tiers, at that moment."""
    snapshots: list[str]
    """Of the lake, that the files are of; as text, as not all readers of JSON have such numbers."""
    skipped: dict[str, int]
    """Why pieces and files were left out, and how many."""
