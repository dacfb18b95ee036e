"""CreatePartitions, API 37, versions 0-3. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class CreatePartitionsRequest(KafkaMessage):
    """Request in versions 0-3, flexible in 2+.

    Version 1 is the same as version 0.

    Version 2 adds flexible version support

    Version 3 is identical to version 2 but may return a THROTTLING_QUOTA_EXCEEDED error in the
    response if the partitions creation is throttled (KIP-599).
    """

    VERSIONS = Versions("CreatePartitionsRequest", "0-3", flexible="2+", api_key=37)

    class CreatePartitionsAssignment(Struct):
        """The new partition assignments."""

        broker_ids: Annotated[list[int], Field("[]int32", "0+")] = []
        """The assigned broker IDs."""

    class CreatePartitionsTopic(Struct):
        """Each topic that we want to create new partitions inside."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        count: Annotated[int, Field("int32", "0+")] = 0
        """The new partition count."""
        assignments: Annotated[
            list[CreatePartitionsRequest.CreatePartitionsAssignment] | None,
            Field("[]CreatePartitionsAssignment", "0+", nullable="0+"),
        ] = []
        """The new partition assignments."""

    topics: Annotated[
        list[CreatePartitionsRequest.CreatePartitionsTopic], Field("[]CreatePartitionsTopic", "0+")
    ] = []
    """Each topic that we want to create new partitions inside."""
    timeout_ms: Annotated[int, Field("int32", "0+")] = 0
    """The time in ms to wait for the partitions to be created."""
    validate_only: Annotated[bool, Field("bool", "0+")] = False
    """If true, then validate the request, but don't actually increase the number of partitions."""


class CreatePartitionsResponse(KafkaMessage):
    """Response in versions 0-3, flexible in 2+.

    Starting in version 1, on quota violation, brokers send out responses before throttling.

    Version 2 adds flexible version support

    Version 3 is identical to version 2 but may return a THROTTLING_QUOTA_EXCEEDED error in the
    response if the partitions creation is throttled (KIP-599).
    """

    VERSIONS = Versions("CreatePartitionsResponse", "0-3", flexible="2+", api_key=37)

    class CreatePartitionsTopicResult(Struct):
        """The partition creation results for each topic."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The result error, or zero if there was no error."""
        error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = None
        """The result message, or null if there was no error."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    results: Annotated[
        list[CreatePartitionsResponse.CreatePartitionsTopicResult],
        Field("[]CreatePartitionsTopicResult", "0+"),
    ] = []
    """The partition creation results for each topic."""
