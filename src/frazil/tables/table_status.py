"""KeyedTableStatus: how a keyed table does. Sent as JSON by the API."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from frazil.model import doc
from frazil.tables.table import Pressure

TableState = Literal["ok", "catching_up", "degraded", "failed"]


class KeyedPartitionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One partition. A watermark is the first offset that a stage does not have."""

    partition: int
    written: Annotated[int, doc("Durable in the log.")]
    indexed: Annotated[int, doc("Applied: look-ups and SQL see all changes below.")]
    first: Annotated[int, doc("Earliest offset for AS OF; older versions are compacted.")]
    sealed: Annotated[int, doc("In local files; a start reads the log from here on.")]
    iceberg: Annotated[int | None, doc("In the Iceberg table; null if unknown.")]


class KeyedTableStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One keyed table."""

    table: str
    state: Annotated[
        TableState,
        doc("`failed`: the table cannot be read. `degraded`: it works, and `trouble` says why."),
    ]
    trouble: str | None = None
    key: Annotated[list[str], doc("Names of the key columns, in order.")] = []
    columns: Annotated[int, doc("Columns of the table.")] = 0
    partitions: list[KeyedPartitionStatus] = []
    keys: Annotated[int, doc("Rows of the table.")] = 0
    key_bytes: Annotated[int, doc("Memory of the key index.")] = 0
    row_bytes: Annotated[int, doc("Row versions and deaths, in memory and in local files.")] = 0
    file_count: Annotated[int, doc("Local row files.")] = 0
    dead_rows: Annotated[
        int, doc("Row versions that were replaced or deleted: what compaction can remove.")
    ] = 0
    lag_offsets: Annotated[int, doc("Durable changes that are not applied yet, as offsets.")] = 0
    dead_changes: Annotated[
        int, doc("Changes that could not be applied since the start, such as updates of no row.")
    ] = 0
    pressure: Annotated[
        Pressure,
        doc("Of memory for keys, `tables.key_bytes_max`. `full`: new keys are refused."),
    ] = "normal"
    checkpoint_age_s: Annotated[
        float | None, doc("Since the key index was saved; null if not since the start.")
    ] = None
