"""Outline: a trace of any size as columns, without what only one span is asked about.

A line of a waterfall has everything that is known of a span; of fifty thousand that is more than
a page can hold, or a node wants to send. Here texts that many spans have are written once, and
spans are told apart by their place. The rest is there for the asking: one span, or which spans
have a text somewhere.
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
from frazil.query.telemetry.waterfall import Stretch, alone_nano, critical_parts

SHOWN = (
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
    """One trace, or None when no span of it is here."""
    rows = spans_of_trace(ask, trace_id, SHOWN)
    if not rows.num_rows:
        return None
    return outline_of(trace_id.lower(), rows.slice(0, SPANS_MAX), rows.num_rows > SPANS_MAX)


def outline_of(trace_id: str, rows: pa.Table, is_cut: bool) -> Outline:
    """The same of rows that are sorted by time. All work is done on columns: one object for each
    of many spans takes longer than everything else."""
    parent_ids = rows["parent_span_id"].to_pylist()
    ids = rows["span_id"].to_pylist()
    order, parent, children = _in_order(parents_of(ids, parent_ids))
    rows = rows.take(order)
    offset, length, begin = _times(rows)
    stretches = [(low, low + long) for low, long in zip(offset, length, strict=True)]
    services, service = _words(rows["service_name"])
    names, name = _words(rows["name"])
    kinds, kind = _words(rows["kind"])
    has_parent = [bool(parent_ids[place]) for place in order]
    orphans = [place for place, above in enumerate(parent) if above < 0 and has_parent[place]]
    return Outline(
        trace_id=trace_id,
        span_count=rows.num_rows,
        is_cut=is_cut,
        begin=_moment(begin),
        duration_nano=max(high for _, high in stretches),
        services=services,
        names=names,
        kinds=kinds,
        span_id=[ids[place] for place in order],
        parent=parent,
        service=service,
        name=name,
        kind=kind,
        offset_nano=offset,
        length_nano=length,
        self_nano=_alone(stretches, children),
        failed=np.flatnonzero(pc.equal(rows["status_code"], "ERROR").to_numpy()).tolist(),
        orphans=orphans,
        critical=_critical(stretches, children, _main_root(parent, orphans)),
    )


def _in_order(parents: list[int | None]) -> tuple[list[int], list[int], list[list[int]]]:
    """The order of a waterfall; in it, the place of each one's parent, and of its children."""
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
        place = len(order)
        order.append(row)
        parent.append(above)
        children.append([])
        if above >= 0:
            children[above].append(place)
        if below[row]:
            waiting += [(place, child) for child in reversed(below[row])]
    return order, parent, children


def _times(rows: pa.Table) -> tuple[list[int], list[int], int]:
    """How long after the begin of the trace each one began, how long it was, and that begin."""
    times = rows["time_unix_nano"].to_numpy()
    begin = int(times.min())
    return (times - begin).tolist(), rows["duration_nano"].to_pylist(), begin


def _words(column: pa.ChunkedArray) -> tuple[list[str], list[int]]:
    """The words of a column, and for each row which it is."""
    words = column.combine_chunks().dictionary_encode()
    return words.dictionary.to_pylist(), words.indices.to_pylist()


def _alone(stretches: list[Stretch], children: list[list[int]]) -> list[int]:
    return [
        alone_nano(low, high, [stretches[child] for child in below]) if below else high - low
        for (low, high), below in zip(stretches, children, strict=True)
    ]


def _main_root(parent: list[int], orphans: list[int]) -> int:
    """The first one that was called by nobody; of orphans the first."""
    others = set(orphans)
    roots = (place for place, above in enumerate(parent) if above < 0 and place not in others)
    return next(roots, 0)


def _critical(stretches: list[Stretch], children: list[list[int]], root: int) -> list[int]:
    found: list[int] = []
    for place, low, high in critical_parts(stretches, children, root):
        if low < high:
            found += (place, low, high)
    return found


def _moment(unix_nano: int) -> str:
    seconds, nanos = divmod(unix_nano, NS_PER_S)
    whole = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{nanos:09d}Z"


def span_of_trace(ask: Ask, trace_id: str, span_id: str) -> Mapping[str, Any] | None:
    """All that is known of one span, or None when it is not here. Of several that share an id,
    against all rules, the first one."""
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
    """The ids of the spans that have a text somewhere, in a name, a value or an event, in capitals
    or not, and that have these values of columns or attributes."""
    conditions = [f"trace_id = {text(trace_id.lower())}", *equals(filters or {}, SPANS)]
    columns = (*_TEXTS, *_MAPS, "events") if search else ("span_id",)
    rows = ask(
        f"SELECT {', '.join(columns)} FROM spans {where(conditions)} "
        f"ORDER BY time_unix_nano, span_id LIMIT {SPANS_MAX}"
    ).combine_chunks()
    found: pa.ChunkedArray = rows["span_id"]
    if search and rows.num_rows:
        found = found.filter(pa.array(_has(rows, search)))
    return [str(span_id) for span_id in found.to_pylist()]


Hits = npt.NDArray[np.bool_]


def _has(rows: pa.Table, search: str) -> Hits:
    """Which rows have the text."""
    found = np.zeros(rows.num_rows, bool)
    for name in _TEXTS:
        found |= _in_texts(rows[name].chunk(0), search)
    for name in _MAPS:
        found |= _in_map(rows[name].chunk(0), search)
    events = rows["events"].chunk(0)
    if len(events.values):
        names = [field.name for field in events.type.value_type]
        fields = dict(zip(names, events.values.flatten(), strict=True))
        here = _in_texts(fields["name"], search) | _in_map(fields["attributes"], search)
        found |= _any(events.offsets, here)
    return found


def _in_texts(texts: pa.Array, search: str) -> Hits:
    hits = pc.match_substring(texts, search, ignore_case=True)
    return np.asarray(pc.fill_null(hits, False).to_numpy(zero_copy_only=False), bool)


def _in_map(maps: pa.MapArray, search: str) -> Hits:
    """In a value. Keys are the same in every span, and would find all of them."""
    return _any(maps.offsets, _in_texts(maps.items, search))


def _any(offsets: pa.Array, hits: Hits) -> Hits:
    """For each list of an array, whether one of its elements is a hit."""
    before = np.concatenate(([0], np.cumsum(hits)))
    ends = offsets.to_numpy()
    return np.asarray(before[ends[1:]] > before[ends[:-1]], bool)
