"""RowPositions: where in a data file each row version is. PositionCache: those of the files that
rounds touch, in memory.

A data file is sorted by key, so a row version may be anywhere in it. Its columns `_log_partition`
and `_row` are read once, and inverted: for each partition an array from row number to position,
which takes 4 bytes per row. Where most numbers between the first and the last are elsewhere, as
after compactions, the numbers that are there are sorted instead, which takes 12.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from frazil.errors import Corrupt
from frazil.lake.files.parquet_damage import parquet_damage
from frazil.lake.keyed.definition import LOG_PARTITION, ROW
from frazil.lake.keyed.source import Longs
from frazil.model import MiB

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

Ints = np.ndarray[tuple[int], np.dtype[np.int32]]

READ_ROWS = 128 * 1024
SPARSE = 3
"""More numbers per row than this take more memory in an array than sorted."""
NOWHERE = -1
CACHE_BYTES_MAX = 64 * MiB
"""Memory for positions, of all tables: about 16 million rows."""


@dataclass(frozen=True, slots=True, eq=False)
class _Dense:
    """Positions by row number."""

    first: int
    positions: Ints

    @property
    def nbytes(self) -> int:
        return self.positions.nbytes

    def look_up(self, rows: Longs) -> Ints:
        """Return the positions of rows, which are sorted, or `NOWHERE`."""
        found: Ints = np.full(len(rows), NOWHERE, np.int32)
        begin, end = np.searchsorted(rows, (self.first, self.first + len(self.positions)))
        found[begin:end] = self.positions[rows[begin:end] - self.first]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Sorted:
    """Row numbers, ascending, with the position of each."""

    rows: Longs
    positions: Ints

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.positions.nbytes

    def look_up(self, rows: Longs) -> Ints:
        """Return the positions of rows, or `NOWHERE`."""
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        found: Ints = np.where(self.rows[at] == rows, self.positions[at], np.int32(NOWHERE))
        return found


class RowPositions:
    """Immutable."""

    def __init__(self, path: str, partitions: Ints, rows: Longs) -> None:
        """Takes the two columns of a data file. Raises `Corrupt` if it has a row version twice."""
        self._parts: dict[int, _Dense | _Sorted] = {}
        is_one_partition = len(partitions) > 0 and partitions.min() == partitions.max()
        for number in partitions[:1].tolist() if is_one_partition else np.unique(partitions):
            at = None if is_one_partition else np.flatnonzero(partitions == number)
            part = _part(rows if at is None else rows[at], at)
            if part is None:
                raise Corrupt(
                    path=path,
                    position=0,
                    expected="each row version once",
                    found=f"some of partition {number} twice",
                    hint="The table is not changed; drop it: it is written again as a whole",
                )
            self._parts[int(number)] = part

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts.values())

    def look_up(self, partition: int, rows: Longs) -> Ints:
        """Return the position of each row of a partition, or `NOWHERE`. Rows are ascending."""
        part = self._parts.get(partition)
        return np.full(len(rows), NOWHERE, np.int32) if part is None else part.look_up(rows)


def _part(rows: Longs, at: Longs | None) -> _Dense | _Sorted | None:
    """Return where rows are, or None if one is there twice. `at` has their positions; without it
    they are 0, 1, 2, ..."""
    first, last = int(rows.min()), int(rows.max())
    places: Ints = np.arange(len(rows), dtype=np.int32) if at is None else at.astype(np.int32)
    if last - first < SPARSE * len(rows):
        positions: Ints = np.full(last - first + 1, NOWHERE, np.int32)
        positions[rows - first] = places
        is_whole = np.count_nonzero(positions != NOWHERE) == len(rows)
        return _Dense(first, positions) if is_whole else None
    order = np.argsort(rows)
    ordered = rows[order]
    return None if np.any(ordered[1:] == ordered[:-1]) else _Sorted(ordered, places[order])


def read_row_positions(path: str, io: FileIO) -> RowPositions:
    """Read the positions of a data file. Raises `Corrupt` if it is damaged."""
    with parquet_damage(path), io.new_input(path).open() as source:
        file = pq.ParquetFile(source, page_checksum_verification=True)
        count = file.metadata.num_rows
        partitions, rows = np.empty(count, np.int32), np.empty(count, np.int64)
        begin = 0
        for batch in file.iter_batches(READ_ROWS, columns=[LOG_PARTITION, ROW], use_threads=False):
            end = begin + batch.num_rows
            partitions[begin:end] = batch[LOG_PARTITION].to_numpy()
            rows[begin:end] = batch[ROW].to_numpy()
            begin = end
    return RowPositions(path, partitions, rows)


class PositionCache:
    """Keeps the positions of the data files that were used last. A file never changes, so they are
    true as long as it exists. Owned by one thread."""

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._kept: OrderedDict[str, RowPositions] = OrderedDict()
        self._nbytes = 0

    def of(self, path: str, io: FileIO) -> RowPositions:
        """Return the positions of a data file, after reading them unless they are kept."""
        found = self._kept.pop(path, None)
        if found is None:
            found = read_row_positions(path, io)
            self._nbytes += found.nbytes
        self._kept[path] = found
        while self._nbytes > self._bytes_max:
            _, oldest = self._kept.popitem(last=False)
            self._nbytes -= oldest.nbytes
        return found
