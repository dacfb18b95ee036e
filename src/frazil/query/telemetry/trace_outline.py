"""Outline: a trace of any size in columns, without attributes.

Waterfall rows with all attributes of 50,000 spans are too large for a browser. The outline writes
repeated texts once and refers to spans by index. Details are loaded per span, and search in a
trace returns span ids.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.model import doc
from frazil.model.arrow import SPANS
from frazil.query.search.filters import Ask, Filters, equals, text, where
from frazil.query.telemetry.traces import SPANS_MAX, parents_of, spans_of_trace
from frazil.query.telemetry.waterfall import Interval, critical_intervals, uncovered_nano

COLUMNS = (
    "span_id, parent_span_id, time_unix_nano, duration_nano, service_name, name, kind, status_code"
)
NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A trace in columns. One index is one span in all columns, in waterfall order."""

    trace_id: str
    span_count: int
    is_cut: Annotated[bool, doc("True if the trace has more spans.")]
    begin: Annotated[str, doc("Start of the first span, to the nanosecond.")]
    duration_nano: Annotated[int, doc("From the first start to the last end.")]
    services: list[str]
    names: list[str]
    kinds: list[str]
    span_id: list[str]
    parent: Annotated[list[int], doc("Index of the parent span, or -1.")]
    service: Annotated[list[int], doc("Index into `services`; likewise `name`, `kind`.")]
    name: list[int]
    kind: list[int]
    offset_nano: Annotated[list[int], doc("Start of the span relative to `begin`.")]
    length_nano: list[int]
    self_nano: Annotated[list[int], doc("Time in which no child span ran.")]
    failed: Annotated[list[int], doc("Indexes of spans with status ERROR.")]
    orphans: Annotated[list[int], doc("Indexes of spans whose parent is missing.")]
    critical: Annotated[list[int], doc("Critical path: span index, start, end, ...")]


def outline(ask: Ask, trace_id: str) -> Outline | None:
    """Return the outline of a trace, or None if it does not exist."""
    rows = spans_of_trace(ask, trace_id, COLUMNS)
    if not rows.num_rows:
        return None
    return outline_of(trace_id.lower(), rows.slice(0, SPANS_MAX), rows.num_rows > SPANS_MAX)


def outline_of(trace_id: str, rows: pa.Table, is_cut: bool) -> Outline:
    """Compute the outline of rows sorted by time, in columns: objects per span are too slow."""
    parent_ids = rows["parent_span_id"].to_pylist()
    ids = rows["span_id"].to_pylist()
    order, parent, children = _in_order(parents_of(ids, parent_ids))
    rows = rows.take(order)
    offset, length, begin = _times(rows)
    intervals = [(low, low + long) for low, long in zip(offset, length, strict=True)]
    services, service = _encoded(rows["service_name"])
    names, name = _encoded(rows["name"])
    kinds, kind = _encoded(rows["kind"])
    has_parent = [bool(parent_ids[row]) for row in order]
    orphans = [index for index, above in enumerate(parent) if above < 0 and has_parent[index]]
    return Outline(
        trace_id=trace_id,
        span_count=rows.num_rows,
        is_cut=is_cut,
        begin=_timestamp(begin),
        duration_nano=max(high for _, high in intervals),
        services=services,
        names=names,
        kinds=kinds,
        span_id=[ids[row] for row in order],
        parent=parent,
        service=service,
        name=name,
        kind=kind,
        offset_nano=offset,
        length_nano=length,
        self_nano=_self_times(intervals, children),
        failed=np.flatnonzero(pc.equal(rows["status_code"], "ERROR").to_numpy()).tolist(),
        orphans=orphans,
        critical=_critical(intervals, children, _main_root(parent, orphans)),
    )


def _in_order(parents: list[int | None]) -> tuple[list[int], list[int], list[list[int]]]:
    """Rows in waterfall order, with the index of each parent and of its children."""
    below: list[list[int]] = [[] for _ in parents]
    roots: list[int] = []
    for row, above in enumerate(parents):
        (roots if above is None else below[above]).append(row)
    order: list[int] = []
    parent: list[int] = []
    children: list[list[int]] = []
    waiting = [(-1, root) for root in reversed(roots)]
    while waiting:
        above, row = waiting.pop()
        index = len(order)
        order.append(row)
        parent.append(above)
        children.append([])
        if above >= 0:
            children[above].append(index)
        if below[row]:
            waiting += [(index, child) for child in reversed(below[row])]
    return order, parent, children


def _times(rows: pa.Table) -> tuple[list[int], list[int], int]:
    """Offset and duration of each span, and the start of the trace."""
    times = rows["time_unix_nano"].to_numpy()
    begin = int(times.min())
    return (times - begin).tolist(), rows["duration_nano"].to_pylist(), begin


def _encoded(column: pa.ChunkedArray) -> tuple[list[str], list[int]]:
    """Return the distinct texts of a column, and the index of each row."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_pylist()


def _self_times(intervals: list[Interval], children: list[list[int]]) -> list[int]:
    return [
        uncovered_nano(low, high, [intervals[child] for child in below]) if below else high - low
        for (low, high), below in zip(intervals, children, strict=True)
    ]


def _main_root(parent: list[int], orphans: list[int]) -> int:
    """Return the first root that is not an orphan, or the first orphan."""
    others = set(orphans)
    roots = (index for index, above in enumerate(parent) if above < 0 and index not in others)
    return next(roots, 0)


def _critical(intervals: list[Interval], children: list[list[int]], root: int) -> list[int]:
    path: list[int] = []
    for index, low, high in critical_intervals(intervals, children, root):
        if low < high:
            path += (index, low, high)
    return path


def _timestamp(unix_nano: int) -> str:
    seconds, nanos = divmod(unix_nano, NS_PER_S)
    time = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{nanos:09d}Z"


def span_of_trace(ask: Ask, trace_id: str, span_id: str) -> Mapping[str, Any] | None:
    """Return one span with all columns, or None. If several share the id, the first."""
    rows = ask(
        f"SELECT * FROM spans WHERE trace_id = {text(trace_id.lower())} "
        f"AND span_id = {text(span_id.lower())} ORDER BY time_unix_nano LIMIT 1"
    ).to_pylist(maps_as_pydicts="lossy")
    return rows[0] if rows else None


_TEXTS = ("service_name", "name", "status_message", "span_id")
_MAPS = ("attributes", "resource_attributes", "scope_attributes")


def find_in_trace(
    ask: Ask, trace_id: str, *, search: str = "", filters: Filters | None = None
) -> list[str]:
    """Return the ids of spans that match the filters and contain `search` in a name, value or
    event, ignoring case."""
    conditions = [f"trace_id = {text(trace_id.lower())}", *equals(filters or {}, SPANS)]
    columns = (*_TEXTS, *_MAPS, "events") if search else ("span_id",)
    rows = ask(
        f"SELECT {', '.join(columns)} FROM spans {where(conditions)} "
        f"ORDER BY time_unix_nano, span_id LIMIT {SPANS_MAX}"
    ).combine_chunks()
    span_ids: pa.ChunkedArray = rows["span_id"]
    if search and rows.num_rows:
        span_ids = span_ids.filter(pa.array(_contains(rows, search)))
    return [str(span_id) for span_id in span_ids.to_pylist()]


Hits = npt.NDArray[np.bool_]


def _contains(rows: pa.Table, search: str) -> Hits:
    """Return which rows contain the text."""
    hits = np.zeros(rows.num_rows, bool)
    for name in _TEXTS:
        hits |= _in_texts(rows[name].chunk(0), search)
    for name in _MAPS:
        hits |= _in_map(rows[name].chunk(0), search)
    events = rows["events"].chunk(0)
    if len(events.values):
        names = [field.name for field in events.type.value_type]
        fields = dict(zip(names, events.values.flatten(), strict=True))
        in_events = _in_texts(fields["name"], search) | _in_map(fields["attributes"], search)
        hits |= _any(events.offsets, in_events)
    return hits


def _in_texts(texts: pa.Array, search: str) -> Hits:
    hits = pc.match_substring(texts, search, ignore_case=True)
    return np.asarray(pc.fill_null(hits, False).to_numpy(zero_copy_only=False), bool)


def _in_map(maps: pa.MapArray, search: str) -> Hits:
    """Search the values only: keys repeat in every span and would match all."""
    return _any(maps.offsets, _in_texts(maps.items, search))


def _any(offsets: pa.Array, hits: Hits) -> Hits:
    """Return for each list whether it contains a hit."""
    before = np.concatenate(([0], np.cumsum(hits)))
    ends = offsets.to_numpy()
    return np.asarray(before[ends[1:]] > before[ends[:-1]], bool)
