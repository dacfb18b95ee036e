"""jaeger.storage.v2 by descriptors that are written here, field by field from the protocol: nothing
of them comes from what is tested."""

from __future__ import annotations

from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    timestamp_pb2,
)

PACKAGE = "jaeger.storage.v2"
TIME, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
FIELDS = {
    "AnyValue": [
        *((1, "string_value", "string"), (2, "bool_value", "bool"), (3, "int_value", "int64")),
        *((4, "double_value", "double"), (5, "array_value", "ArrayValue")),
        (7, "bytes_value", "bytes"),
    ],
    "ArrayValue": [(1, "values", "AnyValue*")],
    "KeyValue": [(1, "key", "string"), (2, "value", "AnyValue")],
    "GetTraceParams": [(1, "trace_id", "bytes"), (2, "start_time", TIME), (3, "end_time", TIME)],
    "GetTracesRequest": [(1, "query", "GetTraceParams*")],
    "GetServicesRequest": [],
    "GetServicesResponse": [(1, "services", "string*")],
    "GetOperationsRequest": [(1, "service", "string"), (2, "span_kind", "string")],
    "Operation": [(1, "name", "string"), (2, "span_kind", "string")],
    "GetOperationsResponse": [(1, "operations", "Operation*")],
    "Pagination": [(1, "page_size", "uint32"), (2, "page_token", "string")],
    "TraceQueryParameters": [
        *((1, "service_name", "string"), (2, "operation_name", "string")),
        *((3, "attributes", "KeyValue*"), (4, "start_time_min", TIME), (5, "start_time_max", TIME)),
        *(
            (6, "duration_min", DURATION),
            (7, "duration_max", DURATION),
            (8, "search_depth", "int32"),
        ),
        (10, "pagination", "Pagination"),
    ],
    "FindTracesRequest": [(1, "query", "TraceQueryParameters")],
    "FoundTraceID": [(1, "trace_id", "bytes"), (2, "start", TIME), (3, "end", TIME)],
    "FindTraceIDsResponse": [(1, "trace_ids", "FoundTraceID*")],
    "GetDependenciesRequest": [(1, "start_time", TIME), (2, "end_time", TIME)],
    "Dependency": [
        *((1, "parent", "string"), (2, "child", "string")),
        *((3, "call_count", "uint64"), (4, "source", "string")),
    ],
    "GetDependenciesResponse": [(1, "dependencies", "Dependency*")],
}


def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(
        name="test/jaeger.proto", package=PACKAGE, syntax="proto3"
    )
    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, duration_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
        file.dependency.append(known.DESCRIPTOR.name)
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        if name == "AnyValue":
            message.oneof_decl.add(name="value")
        for number, field, text in fields:
            kind = text.rstrip("*")
            label = kinds.LABEL_REPEATED if text.endswith("*") else kinds.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, label=label)
            if kind in FIELDS or "." in kind:
                added.type = kinds.TYPE_MESSAGE
                added.type_name = f".{kind}" if "." in kind else f".{PACKAGE}.{kind}"
            else:
                added.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
            if name == "AnyValue":
                added.oneof_index = 0
    pool.Add(file)
    return pool


_POOL = _pool()


def message(name: str, **fields: Any) -> Any:
    """A new message."""
    return kind(name)(**fields)


def kind(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))
