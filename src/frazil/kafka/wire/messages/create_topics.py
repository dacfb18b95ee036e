"""CreateTopics, API 19, versions 2-7. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import UUID_ZERO, Field, KafkaMessage, Struct, Versions


class CreateTopicsRequest(KafkaMessage):
    """Request in versions 2-7, flexible in 5+.

    Versions 0-1 were removed in Apache Kafka 4.0, Version 2 is the new baseline.

    Version 1 adds validateOnly.

    Version 4 makes partitions/replicationFactor optional even when assignments are not present
    (KIP-464)

    Version 5 is the first flexible version.

    Version 5 also returns topic configs in the response (KIP-525).

    Version 6 is identical to version 5 but may return a THROTTLING_QUOTA_EXCEEDED error in the
    response if the topics creation is throttled (KIP-599).

    Version 7 is the same as version 6.
    """

    VERSIONS = Versions("CreateTopicsRequest", "2-7", flexible="5+", api_key=19)

    class CreatableReplicaAssignment(Struct):
        """The manual partition assignment, or the empty array if we are using automatic
        assignment."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        broker_ids: Annotated[list[int], Field("[]int32", "0+")] = []
        """The brokers to place the partition on."""

    class CreatableTopicConfig(Struct):
        """The custom topic configurations to set."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The configuration name."""
        value: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The configuration value."""

    class CreatableTopic(Struct):
        """The topics to create."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        num_partitions: Annotated[int, Field("int32", "0+")] = 0
        """The number of partitions to create in the topic, or -1 if we are either specifying a
        manual partition assignment or using the default partitions."""
        replication_factor: Annotated[int, Field("int16", "0+")] = 0
        """The number of replicas to create for each partition in the topic, or -1 if we are
        either specifying a manual partition assignment or using the default replication factor."""
        assignments: Annotated[
            list[CreateTopicsRequest.CreatableReplicaAssignment],
            Field("[]CreatableReplicaAssignment", "0+"),
        ] = []
        """The manual partition assignment, or the empty array if we are using automatic
        assignment."""
        configs: Annotated[
            list[CreateTopicsRequest.CreatableTopicConfig], Field("[]CreatableTopicConfig", "0+")
        ] = []
        """The custom topic configurations to set."""

    topics: Annotated[
        list[CreateTopicsRequest.CreatableTopic], Field("[]CreatableTopic", "0+")
    ] = []
    """The topics to create."""
    timeout_ms: Annotated[int, Field("int32", "0+")] = 60000
    """How long to wait in milliseconds before timing out the request."""
    validate_only: Annotated[bool, Field("bool", "1+")] = False
    """If true, check that the topics can be created as specified, but don't create anything."""


class CreateTopicsResponse(KafkaMessage):
    """Response in versions 2-7, flexible in 5+.

    Versions 0-1 were removed in Apache Kafka 4.0, Version 2 is the new baseline.

    Version 1 adds a per-topic error message string.

    Version 2 adds the throttle time.

    Starting in version 3, on quota violation, brokers send out responses before throttling.

    Version 4 makes partitions/replicationFactor optional even when assignments are not present
    (KIP-464).

    Version 5 is the first flexible version.

    Version 5 also returns topic configs in the response (KIP-525).

    Version 6 is identical to version 5 but may return a THROTTLING_QUOTA_EXCEEDED error in the
    response if the topics creation is throttled (KIP-599).

    Version 7 returns the topic ID of the newly created topic if creation is successful.
    """

    VERSIONS = Versions("CreateTopicsResponse", "2-7", flexible="5+", api_key=19)

    class CreatableTopicConfigs(Struct):
        """Configuration of the topic."""

        name: Annotated[str, Field("string", "5+")] = ""
        """The configuration name."""
        value: Annotated[str | None, Field("string", "5+", nullable="5+")] = ""
        """The configuration value."""
        read_only: Annotated[bool, Field("bool", "5+")] = False
        """True if the configuration is read-only."""
        config_source: Annotated[int, Field("int8", "5+", ignorable=True)] = -1
        """The configuration source."""
        is_sensitive: Annotated[bool, Field("bool", "5+")] = False
        """True if this configuration is sensitive."""

    class CreatableTopicResult(Struct):
        """Results for each topic we tried to create."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        topic_id: Annotated[bytes, Field("uuid", "7+", ignorable=True)] = UUID_ZERO
        """The unique topic ID."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The error code, or 0 if there was no error."""
        error_message: Annotated[
            str | None, Field("string", "1+", nullable="0+", ignorable=True)
        ] = ""
        """The error message, or null if there was no error."""
        topic_config_error_code: Annotated[
            int, Field("int16", "5+", tagged="5+", tag=0, ignorable=True)
        ] = 0
        """Optional topic config error returned if configs are not returned in the response."""
        num_partitions: Annotated[int, Field("int32", "5+", ignorable=True)] = -1
        """Number of partitions of the topic."""
        replication_factor: Annotated[int, Field("int16", "5+", ignorable=True)] = -1
        """Replication factor of the topic."""
        configs: Annotated[
            list[CreateTopicsResponse.CreatableTopicConfigs] | None,
            Field("[]CreatableTopicConfigs", "5+", nullable="5+", ignorable=True),
        ] = []
        """Configuration of the topic."""

    throttle_time_ms: Annotated[int, Field("int32", "2+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    topics: Annotated[
        list[CreateTopicsResponse.CreatableTopicResult], Field("[]CreatableTopicResult", "0+")
    ] = []
    """Results for each topic we tried to create."""
