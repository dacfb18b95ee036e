"""KeyedDefinition: what the lake knows of a keyed table. Plain values, joined from above."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

LOG_PARTITION, OFFSET, ROW = "_log_partition", "_offset", "_row"
SYSTEM_COLUMNS = (LOG_PARTITION, OFFSET, ROW)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedColumn:
    """A column, in the latest version of its table."""

    id: int
    """Never reused; at most 65,535."""
    name: str
    type: pa.DataType
    is_nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedDefinition:
    """A keyed table."""

    name: str
    table_id: str
    """Another one after the table was dropped and created again."""
    topic: str
    """The topic of its changes."""
    partitions: int
    key: tuple[str, ...]
    columns: tuple[KeyedColumn, ...]
    topic_id: str | None = None
    """Of a topic that is not in our log. Its offsets are of this topic only."""
