"""OffsetFetch, API 9, versions 1-10. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import UUID_ZERO, Field, KafkaMessage, Struct, Versions


class OffsetFetchRequest(KafkaMessage):
    """Request in versions 1-10, flexible in 6+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    In version 0, the request read offsets from ZK.

    Starting in version 1, the broker supports fetching offsets from the internal
    __consumer_offsets topic.

    Starting in version 2, the request can contain a null topics array to indicate that offsets
    for all topics should be fetched. It also returns a top level error code for group or
    coordinator level errors.

    Version 3, 4, and 5 are the same as version 2.

    Version 6 is the first flexible version.

    Version 7 is adding the require stable flag.

    Version 8 is adding support for fetching offsets for multiple groups at a time.

    Version 9 is the first version that can be used with the new consumer group protocol
    (KIP-848). It adds the MemberId and MemberEpoch fields. Those are filled in and validated
    when the new consumer protocol is used.

    Version 10 adds support for topic ids and removes support for topic names (KIP-848).
    """

    VERSIONS = Versions("OffsetFetchRequest", "1-10", flexible="6+", api_key=9)

    class OffsetFetchRequestTopic(Struct):
        """Each topic we would like to fetch offsets for, or null to fetch offsets for all
        topics."""

        name: Annotated[str, Field("string", "0-7")] = ""
        """The topic name."""
        partition_indexes: Annotated[list[int], Field("[]int32", "0-7")] = []
        """The partition indexes we would like to fetch offsets for."""

    class OffsetFetchRequestTopics(Struct):
        """Each topic we would like to fetch offsets for, or null to fetch offsets for all
        topics."""

        name: Annotated[str, Field("string", "8-9", ignorable=True)] = ""
        """The topic name."""
        topic_id: Annotated[bytes, Field("uuid", "10+", ignorable=True)] = UUID_ZERO
        """The topic ID."""
        partition_indexes: Annotated[list[int], Field("[]int32", "8+")] = []
        """The partition indexes we would like to fetch offsets for."""

    class OffsetFetchRequestGroup(Struct):
        """Each group we would like to fetch offsets for."""

        group_id: Annotated[str, Field("string", "8+")] = ""
        """The group ID."""
        member_id: Annotated[str | None, Field("string", "9+", nullable="9+", ignorable=True)] = (
            None
        )
        """The member id."""
        member_epoch: Annotated[int, Field("int32", "9+", ignorable=True)] = -1
        """The member epoch if using the new consumer protocol (KIP-848)."""
        topics: Annotated[
            list[OffsetFetchRequest.OffsetFetchRequestTopics] | None,
            Field("[]OffsetFetchRequestTopics", "8+", nullable="8+"),
        ] = []
        """Each topic we would like to fetch offsets for, or null to fetch offsets for all
        topics."""

    group_id: Annotated[str, Field("string", "0-7")] = ""
    """The group to fetch offsets for."""
    topics: Annotated[
        list[OffsetFetchRequest.OffsetFetchRequestTopic] | None,
        Field("[]OffsetFetchRequestTopic", "0-7", nullable="2-7"),
    ] = []
    """Each topic we would like to fetch offsets for, or null to fetch offsets for all topics."""
    groups: Annotated[
        list[OffsetFetchRequest.OffsetFetchRequestGroup], Field("[]OffsetFetchRequestGroup", "8+")
    ] = []
    """Each group we would like to fetch offsets for."""
    require_stable: Annotated[bool, Field("bool", "7+")] = False
    """Whether broker should hold on returning unstable offsets but set a retriable error code
    for the partitions."""


class OffsetFetchResponse(KafkaMessage):
    """Response in versions 1-10, flexible in 6+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Version 1 is the same as version 0.

    Version 2 adds a top-level error code.

    Version 3 adds the throttle time.

    Starting in version 4, on quota violation, brokers send out responses before throttling.

    Version 5 adds the leader epoch to the committed offset.

    Version 6 is the first flexible version.

    Version 7 adds pending offset commit as new error response on partition level.

    Version 8 is adding support for fetching offsets for multiple groups

    Version 9 is the first version that can be used with the new consumer group protocol
    (KIP-848). The response is the same as version 8 but can return STALE_MEMBER_EPOCH and
    UNKNOWN_MEMBER_ID errors when the new consumer group protocol is used.

    Version 10 adds support for topic ids and removes support for topic names (KIP-848). It can
    return UNKNOWN_TOPIC_ID if topic IDs used and the topic is not found in metadata.
    """

    VERSIONS = Versions("OffsetFetchResponse", "1-10", flexible="6+", api_key=9)

    class OffsetFetchResponsePartition(Struct):
        """The responses per partition."""

        partition_index: Annotated[int, Field("int32", "0-7")] = 0
        """The partition index."""
        committed_offset: Annotated[int, Field("int64", "0-7")] = 0
        """The committed message offset."""
        committed_leader_epoch: Annotated[int, Field("int32", "5-7", ignorable=True)] = -1
        """The leader epoch."""
        metadata: Annotated[str | None, Field("string", "0-7", nullable="0-7")] = ""
        """The partition metadata."""
        error_code: Annotated[int, Field("int16", "0-7")] = 0
        """The error code, or 0 if there was no error."""

    class OffsetFetchResponseTopic(Struct):
        """The responses per topic."""

        name: Annotated[str, Field("string", "0-7")] = ""
        """The topic name."""
        partitions: Annotated[
            list[OffsetFetchResponse.OffsetFetchResponsePartition],
            Field("[]OffsetFetchResponsePartition", "0-7"),
        ] = []
        """The responses per partition."""

    class OffsetFetchResponsePartitions(Struct):
        """The responses per partition."""

        partition_index: Annotated[int, Field("int32", "8+")] = 0
        """The partition index."""
        committed_offset: Annotated[int, Field("int64", "8+")] = 0
        """The committed message offset."""
        committed_leader_epoch: Annotated[int, Field("int32", "8+", ignorable=True)] = -1
        """The leader epoch."""
        metadata: Annotated[str | None, Field("string", "8+", nullable="8+")] = ""
        """The partition metadata."""
        error_code: Annotated[int, Field("int16", "8+")] = 0
        """The partition-level error code, or 0 if there was no error."""

    class OffsetFetchResponseTopics(Struct):
        """The responses per topic."""

        name: Annotated[str, Field("string", "8-9", ignorable=True)] = ""
        """The topic name."""
        topic_id: Annotated[bytes, Field("uuid", "10+", ignorable=True)] = UUID_ZERO
        """The topic ID."""
        partitions: Annotated[
            list[OffsetFetchResponse.OffsetFetchResponsePartitions],
            Field("[]OffsetFetchResponsePartitions", "8+"),
        ] = []
        """The responses per partition."""

    class OffsetFetchResponseGroup(Struct):
        """The responses per group id."""

        group_id: Annotated[str, Field("string", "8+")] = ""
        """The group ID."""
        topics: Annotated[
            list[OffsetFetchResponse.OffsetFetchResponseTopics],
            Field("[]OffsetFetchResponseTopics", "8+"),
        ] = []
        """The responses per topic."""
        error_code: Annotated[int, Field("int16", "8+")] = 0
        """The group-level error code, or 0 if there was no error."""

    throttle_time_ms: Annotated[int, Field("int32", "3+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    topics: Annotated[
        list[OffsetFetchResponse.OffsetFetchResponseTopic],
        Field("[]OffsetFetchResponseTopic", "0-7"),
    ] = []
    """The responses per topic."""
    error_code: Annotated[int, Field("int16", "2-7", ignorable=True)] = 0
    """The top-level error code, or 0 if there was no error."""
    groups: Annotated[
        list[OffsetFetchResponse.OffsetFetchResponseGroup],
        Field("[]OffsetFetchResponseGroup", "8+"),
    ] = []
    """The responses per group id."""
