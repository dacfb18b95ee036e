"""Questions about traces: which there were, and one of them as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from frazil.model.columns import SPANS
from frazil.query.ask import ALWAYS, Ask, Range, equals, text, texts, where, whole

LIMIT_MAX = 1000
SPANS_MAX = 100_000
"""Of one trace; a tree beyond that is nothing that anybody looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """One line of a list of traces."""

    trace_id: str
    root_service: str
    root_name: str
    start_unix_nano: int
    duration_nano: int
    span_count: int
    error_count: int
    services: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class SpanNode:
    """A span, with those it called."""

    span: Mapping[str, Any]
    children: list[SpanNode] = field(default_factory=list)

    def walk(self) -> Iterator[tuple[int, SpanNode]]:
        """This span and all below it, in the order of a waterfall, each with its depth."""
        waiting = [(0, self)]
        while waiting:
            depth, node = waiting.pop()
            yield depth, node
            waiting += [(depth + 1, child) for child in reversed(node.children)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A whole trace. Roots are spans without a parent, or whose parent is not here."""

    trace_id: str
    roots: list[SpanNode]
    span_count: int
    is_cut: bool


def find_traces(
    ask: Ask,
    *,
    service: str | None = None,
    operation: str | None = None,
    min_duration_nano: int | None = None,
    max_duration_nano: int | None = None,
    tags: Mapping[str, str] | None = None,
    only_errors: bool = False,
    within: Range = ALWAYS,
    limit: int = 20,
) -> list[TraceSummary]:
    """The newest traces with a span that fits all of these, newest first."""
    conditions = within.conditions() + equals(tags or {}, SPANS.names)
    if service is not None:
        conditions.append(f"service_name = {text(service)}")
    if operation is not None:
        conditions.append(f"name = {text(operation)}")
    if min_duration_nano is not None:
        conditions.append(f"duration_nano >= {int(min_duration_nano)}")
    if max_duration_nano is not None:
        conditions.append(f"duration_nano <= {int(max_duration_nano)}")
    if only_errors:
        conditions.append("status_code = 'ERROR'")
    found = ask(
        f"SELECT trace_id FROM spans {where(conditions)} GROUP BY trace_id "
        f"ORDER BY max(time) DESC, trace_id LIMIT {whole(limit, 'limit', LIMIT_MAX)}"
    )
    trace_ids = found["trace_id"].to_pylist()
    return _summaries(ask, trace_ids) if trace_ids else []


def _summaries(ask: Ask, trace_ids: list[str]) -> list[TraceSummary]:
    first = "ORDER BY parent_span_id IS NULL DESC, time_unix_nano"
    rows = ask(
        "SELECT trace_id, min(time_unix_nano) AS start_unix_nano, "
        "max(end_time_unix_nano) - min(time_unix_nano) AS duration_nano, count(*) AS span_count, "
        "sum(CASE WHEN status_code = 'ERROR' THEN 1 ELSE 0 END) AS error_count, "
        "array_agg(DISTINCT service_name) AS services, "
        f"first_value(name {first}) AS root_name, "
        f"first_value(service_name {first}) AS root_service "
        f"FROM spans WHERE trace_id IN ({texts(trace_ids)}) GROUP BY trace_id"
    ).to_pylist()
    summaries = {
        row["trace_id"]: TraceSummary(**{**row, "services": tuple(sorted(row["services"]))})
        for row in rows
    }
    return [summaries[trace_id] for trace_id in trace_ids if trace_id in summaries]


def trace(ask: Ask, trace_id: str) -> Trace | None:
    """One trace as a tree, or None when no span of it is here."""
    rows = ask(
        f"SELECT * FROM spans WHERE trace_id = {text(trace_id.lower())} "
        f"ORDER BY time_unix_nano, span_id LIMIT {SPANS_MAX + 1}"
    ).to_pylist()
    if not rows:
        return None
    spans = rows[:SPANS_MAX]
    return Trace(
        trace_id=trace_id.lower(),
        roots=tree_of(spans),
        span_count=len(spans),
        is_cut=len(rows) > SPANS_MAX,
    )


def tree_of(spans: list[Mapping[str, Any]]) -> list[SpanNode]:
    """Spans under their parents, both in the order given. None is lost and none is there twice,
    whatever their ids say: of spans that are each other's ancestors, the first one is a root."""
    nodes = [SpanNode(span=span) for span in spans]
    place_of: dict[str, int] = {}
    for place, node in enumerate(nodes):
        place_of.setdefault(node.span["span_id"], place)
    parents = [place_of.get(node.span["parent_span_id"] or "") for node in nodes]
    roots = {place for place, parent in enumerate(parents) if parent is None}
    roots |= _first_of_each_circle(parents)
    for place, parent in enumerate(parents):
        if parent is not None and place not in roots:
            nodes[parent].children.append(nodes[place])
    return [nodes[place] for place in sorted(roots)]


def _first_of_each_circle(parents: list[int | None]) -> set[int]:
    """Places from which following the parents leads back to themselves, the lowest of each."""
    found = set()
    seen_from: dict[int, int] = {}
    for start in range(len(parents)):
        place: int | None = start
        path = []
        while place is not None and place not in seen_from:
            seen_from[place] = start
            path.append(place)
            place = parents[place]
        if place is not None and seen_from[place] == start:
            found.add(min(path[path.index(place) :]))
    return found
