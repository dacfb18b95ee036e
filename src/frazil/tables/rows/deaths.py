"""Deaths: which row versions died, at which offset, in the order of the log.

What is in a file is mapped; the rest is in memory that only grows at its end, so slices taken
earlier stay valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from frazil.tables.keys.kernels import Longs

NO_SUCCESSOR = -1
"""Of a row that was deleted."""


class DeathList(NamedTuple):
    """Some deaths: the row, the offset, and the row that replaced it."""

    rows: Longs
    offsets: Longs
    successors: Longs

    def part(self, begin: int, end: int) -> DeathList:
        return DeathList(self.rows[begin:end], self.offsets[begin:end], self.successors[begin:end])


class Deaths:
    """All deaths of a partition. Changed by its owner; slices may be read anywhere."""

    def __init__(self) -> None:
        self.count = 0
        self._sealed: list[DeathList] = []
        self._ends: list[int] = []
        """Number of deaths up to each sealed part."""
        self._open = _space(64)

    @property
    def sealed_count(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def open_bytes(self) -> int:
        return 24 * (self.count - self.sealed_count)

    def append(self, rows: Longs, offsets: Longs, successors: Longs) -> None:
        begin = self.count - self.sealed_count
        end = begin + len(rows)
        if end > len(self._open.rows):
            larger = _space(max(end, 2 * len(self._open.rows)))
            for before, after in zip(self._open, larger, strict=True):
                after[:begin] = before[:begin]
            self._open = larger
        for column, values in zip(self._open, (rows, offsets, successors), strict=True):
            column[begin:end] = values
        self.count += len(rows)

    def seal(self, part: DeathList) -> None:
        """Replace all deaths in memory by the same ones in a file."""
        assert self.sealed_count + len(part.rows) == self.count
        self.add_sealed(part)
        self._open = _space(64)

    def add_sealed(self, part: DeathList) -> None:
        """Add deaths of a file after the sealed ones."""
        if len(part.rows):
            self._sealed.append(part)
            self._ends.append(self.sealed_count + len(part.rows))
        self.count = max(self.count, self.sealed_count)

    def open_part(self) -> DeathList:
        """Return the deaths that are in no file."""
        return self._open.part(0, self.count - self.sealed_count)

    def between(self, begin: int, end: int) -> DeathList:
        """Return deaths by their numbers."""
        parts = []
        base = 0
        for part, part_end in zip((*self._sealed, self._open), (*self._ends, end), strict=True):
            if base < end and begin < part_end:
                parts.append(part.part(max(0, begin - base), min(end, part_end) - base))
            base = part_end
        return _joined(parts)

    def before(self, offset: int) -> int:
        """Return how many deaths happened below an offset."""
        base = 0
        for part, end in zip(self._sealed, self._ends, strict=True):
            if part.offsets[-1] >= offset:
                return base + int(np.searchsorted(part.offsets, offset))
            base = end
        return base + int(np.searchsorted(self.open_part().offsets, offset))


def _space(size: int) -> DeathList:
    return DeathList(*(np.empty(size, np.int64) for _ in range(3)))


def _joined(parts: Sequence[DeathList]) -> DeathList:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return _space(0)
    return DeathList(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
