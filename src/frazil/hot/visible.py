"""VisibleSegments: the rows that queries see, of all tables at one moment."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from frazil.hot.partition import HotPartition
from frazil.hot.segment.piece import Piece

VisiblePieces = Mapping[str, tuple[Piece, ...]]
"""Table -> pieces, at one moment."""


class VisibleSegments:
    """The partitions and the list of their pieces, which is replaced as a whole.

    Hold `swap` while rows change state (open, frozen, sealed) and while `publish` lists them, so
    that a query sees every row once. Nothing is read, written or decoded under it.
    """

    def __init__(self, tables: Iterable[str]) -> None:
        self.swap = threading.Lock()
        self.partitions: tuple[HotPartition, ...] = ()
        self.pieces: VisiblePieces = MappingProxyType(dict.fromkeys(tables, ()))

    def publish(self) -> None:
        """Replace the list of pieces. The caller holds `swap`."""
        self.pieces = MappingProxyType(
            {
                table: tuple(piece for p in self.partitions for piece in p.pieces(table))
                for table in self.pieces
            }
        )

    @property
    def unsealed_bytes(self) -> int:
        """Bytes of rows that are only in memory. For the reading thread."""
        return sum(partition.unsealed_bytes for partition in self.partitions)

    @property
    def sealed_bytes(self) -> int:
        return sum(partition.segments.size_bytes for partition in self.partitions)
