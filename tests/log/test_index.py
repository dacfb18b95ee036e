"""The sparse index: lookups never land after their target."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from frazil.log.index import (
    NO_TIME,
    IndexEntry,
    SegmentInfo,
    SparseIndex,
    decode_index,
    encode_index,
)

BATCHES = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 400), st.integers(-5, 30)), max_size=40
)
"""Records in the batch, its bytes, its latest timestamp."""


def index_of(
    batches: list[tuple[int, int, int]], interval_bytes: int
) -> tuple[SparseIndex, list[tuple[int, int, int]]]:
    """An index that was offered all batches, and each batch as (offset, position, timestamp)."""
    index = SparseIndex(interval_bytes)
    offset, position, latest, offered = 0, 64, NO_TIME, []
    for count, size, timestamp_ms in batches:
        index.add(offset, position, latest)
        offered.append((offset, position, timestamp_ms))
        latest = max(latest, timestamp_ms)
        offset, position = offset + count, position + size
    return index, offered


def test_an_empty_index_has_no_entries() -> None:
    index = SparseIndex(100)
    assert index.before_offset(0) is None
    assert index.before_time(0) is None


@given(BATCHES, st.integers(1, 1000))
def test_entries_are_one_interval_apart(batches: list[tuple[int, int, int]], interval: int) -> None:
    """The first batch is an entry, then at most one per interval."""
    index, offered = index_of(batches, interval)
    assert list(index.positions)[:1] == [position for _, position, _ in offered][:1]
    assert all(after - before >= interval for before, after in pairwise(index.positions))
    entries = set(index.positions)
    for before, after in pairwise(offered):
        if after[1] not in entries:
            nearest = max(p for p in entries if p <= before[1])
            assert after[1] - nearest < interval


@given(BATCHES, st.integers(1, 1000), st.integers(-1, 200))
def test_before_offset_is_the_last_entry_at_or_before(
    batches: list[tuple[int, int, int]], interval: int, wanted: int
) -> None:
    """A walk from there meets the offset."""
    index, offered = index_of(batches, interval)
    positions = set(index.positions)
    naive = [IndexEntry(o, p) for o, p, _ in offered if p in positions and o <= wanted]
    assert index.before_offset(wanted) == (naive[-1] if naive else None)


@given(BATCHES, st.integers(1, 1000), st.integers(-10, 40))
def test_before_time_skips_only_older_records(
    batches: list[tuple[int, int, int]], interval: int, wanted_ms: int
) -> None:
    """Everything in front of the entry is older than the wanted time, also when times are mixed
    up; and no later entry could say so."""
    index, offered = index_of(batches, interval)
    positions = set(index.positions)
    naive = [
        IndexEntry(offset, position)
        for offset, position, _ in offered
        if position in positions and all(t < wanted_ms for _, p, t in offered if p < position)
    ]
    assert index.before_time(wanted_ms) == (naive[-1] if naive else None)


def test_no_entry_is_before_the_smallest_timestamp() -> None:
    index, _ = index_of([(1, 1, NO_TIME)], 1)
    assert index.before_time(NO_TIME) is None


@given(
    BATCHES,
    st.binary(min_size=8, max_size=8),
    st.integers(0, 2**63 - 1),
    st.integers(NO_TIME, 2**63 - 1),
    st.integers(0, 2**32 - 1),
)
def test_round_trip(
    batches: list[tuple[int, int, int]], salt: bytes, offset: int, time_ms: int, count: int
) -> None:
    index, _ = index_of(batches, 100)
    info = SegmentInfo(
        base_offset=offset,
        end_offset=offset + 1,
        size_bytes=offset,
        max_timestamp_ms=time_ms,
        sealed_ms=time_ms,
        digest_count=count,
    )
    found_salt, found_info, found = decode_index(encode_index(salt, info, index), 100)
    assert (found_salt, found_info) == (salt, info)
    assert found.offsets == index.offsets
    assert found.positions == index.positions
    assert found.times_before == index.times_before


def test_a_reader_never_finds_an_offset_without_its_position() -> None:
    """The arrays grow in an order that is safe for readers in other threads."""

    class Watching(SparseIndex):
        def look(self) -> None:
            assert len(self.offsets) <= len(self.times_before) <= len(self.positions)
            self.before_offset(10**9)
            self.before_time(10**9)

    index = Watching(1)
    index.look()
    for number in range(3):
        index.positions.append(number)
        index.look()
        index.times_before.append(number)
        index.look()
        index.offsets.append(number)
        index.look()
