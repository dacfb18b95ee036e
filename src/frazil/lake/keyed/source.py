"""KeyedSource: the keyed tables that are frozen, and what has changed in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from frazil.lake.keyed.definition import KeyedDefinition
from frazil.log import Record

Longs = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class FrozenPosition:
    """Up to where a table holds a partition."""

    offset: int = 0
    """The first offset whose change it does not have."""
    row: int = 0
    """The number of the first row version that was made by it, or later."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionChanges:
    """What happened to a partition between two positions."""

    partition: int
    begin: FrozenPosition
    end: FrozenPosition
    dead: Longs
    """Row versions below `begin.row` that died, ascending."""
    batches: Iterable[pa.RecordBatch]
    """Row versions from `begin.row` up to `end.row` that are alive at the end: the columns of the
    table, `_offset` and `_row`. Read once."""
    unfit: Sequence[tuple[Record, str]] = ()
    """Records that are no changes, each with the reason: they become dead letters. Only of topics
    that are not in our log."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrozenRows:
    """All rows of one partition as of an offset."""

    position: FrozenPosition
    """The snapshot has every change below its offset; the next row version gets its row number."""
    batches: Iterator[pa.RecordBatch]
    """The columns of the table in their own types, `_offset` and `_row`, in no order. Read once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenTable:
    """What the lake knows of a keyed table."""

    table_id: str
    key: frozenset[str]
    column_ids: Mapping[str, int]
    """Of our columns, by name; those that a user has added are left out."""
    offsets: Mapping[int, int]
    """The first offset of each partition that it does not have; empty before the first commit."""


class KeyedSource(Protocol):
    """Used by the lake's thread."""

    def tables(self) -> Sequence[KeyedDefinition]:
        """Return all keyed tables."""
        ...

    def ends(self, definition: KeyedDefinition) -> Mapping[int, int]:
        """Return the first offset of each partition that is not durable. Raises `Unknown` if the
        table was dropped."""
        ...

    def changes(
        self, name: str, begins: Mapping[int, FrozenPosition], bytes_max: int
    ) -> list[PartitionChanges]:
        """Return what changed since these positions, up to one offset of each partition: what is
        durable now, or about `bytes_max` of rows. Partitions without changes are left out.

        Raises `Unknown` if there is no such table, `Unavailable` if its rows are being rebuilt, and
        `Conflict` if its row numbers are not those of the positions."""
        ...

    def pending_bytes(self, definition: KeyedDefinition, offsets: Mapping[int, int]) -> int:
        """Estimate the bytes of changes from these offsets on, by partition."""
        ...

    def publish(self, definition: KeyedDefinition, partition: int, offset: int) -> None:
        """Record that the table in the lake has everything below an offset."""
        ...
