"""GetTelemetrySubscriptions, API 71, versions 0. Generated from the definitions of Apache Kafka
4.2.1 by `python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the
Apache License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import UUID_ZERO, Field, KafkaMessage, Versions


class GetTelemetrySubscriptionsRequest(KafkaMessage):
    """Request in versions 0, flexible in 0+."""

    VERSIONS = Versions("GetTelemetrySubscriptionsRequest", "0", flexible="0+", api_key=71)

    client_instance_id: Annotated[bytes, Field("uuid", "0+")] = UUID_ZERO
    """Unique id for this client instance, must be set to 0 on the first request."""


class GetTelemetrySubscriptionsResponse(KafkaMessage):
    """Response in versions 0, flexible in 0+."""

    VERSIONS = Versions("GetTelemetrySubscriptionsResponse", "0", flexible="0+", api_key=71)

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
    client_instance_id: Annotated[bytes, Field("uuid", "0+")] = UUID_ZERO
    """Assigned client instance id if ClientInstanceId was 0 in the request, else 0."""
    subscription_id: Annotated[int, Field("int32", "0+")] = 0
    """Unique identifier for the current subscription set for this client instance."""
    accepted_compression_types: Annotated[list[int], Field("[]int8", "0+")] = []
    """Compression types that broker accepts for the PushTelemetryRequest."""
    push_interval_ms: Annotated[int, Field("int32", "0+")] = 0
    """Configured push interval, which is the lowest configured interval in the current
    subscription set."""
    telemetry_max_bytes: Annotated[int, Field("int32", "0+")] = 0
    """The maximum bytes of binary data the broker accepts in PushTelemetryRequest."""
    delta_temporality: Annotated[bool, Field("bool", "0+")] = False
    """Flag to indicate monotonic/counter metrics are to be emitted as deltas or cumulative
    values."""
    requested_metrics: Annotated[list[str], Field("[]string", "0+")] = []
    """Requested metrics prefix string match. Empty array: No metrics subscribed, Array[0] empty
    string: All metrics subscribed."""
