"""Questions about traces: which there were, and one of them as a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from frazil.errors import Malformed
from frazil.model.columns import SPANS
from frazil.query.ask import (
    ALWAYS,
    EPOCH,
    MICROSECOND,
    Ask,
    Filters,
    Range,
    differs,
    equals,
    text,
    texts,
    where,
    whole,
)

LIMIT_MAX = 1000
SPANS_MAX = 50_000
"""Of one trace; a tree beyond that is nothing that anybody looks at. So many can also be sorted in
this process: see `steady.TOP_ROWS_MAX`."""


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
    cursor: str
    """For `find_traces(after=...)`, to go on behind this one."""


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
    tags: Filters | None = None,
    exclude: Filters | None = None,
    only_errors: bool = False,
    only_roots: bool = False,
    within: Range = ALWAYS,
    limit: int = 20,
    after: str | None = None,
) -> list[TraceSummary]:
    """The newest traces with a span that fits all of these, newest first.

    With `only_roots` that span has no parent. With `after`, the cursor of the last one of a page,
    those that come behind it; a trace that got another span in between may have moved away.
    """
    conditions = within.conditions()
    conditions += equals(tags or {}, SPANS) + differs(exclude or {}, SPANS)
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
    if only_roots:
        conditions.append("parent_span_id IS NULL")
    found = ask(
        "SELECT trace_id, max(time) AS newest "
        f"FROM spans {where(conditions)} GROUP BY trace_id {_behind(after)}"
        f"ORDER BY newest DESC, trace_id LIMIT {whole(limit, 'limit', LIMIT_MAX)}"
    ).to_pylist()
    cursors = {
        row["trace_id"]: f"{(row['newest'] - EPOCH) // MICROSECOND}-{row['trace_id']}"
        for row in found
    }
    return _summaries(ask, cursors) if cursors else []


_CURSOR = re.compile(r"(-?\d{1,18})-([0-9a-f]{0,64})", re.ASCII)


def _behind(after: str | None) -> str:
    """Which groups come behind a cursor. It says nothing of single spans: a trace may have some
    that are newer, and must not be taken for an older one."""
    if after is None:
        return ""
    found = _CURSOR.fullmatch(after)
    if found is None:
        raise Malformed(f"{after[:100]!r} is no cursor; take one from an answer as it is")
    newest = f"to_timestamp_micros({int(found[1])})"
    return f"HAVING max(time) < {newest} OR (max(time) = {newest} AND trace_id > {text(found[2])}) "


def _summaries(ask: Ask, cursors: Mapping[str, str]) -> list[TraceSummary]:
    first = "ORDER BY parent_span_id IS NULL DESC, time_unix_nano"
    rows = ask(
        "SELECT trace_id, min(time_unix_nano) AS start_unix_nano, "
        "max(end_time_unix_nano) - min(time_unix_nano) AS duration_nano, count(*) AS span_count, "
        "sum(CASE WHEN status_code = 'ERROR' THEN 1 ELSE 0 END) AS error_count, "
        "array_agg(DISTINCT service_name) AS services, "
        f"first_value(name {first}) AS root_name, "
        f"first_value(service_name {first}) AS root_service "
        f"FROM spans WHERE trace_id IN ({texts(list(cursors))}) GROUP BY trace_id"
    ).to_pylist()
    summaries = {
        row["trace_id"]: TraceSummary(
            **{**row, "services": tuple(sorted(row["services"]))},
            cursor=cursors[row["trace_id"]],
        )
        for row in rows
    }
    return [summaries[trace_id] for trace_id in cursors if trace_id in summaries]


def trace(ask: Ask, trace_id: str) -> Trace | None:
    """One trace as a tree, or None when no span of it is here."""
    rows = ask(
        f"SELECT * FROM spans WHERE trace_id = {text(trace_id.lower())} "
        f"ORDER BY time_unix_nano, span_id LIMIT {SPANS_MAX + 1}"
    ).to_pylist(maps_as_pydicts="lossy")
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
