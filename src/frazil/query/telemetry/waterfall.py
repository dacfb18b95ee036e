"""Waterfall: a trace as lines one below the other, with where its time went.

Times are relative to the first start of the trace. A span's own time is what none of its children
covers. The critical path is what the duration of the root consists of: from the end of a span go
back to the child that ended last, from its start to the child that ended last before that, and so
on to the start of the span; the same inside each of these children. Had a span on it been quicker,
the trace would have been so, too. What children did outside of their parent counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from frazil.model import doc
from frazil.query.telemetry.traces import SpanNode, Trace

Stretch = tuple[int, int]


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


def waterfall(found: Trace) -> list[Line]:
    """The lines of a trace, in the order they are shown."""
    if not found.roots:
        return []
    shown = [line for root in found.roots for line in root.walk()]
    begin = min(_stretch(node)[0] for _, node in shown)
    critical = critical_path(_main_root(found.roots))
    roots = set(map(id, found.roots))
    return [
        Line(
            span=node.span,
            depth=depth,
            offset_nano=_stretch(node)[0] - begin,
            duration_nano=node.span["duration_nano"],
            self_nano=self_nano(node),
            critical_nano=critical.get(id(node), 0),
            is_critical=id(node) in critical,
            is_orphan=id(node) in roots and bool(node.span["parent_span_id"]),
        )
        for depth, node in shown
    ]


def _main_root(roots: list[SpanNode]) -> SpanNode:
    """The first one that has no parent; of orphans the first."""
    return next((root for root in roots if not root.span["parent_span_id"]), roots[0])


def _stretch(node: SpanNode) -> Stretch:
    begin = node.span["time_unix_nano"]
    return begin, begin + node.span["duration_nano"]


def self_nano(node: SpanNode) -> int:
    """How long a span ran without any of its children."""
    return alone_nano(*_stretch(node), list(map(_stretch, node.children)))


def alone_nano(begin: int, end: int, others: list[Stretch]) -> int:
    """How much of a stretch none of the others covers."""
    reached, covered = begin, 0
    for low, high in sorted(others):
        low, high = max(low, reached), min(high, end)
        if low < high:
            covered += high - low
            reached = high
    return end - begin - covered


def critical_path(root: SpanNode) -> dict[int, int]:
    """The spans on the critical path of a root, by `id`, each with its own time on it. Together
    they are as long as the root."""
    nodes = [node for _, node in root.walk()]
    place_of = {id(node): place for place, node in enumerate(nodes)}
    children = [[place_of[id(child)] for child in node.children] for node in nodes]
    found: dict[int, int] = {}
    for place, begin, end in critical_parts(list(map(_stretch, nodes)), children, 0):
        key = id(nodes[place])
        found[key] = found.get(key, 0) + end - begin
    return found


def critical_parts(
    stretches: Sequence[Stretch], children: Sequence[Sequence[int]], root: int
) -> Iterator[tuple[int, int, int]]:
    """The same piece by piece, of spans that are places in a list: whose it is, from when to when.
    A piece may be empty."""
    waiting = [(root, *stretches[root])]
    while waiting:
        place, begin, end = waiting.pop()
        inside = [
            (child, max(low, begin), min(high, end))
            for child in children[place]
            for low, high in (stretches[child],)
            if max(low, begin) < min(high, end)
        ]
        for child, low, high in _last_ended(inside, end):
            yield place, high, end
            end = low
            waiting.append((child, low, high))
        yield place, begin, end


def _last_ended(children: list[tuple[int, int, int]], end: int) -> Iterator[tuple[int, int, int]]:
    """Children, from the last to the first: each time the one that ended last before the one
    behind it began; of those that ended together the longest. One that ended later ran beside that
    one, and nobody waited for it."""
    bound = end
    for child, low, high in sorted(children, key=lambda one: (-one[2], one[1])):
        if high <= bound:
            yield child, low, high
            bound = low
