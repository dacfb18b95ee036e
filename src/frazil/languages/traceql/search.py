"""Finds traces: with their spansets, and the values of spans that the query names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from frazil.errors import TooLarge
from frazil.languages.traceql.candidates import (
    TRACES_PER_READ,
    MatchingTrace,
    matching_ids,
    matching_traces,
    rows_by_trace,
)
from frazil.languages.traceql.fields import NESTED_SET
from frazil.languages.traceql.nodes import (
    NamedValue,
    SelectStage,
    SpanAttribute,
    SpanIntrinsic,
    SpansetPipeline,
    filters_in,
    named_values_in,
)
from frazil.languages.traceql.span_rows import SpanReader, stages_in
from frazil.languages.traceql.spansets import Spanset, SpansetValue
from frazil.query import (
    Ask,
    JsonValue,
    TimeRange,
    TraceSummary,
    TypedMap,
    TypedSpan,
    bounded,
    parents_of,
    summaries,
    typed_spans,
)
from frazil.query import sql_texts as texts
from frazil.query import sql_where as where

TRACES_MAX = 1500
"""The most that Jaeger's page offers."""
SPANS_PER_SPANSET_MAX = 1000
SPANS_SHOWN_MAX = 50_000
"""Spans in one answer."""
SPANS_PER_READ = 2000
"""Spans that one query names: its text is limited, too."""
ROW = (
    *("trace_id", "span_id", "name", "kind", "time_unix_nano", "duration_nano", "status_code"),
    *("status_message", "parent_span_id", "scope_name", "scope_version", "attributes"),
    *("resource_attributes", "scope_attributes", "events", "links", "_value_types"),
)
"""Columns of the spans that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSpan:
    """A span of an answer, with the values that the query names."""

    span_id: str
    name: str
    start_nano: int
    duration_nano: int
    values: dict[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSpanset:
    """The first spans of a spanset, and how many it has."""

    spans: list[FoundSpan]
    count: int
    values: tuple[tuple[str, SpansetValue], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTrace:
    """A trace of an answer."""

    summary: TraceSummary
    spansets: list[FoundSpanset]


def find_by_traceql(
    ask: Ask,
    pipeline: SpansetPipeline,
    *,
    within: TimeRange,
    limit: int = 20,
    spans_per_spanset: int = 3,
) -> list[FoundTrace]:
    """Return matching traces, those with the newest matching spans first."""
    bounded(limit, "limit", TRACES_MAX)
    bounded(spans_per_spanset, "spss", SPANS_PER_SPANSET_MAX)
    reader = SpanReader(pipeline, within)
    matching = list(matching_traces(ask, reader, limit))
    if not matching:
        return []
    ids = [trace.trace_id for trace in matching]
    details = _details(ask, list(_shown_spans(matching, spans_per_spanset)), pipeline)
    spansets = {
        trace.trace_id: [
            _spanset(trace, spanset, spans_per_spanset, details) for spanset in trace.spansets
        ]
        for trace in matching
    }
    return [
        FoundTrace(summary=summary, spansets=spansets[summary.trace_id])
        for summary in summaries(ask, ids)
    ]


def find_trace_ids(
    ask: Ask, pipeline: SpansetPipeline, *, within: TimeRange, limit: int
) -> list[str]:
    """Return the ids of matching traces, those with the newest matching spans first."""
    bounded(limit, "limit", TRACES_MAX)
    return matching_ids(ask, SpanReader(pipeline, within), limit)


def spans_of_traces(ask: Ask, trace_ids: Sequence[str]) -> dict[str, list[TypedSpan]]:
    """Return all spans of these traces, by trace, in order of time. `TooLarge` above
    `SPANS_SHOWN_MAX`."""
    if not trace_ids:
        return {}
    rows = ask(
        f"SELECT * FROM spans WHERE trace_id IN ({texts(trace_ids)}) "
        f"ORDER BY time_unix_nano, span_id LIMIT {SPANS_SHOWN_MAX + 1}"
    )
    if rows.num_rows > SPANS_SHOWN_MAX:
        raise TooLarge(
            f"these {len(trace_ids)} traces have more than {SPANS_SHOWN_MAX} spans; ask for fewer"
        )
    found: dict[str, list[TypedSpan]] = {trace_id: [] for trace_id in trace_ids}
    for span in typed_spans(rows):
        found[span.row["trace_id"]].append(span)
    return {trace_id: spans for trace_id, spans in found.items() if spans}


def rows_of_traces(ask: Ask, trace_ids: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Yield these traces with the rows of their spans, in order of time, some traces at a time.
    `TooLarge` above `SPANS_SHOWN_MAX` rows in all."""
    room = SPANS_SHOWN_MAX
    for begin in range(0, len(trace_ids), TRACES_PER_READ):
        some = trace_ids[begin : begin + TRACES_PER_READ]
        rows = ask(
            f"SELECT * FROM spans WHERE trace_id IN ({texts(some)}) "
            f"ORDER BY trace_id, time_unix_nano, span_id LIMIT {room + 1}"
        )
        if rows.num_rows > room:
            raise TooLarge(
                f"these {len(trace_ids)} traces have more than {SPANS_SHOWN_MAX} spans; ask for "
                "fewer"
            )
        room -= rows.num_rows
        found = dict(rows_by_trace(rows))
        yield from ((trace_id, found[trace_id]) for trace_id in some if trace_id in found)


SpanKey = tuple[str, str]
"""Trace id and span id."""


def _shown_spans(matching: Iterable[MatchingTrace], per_spanset: int) -> Iterator[SpanKey]:
    for trace in matching:
        for spanset in trace.spansets:
            for span in spanset.spans[:per_spanset]:
                yield trace.trace_id, trace.spans.ids[span]


def _spanset(
    trace: MatchingTrace,
    spanset: Spanset,
    per_spanset: int,
    details: Mapping[SpanKey, tuple[str, dict[str, JsonValue]]],
) -> FoundSpanset:
    spans = []
    for span in spanset.spans[:per_spanset]:
        span_id = trace.spans.ids[span]
        name, values = details.get((trace.trace_id, span_id), ("", {}))
        spans.append(
            FoundSpan(
                span_id=span_id,
                name=name,
                start_nano=trace.columns["time_unix_nano"][span],
                duration_nano=trace.columns["duration_nano"][span],
                values=values,
            )
        )
    return FoundSpanset(spans=spans, count=len(spanset.spans), values=spanset.values)


def _details(
    ask: Ask, keys: Sequence[SpanKey], pipeline: SpansetPipeline
) -> dict[SpanKey, tuple[str, dict[str, JsonValue]]]:
    """Return name and shown values of spans. `TooLarge` above `SPANS_SHOWN_MAX`."""
    if len(keys) > SPANS_SHOWN_MAX:
        raise TooLarge(
            f"the answer has more than {SPANS_SHOWN_MAX} spans; use a lower limit, or lower spss"
        )
    fields = shown_fields(pipeline)
    is_nested = any(map(_is_nested_set, fields))
    nested = _nested_sets(ask, sorted({trace_id for trace_id, _ in keys})) if is_nested else {}
    found = {}
    for begin in range(0, len(keys), SPANS_PER_READ):
        for span in _read_spans(ask, keys[begin : begin + SPANS_PER_READ]):
            key = span.row["trace_id"], span.row["span_id"]
            values = {
                _shown_name(field): value
                for field in fields
                if (value := _value(span, field, nested.get(key))) is not None
            }
            found[key] = (span.row["name"], values)
    return found


def _read_spans(ask: Ask, keys: Sequence[SpanKey]) -> list[TypedSpan]:
    trace_ids = sorted({trace_id for trace_id, _ in keys})
    span_ids = sorted({span_id for _, span_id in keys})
    conditions = [f"trace_id IN ({texts(trace_ids)})", f"span_id IN ({texts(span_ids)})"]
    return typed_spans(ask(f"SELECT {', '.join(ROW)} FROM spans {where(conditions)}"))


def shown_fields(pipeline: SpansetPipeline) -> list[NamedValue]:
    """Return the values that a query names in its conditions or selects, each once."""
    fields: dict[NamedValue, None] = {}
    for each in filters_in(pipeline):
        fields.update(dict.fromkeys(named_values_in(each.condition)))
    for stage in stages_in(pipeline):
        if isinstance(stage, SelectStage):
            fields.update(dict.fromkeys(stage.fields))
    return list(fields)


def _is_nested_set(field: NamedValue) -> bool:
    return isinstance(field, SpanIntrinsic) and field.name in NESTED_SET


def _shown_name(field: NamedValue) -> str:
    return field.key if isinstance(field, SpanAttribute) else field.written


def _value(
    span: TypedSpan, field: NamedValue, nested: tuple[int, int, int] | None
) -> JsonValue | None:
    """Return the value of a span; None if it has none, or if every span shows it anyway."""
    if isinstance(field, SpanAttribute):
        return _attribute(span, field)
    if field.name in NESTED_SET:
        return {"intValue": str((nested or (0, 0, 0))[NESTED_SET.index(field.name)])}
    match field.name:
        case "span:status":
            return {"stringValue": span.row["status_code"].lower()}
        case "span:kind":
            return {"stringValue": span.row["kind"].lower()}
        case "event:name" if span.row["events"]:
            return {"stringValue": span.row["events"][0]["name"]}
        case "link:spanID" | "link:traceID" if span.row["links"]:
            column = "span_id" if field.name == "link:spanID" else "trace_id"
            return {"stringValue": span.row["links"][0][column]}
    column_of = {
        "span:statusMessage": "status_message",
        "span:parentID": "parent_span_id",
        "instrumentation:name": "scope_name",
        "instrumentation:version": "scope_version",
    }
    text = span.row[column_of[field.name]] if field.name in column_of else None
    return None if text is None else {"stringValue": text}


def _attribute(span: TypedSpan, field: SpanAttribute) -> JsonValue | None:
    maps: dict[str, list[TypedMap]] = {
        "": [span.attributes, span.resource],
        "span": [span.attributes],
        "resource": [span.resource],
        "instrumentation": [span.scope],
        "event": span.events,
        "link": span.links,
    }
    return next(
        (values[field.key].json() for values in maps[field.scope] if field.key in values), None
    )


def _nested_sets(ask: Ask, trace_ids: Sequence[str]) -> dict[SpanKey, tuple[int, int, int]]:
    """Return the place of every span in its trace, as a nested set: the `left` of its parent, or
    -1, and its own `left` and `right`."""
    rows = ask(
        "SELECT trace_id, span_id, parent_span_id FROM spans "
        f"WHERE trace_id IN ({texts(trace_ids)}) ORDER BY trace_id, time_unix_nano, span_id"
    )
    found = {}
    for trace_id, part in rows_by_trace(rows):
        ids = part["span_id"].to_pylist()
        parents = parents_of(ids, part["parent_span_id"].to_pylist())
        for span_id, place in zip(ids, nested_set(parents), strict=True):
            found[trace_id, span_id] = place
    return found


def nested_set(parents: Sequence[int | None]) -> list[tuple[int, int, int]]:
    """Number spans from 1 on the way down and up through their tree."""
    children: dict[int | None, list[int]] = {}
    for span, parent in enumerate(parents):
        children.setdefault(parent, []).append(span)
    left, right = [0] * len(parents), [0] * len(parents)
    number = 0
    waiting = [(span, True) for span in reversed(children.get(None, []))]
    while waiting:
        span, is_down = waiting.pop()
        number += 1
        if not is_down:
            right[span] = number
            continue
        left[span] = number
        waiting.append((span, False))
        waiting += [(child, True) for child in reversed(children.get(span, []))]
    return [
        (-1 if parent is None else left[parent], left[span], right[span])
        for span, parent in enumerate(parents)
    ]
