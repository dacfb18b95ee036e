"""Progress knows exactly which offsets are finished, in any order."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.log.progress import Progress
from frazil.model import OffsetRange

OFFSETS = st.integers(0, 40)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("finish"), OFFSETS, OFFSETS),
        st.tuples(st.just("reopen"), OFFSETS, OFFSETS),
        st.tuples(st.just("drop"), OFFSETS, st.just(0)),
        st.tuples(st.just("fail"), OFFSETS, st.just(0)),
    ),
    max_size=40,
)


@given(st.integers(0, 20), STEPS)
def test_progress_is_a_set_of_finished_offsets(
    start: int, steps: list[tuple[str, int, int]]
) -> None:
    progress = Progress(watermark=start)
    finished = set(range(start))
    dropped = 0
    for step, first, second in steps:
        if step == "finish":
            progress.finish(first, second)
            finished |= set(range(first, second))
        elif step == "reopen":
            progress.reopen(first, second)
            finished -= set(range(first, second))
        elif step == "drop":
            lost = set(range(first)) - finished
            assert progress.drop_below(first) == len(lost)
            finished |= lost
            dropped += len(lost)
        elif first not in finished:
            progress.tries[first] = progress.tries.get(first, 0) + 1
        assert progress.watermark == next(o for o in range(100) if o not in finished)
        assert [o for o in range(60) if progress.is_finished(o)] == sorted(finished)
        assert progress.dropped_count == dropped
        assert not finished & progress.tries.keys()
        edges = [progress.watermark, *(edge for span in progress.done for edge in span_of(span))]
        assert edges == sorted(set(edges)), "spans neither touch nor overlap"


def span_of(span: OffsetRange) -> tuple[int, int]:
    return span.begin, span.end


@given(st.lists(st.tuples(OFFSETS, OFFSETS), max_size=10))
def test_progress_round_trips(spans: list[tuple[int, int]]) -> None:
    progress = Progress(watermark=3, tries={50: 2}, dropped_count=4)
    for begin, end in spans:
        progress.finish(begin, end)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(progress), type=Progress) == progress


@pytest.mark.parametrize(
    ("done", "begin", "end", "watermark", "spans"),
    [
        ([], 0, 5, 5, []),
        ([], 3, 5, 0, [(3, 5)]),
        ([(3, 5)], 0, 3, 5, []),
        ([(3, 5)], 0, 2, 2, [(3, 5)]),
        ([(3, 5)], 5, 7, 0, [(3, 7)]),
        ([(3, 5), (7, 9)], 5, 7, 0, [(3, 9)]),
        ([(3, 5), (7, 9)], 4, 8, 0, [(3, 9)]),
        ([(3, 5), (7, 9)], 0, 20, 20, []),
        ([(3, 5)], 3, 5, 0, [(3, 5)]),
        ([(3, 5)], 4, 4, 0, [(3, 5)]),
    ],
)
def test_finished_ranges_join(
    done: list[tuple[int, int]],
    begin: int,
    end: int,
    watermark: int,
    spans: list[tuple[int, int]],
) -> None:
    progress = Progress(watermark=0)
    for first, last in done:
        progress.finish(first, last)
    for _ in range(2):
        progress.finish(begin, end)
        assert progress.watermark == watermark
        assert list(map(span_of, progress.done)) == spans


def test_tries_of_finished_batches_are_forgotten_above_the_watermark_too() -> None:
    """One stuck batch must not make the file grow with every other failed one."""
    progress = Progress(watermark=0)
    for offset in range(1, 1000):
        progress.tries[offset] = 1
        progress.finish(offset, offset + 1)
    assert progress.tries == {}
    assert list(map(span_of, progress.done)) == [(1, 1000)]
