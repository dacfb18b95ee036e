"""DescribeTopicPartitions, API 75, versions 0. Generated from the definitions of Apache Kafka 4.2.1
by `python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the
Apache License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import UUID_ZERO, Field, KafkaMessage, Struct, Versions


class DescribeTopicPartitionsRequest(KafkaMessage):
    """Request in versions 0, flexible in 0+."""

    VERSIONS = Versions("DescribeTopicPartitionsRequest", "0", flexible="0+", api_key=75)

    class TopicRequest(Struct):
        """The topics to fetch details for."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""

    class Cursor(Struct):
        """The first topic and partition index to fetch details for."""

        topic_name: Annotated[str, Field("string", "0+")] = ""
        """The name for the first topic to process."""
        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index to start with."""

    topics: Annotated[
        list[DescribeTopicPartitionsRequest.TopicRequest], Field("[]TopicRequest", "0+")
    ] = []
    """The topics to fetch details for."""
    response_partition_limit: Annotated[int, Field("int32", "0+")] = 2000
    """The maximum number of partitions included in the response."""
    cursor: Annotated[
        DescribeTopicPartitionsRequest.Cursor | None, Field("Cursor", "0+", nullable="0+")
    ] = None
    """The first topic and partition index to fetch details for."""


class DescribeTopicPartitionsResponse(KafkaMessage):
    """Response in versions 0, flexible in 0+."""

    VERSIONS = Versions("DescribeTopicPartitionsResponse", "0", flexible="0+", api_key=75)

    class DescribeTopicPartitionsResponsePartition(Struct):
        """Each partition in the topic."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The partition error, or 0 if there was no error."""
        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        leader_id: Annotated[int, Field("int32", "0+")] = 0
        """The ID of the leader broker."""
        leader_epoch: Annotated[int, Field("int32", "0+", ignorable=True)] = -1
        """The leader epoch of this partition."""
        replica_nodes: Annotated[list[int], Field("[]int32", "0+")] = []
        """The set of all nodes that host this partition."""
        isr_nodes: Annotated[list[int], Field("[]int32", "0+")] = []
        """The set of nodes that are in sync with the leader for this partition."""
        eligible_leader_replicas: Annotated[
            list[int] | None, Field("[]int32", "0+", nullable="0+")
        ] = None
        """The new eligible leader replicas otherwise."""
        last_known_elr: Annotated[list[int] | None, Field("[]int32", "0+", nullable="0+")] = None
        """The last known ELR."""
        offline_replicas: Annotated[list[int], Field("[]int32", "0+", ignorable=True)] = []
        """The set of offline replicas of this partition."""

    class DescribeTopicPartitionsResponseTopic(Struct):
        """Each topic in the response."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The topic error, or 0 if there was no error."""
        name: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The topic name."""
        topic_id: Annotated[bytes, Field("uuid", "0+", ignorable=True)] = UUID_ZERO
        """The topic id."""
        is_internal: Annotated[bool, Field("bool", "0+", ignorable=True)] = False
        """True if the topic is internal."""
        partitions: Annotated[
            list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition],
            Field("[]DescribeTopicPartitionsResponsePartition", "0+"),
        ] = []
        """Each partition in the topic."""
        topic_authorized_operations: Annotated[int, Field("int32", "0+")] = -2147483648
        """32-bit bitfield to represent authorized operations for this topic."""

    class Cursor(Struct):
        """The next topic and partition index to fetch details for."""

        topic_name: Annotated[str, Field("string", "0+")] = ""
        """The name for the first topic to process."""
        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index to start with."""

    throttle_time_ms: Annotated[int, Field("int32", "0+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    topics: Annotated[
        list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic],
        Field("[]DescribeTopicPartitionsResponseTopic", "0+"),
    ] = []
    """Each topic in the response."""
    next_cursor: Annotated[
        DescribeTopicPartitionsResponse.Cursor | None, Field("Cursor", "0+", nullable="0+")
    ] = None
    """The next topic and partition index to fetch details for."""
