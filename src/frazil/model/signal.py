"""Signal: logs, traces and metrics, and what each is called in the log, in tables and in OTLP."""

from __future__ import annotations

import enum


class Signal(enum.StrEnum):
    """One of OpenTelemetry's signals. The value is the name in metrics and settings."""

    LOGS = "logs"
    TRACES = "traces"
    METRICS = "metrics"

    @property
    def topic(self) -> str:
        """Topic in the log, named as the OpenTelemetry Collector names it in Kafka."""
        return _NAMES[self][0]

    @property
    def table(self) -> str:
        """Table in the hot tier and in the lake."""
        return _NAMES[self][1]

    @property
    def path(self) -> str:
        """Path of OTLP/HTTP."""
        return f"/v1/{self.value}"

    @property
    def service(self) -> str:
        """gRPC service of OTLP/gRPC."""
        return f"opentelemetry.proto.collector.{_NAMES[self][2]}Service"

    @property
    def method(self) -> str:
        """gRPC method of OTLP/gRPC."""
        return f"/{self.service}/Export"

    @property
    def rejected(self) -> str:
        """Field of the OTLP response that counts rejected records."""
        return f"rejected_{_NAMES[self][3]}"


_NAMES = {
    Signal.LOGS: ("otlp_logs", "logs", "logs.v1.Logs", "log_records"),
    Signal.TRACES: ("otlp_spans", "spans", "trace.v1.Trace", "spans"),
    Signal.METRICS: ("otlp_metrics", "metrics", "metrics.v1.Metrics", "data_points"),
}
