"""Waterfall: a trace as rows, with self time and critical path.

Times are relative to the first start of the trace. The self time of a span is not covered by any of
its children. The critical path makes up the duration of the root: from the end of a span go back to
the child that ended last, from its start to the child that ended last before that, and so on to the
start of the span; then the same within each of these children. A faster span on it would have made
the trace faster. The parts of children outside their parent are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from frazil.model import doc
from frazil.query.telemetry.traces import SpanNode, Trace

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One span of a waterfall."""

    span: Mapping[str, Any]
    depth: int
    offset_nano: int
    duration_nano: int
    self_nano: Annotated[int, doc("Time in which no child span ran.")]
    critical_nano: Annotated[int, doc("Part of the self time on the critical path.")]
    is_critical: bool
    is_orphan: Annotated[bool, doc("True if the parent span is missing.")]


def waterfall(trace: Trace) -> list[Line]:
    """Return the rows of a trace in display order."""
    if not trace.roots:
        return []
    nodes = [line for root in trace.roots for line in root.walk()]
    begin = min(_interval(node)[0] for _, node in nodes)
    critical = critical_path(_main_root(trace.roots))
    roots = set(map(id, trace.roots))
    return [
        Line(
            span=node.span,
            depth=depth,
            offset_nano=_interval(node)[0] - begin,
            duration_nano=node.span["duration_nano"],
            self_nano=self_nano(node),
            critical_nano=critical.get(id(node), 0),
            is_critical=id(node) in critical,
            is_orphan=id(node) in roots and bool(node.span["parent_span_id"]),
        )
        for depth, node in nodes
    ]


def _main_root(roots: list[SpanNode]) -> SpanNode:
    """Return the first root without a parent, or the first orphan."""
    return next((root for root in roots if not root.span["parent_span_id"]), roots[0])


def _interval(node: SpanNode) -> Interval:
    begin = node.span["time_unix_nano"]
    return begin, begin + node.span["duration_nano"]


def self_nano(node: SpanNode) -> int:
    """Return how long a span ran without any of its children."""
    return uncovered_nano(*_interval(node), list(map(_interval, node.children)))


def uncovered_nano(begin: int, end: int, others: list[Interval]) -> int:
    """Return how much of an interval none of the others covers."""
    covered_end, covered = begin, 0
    for low, high in sorted(others):
        low, high = max(low, covered_end), min(high, end)
        if low < high:
            covered += high - low
            covered_end = high
    return end - begin - covered


def critical_path(root: SpanNode) -> dict[int, int]:
    """Return the time of each span on the critical path, by `id`. The sum is the duration of the
    root."""
    nodes = [node for _, node in root.walk()]
    index_of = {id(node): index for index, node in enumerate(nodes)}
    children = [[index_of[id(child)] for child in node.children] for node in nodes]
    times: dict[int, int] = {}
    for index, begin, end in critical_intervals(list(map(_interval, nodes)), children, 0):
        key = id(nodes[index])
        times[key] = times.get(key, 0) + end - begin
    return times


def critical_intervals(
    intervals: Sequence[Interval], children: Sequence[Sequence[int]], root: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the critical path as span index, start and end. Intervals may be empty."""
    waiting = [(root, *intervals[root])]
    while waiting:
        index, begin, end = waiting.pop()
        inside = [
            (child, max(low, begin), min(high, end))
            for child in children[index]
            for low, high in (intervals[child],)
            if max(low, begin) < min(high, end)
        ]
        for child, low, high in _last_ended(inside, end):
            yield index, high, end
            end = low
            waiting.append((child, low, high))
        yield index, begin, end


def _last_ended(children: list[tuple[int, int, int]], end: int) -> Iterator[tuple[int, int, int]]:
    """Yield children backwards: each the last to end before the next one started, the longest if
    several ended together. Others ran in parallel, and the parent did not wait for them."""
    bound = end
    for child, low, high in sorted(children, key=lambda c: (-c[2], c[1])):
        if high <= bound:
            yield child, low, high
            bound = low
