"""Windows: offset ranges, each with the data files that hold its rows.

Files are sorted for queries, not by offset, so rows are sorted window by window. Files with
overlapping offsets are read together; a window may end where no files overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from frazil.lake.scan.data_file import TableFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Offsets of a partition from `begin` up to `end`, and all files that may hold their rows."""

    partition: int
    begin: int
    end: int
    files: tuple[TableFile, ...]


def windows_of(
    files: Iterable[TableFile], begins: Mapping[int, int], ends: Mapping[int, int]
) -> list[Window]:
    """Return the smallest windows that the files permit from `begins` up to `ends`. The windows of
    a partition are contiguous and in order; partitions alternate."""
    files = list(files)
    by_partition = [
        _of_partition(files, partition, begins[partition], ends[partition])
        for partition in sorted(begins)
        if begins[partition] < ends[partition]
    ]
    return [window for turn in zip_longest(*by_partition) for window in turn if window is not None]


def _of_partition(files: list[TableFile], partition: int, begin: int, end: int) -> list[Window]:
    candidates = [file for file in files if file.may_hold(partition, begin, end)]
    groups: list[list[TableFile]] = []
    covered = -1
    for file in sorted(candidates, key=lambda file: (file.offset_min, file.location)):
        if not groups or file.offset_min > covered:
            groups.append([])
        groups[-1].append(file)
        covered = max(covered, file.offset_max)
    begins = [begin, *(group[0].offset_min for group in groups[1:]), end]
    return [
        Window(partition=partition, begin=first, end=last, files=tuple(group))
        for (first, last), group in zip(pairwise(begins), groups or [[]], strict=True)
    ]
