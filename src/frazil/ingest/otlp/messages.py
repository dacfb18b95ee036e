"""The protobuf message of each signal's export request."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from frazil.model import Signal

REQUESTS: dict[Signal, Descriptor] = {
    Signal.LOGS: logs_service_pb2.ExportLogsServiceRequest.DESCRIPTOR,
    Signal.TRACES: trace_service_pb2.ExportTraceServiceRequest.DESCRIPTOR,
    Signal.METRICS: metrics_service_pb2.ExportMetricsServiceRequest.DESCRIPTOR,
}
