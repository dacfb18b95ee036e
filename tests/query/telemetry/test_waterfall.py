"""A trace line by line: depth, own time, critical path."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from frazil.query.telemetry.traces import SpanNode, Trace, tree_of
from frazil.query.telemetry.waterfall import Line, critical_path, self_nano, waterfall


def span(number: str, parent: str | None, begin: int, end: int) -> dict[str, Any]:
    return {
        "span_id": number,
        "parent_span_id": parent,
        "time_unix_nano": begin,
        "duration_nano": end - begin,
    }


def lines(*spans: dict[str, Any]) -> list[Line]:
    roots = tree_of(list(spans))
    return waterfall(Trace(trace_id="t", roots=roots, span_count=len(spans), is_cut=False))


def test_self_time_and_critical_path() -> None:
    """b and c run in parallel, and b ends first, so it is not critical. d follows both."""
    found = lines(
        span("a", None, 100, 200),
        span("b", "a", 110, 140),
        span("c", "a", 120, 150),
        span("x", "c", 130, 145),
        span("d", "a", 160, 190),
    )
    shown = {
        line.span["span_id"]: (line.depth, line.offset_nano, line.self_nano, line.critical_nano)
        for line in found
    }
    assert shown == {
        "a": (0, 0, 100 - 40 - 30, 20 + 10 + 10),
        "b": (1, 10, 30, 0),
        "c": (1, 20, 15, 10 + 5),
        "x": (2, 30, 15, 15),
        "d": (1, 60, 30, 30),
    }
    assert [line.span["span_id"] for line in found if line.is_critical] == ["a", "c", "x", "d"]
    assert not any(line.is_orphan for line in found)


def test_children_may_outlive_their_parent() -> None:
    """Time after the end of the parent is ignored; a later child is not on the path."""
    found = lines(span("a", None, 0, 100), span("late", "a", 80, 500), span("later", "a", 200, 300))
    by_id = {line.span["span_id"]: line for line in found}
    assert (by_id["a"].self_nano, by_id["a"].critical_nano) == (80, 80)
    assert by_id["late"].critical_nano == 20
    assert not by_id["later"].is_critical


def test_orphans_are_marked() -> None:
    """The path is that of the root that has no parent."""
    found = lines(span("o", "gone", 0, 50), span("a", None, 10, 40), span("b", "a", 20, 30))
    assert [(line.span["span_id"], line.is_orphan, line.is_critical) for line in found] == [
        ("o", True, False),
        ("a", False, True),
        ("b", False, True),
    ]
    assert lines() == []


_trees = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=12
)


def _tree(numbers: list[tuple[int, int, int]]) -> SpanNode:
    """The first is the root; each other one hangs below an earlier one."""
    spans = [
        span(str(n), None if n == 0 else str(parent % n), begin, begin + length)
        for n, (parent, begin, length) in enumerate(numbers)
    ]
    (root,) = tree_of(list(spans))
    return root


@given(_trees)
def test_the_critical_path_is_as_long_as_the_root(numbers: Any) -> None:
    """All of it, and each part belongs to one span that ran then; who is on it has its parent on
    it."""
    root = _tree(numbers)
    found = critical_path(root)
    assert sum(found.values()) == root.span["duration_nano"]
    for _, node in root.walk():
        if id(node) in found:
            assert 0 <= found[id(node)] <= node.span["duration_nano"]
        else:
            assert all(id(child) not in found for child in node.children)


@given(_trees)
def test_self_time_equals_a_brute_force_count(numbers: Any) -> None:
    for _, node in _tree(numbers).walk():
        begin, length = node.span["time_unix_nano"], node.span["duration_nano"]
        alone = [
            at
            for at in range(begin, begin + length)
            if not any(
                child.span["time_unix_nano"]
                <= at
                < child.span["time_unix_nano"] + child.span["duration_nano"]
                for child in node.children
            )
        ]
        assert self_nano(node) == len(alone)


def test_a_deep_trace_does_not_recurse() -> None:
    spans = [span(str(n), str(n - 1) if n else None, n, 100_000 - n) for n in range(20_000)]
    found = lines(*spans)
    assert found[-1].depth == 19_999
    assert all(line.is_critical for line in found)
