"""Encodes log records whose values are Python's own, as an export request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from frazil.errors import Malformed

DEPTH_MAX = 32
"""Of a value inside others. Protobuf's limit for a whole request is 100 messages."""
INT_MIN, INT_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogValues:
    """One log record. Values are None, bool, int, float, str, bytes, or lists and dictionaries of
    them."""

    time_unix_nano: int
    observed_time_unix_nano: int
    severity_number: int = 0
    severity_text: str = ""
    body: object = None
    attributes: Mapping[str, object] = field(default_factory=dict)
    trace_id: bytes = b""
    span_id: bytes = b""
    flags: int = 0
    event_name: str = ""
    resource: Mapping[str, object] = field(default_factory=dict)
    scope: tuple[str, str] = ("", "")
    """Name and version."""


def log_request(records: Iterable[LogValues]) -> bytes:
    """Return an export request. Records stay in order; consecutive ones share resource and scope.
    `Malformed` if a value is nested too deeply."""
    request = ExportLogsServiceRequest()
    last: tuple[Mapping[str, object], tuple[str, str]] | None = None
    add: Any = None
    for record in records:
        if last != (record.resource, record.scope):
            last = record.resource, record.scope
            resource = request.resource_logs.add()
            _set_pairs(resource.resource.attributes, record.resource)
            scope = resource.scope_logs.add()
            scope.scope.name, scope.scope.version = record.scope
            add = scope.log_records.add
        log = add(
            time_unix_nano=record.time_unix_nano,
            observed_time_unix_nano=record.observed_time_unix_nano,
            severity_number=record.severity_number,
            severity_text=record.severity_text,
            trace_id=record.trace_id,
            span_id=record.span_id,
            flags=record.flags,
            event_name=record.event_name,
        )
        if record.body is not None:
            _set_value(log.body, record.body, DEPTH_MAX)
        _set_pairs(log.attributes, record.attributes)
    return request.SerializeToString()


def _set_pairs(target: Any, pairs: Mapping[str, object], depth: int = DEPTH_MAX) -> None:
    """Add attributes; a value that is None is none."""
    for key, value in pairs.items():
        if value is not None:
            _set_value(target.add(key=key).value, value, depth)


def _set_value(target: Any, value: object, depth: int) -> None:
    if depth < 0:
        raise Malformed(f"a value is nested more than {DEPTH_MAX} levels deep")
    match value:
        case str():
            target.string_value = value
        case None:
            return
        case bool():
            target.bool_value = value
        case int() if INT_MIN <= value <= INT_MAX:
            target.int_value = value
        case float():
            target.double_value = value
        case bytes():
            target.bytes_value = value
        case dict():
            target.kvlist_value.SetInParent()
            _set_pairs(target.kvlist_value.values, value, depth - 1)
        case list():
            target.array_value.SetInParent()
            for each in value:
                _set_value(target.array_value.values.add(), each, depth - 1)
        case _:
            target.string_value = str(value)
