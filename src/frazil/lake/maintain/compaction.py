"""Which files of a table are to be joined: many small ones of a day become few large ones.

A file is joined with others only if these together are as large as it is. So whatever is written
again is in a file of twice the size, at least, and no row is written more often than it takes to
double a small file up to a large one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

GROUP_FILES_MAX = 64
"""Files that one task reads side by side. Each of them takes some memory."""
TODAY_FILES_MIN = 8
"""Of a day that still grows: not worth it for less."""
FILES_MIN = 2
"""Of a day that is over."""
LARGE_PERCENT = 75
"""Of the size wanted: from here on a file is large enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFile:
    """A data file of a table, as far as the one who joins files has to know it."""

    path: str
    """With its scheme."""
    spec_id: int
    day: int
    size_bytes: int
    row_count: int
    first_us: int
    """The least time in it, in microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionGroup:
    """Files of one day that become one."""

    day: int
    parts: tuple[CompactionFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)


def is_small(size_bytes: int, target_bytes: int) -> bool:
    """Would a file be joined with others, if there were enough of them?"""
    return size_bytes * 100 < target_bytes * LARGE_PERCENT


def groups_of(
    parts: Iterable[CompactionFile], *, today: int, target_bytes: int, is_all: bool
) -> list[CompactionGroup]:
    """What is worth to be joined, the day with the most files first.

    With `is_all` that is every small file that has another one beside it.
    """
    days: dict[int, list[CompactionFile]] = {}
    for part in parts:
        if is_small(part.size_bytes, target_bytes):
            days.setdefault(part.day, []).append(part)
    found: list[CompactionGroup] = []
    for day, small in sorted(days.items(), key=lambda item: (-len(item[1]), item[0])):
        chosen = small if is_all else _worth(small)
        least = TODAY_FILES_MIN if day >= today and not is_all else FILES_MIN
        if len(chosen) >= least:
            found += [
                CompactionGroup(day=day, parts=pack)
                for pack in _packed(chosen, target_bytes)
                if len(pack) >= FILES_MIN and (is_all or len(_worth(pack)) == len(pack))
            ]
    return found


def _worth(small: Sequence[CompactionFile]) -> list[CompactionFile]:
    """As many of the smallest as there are, so long as no one is larger than the rest of them."""
    ordered = sorted(small, key=lambda part: (part.size_bytes, part.path))
    total = count = 0
    for at, part in enumerate(ordered):
        if 0 < part.size_bytes <= total:
            count = at + 1
        total += part.size_bytes
    return ordered[:count]


def _packed(parts: list[CompactionFile], target_bytes: int) -> Iterator[tuple[CompactionFile, ...]]:
    """Neighbours in time together, so that the files which come of it lie side by side."""
    pack: list[CompactionFile] = []
    size = 0
    for part in sorted(parts, key=lambda part: (part.first_us, part.path)):
        if pack and (size + part.size_bytes > target_bytes or len(pack) == GROUP_FILES_MAX):
            yield tuple(pack)
            pack, size = [], 0
        pack.append(part)
        size += part.size_bytes
    if pack:
        yield tuple(pack)
