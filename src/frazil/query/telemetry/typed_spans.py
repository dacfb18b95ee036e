"""Spans with values of the types in which they were sent, and as OTLP/JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from frazil.model.arrow import words_of

JsonValue = dict[str, Any]
"""An AnyValue in OTLP/JSON."""

NOT_FINITE = ("NaN", "Infinity", "-Infinity")
TYPES_CACHED = 4096
PART_COUNT = 3
"""Resource, scope and span."""
KIND_NUMBERS = {
    "UNSPECIFIED": 0,
    "INTERNAL": 1,
    "SERVER": 2,
    "CLIENT": 3,
    "PRODUCER": 4,
    "CONSUMER": 5,
}
STATUS_NUMBERS = {"UNSET": 0, "OK": 1, "ERROR": 2}


class TypedValue(NamedTuple):
    """The text of a value, and its type as in `_value_types`."""

    text: str
    word: str

    def json(self) -> JsonValue:
        """Return the value as in OTLP/JSON."""
        match self.word[0]:
            case "i":
                return {"intValue": self.text}
            case "d":
                return {"doubleValue": _double(self.text)}
            case "b":
                return {"boolValue": self.text == "true"}
            case "y":
                return {"bytesValue": self.text}
            case "e":
                return {}
            case "[" | "{":
                return _nested(json.loads(self.text), self.word)
        return {"stringValue": self.text}


TypedMap = dict[str, TypedValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedSpan:
    """A row of `spans` with its typed maps."""

    row: Mapping[str, Any]
    resource: TypedMap
    scope: TypedMap
    attributes: TypedMap
    events: list[TypedMap]
    links: list[TypedMap]


def typed_spans(rows: pa.Table) -> list[TypedSpan]:
    """Return the spans of rows that have all columns."""
    return [_typed(row) for row in rows.to_pylist(maps_as_pydicts="lossy")]


def _typed(row: Mapping[str, Any]) -> TypedSpan:
    resource, scope, record = _parts(row["_value_types"] or "")
    words = iter(record) if record else None
    return TypedSpan(
        row=row,
        resource=_map(row["resource_attributes"], iter(resource) if resource else None),
        scope=_map(row["scope_attributes"], iter(scope) if scope else None),
        attributes=_map(row["attributes"], words),
        events=[_map(event["attributes"], words) for event in row["events"]],
        links=[_map(link["attributes"], words) for link in row["links"]],
    )


@lru_cache(TYPES_CACHED)
def _parts(types: str) -> Sequence[Sequence[str]]:
    """Return the words of resource, scope and span; empty ones if all values are strings."""
    parts = types.split("|") if types else [""] * PART_COUNT
    return [words_of(part) or [] for part in parts]


def _map(values: Mapping[str, str], words: Iterable[str] | None) -> TypedMap:
    if words is None:
        return {key: TypedValue(value, "s") for key, value in values.items()}
    # The words go on with the next map, so none may be taken that has no value.
    return {
        key: TypedValue(value, word)
        for (key, value), word in zip(values.items(), words, strict=False)
    }


def _double(text: str) -> float | str:
    return text if text in NOT_FINITE else float(text)


def _nested(node: Any, word: str) -> JsonValue:
    """Return a value that is JSON, as in OTLP/JSON."""
    match word[0]:
        case "[":
            pairs = zip(node, words_of(word[1:-1]) or [], strict=True)
            return {"arrayValue": {"values": [_nested(item, each) for item, each in pairs]}}
        case "{":
            members = zip(node.items(), words_of(word[1:-1]) or [], strict=True)
            values = [{"key": key, "value": _nested(item, each)} for (key, item), each in members]
            return {"kvlistValue": {"values": values}}
        case "i":
            return {"intValue": str(node)}
        case "d":
            return {"doubleValue": node if isinstance(node, str) else float(node)}
        case "b":
            return {"boolValue": node}
        case "y":
            return {"bytesValue": node}
        case "e":
            return {}
    return {"stringValue": node}


def attributes_json(values: TypedMap) -> list[JsonValue]:
    """Return a map as a list of KeyValues."""
    return [{"key": key, "value": value.json()} for key, value in values.items()]


def resource_spans(spans: Sequence[TypedSpan], id_text: Callable[[str], str]) -> list[JsonValue]:
    """Return spans as ResourceSpans of OTLP/JSON. `id_text` writes ids, which are hex here."""
    resources: dict[tuple[object, ...], tuple[JsonValue, dict[tuple[object, ...], JsonValue]]] = {}
    for span in spans:
        row = span.row
        resource_key = (*span.resource.items(), row["resource_schema_url"])
        if resource_key not in resources:
            resources[resource_key] = (_resource(span), {})
        resource, scopes = resources[resource_key]
        scope_names = (row["scope_name"], row["scope_version"], row["scope_schema_url"])
        scope_key = (*span.scope.items(), *scope_names)
        if scope_key not in scopes:
            scopes[scope_key] = _scope(span)
            resource["scopeSpans"].append(scopes[scope_key])
        scopes[scope_key]["spans"].append(_span(span, id_text))
    return [resource for resource, _ in resources.values()]


def _resource(span: TypedSpan) -> JsonValue:
    row = span.row
    dropped = row["resource_dropped_attributes_count"]
    resource = _present(attributes=attributes_json(span.resource), droppedAttributesCount=dropped)
    schema_url = _present(schemaUrl=row["resource_schema_url"])
    return {"resource": resource, "scopeSpans": [], **schema_url}


def _scope(span: TypedSpan) -> JsonValue:
    row = span.row
    scope = _present(
        name=row["scope_name"],
        version=row["scope_version"],
        attributes=attributes_json(span.scope),
        droppedAttributesCount=row["scope_dropped_attributes_count"],
    )
    return {"scope": scope, "spans": [], **_present(schemaUrl=row["scope_schema_url"])}


def _span(span: TypedSpan, id_text: Callable[[str], str]) -> JsonValue:
    row = span.row
    status = _present(
        code=_number(row["status_code"], STATUS_NUMBERS), message=row["status_message"]
    )
    return {
        "traceId": id_text(row["trace_id"]),
        "spanId": id_text(row["span_id"]),
        "name": row["name"],
        "kind": _number(row["kind"], KIND_NUMBERS),
        "startTimeUnixNano": str(row["time_unix_nano"]),
        "endTimeUnixNano": str(row["end_time_unix_nano"]),
        "status": status,
        **_present(
            parentSpanId=id_text(row["parent_span_id"] or ""),
            traceState=row["trace_state"],
            flags=row["flags"] & 0xFFFFFFFF,
            attributes=attributes_json(span.attributes),
            droppedAttributesCount=row["dropped_attributes_count"],
            events=[_event(*pair) for pair in zip(row["events"], span.events, strict=True)],
            droppedEventsCount=row["dropped_events_count"],
            links=[_link(*pair, id_text) for pair in zip(row["links"], span.links, strict=True)],
            droppedLinksCount=row["dropped_links_count"],
        ),
    }


def _event(event: Mapping[str, Any], attributes: TypedMap) -> JsonValue:
    return {
        "timeUnixNano": str(event["time_unix_nano"]),
        "name": event["name"],
        **_present(
            attributes=attributes_json(attributes),
            droppedAttributesCount=event["dropped_attributes_count"],
        ),
    }


def _link(
    link: Mapping[str, Any], attributes: TypedMap, id_text: Callable[[str], str]
) -> JsonValue:
    return {
        "traceId": id_text(link["trace_id"]),
        "spanId": id_text(link["span_id"]),
        **_present(
            traceState=link["trace_state"],
            attributes=attributes_json(attributes),
            droppedAttributesCount=link["dropped_attributes_count"],
            flags=link["flags"] & 0xFFFFFFFF,
        ),
    }


def _present(**fields: object) -> JsonValue:
    """Return the fields that are not empty, which is their default in protobuf."""
    return {name: value for name, value in fields.items() if value}


def _number(name: str, numbers: Mapping[str, int]) -> int:
    """Return the number of a kind or status; those without a name are numbers already."""
    return numbers[name] if name in numbers else int(name)
