"""PushTelemetry, API 72, versions 0. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import UUID_ZERO, Field, KafkaMessage, Versions


class PushTelemetryRequest(KafkaMessage):
    """Request in versions 0, flexible in 0+."""

    VERSIONS = Versions("PushTelemetryRequest", "0", flexible="0+", api_key=72)

    client_instance_id: Annotated[bytes, Field("uuid", "0+")] = UUID_ZERO
    """Unique id for this client instance."""
    subscription_id: Annotated[int, Field("int32", "0+")] = 0
    """Unique identifier for the current subscription."""
    terminating: Annotated[bool, Field("bool", "0+")] = False
    """Client is terminating the connection."""
    compression_type: Annotated[int, Field("int8", "0+")] = 0
    """Compression codec used to compress the metrics."""
    metrics: Annotated[bytes, Field("bytes", "0+")] = b""
    """Metrics encoded in OpenTelemetry MetricsData v1 protobuf format."""


class PushTelemetryResponse(KafkaMessage):
    """Response in versions 0, flexible in 0+."""

    VERSIONS = Versions("PushTelemetryResponse", "0", flexible="0+", api_key=72)

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
