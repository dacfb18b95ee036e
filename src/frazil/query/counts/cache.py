"""Rows that say the same, wherever they stand, as one row and a number.

A query that only counts rows by columns with few different values need not look at each of them:
counting the services of ten million rows reads some thousands. What was found out about a piece is
kept for as long as the piece is. The same holds for files of the lake.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa

from frazil.query.counts.parquet_counts import count_file
from frazil.query.plan.session import processors
from frazil.query.scan.parquet_scan import ParquetScan

if TYPE_CHECKING:
    from frazil.hot import Piece
    from frazil.lake import TableFile
    from frazil.query.scan.tiers import TierRows

    Part: TypeAlias = Piece | TableFile

KEPT_MAX = 16
"""What is kept of one piece: so many sets of columns."""


class Counts:
    """The counts of pieces. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: WeakKeyDictionary[Part, dict[tuple[str, ...], pa.RecordBatch]] = (
            WeakKeyDictionary()
        )

    def of(
        self, lot: TierRows, columns: tuple[str, ...], check: Callable[[], None]
    ) -> list[pa.RecordBatch] | None:
        """The different rows of each piece and file in these columns, and how many there are of
        each. None when they are too many to be worth it. Calls `check` now and then."""
        pieces = lot.parts
        kept = {piece: found for piece in pieces if (found := self._known(piece, columns))}
        missing = [piece for piece in pieces if piece not in kept]
        if missing:
            # The first one is a sample: where it has too many different rows, the others do.
            kept |= self._count(lot, missing[:1], columns, check) or {}
            if len(kept) == len(pieces) - len(missing):
                return None
            found = self._count(lot, missing[1:], columns, check)
            if found is None:
                return None
            kept |= found
        return [kept[piece] for piece in pieces]

    def _known(self, piece: Part, columns: tuple[str, ...]) -> pa.RecordBatch | None:
        with self._lock:
            return self._kept.get(piece, {}).get(columns)

    def _count(
        self,
        lot: TierRows,
        pieces: Sequence[Part],
        columns: tuple[str, ...],
        check: Callable[[], None],
    ) -> dict[Part, pa.RecordBatch] | None:
        def count(piece: Part) -> pa.RecordBatch | None:
            check()
            found = _count_part(lot, piece, columns)
            if found is not None:
                self._keep(piece, columns, found)
            return found

        if len(pieces) < 2:
            found = list(map(count, pieces))
        else:
            with ThreadPoolExecutor(processors(), "frazil-count") as pool:
                found = list(pool.map(count, pieces))
        if any(batch is None for batch in found):
            return None
        return dict(zip(pieces, found, strict=True))

    def _keep(self, piece: Part, columns: tuple[str, ...], found: pa.RecordBatch) -> None:
        with self._lock:
            kept = self._kept.setdefault(piece, {})
            if len(kept) >= KEPT_MAX:
                kept.clear()
            kept[columns] = found


def _count_part(lot: TierRows, part: Part, columns: tuple[str, ...]) -> pa.RecordBatch | None:
    # What is compiled is loaded by the first query that uses it, not by everybody who starts.
    from frazil.hot import Piece
    from frazil.query.counts.group_count import count_like

    if isinstance(part, Piece):
        return count_like([batch.select(columns) for batch in part.batches])
    assert lot.view is not None
    scan = ParquetScan(root=lot.view.root, paths=(part.path,))
    return count_file(lot.view.schema, scan, columns)
