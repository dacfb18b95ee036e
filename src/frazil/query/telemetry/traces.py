"""Traces: lists, and one trace as a tree."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypedDict, Unpack

import pyarrow as pa

from frazil.errors import Malformed, TooLarge
from frazil.model import doc
from frazil.model.arrow import SPANS
from frazil.query.search.filters import (
    ALWAYS,
    EPOCH,
    MICROSECOND,
    Ask,
    Filters,
    TimeRange,
    bounded,
    if_set,
    row_conditions,
    text,
    texts,
    where,
)
from frazil.query.search.to_sql import query_conditions

LIMIT_MAX = 1000
SPANS_MAX = 50_000
"""Spans of one trace. This many can also be sorted in this process: see `TOP_ROWS_MAX` in
plan/isolation.py."""


DURATION = "(max(end_time_unix_nano) - min(time_unix_nano))"
"""Duration of a group of spans, from the first start to the last end."""
FAILED = "sum(CASE WHEN status_code = 'ERROR' THEN 1 ELSE 0 END)"
Order = Literal["newest", "longest", "spans", "errors"]
ORDERS: Mapping[Order, str] = {
    "newest": "min(time)",
    "longest": DURATION,
    "spans": "count(*)",
    "errors": FAILED,
}
"""Sort key of each order, descending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceShare:
    """Part of one service in a trace."""

    service: str
    span_count: int
    error_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """One row in a list of traces."""

    trace_id: str
    root_service: str
    root_name: str
    start_unix_nano: int
    start: datetime.datetime
    duration_nano: int
    span_count: int
    error_count: int
    services: tuple[str, ...]
    shares: Annotated[tuple[ServiceShare, ...], doc("By service, in the same order.")]
    cursor: Annotated[str, doc("Pass as `after` to continue behind this trace.")]


@dataclass(slots=True, kw_only=True)
class SpanNode:
    """A span with its children."""

    span: Mapping[str, Any]
    children: list[SpanNode] = field(default_factory=list)

    def walk(self) -> Iterator[tuple[int, SpanNode]]:
        """Yield this span and its descendants in waterfall order, with their depth."""
        waiting = [(0, self)]
        while waiting:
            depth, node = waiting.pop()
            yield depth, node
            waiting += [(depth + 1, child) for child in reversed(node.children)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A trace. Roots are spans without a parent, or whose parent is missing."""

    trace_id: str
    roots: list[SpanNode]
    span_count: int
    is_cut: bool


class SpanFilter(TypedDict, total=False):
    """Which spans. All conditions must match."""

    service: str | None
    operation: str | None  # name of the span
    min_duration_nano: int | None
    max_duration_nano: int | None
    tags: Filters | None
    """Field -> values; see `filters.column` for names."""
    exclude: Filters | None
    only_errors: bool
    only_roots: bool
    within: TimeRange
    query: str | None
    """Query of the search box; see functions/search_parser.py."""


def conditions_of(
    *,
    service: str | None = None,
    operation: str | None = None,
    min_duration_nano: int | None = None,
    max_duration_nano: int | None = None,
    tags: Filters | None = None,
    exclude: Filters | None = None,
    only_errors: bool = False,
    only_roots: bool = False,
    within: TimeRange = ALWAYS,
    query: str | None = None,
) -> list[str]:
    """SQL conditions of a filter."""
    return [
        *within.conditions(),
        *row_conditions(tags, exclude, SPANS),
        *if_set("service_name = {}", service, text),
        *if_set("name = {}", operation, text),
        *if_set("duration_nano >= {}", min_duration_nano, int),
        *if_set("duration_nano <= {}", max_duration_nano, int),
        *(["status_code = 'ERROR'"] if only_errors else []),
        *(["parent_span_id IS NULL"] if only_roots else []),
        *([] if query is None else query_conditions("spans", query)),
    ]


class TraceFilter(SpanFilter, total=False):
    """Which traces: at least one span must match, and the trace as a whole."""

    through: Sequence[str]
    """Services that must all take part in the trace."""
    min_trace_nano: int | None
    """Duration from the first start to the last end."""
    max_trace_nano: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceConditions:
    """SQL conditions of spans and of traces."""

    within: list[str]
    spans: list[str]
    """At least one span of a trace must match all."""
    traces: list[str]
    """On the spans of a trace, for HAVING."""

    def clauses(self, *, is_whole: bool = False) -> tuple[str, list[str]]:
        """WHERE, and conditions of HAVING, of a query that groups spans by trace. With `is_whole`
        the groups have all spans within the time range, which reads more."""
        if not is_whole and not self.traces:
            return where(self.spans), []
        matching = [] if self.spans == self.within else [_any_span(" AND ".join(self.spans))]
        return where(self.within), [*matching, *self.traces]


def trace_conditions(
    *,
    through: Sequence[str] = (),
    min_trace_nano: int | None = None,
    max_trace_nano: int | None = None,
    **which: Unpack[SpanFilter],
) -> TraceConditions:
    """SQL conditions of a trace filter."""
    traces = [_any_span(f"service_name = {text(name)}") for name in through]
    traces += if_set(f"{DURATION} >= {{}}", min_trace_nano, int)
    traces += if_set(f"{DURATION} <= {{}}", max_trace_nano, int)
    return TraceConditions(
        within=which.get("within", ALWAYS).conditions(),
        spans=conditions_of(**which),
        traces=traces,
    )


def _any_span(condition: str) -> str:
    """HAVING condition: at least one span matches."""
    return f"max(CASE WHEN {condition} THEN 1 ELSE 0 END) = 1"


def find_traces(
    ask: Ask,
    *,
    order: Order = "newest",
    limit: int = 20,
    after: str | None = None,
    **which: Unpack[TraceFilter],
) -> list[TraceSummary]:
    """Return matching traces in the given order. Only spans within the time range count.

    "newest" orders by the start of the trace. Pages are cut by the first matching span, so a page
    may have a trace that began a little before the last one of the page before.

    `after` is the cursor of the last trace of the previous page. A trace that received a span in
    the meantime may have moved to another page.
    """
    conditions, having = trace_conditions(**which).clauses(is_whole=order != "newest")
    having += _after(order, after)
    having_clause = f"HAVING {' AND '.join(having)} " if having else ""
    rows = ask(
        f"SELECT trace_id, {ORDERS[order]} AS sort_key "
        f"FROM spans {conditions} GROUP BY trace_id {having_clause}"
        f"ORDER BY sort_key DESC, trace_id LIMIT {bounded(limit, 'limit', LIMIT_MAX)}"
    ).to_pylist()
    cursors = {row["trace_id"]: f"{_number(row['sort_key'])}-{row['trace_id']}" for row in rows}
    traces = _summaries(ask, cursors) if cursors else []
    if order == "newest" and traces:
        last = traces[-1].cursor
        traces.sort(key=lambda trace: (-trace.start_unix_nano, trace.trace_id))
        traces[-1] = replace(traces[-1], cursor=last)
    return traces


def find_traces_by_id(ask: Ask, prefix: str, *, limit: int = 5) -> list[TraceSummary]:
    """Return traces whose id begins with these hexadecimal digits, whatever their time."""
    if not _ID_PREFIX.fullmatch(prefix):
        raise Malformed(f"{prefix[:100]!r} is not a trace id, which has {ID_CHARS} hex digits")
    prefix = prefix.lower()
    ids = [prefix]
    if len(prefix) < ID_CHARS:
        # Every hex digit is below 'g', so this range holds exactly the ids with the prefix.
        ids = ask(
            f"SELECT DISTINCT trace_id FROM spans WHERE trace_id >= {text(prefix)} "
            f"AND trace_id < {text(prefix + 'g')} ORDER BY trace_id "
            f"LIMIT {bounded(limit, 'limit', LIMIT_MAX)}"
        )["trace_id"].to_pylist()
    return summaries(ask, ids)


def summaries(ask: Ask, trace_ids: Sequence[str]) -> list[TraceSummary]:
    """Return these traces, in this order."""
    return _summaries(ask, dict.fromkeys(trace_ids, "")) if trace_ids else []


ID_CHARS = 32
_ID_PREFIX = re.compile(f"[0-9a-fA-F]{{1,{ID_CHARS}}}", re.ASCII)


_CURSOR = re.compile(r"(-?\d{1,18})-([0-9a-f]{0,64})", re.ASCII)


def _number(sort_key: datetime.datetime | int) -> int:
    """Sort key as a number, for a cursor."""
    return sort_key if isinstance(sort_key, int) else (sort_key - EPOCH) // MICROSECOND


def _after(order: Order, after: str | None) -> list[str]:
    """HAVING conditions for traces after a cursor. They apply to whole traces: single spans may be
    newer."""
    if after is None:
        return []
    match = _CURSOR.fullmatch(after)
    if match is None:
        raise Malformed(f"{after[:100]!r} is not a cursor; copy it unchanged from a response")
    number = int(match[1])
    bound = f"to_timestamp_micros({number})" if order == "newest" else str(number)
    key = ORDERS[order]
    return [f"({key} < {bound} OR ({key} = {bound} AND trace_id > {text(match[2])}))"]


def _summaries(ask: Ask, cursors: Mapping[str, str]) -> list[TraceSummary]:
    first = "ORDER BY parent_span_id IS NULL DESC, time_unix_nano"
    rows = ask(
        "SELECT trace_id, service_name AS service, count(*) AS span_count, "
        f"{FAILED} AS error_count, min(time_unix_nano) AS begin_nano, "
        "max(end_time_unix_nano) AS end_nano, "
        "min(CASE WHEN parent_span_id IS NULL THEN 0 ELSE 1 END) AS depth, "
        f"first_value(time_unix_nano {first}) AS first_nano, first_value(name {first}) AS name "
        f"FROM spans WHERE trace_id IN ({texts(list(cursors))}) GROUP BY trace_id, service_name"
    ).to_pylist()
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        parts.setdefault(row["trace_id"], []).append(row)
    return [
        _summary(parts[trace_id], cursors[trace_id]) for trace_id in cursors if trace_id in parts
    ]


def _summary(parts: list[dict[str, Any]], cursor: str) -> TraceSummary:
    """Combine the rows of a trace, one per service."""
    root = min(parts, key=lambda part: (part["depth"], part["first_nano"], part["service"]))
    begin = min(part["begin_nano"] for part in parts)
    shares = [
        ServiceShare(
            service=part["service"], span_count=part["span_count"], error_count=part["error_count"]
        )
        for part in sorted(parts, key=lambda part: str(part["service"]))
    ]
    return TraceSummary(
        trace_id=root["trace_id"],
        root_service=root["service"],
        root_name=root["name"],
        start_unix_nano=begin,
        start=EPOCH + datetime.timedelta(microseconds=begin // 1000),
        duration_nano=max(part["end_nano"] for part in parts) - begin,
        span_count=sum(part["span_count"] for part in parts),
        error_count=sum(part["error_count"] for part in parts),
        services=tuple(share.service for share in shares),
        shares=tuple(shares),
        cursor=cursor,
    )


def trace(ask: Ask, trace_id: str) -> Trace | None:
    """Return one trace as a tree, or None if it does not exist."""
    rows = spans_of_trace(ask, trace_id, "*").to_pylist(maps_as_pydicts="lossy")
    if not rows:
        return None
    spans = rows[:SPANS_MAX]
    return Trace(
        trace_id=trace_id.lower(),
        roots=tree_of(spans),
        span_count=len(spans),
        is_cut=len(rows) > SPANS_MAX,
    )


def spans_of_trace(ask: Ask, trace_id: str, columns: str) -> pa.Table:
    """Return the spans of a trace by time, at most `SPANS_MAX` + 1: the extra one means more."""
    return ask(
        f"SELECT {columns} FROM spans WHERE trace_id = {text(trace_id.lower())} "
        f"ORDER BY time_unix_nano, span_id LIMIT {SPANS_MAX + 1}"
    )


def subtree(ask: Ask, trace_id: str, span_id: str) -> Trace | None:
    """Return a span with its descendants, or None if it does not exist. `TooLarge` above
    `LIMIT_MAX`."""
    spans = spans_of_trace(ask, trace_id, "span_id, parent_span_id").slice(0, SPANS_MAX)
    ids = _below(span_id.lower(), spans["span_id"].to_pylist(), spans["parent_span_id"].to_pylist())
    if not ids:
        return None
    if len(ids) > LIMIT_MAX:
        raise TooLarge(
            f"{len(ids)} spans are below {span_id}, more than {LIMIT_MAX}; choose a lower span"
        )
    rows = ask(
        f"SELECT * FROM spans WHERE trace_id = {text(trace_id.lower())} "
        f"AND span_id IN ({texts(ids)}) ORDER BY time_unix_nano, span_id"
    ).to_pylist(maps_as_pydicts="lossy")
    return Trace(trace_id=trace_id.lower(), roots=tree_of(rows), span_count=len(rows), is_cut=False)


def _below(span_id: str, ids: list[str], parent_ids: list[str | None]) -> list[str]:
    """Return the ids of a span and its descendants; empty if it does not exist."""
    children: dict[int, list[int]] = {}
    for index, parent in enumerate(parents_of(ids, parent_ids)):
        if parent is not None:
            children.setdefault(parent, []).append(index)
    indexes = [ids.index(span_id)] if span_id in ids else []
    for index in indexes:  # grows during the iteration
        indexes += children.get(index, ())
    return [ids[index] for index in indexes]


def tree_of(spans: list[Mapping[str, Any]]) -> list[SpanNode]:
    """Build the tree, keeping the order. Every span occurs exactly once, whatever the ids: the
    first span of a cycle becomes a root."""
    nodes = [SpanNode(span=span) for span in spans]
    ids = [span["span_id"] for span in spans]
    parents = parents_of(ids, [span["parent_span_id"] for span in spans])
    for node, parent in zip(nodes, parents, strict=True):
        if parent is not None:
            nodes[parent].children.append(node)
    return [node for node, parent in zip(nodes, parents, strict=True) if parent is None]


def parents_of(ids: Sequence[str], parent_ids: Sequence[str | None]) -> list[int | None]:
    """Return the index of each parent; None for roots. The result has no cycles."""
    index_of: dict[str, int] = {}
    for index, span_id in enumerate(ids):
        index_of.setdefault(span_id, index)
    parents = [index_of.get(parent_id or "") for parent_id in parent_ids]
    for index in _first_of_each_cycle(parents):
        parents[index] = None
    return parents


def _first_of_each_cycle(parents: list[int | None]) -> set[int]:
    """Return the lowest index of each cycle."""
    first = set()
    seen_from: dict[int, int] = {}
    for start in range(len(parents)):
        index: int | None = start
        path = []
        while index is not None and index not in seen_from:
            seen_from[index] = start
            path.append(index)
            index = parents[index]
        if index is not None and seen_from[index] == start:
            first.add(min(path[path.index(index) :]))
    return first
