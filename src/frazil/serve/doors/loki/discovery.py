"""Labels, series, volumes, fields and patterns."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.languages import (
    EVERY_STREAM,
    STREAM_LABELS,
    LogSelection,
    ReadRows,
    StreamTotals,
    detected_field_list,
    exact_conditions,
    find_lines,
    label_values,
    level_of,
    parse_selection,
    stream_label_names,
    stream_labels,
    stream_totals,
    volume_by_step,
)
from frazil.query import cluster_lines, masked_lines
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.loki import answers
from frazil.serve.doors.loki.params import NS_PER_S, RequestTimes, whole_number
from frazil.serve.doors.loki.rows import respond
from frazil.serve.http.handler import Handler

SAMPLE_LINES = 1000
SAMPLE_LINES_MAX = 5000
FIELDS = 1000
FIELDS_MAX = 10_000
VOLUMES = 100
VOLUMES_MAX = 5000
PATTERNS_MAX = 300
ANY_PART = "<_>"
OUR_PART = "<*>"


def selection_of(call: DoorRequest, name: str = "query") -> LogSelection:
    """The selection of a parameter; everything if there is none."""
    text = call.first(name)
    return EVERY_STREAM if text is None else parse_selection(text)


async def labels(handler: Handler, call: DoorRequest) -> Response:
    """Names of labels that streams have."""
    times, selection = RequestTimes.of(call, handler.context.clock), selection_of(call)
    return await respond(
        handler,
        call,
        lambda read: answers.success(stream_label_names(read, times.span, selection)),
    )


async def values(handler: Handler, call: DoorRequest) -> Response:
    """Values of a label."""
    times, selection = RequestTimes.of(call, handler.context.clock), selection_of(call)
    name = call.path_values["name"]
    return await respond(
        handler,
        call,
        lambda read: answers.success(label_values(read, name, times.span, selection)),
    )


async def series(handler: Handler, call: DoorRequest) -> Response:
    """Streams that match any of the selectors."""
    times = RequestTimes.of(call, handler.context.clock)
    texts = [*call.fields.get("match[]", ()), *call.fields.get("match", ())]
    selections = [parse_selection(text) for text in texts] or [EVERY_STREAM]

    def load(read: ReadRows) -> object:
        found = {
            stream.labels: None
            for selection in selections
            for stream in stream_totals(read, times.span, selection)
        }
        return answers.success([dict(key) for key in sorted(found)])

    return await respond(handler, call, load)


async def stats(handler: Handler, call: DoorRequest) -> Response:
    """How many streams, lines and bytes a selector has."""
    times, selection = RequestTimes.of(call, handler.context.clock), selection_of(call)

    def load(read: ReadRows) -> object:
        totals = stream_totals(read, times.span, selection)
        return {
            "streams": len(totals),
            "chunks": len(totals),
            "bytes": sum(stream.byte_count for stream in totals),
            "entries": sum(stream.line_count for stream in totals),
        }

    return await respond(handler, call, load)


def _volume_labels(call: DoorRequest, selection: LogSelection) -> list[str]:
    """The labels by which volumes are told apart: those of the request, or of the selector."""
    target = call.first("targetLabels")
    if target is not None:
        return [name.strip() for name in target.split(",") if name.strip()]
    return [matcher.name for matcher in selection.matchers] or list(STREAM_LABELS)


async def volume(handler: Handler, call: DoorRequest) -> Response:
    """Bytes by labels, largest first."""
    times, selection = RequestTimes.of(call, handler.context.clock), selection_of(call)
    limit = whole_number(call, "limit", VOLUMES, VOLUMES_MAX)
    names = _volume_labels(call, selection)
    by = call.first("aggregateBy") or "series"
    if by not in ("series", "labels"):
        raise Malformed(f"aggregateBy is {by!r}; write series or labels")

    def load(read: ReadRows) -> object:
        totals = stream_totals(read, times.span, selection, names)
        ranked = _by_labels(totals) if by == "labels" else _by_series(totals)
        result = [
            {"metric": metric, "value": [times.end_ns // NS_PER_S, str(size)]}
            for metric, size in sorted(ranked, key=lambda pair: -pair[1])[:limit]
        ]
        return answers.success(
            {"resultType": "vector", "result": result, "stats": answers.stats_of(0, len(result))}
        )

    return await respond(handler, call, load)


def _by_series(totals: Sequence[StreamTotals]) -> list[tuple[dict[str, str], int]]:
    return [(dict(one.labels), one.byte_count) for one in totals if one.labels]


def _by_labels(totals: Sequence[StreamTotals]) -> list[tuple[dict[str, str], int]]:
    sums: dict[str, int] = {}
    for one in totals:
        for name, _ in one.labels:
            sums[name] = sums.get(name, 0) + one.byte_count
    return [({name: ""}, size) for name, size in sums.items()]


async def volume_range(handler: Handler, call: DoorRequest) -> Response:
    """Bytes by labels and step."""
    times, selection = RequestTimes.of(call, handler.context.clock), selection_of(call)
    limit = whole_number(call, "limit", VOLUMES, VOLUMES_MAX)
    names, grid = _volume_labels(call, selection), times.grid(call)

    def load(read: ReadRows) -> object:
        found = volume_by_step(read, grid, selection, names)
        largest = sorted(found, key=lambda one: -float(one.values.sum()))[:limit]
        return answers.success(answers.matrix_data(largest, grid))

    return await respond(handler, call, load)


async def detected_labels(handler: Handler, call: DoorRequest) -> Response:
    """Labels of streams, and how many values each has."""
    times, selection = RequestTimes.of(call, handler.context.clock), selection_of(call)

    def load(read: ReadRows) -> object:
        found = stream_labels(read, times.span, selection)
        return {
            "detectedLabels": [
                {"label": label.name, "cardinality": label.value_count} for label in found
            ]
        }

    return await respond(handler, call, load)


async def detected_fields(handler: Handler, call: DoorRequest) -> Response:
    """Fields of a sample of lines."""
    limit = whole_number(call, "limit", FIELDS, FIELDS_MAX)

    def load(read: ReadRows) -> object:
        fields = _fields(handler, call, read)[:limit]
        return {"fields": [_described(field) for field in fields], "limit": limit}

    return await respond(handler, call, load)


def _described(field: Any) -> dict[str, Any]:
    described = {
        "label": field.name,
        "type": field.type,
        "cardinality": len(field.values),
        "parsers": field.parsers or None,
    }
    return {**described, "jsonPath": list(field.path)} if field.path else described


async def detected_field_values(handler: Handler, call: DoorRequest) -> Response:
    """Values of a field of a sample of lines."""
    name = call.path_values["name"]
    limit = whole_number(call, "limit", FIELDS, FIELDS_MAX)

    def load(read: ReadRows) -> object:
        fields = {field.name: field for field in _fields(handler, call, read)}
        found = list(fields[name].values)[:limit] if name in fields else []
        return {"values": found, "limit": limit}

    return await respond(handler, call, load)


def _fields(handler: Handler, call: DoorRequest, read: ReadRows) -> list[Any]:
    times, selection = RequestTimes.of(call, handler.context.clock), selection_of(call)
    count = whole_number(call, "line_limit", SAMPLE_LINES, SAMPLE_LINES_MAX)
    found = find_lines(read, selection, times.span, limit=count, is_newest=True)
    return detected_field_list(found.lines)


async def patterns(handler: Handler, call: DoorRequest) -> Response:
    """FoundLines that differ only in variable parts, by step."""
    times, selection = RequestTimes.of(call, handler.context.clock), selection_of(call)
    step = datetime.timedelta(microseconds=max(1, times.grid(call).step_ns // 1000))

    def load(read: ReadRows) -> object:
        conditions = exact_conditions(selection, times.span)
        rows = masked_lines(lambda sql: read(sql).arrow(), step, conditions)
        clusters = [one for group in cluster_lines(rows).values() for one in group]
        clusters.sort(key=lambda one: -one.count)
        return answers.success(
            [
                {
                    "pattern": "".join(one.parts).replace(OUR_PART, ANY_PART),
                    "level": level_of(one.severity_number),
                    "samples": [
                        [int(begin.timestamp()), count]
                        for begin, count in sorted(one.trend.items())
                    ],
                }
                for one in clusters[:PATTERNS_MAX]
            ]
        )

    return await respond(handler, call, load)
