"""TableScan: what a query reads of one table, in the hot tier and in the lake."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class TableScan(msgspec.Struct, frozen=True, kw_only=True):
    """What a query reads of one table, at most: a query that has enough rows stops early, and
    only some columns of a data file are read."""

    table: str
    hot_rows: int
    hot_bytes: Annotated[int, Meta(description="Size in memory.")]
    hot_pieces: int
    hot_pieces_all: Annotated[int, Meta(description="Including the pruned ones.")]
    lake_rows: int
    lake_bytes: Annotated[int, Meta(description="Size of the data files.")]
    lake_files: int
    lake_files_all: int
    rows_all: Annotated[int, Meta(description="Rows of the table in both tiers at that moment.")]
    snapshots: Annotated[list[str], Meta(description="Iceberg snapshot ids; text, as above 2^53.")]
    skipped: Annotated[dict[str, int], Meta(description="Pruned pieces and files, by reason.")]
