"""Telemetry of the shop, parsed with protobuf."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from frazil.demo import Export, Traffic

START_NS = 1_790_000_000_000_000_000
NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRow:
    """A span, log record or data point, with its resource."""

    resource: dict[str, Any]
    record: Any
    metric: Any = None
    attributes: dict[str, Any]

    @property
    def service(self) -> str:
        return str(self.resource["service.name"])


@dataclass(slots=True, kw_only=True)
class Sent:
    """Everything the shop sent."""

    spans: list[SentRow] = field(default_factory=list)
    logs: list[SentRow] = field(default_factory=list)
    points: list[SentRow] = field(default_factory=list)
    visit_count: int = 0


def traffic(seed: int, rate: float) -> Traffic:
    return Traffic(random.Random(seed), start_ns=START_NS, rate=rate)


def sent_in(seconds: int, *, seed: int = 7, rate: float = 4) -> Sent:
    """Run the shop for some seconds."""
    shop = traffic(seed, rate)
    exports = [*shop.advance(START_NS + seconds * NS_PER_S), *shop.end()]
    sent = parse(exports)
    sent.visit_count = shop.visit_count
    return sent


def parse(exports: Iterable[Export]) -> Sent:
    """Parse requests, and check their record counts."""
    sent = Sent()
    for export in exports:
        found = list(_records(export))
        assert len(found) == export.record_count
        {"traces": sent.spans, "logs": sent.logs, "metrics": sent.points}[export.signal].extend(
            found
        )
    return sent


def _records(export: Export) -> Iterator[SentRow]:
    if export.signal == "traces":
        for spans in ExportTraceServiceRequest.FromString(export.body).resource_spans:
            resource = plain(spans.resource.attributes)
            for span_scope in spans.scope_spans:
                yield from (_row(resource, span) for span in span_scope.spans)
    elif export.signal == "logs":
        for logs in ExportLogsServiceRequest.FromString(export.body).resource_logs:
            resource = plain(logs.resource.attributes)
            for log_scope in logs.scope_logs:
                yield from (_row(resource, log) for log in log_scope.log_records)
    else:
        for metrics in ExportMetricsServiceRequest.FromString(export.body).resource_metrics:
            resource = plain(metrics.resource.attributes)
            for metric_scope in metrics.scope_metrics:
                for metric in metric_scope.metrics:
                    data = getattr(metric, str(metric.WhichOneof("data")))
                    for point in data.data_points:
                        yield _row(resource, point, metric)


def _row(resource: dict[str, Any], record: Any, metric: Any = None) -> SentRow:
    attributes = plain(record.attributes)
    return SentRow(resource=resource, record=record, metric=metric, attributes=attributes)


def plain(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    """Attributes as a dict."""
    return {
        each.key: getattr(each.value, str(each.value.WhichOneof("value"))) for each in attributes
    }
