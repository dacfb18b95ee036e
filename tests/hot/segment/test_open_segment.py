"""Rows in memory: all of them, in order, in few batches, however small the portions."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.hot.segment import open_segment
from frazil.hot.segment.column_stats import SERVICES_MAX
from frazil.hot.segment.open_segment import BATCH_ROWS, OpenSegment, OpenTable
from frazil.hot.segment.piece import SharedLocation
from frazil.hot.segment.shared_memory import SharedMemory, read_extent
from tests.hot.build import batch_of, lines, places


def numbered(begin: int, count: int) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "_offset": pa.array(range(begin, begin + count), pa.int64()),
            "time": pa.array(range(begin, begin + count), pa.timestamp("us", tz="UTC")),
            "service_name": pa.array(["s"] * count),
        }
    )


def offsets(batches: list[pa.RecordBatch] | tuple[pa.RecordBatch, ...]) -> list[int]:
    return [offset for batch in batches for offset in batch["_offset"].to_pylist()]


@settings(max_examples=40)
@given(st.lists(st.integers(1, 60) | st.integers(1, 40_000), max_size=40))
def test_small_batches_are_merged_in_order(counts: list[int]) -> None:
    table = OpenTable(SharedMemory())
    total = 0
    for count in counts:
        table.add(numbered(total, count))
        total += count
    batches = table.batches()
    assert offsets(batches) == list(range(total))
    large = sum(batch.num_rows >= BATCH_ROWS for batch in batches)
    small = len(batches) - large
    assert small <= large + 1 + math.log2(BATCH_ROWS)
    assert table.row_count == total
    location = table.piece("t", 0, 0, total).location
    assert isinstance(location, SharedLocation)
    mapped = [read_extent(location.memory.descriptor, extent) for extent in location.extents]
    assert mapped == list(batches[: len(mapped)]), "another process finds the same rows"
    assert sum(batch.num_rows for batch in batches[len(mapped) :]) < 2 * BATCH_ROWS


def test_a_thousand_single_rows_become_few_batches() -> None:
    table = OpenTable(SharedMemory())
    for number in range(1000):
        table.add(numbered(number, 1))
    assert len(table.batches()) <= 11


def test_wide_rows_are_not_copied_repeatedly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows may have many bytes."""
    monkeypatch.setattr(open_segment, "BATCH_BYTES", 1000)
    table = OpenTable(SharedMemory())
    added = []
    for number in range(20):
        added.append(numbered(100 * number, 100 if number % 3 else 1))
        table.add(added[-1])
    assert [batch for batch in table.batches() if batch.num_rows == 100] == [
        batch for batch in added if batch.num_rows == 100
    ]
    assert offsets(table.batches()) == offsets(added)


def test_pieces_do_not_change_when_rows_are_added() -> None:
    segment = OpenSegment(5, 0)
    segment.add({"logs": batch_of(*lines(5, 7), offset=5), "dead_letters": batch_of()}, 7)
    first = segment.pieces("t", 3)
    segment.add({"logs": batch_of(*lines(7, 20), offset=7)}, 21)
    second = segment.pieces("t", 3)
    assert list(first) == list(second) == ["logs"]
    before, after = first["logs"], second["logs"]
    assert (before.row_count, after.row_count) == (4, 30)
    assert len(places([before])) == 4 and len(places([after])) == 30
    assert (before.offset_begin, before.offset_end, after.offset_end) == (5, 7, 21)
    assert (before.time_min_us, before.time_max_us) == (1_005_000, 1_006_000)
    assert (after.time_min_us, after.time_max_us) == (1_005_000, 1_019_000)
    assert before.services == frozenset({"service-2", "service-0"})
    assert after.services == frozenset({"service-0", "service-1", "service-2"})
    assert (after.topic, after.partition, after.name) == ("t", 3, "open")


def test_too_many_services_stay_unknown() -> None:
    table = OpenTable(SharedMemory())
    table.add(batch_of(*(f"s{n} t b".encode() for n in range(SERVICES_MAX))))
    assert len(table.piece("t", 0, 0, 1).services or ()) == SERVICES_MAX
    table.add(batch_of(b"one-more t b"))
    assert table.piece("t", 0, 0, 1).services is None
    table.add(batch_of(b"s1 t b"))
    assert table.piece("t", 0, 0, 1).services is None
