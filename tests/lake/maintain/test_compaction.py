"""Which files are joined: enough to keep tables fast, and never the same rows again and again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from frazil.lake.maintain.compaction import (
    GROUP_FILES_MAX,
    CompactionFile,
    CompactionGroup,
    groups_of,
)

TARGET = 1_000
TODAY = 10


def part(number: int, size: int, day: int = 0) -> CompactionFile:
    return CompactionFile(
        path=f"{number}", spec_id=0, day=day, size_bytes=size, row_count=1, first_us=number
    )


def groups(sizes: list[int], *, day: int = 0, is_all: bool = False) -> list[list[int]]:
    parts = [part(number, size, day) for number, size in enumerate(sizes)]
    found = groups_of(parts, today=TODAY, target_bytes=TARGET, is_all=is_all)
    return [[each.size_bytes for each in group.parts] for group in found]


def test_small_files_of_a_past_day_are_merged() -> None:
    assert groups([10, 10]) == [[10, 10]]
    assert groups([10]) == []
    assert groups([10, 750]) == [], "one of them is large enough"
    assert groups([10, 700]) == [], "700 written again for the sake of 10"
    assert groups([700, 10, 700]) == [], "and together they are too large"
    assert groups([1, 300, 300]) == [[1, 300, 300]]


def test_files_of_today_are_merged_if_there_are_enough() -> None:
    assert groups([10] * 7, day=TODAY) == []
    assert groups([10] * 8, day=TODAY) == [[10] * 8]


def test_all_small_files_are_merged_on_request() -> None:
    assert groups([10, 700], is_all=True) == [[10, 700]]
    assert groups([10, 10], day=TODAY, is_all=True) == [[10, 10]]


def test_files_of_different_days_are_not_merged() -> None:
    parts = [part(0, 10, 1), part(1, 10, 2), part(2, 10, 1), part(3, 10, 2), part(4, 10, 2)]
    found = groups_of(parts, today=TODAY, target_bytes=TARGET, is_all=False)
    assert [(group.day, len(group.parts)) for group in found] == [(2, 3), (1, 2)]


@given(st.lists(st.integers(0, 1_200), max_size=200), st.booleans())
def test_groups_are_limited_in_size_and_number_of_files(sizes: list[int], is_all: bool) -> None:
    """No file is in two groups, and their times are adjacent."""
    parts = [part(number, size) for number, size in enumerate(sizes)]
    found = groups_of(parts, today=TODAY, target_bytes=TARGET, is_all=is_all)
    paths = [each.path for group in found for each in group.parts]
    assert len(paths) == len(set(paths))
    for group in found:
        assert 2 <= len(group.parts) <= GROUP_FILES_MAX
        assert group.size_bytes <= TARGET
        assert [each.first_us for each in group.parts] == sorted(
            each.first_us for each in group.parts
        )


@given(st.lists(st.integers(1, 60), min_size=1, max_size=300))
def test_write_amplification_is_bounded(sizes: list[int]) -> None:
    """Files come one by one, and whatever pays is joined at once: every byte is written again at
    most as often as a file can be doubled, and few small files are left."""
    files: list[tuple[CompactionFile, int]] = []
    for number, size in enumerate(sizes):
        files.append((part(number, size), 0))
        while found := groups_of(
            [file for file, _ in files], today=TODAY, target_bytes=TARGET, is_all=False
        ):
            files = joined(files, found[0], number)
    assert max(times for _, times in files) <= 10, "2 ** 10 is more than the target"
    small = [file for file, _ in files if file.size_bytes < 750]
    assert len(small) <= 12


def joined(
    files: list[tuple[CompactionFile, int]], group: CompactionGroup, number: int
) -> list[tuple[CompactionFile, int]]:
    names = {each.path for each in group.parts}
    times = max(count for file, count in files if file.path in names) + 1
    rest = [(file, count) for file, count in files if file.path not in names]
    made = CompactionFile(
        path=f"{number}-{times}-{len(rest)}",
        spec_id=0,
        day=0,
        size_bytes=group.size_bytes,
        row_count=1,
        first_us=min(each.first_us for each in group.parts),
    )
    return [*rest, (made, times)]
