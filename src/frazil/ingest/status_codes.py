"""The HTTP status and gRPC code of each error, and the OTLP response bodies.

Retryable errors carry a retry hint; clients must not resend requests with other errors. A test
walks the error tree and finds every leaf in the table.
"""

from __future__ import annotations

import math
from typing import Final

import grpc
from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from frazil.errors import (
    Conflict,
    Corrupt,
    FrazilError,
    Overloaded,
    Rejected,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unresolved,
)
from frazil.model import Signal

STATUS_CODES: dict[type[FrazilError], tuple[int, grpc.StatusCode]] = {
    Rejected: (400, grpc.StatusCode.INVALID_ARGUMENT),
    TooLarge: (413, grpc.StatusCode.RESOURCE_EXHAUSTED),
    Unauthenticated: (401, grpc.StatusCode.UNAUTHENTICATED),
    Overloaded: (429, grpc.StatusCode.UNAVAILABLE),
    Unavailable: (503, grpc.StatusCode.UNAVAILABLE),
    Conflict: (503, grpc.StatusCode.UNAVAILABLE),
    Corrupt: (503, grpc.StatusCode.UNAVAILABLE),
    # It may be stored. A retry is stored once, because its digest is known.
    Unresolved: (504, grpc.StatusCode.DEADLINE_EXCEEDED),
}
"""Error to HTTP status and gRPC code. A class without an entry has its parent's."""

RETRY_AFTER_MS: Final = 1000
"""Retry hint of errors that carry none."""

RESPONSES: dict[Signal, type[Message]] = {
    Signal.LOGS: ExportLogsServiceResponse,
    Signal.TRACES: ExportTraceServiceResponse,
    Signal.METRICS: ExportMetricsServiceResponse,
}


def codes_of(error: FrazilError) -> tuple[int, grpc.StatusCode]:
    """Return the HTTP status and gRPC code of an error."""
    for kind in type(error).__mro__:
        if kind in STATUS_CODES:
            return STATUS_CODES[kind]
    raise AssertionError(f"{type(error).__name__} has no status codes")


def retry_after_ms(error: FrazilError) -> int | None:
    """Return the retry hint; None for errors that a retry cannot fix."""
    if isinstance(error, Overloaded):
        return error.retry_after_ms
    return None if isinstance(error, Rejected) else RETRY_AFTER_MS


def retry_after_s(error: FrazilError) -> int | None:
    """Return the retry hint in whole seconds, for the `Retry-After` header."""
    wait_ms = retry_after_ms(error)
    return None if wait_ms is None else max(1, math.ceil(wait_ms / 1000))


def status_of(error: FrazilError) -> Status:
    """Return an error as the `google.rpc.Status` of an OTLP response."""
    _, code = codes_of(error)
    status = Status(code=code.value[0], message=str(error))
    wait_ms = retry_after_ms(error)
    if wait_ms is not None:
        delay = Duration(seconds=wait_ms // 1000, nanos=wait_ms % 1000 * 1_000_000)
        status.details.add().Pack(RetryInfo(retry_delay=delay))
    return status


def response_of(signal: Signal, rejected_count: int, message: str) -> Message:
    """Return the response to a request that was accepted, completely or in part. A message without
    rejected records is a warning."""
    response = RESPONSES[signal]()
    if rejected_count or message:
        partial = response.partial_success  # type: ignore[attr-defined]
        setattr(partial, signal.rejected, rejected_count)
        partial.error_message = message
    return response


def json_of(message: Message) -> bytes:
    text = json_format.MessageToJson(message, indent=None)
    return text.encode()
