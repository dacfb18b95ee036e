"""Questions about traces: which there were, and one of them as a tree."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    differs,
    equals,
    text,
    texts,
    where,
    whole,
)
from frazil.query.search.to_sql import box_conditions

LIMIT_MAX = 1000
SPANS_MAX = 50_000
"""Of one trace; a tree beyond that is nothing that anybody looks at. So many can also be sorted in
this process: see `steady.TOP_ROWS_MAX`."""


LENGTH = "(max(end_time_unix_nano) - min(time_unix_nano))"
"""How long a group of spans took, from the first begin to the last end."""
FAILED = "sum(CASE WHEN status_code = 'ERROR' THEN 1 ELSE 0 END)"
Order = Literal["newest", "longest", "spans", "errors"]
ORDERS: Mapping[Order, str] = {
    "newest": "max(time)",
    "longest": LENGTH,
    "spans": "count(*)",
    "errors": FAILED,
}
"""What traces are sorted by; the most comes first."""


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


class SpanFilter(TypedDict, total=False):
    """Which spans a question is about; all of these must fit."""

    service: str | None
    operation: str | None
    """The name of the span."""
    min_duration_nano: int | None
    max_duration_nano: int | None
    tags: Filters | None
    """These columns or attributes have these texts: see `ask.column` for their names."""
    exclude: Filters | None
    """These have not."""
    only_errors: bool
    only_roots: bool
    """Only spans without a parent."""
    within: TimeRange
    query: str | None
    """What somebody typed into the search box: see box.py."""


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
    """What SQL demands of such spans, one condition each."""
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
    if query is not None:
        conditions += box_conditions("spans", query)
    return conditions


class TraceFilter(SpanFilter, total=False):
    """Which traces a question is about: those with a span that fits, and that fit as a whole."""

    through: Sequence[str]
    """Services that the trace goes through, all of them."""
    min_trace_nano: int | None
    """From the begin of its first span to the end of its last one."""
    max_trace_nano: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceConditions:
    """What SQL demands of spans and of traces, one condition each."""

    within: list[str]
    spans: list[str]
    """One span of a trace must fulfil all of these."""
    traces: list[str]
    """On groups of spans of one trace."""

    def clauses(self, *, is_whole: bool = False) -> tuple[str, list[str]]:
        """WHERE, and conditions of HAVING, of a query that groups spans by trace. With `is_whole`
        the groups have all spans of a trace that lie within the time, also those that do not fit:
        more is read then."""
        if not is_whole and not self.traces:
            return where(self.spans), []
        fitting = [] if self.spans == self.within else [_has(" AND ".join(self.spans))]
        return where(self.within), [*fitting, *self.traces]


def demands_of(
    *,
    through: Sequence[str] = (),
    min_trace_nano: int | None = None,
    max_trace_nano: int | None = None,
    **which: Unpack[SpanFilter],
) -> TraceConditions:
    """What SQL demands of such traces."""
    traces = [_has(f"service_name = {text(name)}") for name in through]
    if min_trace_nano is not None:
        traces.append(f"{LENGTH} >= {int(min_trace_nano)}")
    if max_trace_nano is not None:
        traces.append(f"{LENGTH} <= {int(max_trace_nano)}")
    return TraceConditions(
        within=which.get("within", ALWAYS).conditions(),
        spans=conditions_of(**which),
        traces=traces,
    )


def _has(condition: str) -> str:
    """On a group: one of its rows is like that."""
    return f"max(CASE WHEN {condition} THEN 1 ELSE 0 END) = 1"


def find_traces(
    ask: Ask,
    *,
    order: Order = "newest",
    limit: int = 20,
    after: str | None = None,
    **which: Unpack[TraceFilter],
) -> list[TraceSummary]:
    """Traces that fit, newest first, or those first that are the longest, or have the most spans
    or failures. What counts of a trace are its spans within the time.

    With `after`, the cursor of the last one of a page, those that come behind it; a trace that got
    another span in between may have moved away.
    """
    conditions, having = demands_of(**which).clauses(is_whole=order != "newest")
    having += _behind(order, after)
    having_clause = f"HAVING {' AND '.join(having)} " if having else ""
    found = ask(
        f"SELECT trace_id, {ORDERS[order]} AS place "
        f"FROM spans {conditions} GROUP BY trace_id {having_clause}"
        f"ORDER BY place DESC, trace_id LIMIT {whole(limit, 'limit', LIMIT_MAX)}"
    ).to_pylist()
    cursors = {row["trace_id"]: f"{_number(row['place'])}-{row['trace_id']}" for row in found}
    return _summaries(ask, cursors) if cursors else []


_CURSOR = re.compile(r"(-?\d{1,18})-([0-9a-f]{0,64})", re.ASCII)


def _number(place: datetime.datetime | int) -> int:
    """What a trace is sorted by, in a cursor."""
    return place if isinstance(place, int) else (place - EPOCH) // MICROSECOND


def _behind(order: Order, after: str | None) -> list[str]:
    """Which groups come behind a cursor. It says nothing of single spans: a trace may have some
    that are newer, and must not be taken for an older one."""
    if after is None:
        return []
    found = _CURSOR.fullmatch(after)
    if found is None:
        raise Malformed(f"{after[:100]!r} is no cursor; take one from an answer as it is")
    number = int(found[1])
    place = f"to_timestamp_micros({number})" if order == "newest" else str(number)
    measure = ORDERS[order]
    return [f"({measure} < {place} OR ({measure} = {place} AND trace_id > {text(found[2])}))"]


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
    """A trace, from what each of its services has of it."""
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
    """One trace as a tree, or None when no span of it is here."""
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
    """The spans of a trace from the first one on; one more than are ever shown says that there are
    more."""
    return ask(
        f"SELECT {columns} FROM spans WHERE trace_id = {text(trace_id.lower())} "
        f"ORDER BY time_unix_nano, span_id LIMIT {SPANS_MAX + 1}"
    )


def subtree(ask: Ask, trace_id: str, span_id: str) -> Trace | None:
    """One span of a trace with all below it, or None when it is not here. `TooLarge` for more than
    a thousand."""
    spans = spans_of_trace(ask, trace_id, "span_id, parent_span_id").slice(0, SPANS_MAX)
    ids = _below(span_id.lower(), spans["span_id"].to_pylist(), spans["parent_span_id"].to_pylist())
    if not ids:
        return None
    if len(ids) > LIMIT_MAX:
        raise TooLarge(
            f"{len(ids)} spans are below {span_id}, more than {LIMIT_MAX}; ask for one further down"
        )
    rows = ask(
        f"SELECT * FROM spans WHERE trace_id = {text(trace_id.lower())} "
        f"AND span_id IN ({texts(ids)}) ORDER BY time_unix_nano, span_id"
    ).to_pylist(maps_as_pydicts="lossy")
    return Trace(trace_id=trace_id.lower(), roots=tree_of(rows), span_count=len(rows), is_cut=False)


def _below(span_id: str, ids: list[str], parent_ids: list[str | None]) -> list[str]:
    """That span and all below it; none when it is not there."""
    children: dict[int, list[int]] = {}
    for place, parent in enumerate(parents_of(ids, parent_ids)):
        if parent is not None:
            children.setdefault(parent, []).append(place)
    found = [ids.index(span_id)] if span_id in ids else []
    for place in found:  # It grows while it is walked along.
        found += children.get(place, ())
    return [ids[place] for place in found]


def tree_of(spans: list[Mapping[str, Any]]) -> list[SpanNode]:
    """Spans under their parents, both in the order given. None is lost and none is there twice,
    whatever their ids say: of spans that are each other's ancestors, the first one is a root."""
    nodes = [SpanNode(span=span) for span in spans]
    ids = [span["span_id"] for span in spans]
    parents = parents_of(ids, [span["parent_span_id"] for span in spans])
    for node, parent in zip(nodes, parents, strict=True):
        if parent is not None:
            nodes[parent].children.append(node)
    return [node for node, parent in zip(nodes, parents, strict=True) if parent is None]


def parents_of(ids: Sequence[str], parent_ids: Sequence[str | None]) -> list[int | None]:
    """The place of the span above each one; None for roots. No way up leads in a circle."""
    place_of: dict[str, int] = {}
    for place, span_id in enumerate(ids):
        place_of.setdefault(span_id, place)
    parents = [place_of.get(parent_id or "") for parent_id in parent_ids]
    for place in _first_of_each_circle(parents):
        parents[place] = None
    return parents


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
