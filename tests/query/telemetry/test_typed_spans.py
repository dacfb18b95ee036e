"""Spans as OTLP/JSON: protobuf's own reader finds in it what the encoder writes as protobuf."""

from __future__ import annotations

import binascii

import pyarrow as pa
from google.protobuf import json_format
from hypothesis import given, settings
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from frazil.model.arrow import decode, encode
from frazil.query.telemetry.typed_spans import resource_spans, typed_spans
from tests.model.arrow.requests import bodies, numbered

EXAMPLES_MAX = 40


def base64_of(hex_id: str) -> str:
    return binascii.b2a_base64(bytes.fromhex(hex_id), newline=False).decode()


def flat(traces: TracesData) -> list[tuple[bytes, ...]]:
    """Each span with its resource and scope, however they are grouped."""
    return sorted(
        (
            resource.resource.SerializeToString(deterministic=True),
            resource.schema_url.encode(),
            scope.scope.SerializeToString(deterministic=True),
            scope.schema_url.encode(),
            span.SerializeToString(deterministic=True),
        )
        for resource in traces.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    )


@settings(max_examples=EXAMPLES_MAX, deadline=None)
@given(bodies("traces"))
def test_json_has_what_protobuf_has(requests: list[bytes]) -> None:
    """Types, nested values, ids, flags, numbers without a name: all of any request."""
    rows = pa.Table.from_batches([decode("traces", numbered(requests)).batch])
    written = TracesData.FromString(b"".join(encode("traces", rows, has_empty=True)))
    read = TracesData()
    json_format.ParseDict({"resourceSpans": resource_spans(typed_spans(rows), base64_of)}, read)
    assert flat(read) == flat(written)
