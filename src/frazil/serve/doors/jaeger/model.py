"""Traces in Jaeger's JSON: spans with tags, logs and references, and the processes they ran in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.query import TypedMap, TypedSpan, TypedValue

NS_PER_US = 1000
JSON_INT_MAX = 2**53
"""Larger integers are text, since most readers of JSON would round them."""
UNSET = "UNSET"

Json = dict[str, object]


def jaeger_trace(trace_id: str, spans: Sequence[TypedSpan]) -> Json:
    """Return a trace; spans are in order of time."""
    processes: dict[tuple[object, ...], str] = {}
    shown: dict[str, Json] = {}
    written = []
    for span in spans:
        key = (span.row["service_name"], *span.resource.items())
        if key not in processes:
            processes[key] = f"p{len(processes) + 1}"
            shown[processes[key]] = _process(span)
        written.append(_span(span, processes[key]))
    return {"traceID": trace_id, "spans": written, "processes": shown, "warnings": None}


def _process(span: TypedSpan) -> Json:
    others = {key: value for key, value in span.resource.items() if key != "service.name"}
    return {"serviceName": span.row["service_name"], "tags": _tags(others)}


def _span(span: TypedSpan, process_id: str) -> Json:
    row = span.row
    return {
        "traceID": row["trace_id"],
        "spanID": row["span_id"],
        "flags": row["flags"] & 0xFF,
        "operationName": row["name"],
        "references": _references(span),
        "startTime": row["time_unix_nano"] // NS_PER_US,
        "duration": row["duration_nano"] // NS_PER_US,
        "tags": [*_tags(span.attributes), *_span_tags(row)],
        "logs": [
            _log(event, attributes)
            for event, attributes in zip(row["events"], span.events, strict=True)
        ],
        "processID": process_id,
        "warnings": None,
    }


def _references(span: TypedSpan) -> list[Json]:
    row = span.row
    references = []
    if row["parent_span_id"]:
        references.append(_reference("CHILD_OF", row["trace_id"], row["parent_span_id"]))
    for link in row["links"]:
        references.append(_reference("FOLLOWS_FROM", link["trace_id"], link["span_id"]))
    return references


def _reference(kind: str, trace_id: str, span_id: str) -> Json:
    return {"refType": kind, "traceID": trace_id, "spanID": span_id}


def _span_tags(row: Mapping[str, Any]) -> list[Json]:
    """Return what Jaeger has as tags, and we as columns."""
    texts = {
        "span.kind": row["kind"].lower() if row["kind"] != "UNSPECIFIED" else None,
        "otel.status_code": row["status_code"] if row["status_code"] != UNSET else None,
        "otel.status_description": row["status_message"],
        "otel.scope.name": row["scope_name"],
        "otel.scope.version": row["scope_version"],
        "w3c.tracestate": row["trace_state"],
    }
    tags = [_tag(key, TypedValue(text, "s")) for key, text in texts.items() if text]
    if row["status_code"] == "ERROR":
        tags.append(_tag("error", TypedValue("true", "b")))
    return tags


def _log(event: Mapping[str, Any], attributes: TypedMap) -> Json:
    fields = [_tag("event", TypedValue(event["name"], "s")), *_tags(attributes)]
    return {"timestamp": event["time_unix_nano"] // NS_PER_US, "fields": fields}


def _tags(values: TypedMap) -> list[Json]:
    return [_tag(key, value) for key, value in values.items()]


def _tag(key: str, value: TypedValue) -> Json:
    kind, content = _typed(value)
    return {"key": key, "type": kind, "value": content}


def _typed(value: TypedValue) -> tuple[str, object]:
    """Return the type of a tag, and its value as JSON."""
    match value.word[0]:
        case "i":
            whole = int(value.text)
            return "int64", whole if abs(whole) < JSON_INT_MAX else value.text
        case "d":
            return "float64", value.json()["doubleValue"]
        case "b":
            return "bool", value.text == "true"
        case "y":
            return "binary", value.text
    return "string", value.text
