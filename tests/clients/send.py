"""Sends telemetry with the OpenTelemetry SDK for Python, and prints what it was.

    python send.py grpc|http NAME COUNT

Endpoint and compression are in OTEL_EXPORTER_OTLP_..., as for every application. The programs in
other languages send the same:

- COUNT spans. Each links to the previous one, which is also the parent of every second one. Every
  third one records an exception and has an error status.
- COUNT log records, each inside the span of its number; INFO, WARN and ERROR in turn. Errors carry
  an exception, and their body is a map.
- COUNT data points, of each instrument in turn: counter, up-down counter, gauge, histogram,
  exponential histogram. Each is measured inside the span of its number.

Everything has an attribute `chk.id`, NAME-SIGNAL-NUMBER, and others that are easy to get wrong.
The last line of output is JSON: by signal and `chk.id`, the trace and span.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.exporter.otlp.proto.grpc import _log_exporter as grpc_logs
from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc_metrics
from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc_traces
from opentelemetry.exporter.otlp.proto.http import _log_exporter as http_logs
from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_metrics
from opentelemetry.exporter.otlp.proto.http import trace_exporter as http_traces
from opentelemetry.metrics import Meter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, Tracer
from opentelemetry.util.types import AnyValue

TEXT = "naïve żółw, 漢字, שלום, 🧊\n\x00\u2028"
MANY = 40
BATCH_SIZE = 20
TIMEOUT_S = 30
SEVERITIES = (SeverityNumber.INFO, SeverityNumber.WARN, SeverityNumber.ERROR)


def main(protocol: str, name: str, count: int) -> None:
    """Send everything, wait until it is sent, and print what it was."""
    traces, logs, metrics = _providers(protocol, Resource({"service.name": name, "text": TEXT}))
    tracer = traces.get_tracer("chk", "1.0")
    logger = logs.get_logger("chk", "1.0")
    measures = _measures(metrics.get_meter("chk", "1.0"))
    sent: dict[str, dict[str, list[str]]] = {"logs": {}, "traces": {}, "metrics": {}}
    before: Span | None = None
    for number in range(count):
        ids = {signal: f"{name}-{signal}-{number}" for signal in sent}
        with _span(tracer, number, ids["traces"], before) as span:
            _log(logger, number, ids["logs"])
            measures[number % len(measures)](number, _attributes(ids["metrics"]))
        context = span.get_span_context()
        for signal, chk_id in ids.items():
            sent[signal][chk_id] = [f"{context.trace_id:032x}", f"{context.span_id:016x}"]
        before = span
    # Concurrently, as each may have to wait before a retry. This flushes the rest.
    endings = [threading.Thread(target=p.shutdown) for p in (traces, logs, metrics)]
    for ending in endings:
        ending.start()
    for ending in endings:
        ending.join()
    sys.stdout.write(json.dumps(sent) + "\n")


def _attributes(chk_id: str) -> dict[str, AnyValue]:
    many = {f"many.{number}": number for number in range(MANY)}
    return {
        "chk.id": chk_id,
        "text": TEXT,
        "large": 2**53 - 1,
        "negative": -1,
        "ratio": 0.1,
        "yes": True,
        "words": ["a", TEXT],
        **many,
    }


@contextmanager
def _span(tracer: Tracer, number: int, chk_id: str, before: Span | None) -> Iterator[Span]:
    kind = SpanKind.CLIENT if number % 2 else SpanKind.SERVER
    parent = trace.set_span_in_context(before) if before and number % 2 else None
    links = [Link(before.get_span_context(), {"text": TEXT})] if before else []
    with tracer.start_as_current_span("span", parent, kind, _attributes(chk_id), links) as span:
        span.add_event("event", {"text": TEXT})
        if number % 3 == 2:
            try:
                raise ValueError(TEXT)
            except ValueError as error:
                span.record_exception(error)
            span.set_status(StatusCode.ERROR, TEXT)
        yield span


def _log(logger: Logger, number: int, chk_id: str) -> None:
    severity = SEVERITIES[number % 3]
    attributes = _attributes(chk_id)
    body: AnyValue = TEXT
    if severity is SeverityNumber.ERROR:
        attributes |= {"exception.type": "ValueError", "exception.message": TEXT}
        body = {"text": TEXT, "numbers": [1, 2.5]}
    logger.emit(
        severity_number=severity,
        severity_text=severity.name,
        body=body,
        attributes=attributes,
        event_name="chk.event",
    )


def _measures(meter: Meter) -> list[Callable[[int, dict[str, AnyValue]], None]]:
    return [
        meter.create_counter("counter", "{thing}", TEXT).add,
        meter.create_up_down_counter("up_down", "{thing}", TEXT).add,
        meter.create_gauge("gauge", "{thing}", TEXT).set,
        meter.create_histogram("histogram", "{thing}", TEXT).record,
        meter.create_histogram("exponential", "{thing}", TEXT).record,
    ]


def _providers(
    protocol: str, resource: Resource
) -> tuple[TracerProvider, LoggerProvider, MeterProvider]:
    traces = TracerProvider(resource=resource)
    logs = LoggerProvider(resource=resource)
    spans_out: SpanExporter
    logs_out: LogRecordExporter
    metrics_out: MetricExporter
    if protocol == "grpc":
        spans_out = grpc_traces.OTLPSpanExporter(timeout=TIMEOUT_S)
        logs_out = grpc_logs.OTLPLogExporter(timeout=TIMEOUT_S)
        metrics_out = grpc_metrics.OTLPMetricExporter(timeout=TIMEOUT_S)
    else:
        spans_out = http_traces.OTLPSpanExporter(timeout=TIMEOUT_S)
        logs_out = http_logs.OTLPLogExporter(timeout=TIMEOUT_S)
        metrics_out = http_metrics.OTLPMetricExporter(timeout=TIMEOUT_S)
    traces.add_span_processor(BatchSpanProcessor(spans_out, max_export_batch_size=BATCH_SIZE))
    logs.add_log_record_processor(
        BatchLogRecordProcessor(logs_out, max_export_batch_size=BATCH_SIZE)
    )
    exponential = View(
        instrument_name="exponential", aggregation=ExponentialBucketHistogramAggregation()
    )
    metrics = MeterProvider(
        [PeriodicExportingMetricReader(metrics_out)], resource, views=[exponential]
    )
    return traces, logs, metrics


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
