"""Signal: the three kinds of telemetry that OTLP carries, and what each is called where."""

from __future__ import annotations

import enum

from google.protobuf.descriptor import Descriptor
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2


class Signal(enum.Enum):
    """One signal. The value is the word that metrics, paths and people use."""

    LOGS = "logs"
    TRACES = "traces"
    METRICS = "metrics"

    @property
    def path(self) -> str:
        """Where OTLP/HTTP takes it."""
        return f"/v1/{self.value}"

    @property
    def method(self) -> str:
        """What OTLP/gRPC calls its export."""
        return f"/{SERVICES[self]}/Export"

    @property
    def topic(self) -> str:
        """Where the log keeps it; the names that collectors give these topics in Kafka."""
        return TOPICS[self]

    @property
    def request(self) -> Descriptor:
        """The message that a client sends."""
        return REQUESTS[self]

    @property
    def rejected(self) -> str:
        """The field of the answer that counts records which were not stored."""
        return REJECTED[self]


TOPICS = {
    Signal.LOGS: "otlp_logs",
    Signal.TRACES: "otlp_spans",
    Signal.METRICS: "otlp_metrics",
}
SERVICES = {
    Signal.LOGS: "opentelemetry.proto.collector.logs.v1.LogsService",
    Signal.TRACES: "opentelemetry.proto.collector.trace.v1.TraceService",
    Signal.METRICS: "opentelemetry.proto.collector.metrics.v1.MetricsService",
}
REQUESTS: dict[Signal, Descriptor] = {
    Signal.LOGS: logs_service_pb2.ExportLogsServiceRequest.DESCRIPTOR,
    Signal.TRACES: trace_service_pb2.ExportTraceServiceRequest.DESCRIPTOR,
    Signal.METRICS: metrics_service_pb2.ExportMetricsServiceRequest.DESCRIPTOR,
}
REJECTED = {
    Signal.LOGS: "rejected_log_records",
    Signal.TRACES: "rejected_spans",
    Signal.METRICS: "rejected_data_points",
}
