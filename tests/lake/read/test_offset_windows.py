"""Windows cover every row once, in order, for any set of files."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.lake.read.offset_windows import Window, windows_of
from frazil.lake.read.prefetch import ReadLimits, prefetch
from frazil.lake.read.window_reader import SizedWindow, WindowRowGroups, WindowRows
from frazil.lake.scan.data_file import Bounds, TableFile

Held = dict[str, set[tuple[int, int]]]
"""Path -> partitions and offsets of its rows."""


def file_of(location: str, partitions: list[int], offsets: list[int]) -> TableFile:
    bounds: dict[str, Bounds] = {
        "_log_partition": (min(partitions), max(partitions)),
        "_offset": (min(offsets), max(offsets)),
    }
    return TableFile(location=location, path="", row_count=1, size_bytes=1, bounds=bounds)


def files_of(held: Held) -> list[TableFile]:
    return [
        file_of(path, [p for p, _ in rows], [offset for _, offset in rows])
        for path, rows in held.items()
    ]


HELD = st.lists(
    st.sets(st.tuples(st.integers(0, 2), st.integers(0, 30)), min_size=1), max_size=8
).map(lambda sets: {f"file-{number}": rows for number, rows in enumerate(sets)})
POSITIONS = st.dictionaries(st.integers(0, 2), st.integers(0, 32), min_size=3)


@given(HELD, POSITIONS, POSITIONS)
def test_windows_hold_every_row_once(
    held: Held, begins: dict[int, int], ends: dict[int, int]
) -> None:
    windows = windows_of(files_of(held), begins, ends)
    for partition, begin in begins.items():
        ours = [window for window in windows if window.partition == partition]
        ends_of = [begin, *(window.end for window in ours)]
        assert [window.begin for window in ours] == ends_of[:-1]
        assert ends_of[-1] == max(begin, ends[partition])
    covered = [
        (path, row)
        for window in windows
        for path in (file.location for file in window.files)
        for row in held[path]
        if row[0] == window.partition and window.begin <= row[1] < window.end
    ]
    expected = [
        (path, row)
        for path, rows in held.items()
        for row in rows
        if begins[row[0]] <= row[1] < ends[row[0]]
    ]
    assert sorted(covered) == sorted(expected)


def test_windows_end_where_files_do() -> None:
    """Windows are as small as possible, and partitions alternate."""
    held: Held = {
        "a": {(0, 0), (0, 4)},
        "b": {(0, 4), (0, 5)},
        "c": {(0, 6)},
        "d": {(1, 0), (1, 9)},
    }
    windows = windows_of(files_of(held), {0: 0, 1: 0}, {0: 9, 1: 9})
    assert [(w.partition, w.begin, w.end, [f.location for f in w.files]) for w in windows] == [
        (0, 0, 6, ["a", "b"]),
        (1, 0, 9, ["d"]),
        (0, 6, 9, ["c"]),
    ]
    assert windows_of([], {0: 3}, {0: 3}) == []
    (empty,) = windows_of([], {0: 3}, {0: 5})
    assert (empty.begin, empty.end, empty.files) == (3, 5, ())


def window(number: int, file_count: int) -> SizedWindow:
    file = file_of("", [0], [0])
    return SizedWindow(
        window=Window(partition=0, begin=number, end=number + 1, files=(file,) * file_count),
        groups=(WindowRowGroups(file=file, footer=None, numbers=(0,)),) * file_count,
        size_bytes=0,
    )


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=20),
    st.integers(1, 60),
    st.integers(1, 6),
    st.integers(1, 3),
)
def test_prefetching_is_bounded_and_in_order(
    sizes: list[tuple[int, int]], ahead_bytes: int, ahead_files: int, reads: int
) -> None:
    """Windows read ahead are within the limits, apart from the one returned next."""
    begun: list[int] = []

    def sized_windows() -> Iterator[tuple[SizedWindow, int]]:
        for number, (size, files) in enumerate(sizes):
            yield window(number, files), size

    def read(sized: SizedWindow) -> WindowRows:
        begun.append(sized.window.begin)
        batch = pa.RecordBatch.from_pylist([{"a": 1}])
        return WindowRows(partition=0, begin=sized.window.begin, end=sized.window.end, batch=batch)

    limits = ReadLimits(ahead_bytes=ahead_bytes, ahead_files=ahead_files, reads=reads)
    for number, rows in enumerate(prefetch(sized_windows(), read, limits)):
        assert rows.begin == number
        ahead = [sizes[other] for other in list(begun) if other >= number]
        assert len(ahead) <= 1 or (
            sum(size for size, _ in ahead) <= ahead_bytes
            and sum(files for _, files in ahead) <= ahead_files
        )
    assert sorted(begun) == list(range(len(sizes)))


def test_a_read_error_is_raised_in_place_of_its_rows() -> None:
    def read(sized: SizedWindow) -> WindowRows:
        if sized.window.begin == 2:
            raise FileNotFoundError("two")
        batch = pa.RecordBatch.from_pylist([{"a": 1}])
        return WindowRows(partition=0, begin=sized.window.begin, end=0, batch=batch)

    ahead = prefetch(((window(number, 1), 1) for number in range(9)), read, ReadLimits())
    assert [next(ahead).begin, next(ahead).begin] == [0, 1]
    with pytest.raises(FileNotFoundError, match="two"):
        next(ahead)
    assert list(ahead) == []
