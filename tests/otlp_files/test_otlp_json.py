"""OTLP/JSON output is read back to the same request, by our own and by protobuf's reader."""

from __future__ import annotations

import base64
import json

from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from frazil.ingest.otlp.json import protobuf_of_json
from frazil.model import Signal
from frazil.otlp_files import json_of_request

TIMES = st.integers(0, 2**63 - 1)
SCALARS = st.one_of(
    st.builds(AnyValue, string_value=st.text()),
    st.builds(AnyValue, int_value=st.integers(-(2**63), 2**63 - 1)),
    st.builds(AnyValue, double_value=st.floats(allow_nan=False)),
    st.builds(AnyValue, bool_value=st.booleans()),
    st.builds(AnyValue, bytes_value=st.binary()),
    st.just(AnyValue()),
)


def nested(inner: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[AnyValue]:
    arrays = st.builds(ArrayValue, values=st.lists(inner, max_size=3))
    pairs = st.builds(KeyValue, key=st.text(), value=inner)
    maps = st.builds(KeyValueList, values=st.lists(pairs, max_size=3))
    return st.builds(AnyValue, array_value=arrays) | st.builds(AnyValue, kvlist_value=maps)


VALUES = st.recursive(SCALARS, nested, max_leaves=8)


@given(VALUES, TIMES, st.integers(0, 24), st.binary(min_size=16, max_size=16))
@settings(max_examples=200)
def test_logs_round_trip(body: AnyValue, time_ns: int, severity: int, trace_id: bytes) -> None:
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.body.CopyFrom(body)
    record.time_unix_nano = time_ns
    record.severity_number = severity  # type: ignore[assignment]
    record.trace_id = trace_id
    text = json_of_request("logs", request.SerializeToString())
    assert b"\n" not in text
    parsed = ExportLogsServiceRequest.FromString(protobuf_of_json(Signal.LOGS, text))
    assert parsed == request
    json_format.Parse(text, ExportLogsServiceRequest())


def test_the_json_mapping_of_otlp_is_used() -> None:
    """Keys in camelCase, ids in hex, enums as numbers, 64-bit integers as strings."""
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.parent_span_id = bytes(range(16)), b"\xff" * 8, b"\x01" * 8
    span.kind = 2  # type: ignore[assignment]
    span.start_time_unix_nano = 2**63 - 1
    span.attributes.add(key="n", value=AnyValue(int_value=0))
    span.attributes.add(key="b", value=AnyValue(bytes_value=b"\x00\xff"))
    span.links.add(trace_id=bytes(16), flags=3)
    content = json.loads(json_of_request("traces", request.SerializeToString()))
    assert content["resourceSpans"][0]["scopeSpans"][0]["spans"][0] == {
        "traceId": bytes(range(16)).hex(),
        "spanId": "ff" * 8,
        "parentSpanId": "01" * 8,
        "kind": 2,
        "startTimeUnixNano": str(2**63 - 1),
        "attributes": [
            {"key": "n", "value": {"intValue": "0"}},
            {"key": "b", "value": {"bytesValue": base64.b64encode(b"\x00\xff").decode()}},
        ],
        "links": [{"traceId": "00" * 16, "flags": 3}],
    }


@given(st.floats(), st.lists(st.integers(0, 2**63 - 1), max_size=5))
def test_metrics_round_trip(value: float, counts: list[int]) -> None:
    """Also NaN and infinity, and zeros whose presence matters."""
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="m")
    point = metric.histogram.data_points.add(sum=value, min=0.0, bucket_counts=counts)
    point.exemplars.add(as_double=value, span_id=b"\x01" * 8)
    metric.histogram.aggregation_temporality = 2  # type: ignore[assignment]
    text = json_of_request("metrics", request.SerializeToString())
    parsed = ExportMetricsServiceRequest.FromString(protobuf_of_json(Signal.METRICS, text))
    # As text, in which NaN equals NaN.
    assert str(parsed) == str(request)
