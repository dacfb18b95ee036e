"""Windows: stretches of offsets, each with the files that hold its rows.

Files are sorted by what queries ask for, not by offsets, so rows come into order window by window.
Files whose offsets overlap must be read together; where none does, a window may end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from frazil.lake.scan.data_file import TableFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Offsets of a partition, `begin` up to `end`, and all files that may have rows of them."""

    partition: int
    begin: int
    end: int
    files: tuple[TableFile, ...]


def windows_of(
    files: Iterable[TableFile], begins: Mapping[int, int], ends: Mapping[int, int]
) -> list[Window]:
    """The smallest windows that files allow, for each partition from where it begins up to where
    it ends. Those of a partition lie side by side, in order; partitions take turns."""
    files = list(files)
    each = [
        _of_partition(files, partition, begins[partition], ends[partition])
        for partition in sorted(begins)
        if begins[partition] < ends[partition]
    ]
    return [window for turn in zip_longest(*each) for window in turn if window is not None]


def _of_partition(files: list[TableFile], partition: int, begin: int, end: int) -> list[Window]:
    wanted = [file for file in files if file.may_hold(partition, begin, end)]
    groups: list[list[TableFile]] = []
    reach = -1
    for file in sorted(wanted, key=lambda file: (file.offset_min, file.location)):
        if not groups or file.offset_min > reach:
            groups.append([])
        groups[-1].append(file)
        reach = max(reach, file.offset_max)
    begins = [begin, *(group[0].offset_min for group in groups[1:]), end]
    return [
        Window(partition=partition, begin=first, end=last, files=tuple(group))
        for (first, last), group in zip(pairwise(begins), groups or [[]], strict=True)
    ]
