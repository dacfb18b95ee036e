"""Chooses the small files of a day to merge into few large ones.

A file is merged only with others that together are at least as large. So every rewrite at least
doubles the file that a row is in, which bounds the write amplification by the logarithm of the
target size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from frazil.lake.tables.properties import is_small
from frazil.model import MiB

GROUP_FILES_MAX = 64
"""Files that one task reads at the same time. Each takes some memory."""
TODAY_FILES_MIN = 8
"""Fewer files of the current day are not worth a merge."""
STEP_BYTES_MAX = 128 * MiB
"""Bytes merged per step: some seconds on a small machine. A single group may be larger."""
FILES_MIN = 2
"""The same, for past days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFile:
    """A data file, as compaction sees it."""

    path: str
    """A URI."""
    spec_id: int
    day: int
    size_bytes: int
    row_count: int
    first_us: int
    """Lower bound of its times, in microseconds."""

    @property
    def partition(self) -> tuple[int]:
        return (self.day,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionGroup:
    """Files of one day to merge into one."""

    day: int
    parts: tuple[CompactionFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)


def groups_of(
    parts: Iterable[CompactionFile], *, today: int, target_bytes: int, is_all: bool
) -> list[CompactionGroup]:
    """Return the groups worth merging, the day with the most files first.

    With `is_all`, all small files of days with at least two.
    """
    days: dict[int, list[CompactionFile]] = {}
    for part in parts:
        if is_small(part.size_bytes, target_bytes):
            days.setdefault(part.day, []).append(part)
    groups: list[CompactionGroup] = []
    for day, small in sorted(days.items(), key=lambda item: (-len(item[1]), item[0])):
        chosen = small if is_all else _worth_merging(small)
        files_min = TODAY_FILES_MIN if day >= today and not is_all else FILES_MIN
        if len(chosen) >= files_min:
            groups += [
                CompactionGroup(day=day, parts=pack)
                for pack in _packed(chosen, target_bytes)
                if len(pack) >= FILES_MIN and (is_all or len(_worth_merging(pack)) == len(pack))
            ]
    return groups


def _worth_merging(small: Sequence[CompactionFile]) -> list[CompactionFile]:
    """Return the most of the smallest files of which none is larger than the rest together."""
    ordered = sorted(small, key=lambda part: (part.size_bytes, part.path))
    total = count = 0
    for at, part in enumerate(ordered):
        if 0 < part.size_bytes <= total:
            count = at + 1
        total += part.size_bytes
    return ordered[:count]


def _packed(parts: list[CompactionFile], target_bytes: int) -> Iterator[tuple[CompactionFile, ...]]:
    """Pack files by time, so that the merged files overlap little in time."""
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


def first_step(groups: Sequence[CompactionGroup]) -> list[CompactionGroup]:
    """Return as many groups as are merged in one step."""
    chosen: list[CompactionGroup] = []
    size = 0
    for group in groups:
        if chosen and size + group.size_bytes > STEP_BYTES_MAX:
            break
        chosen.append(group)
        size += group.size_bytes
    return chosen
