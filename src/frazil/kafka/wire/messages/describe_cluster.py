"""DescribeCluster, API 60, versions 0-2. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class DescribeClusterRequest(KafkaMessage):
    """Request in versions 0-2, flexible in 0+.

    Version 1 adds EndpointType for KIP-919 support.

    Version 2 adds IncludeFencedBrokers for KIP-1073 support.
    """

    VERSIONS = Versions("DescribeClusterRequest", "0-2", flexible="0+", api_key=60)

    include_cluster_authorized_operations: Annotated[bool, Field("bool", "0+")] = False
    """Whether to include cluster authorized operations."""
    endpoint_type: Annotated[int, Field("int8", "1+")] = 1
    """The endpoint type to describe. 1=brokers, 2=controllers."""
    include_fenced_brokers: Annotated[bool, Field("bool", "2+")] = False
    """Whether to include fenced brokers when listing brokers."""


class DescribeClusterResponse(KafkaMessage):
    """Response in versions 0-2, flexible in 0+.

    Version 1 adds the EndpointType field, and makes MISMATCHED_ENDPOINT_TYPE and
    UNSUPPORTED_ENDPOINT_TYPE valid top-level response error codes.

    Version 2 adds IsFenced field to Brokers for KIP-1073 support.
    """

    VERSIONS = Versions("DescribeClusterResponse", "0-2", flexible="0+", api_key=60)

    class DescribeClusterBroker(Struct):
        """Each broker in the response."""

        broker_id: Annotated[int, Field("int32", "0+")] = 0
        """The broker ID."""
        host: Annotated[str, Field("string", "0+")] = ""
        """The broker hostname."""
        port: Annotated[int, Field("int32", "0+")] = 0
        """The broker port."""
        rack: Annotated[str | None, Field("string", "0+", nullable="0+")] = None
        """The rack of the broker, or null if it has not been assigned to a rack."""
        is_fenced: Annotated[bool, Field("bool", "2+")] = False
        """Whether the broker is fenced"""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The top-level error code, or 0 if there was no error."""
    error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = None
    """The top-level error message, or null if there was no error."""
    endpoint_type: Annotated[int, Field("int8", "1+")] = 1
    """The endpoint type that was described. 1=brokers, 2=controllers."""
    cluster_id: Annotated[str, Field("string", "0+")] = ""
    """The cluster ID that responding broker belongs to."""
    controller_id: Annotated[int, Field("int32", "0+")] = -1
    """The ID of the controller. When handled by a controller, returns the current voter leader
    ID. When handled by a broker, returns a random alive broker ID as a fallback."""
    brokers: Annotated[
        list[DescribeClusterResponse.DescribeClusterBroker], Field("[]DescribeClusterBroker", "0+")
    ] = []
    """Each broker in the response."""
    cluster_authorized_operations: Annotated[int, Field("int32", "0+")] = -2147483648
    """32-bit bitfield to represent authorized operations for this cluster."""
