"""Encodes gauges as an export request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import DataPointFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class GaugeValue:
    """One data point. Without a value it says that the series has ended."""

    name: str
    time_unix_nano: int
    value: float | None
    attributes: Mapping[str, str] = field(default_factory=dict)
    resource: Mapping[str, str] = field(default_factory=dict)


def gauge_request(values: Iterable[GaugeValue], *, scope: str) -> bytes:
    """Return an export request. Points of one resource and name are put together."""
    request = ExportMetricsServiceRequest()
    scopes: dict[tuple[tuple[str, str], ...], Any] = {}
    gauges: dict[tuple[tuple[tuple[str, str], ...], str], Any] = {}
    for value in values:
        resource = tuple(sorted(value.resource.items()))
        if resource not in scopes:
            added = request.resource_metrics.add()
            _set_texts(added.resource.attributes, value.resource)
            scopes[resource] = added.scope_metrics.add()
            scopes[resource].scope.name = scope
        if (resource, value.name) not in gauges:
            gauges[resource, value.name] = scopes[resource].metrics.add(name=value.name).gauge
        point = gauges[resource, value.name].data_points.add(time_unix_nano=value.time_unix_nano)
        _set_texts(point.attributes, value.attributes)
        if value.value is None:
            point.flags = DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK
        else:
            point.as_double = value.value
    return request.SerializeToString()


def _set_texts(target: Any, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        target.add(key=name).value.string_value = text
