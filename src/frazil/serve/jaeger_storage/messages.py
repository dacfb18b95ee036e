"""The messages of jaeger.storage.v2, as protobuf classes that are made from this list.

Traces are the message TracesData of OTLP, which has the same bytes as a request with spans.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from frazil.errors import Malformed
from frazil.serve.proto_messages import Message, message_classes

PACKAGE = "jaeger.storage.v2"

_TIME = {"seconds": "1 int64", "nanos": "2 int32"}

MESSAGES: dict[str, dict[str, str]] = {
    "Timestamp": _TIME,
    "Duration": _TIME,
    "AnyValue": {
        "string_value": "1 string",
        "bool_value": "2 bool",
        "int_value": "3 int64",
        "double_value": "4 double",
        "array_value": "5 bytes",
        "kvlist_value": "6 bytes",
        "bytes_value": "7 bytes",
    },
    "KeyValue": {"key": "1 string", "value": "2 AnyValue"},
    "GetTraceParams": {
        "trace_id": "1 bytes",
        "start_time": "2 Timestamp",
        "end_time": "3 Timestamp",
    },
    "GetTracesRequest": {"query": "1 GetTraceParams *"},
    "GetServicesRequest": {},
    "GetServicesResponse": {"services": "1 string *"},
    "GetOperationsRequest": {"service": "1 string", "span_kind": "2 string"},
    "Operation": {"name": "1 string", "span_kind": "2 string"},
    "GetOperationsResponse": {"operations": "1 Operation *"},
    "TraceQueryParameters": {
        "service_name": "1 string",
        "operation_name": "2 string",
        "attributes": "3 KeyValue *",
        "start_time_min": "4 Timestamp",
        "start_time_max": "5 Timestamp",
        "duration_min": "6 Duration",
        "duration_max": "7 Duration",
        "search_depth": "8 int32",
        "filter": "9 bytes",
        "pagination": "10 bytes",
    },
    "FindTracesRequest": {"query": "1 TraceQueryParameters"},
    "FoundTraceID": {"trace_id": "1 bytes", "start": "2 Timestamp", "end": "3 Timestamp"},
    "FindTraceIDsResponse": {"trace_ids": "1 FoundTraceID *"},
    "GetDependenciesRequest": {"start_time": "1 Timestamp", "end_time": "2 Timestamp"},
    "Dependency": {
        "parent": "1 string",
        "child": "2 string",
        "call_count": "3 uint64",
        "source": "4 string",
    },
    "GetDependenciesResponse": {"dependencies": "1 Dependency *"},
}

_CLASSES = message_classes("frazil/jaeger_storage.proto", PACKAGE, MESSAGES)


def bytes_of(name: str, **fields: object) -> bytes:
    """Return the bytes of a message."""
    body: bytes = _CLASSES[name](**fields).SerializeToString()
    return body


def parse(name: str, body: bytes) -> Message:
    """Return a message of these bytes."""
    try:
        return _CLASSES[name].FromString(body)
    except DecodeError as error:
        raise Malformed(f"the bytes are no {name}: {error}") from None


def text_of(message: Message, field: str) -> str:
    """Return a field of text. `Malformed` if it is not UTF-8."""
    text = getattr(message, field)
    if not isinstance(text, str):  # protobuf hands over the bytes then
        raise Malformed(f"{field} is not UTF-8")
    return text
