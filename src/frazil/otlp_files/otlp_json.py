"""json_of_request: a protobuf OTLP request as OTLP/JSON, as the Collector writes it to files.

The proto3 JSON mapping with the changes of OTLP: keys are lowerCamelCase,
ids are hex, enums are numbers, integers of 64 bits are strings, other bytes are base64.
"""

from __future__ import annotations

import binascii
import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

REQUESTS: dict[str, type[Message]] = {
    "logs": ExportLogsServiceRequest,
    "traces": ExportTraceServiceRequest,
    "metrics": ExportMetricsServiceRequest,
}
ID_NAMES = frozenset({"trace_id", "span_id", "parent_span_id"})
"""Bytes fields that OTLP writes in hex."""
LONG_KINDS = frozenset(
    {
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_UINT64,
        FieldDescriptor.TYPE_SINT64,
        FieldDescriptor.TYPE_FIXED64,
        FieldDescriptor.TYPE_SFIXED64,
    }
)

Convert = Callable[[Any], object]


class JsonField(NamedTuple):
    """How to write one field of a message."""

    name: str
    convert: Convert | None
    """None if JSON takes the value as it is."""
    is_repeated: bool


def json_of_request(signal: str, request: bytes) -> bytes:
    """Return a protobuf export request as OTLP/JSON, on one line."""
    return msgspec.json.encode(_object(REQUESTS[signal].FromString(request)))


def _object(message: Message) -> dict[str, object]:
    fields = _fields(message.DESCRIPTOR)
    result: dict[str, object] = {}
    for descriptor, value in message.ListFields():
        name, convert, is_repeated = fields[descriptor.number]
        if convert is None:
            result[name] = list(value) if is_repeated else value
        else:
            result[name] = [convert(item) for item in value] if is_repeated else convert(value)
    return result


@cache
def _fields(descriptor: Descriptor) -> dict[int, JsonField]:
    return {
        field.number: JsonField(field.json_name, _convert_of(field), field.is_repeated)
        for field in descriptor.fields
    }


def _convert_of(field: FieldDescriptor) -> Convert | None:
    if field.message_type is not None:
        return _object
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes.hex if field.name in ID_NAMES else _base64
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return _double
    return str if field.type in LONG_KINDS else None


def _base64(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode()


def _double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
