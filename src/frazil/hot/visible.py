"""VisibleSegments: which rows queries see, all tables at one moment."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from frazil.hot.partition import HotPartition
from frazil.hot.segment.piece import Piece

Snapshot = Mapping[str, tuple[Piece, ...]]
"""By table, the pieces of one moment."""


class VisibleSegments:
    """The partitions, and the list of their rows, replaced whole.

    `swap` is held while rows change places (open, frozen, sealed) and while `publish` lists them,
    so that nobody sees a row twice or not at all. Nothing is read, written or decoded under it.
    """

    def __init__(self, tables: Iterable[str]) -> None:
        self.swap = threading.Lock()
        self.partitions: tuple[HotPartition, ...] = ()
        self.snapshot: Snapshot = MappingProxyType(dict.fromkeys(tables, ()))

    def publish(self) -> None:
        """List the rows anew. Call it with `swap` in hand."""
        self.snapshot = MappingProxyType(
            {
                table: tuple(piece for p in self.partitions for piece in p.pieces(table))
                for table in self.snapshot
            }
        )

    @property
    def unsealed_bytes(self) -> int:
        """Rows that only memory holds. For the reading thread."""
        return sum(partition.unsealed_bytes for partition in self.partitions)

    @property
    def sealed_bytes(self) -> int:
        return sum(partition.shelf.size_bytes for partition in self.partitions)
