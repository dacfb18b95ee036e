"""Deaths: which row versions died, at which offset, in the order of the log.

Deaths are numbered in this order, for ever: one that is forgotten leaves a gap. What is in a file
is mapped; the rest is in memory that only grows at its end, so slices taken earlier stay valid.

A compaction forgets deaths below an offset, the horizon. It makes a new object and leaves the old
one to the views that have it; from there they follow `later` to what happened since.
"""

from __future__ import annotations

from bisect import bisect_right
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

    def where(self, is_kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> DeathList:
        return DeathList(self.rows[is_kept], self.offsets[is_kept], self.successors[is_kept])


class Deaths:
    """All deaths of a partition from the horizon on, and some before it. Changed by its owner;
    slices may be read anywhere."""

    def __init__(self, horizon: int = 0) -> None:
        self.horizon = horizon
        """From this offset on all deaths are known."""
        self.count = 0
        """How many ever happened: the number of the next one."""
        self.later: Deaths | None = None
        """What took the place of this object; nothing is appended here since."""
        self._sealed: list[DeathList] = []
        """One part per file."""
        self._ends: list[int] = []
        """The number after the last death of each part. Deaths at or above the horizon have no
        gaps, so they are counted from the end of their part."""
        self._open = _space(64)

    @property
    def sealed_count(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def open_bytes(self) -> int:
        return 24 * (self.count - self.sealed_count)

    @property
    def sealed(self) -> Sequence[DeathList]:
        """The deaths of each file."""
        return self._sealed

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
        self.add_sealed(part, self.count)
        self._open = _space(64)

    def add_sealed(self, part: DeathList, end: int) -> None:
        """Add the deaths of a file after the sealed ones."""
        self._sealed.append(part)
        self._ends.append(end)
        self.count = max(self.count, end)

    def compacted(self, begin: int, end: int, part: DeathList, horizon: int) -> Deaths:
        """Return what takes the place of this object when the files from `begin` up to `end` become
        one, which knows all deaths from the horizon on."""
        after = Deaths(max(self.horizon, horizon))
        after.count = self.count
        after._sealed = [*self._sealed[:begin], part, *self._sealed[end:]]
        after._ends = [*self._ends[:begin], *self._ends[end - 1 :]]
        after._open = self._open  # only the later object appends
        return after

    def open_part(self) -> DeathList:
        """Return the deaths that are in no file."""
        return self._open.part(0, self.count - self.sealed_count)

    def between(self, begin: int, end: int) -> DeathList:
        """Return deaths by their numbers; all of them happened at the horizon or later."""
        parts = []
        first = bisect_right(self._ends, begin)
        for part, part_end in zip(self._sealed[first:], self._ends[first:], strict=True):
            if end <= part_end - len(part.rows):
                break
            base = part_end - len(part.rows)
            parts.append(part.part(max(0, begin - base), min(end, part_end) - base))
        base = self.sealed_count
        if end > base:
            parts.append(self._open.part(max(0, begin - base), end - base))
        return _joined(parts)

    def since(self, begin: int) -> DeathList:
        """Return the deaths from a number on, up to this moment."""
        parts = [self.between(begin, self.count)]
        deaths = self
        while deaths.later is not None:
            begin, deaths = max(begin, deaths.count), deaths.later
            parts.append(deaths.between(begin, deaths.count))
        return _joined([part for part in parts if len(part.rows)])

    def before(self, offset: int) -> int:
        """Return how many deaths happened below an offset, which is at the horizon or later."""
        for part, end in zip(self._sealed, self._ends, strict=True):
            if len(part.rows) and part.offsets[-1] >= offset:
                return end - len(part.rows) + int(np.searchsorted(part.offsets, offset))
        return self.sealed_count + int(np.searchsorted(self.open_part().offsets, offset))


def _space(size: int) -> DeathList:
    return DeathList(*(np.empty(size, np.int64) for _ in range(3)))


def no_deaths() -> DeathList:
    return _space(0)


def _joined(parts: Sequence[DeathList]) -> DeathList:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return _space(0)
    return DeathList(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
