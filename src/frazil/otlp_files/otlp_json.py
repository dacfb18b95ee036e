"""json_of_request: an OTLP request as OTLP/JSON, as collectors write it to files.

The rules are proto3's JSON mapping with the changes that OTLP makes to it: keys are lowerCamelCase,
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
"""The fields of bytes that OTLP writes in hex."""
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
    """How one field of a message is written."""

    name: str
    convert: Convert | None
    """None where JSON has the value as it is."""
    is_repeated: bool


def json_of_request(signal: str, request: bytes) -> bytes:
    """The OTLP/JSON of an export request of protobuf, on one line."""
    return msgspec.json.encode(_object(REQUESTS[signal].FromString(request)))


def _object(message: Message) -> dict[str, object]:
    fields = _fields(message.DESCRIPTOR)
    found: dict[str, object] = {}
    for descriptor, value in message.ListFields():
        name, convert, is_repeated = fields[descriptor.number]
        if convert is None:
            found[name] = list(value) if is_repeated else value
        else:
            found[name] = [convert(each) for each in value] if is_repeated else convert(value)
    return found


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
