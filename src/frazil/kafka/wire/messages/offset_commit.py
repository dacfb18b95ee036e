"""OffsetCommit, API 8, versions 2-10. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import UUID_ZERO, Field, KafkaMessage, Struct, Versions


class OffsetCommitRequest(KafkaMessage):
    """Request in versions 2-10, flexible in 8+.

    Versions 0-1 were removed in Apache Kafka 4.0, Version 2 is the new baseline.

    Version 1 adds timestamp and group membership information, as well as the commit timestamp.

    Version 2 adds retention time. It removes the commit timestamp added in version 1.

    Version 3 and 4 are the same as version 2.

    Version 5 removes the retention time, which is now controlled only by a broker configuration.

    Version 6 adds the leader epoch for fencing.

    version 7 adds a new field called groupInstanceId to indicate member identity across
    restarts.

    Version 8 is the first flexible version.

    Version 9 is the first version that can be used with the new consumer group protocol
    (KIP-848). The request is the same as version 8.

    Version 10 adds support for topic ids and removes support for topic names (KIP-848).
    """

    VERSIONS = Versions("OffsetCommitRequest", "2-10", flexible="8+", api_key=8)

    class OffsetCommitRequestPartition(Struct):
        """Each partition to commit offsets for."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        committed_offset: Annotated[int, Field("int64", "0+")] = 0
        """The message offset to be committed."""
        committed_leader_epoch: Annotated[int, Field("int32", "6+", ignorable=True)] = -1
        """The leader epoch of this partition."""
        committed_metadata: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """Any associated metadata the client wants to keep."""

    class OffsetCommitRequestTopic(Struct):
        """The topics to commit offsets for."""

        name: Annotated[str, Field("string", "0-9", ignorable=True)] = ""
        """The topic name."""
        topic_id: Annotated[bytes, Field("uuid", "10+", ignorable=True)] = UUID_ZERO
        """The topic ID."""
        partitions: Annotated[
            list[OffsetCommitRequest.OffsetCommitRequestPartition],
            Field("[]OffsetCommitRequestPartition", "0+"),
        ] = []
        """Each partition to commit offsets for."""

    group_id: Annotated[str, Field("string", "0+")] = ""
    """The unique group identifier."""
    generation_id_or_member_epoch: Annotated[int, Field("int32", "1+", ignorable=True)] = -1
    """The generation of the group if using the classic group protocol or the member epoch if
    using the consumer protocol."""
    member_id: Annotated[str, Field("string", "1+", ignorable=True)] = ""
    """The member ID assigned by the group coordinator."""
    group_instance_id: Annotated[str | None, Field("string", "7+", nullable="7+")] = None
    """The unique identifier of the consumer instance provided by end user."""
    retention_time_ms: Annotated[int, Field("int64", "2-4", ignorable=True)] = -1
    """The time period in ms to retain the offset."""
    topics: Annotated[
        list[OffsetCommitRequest.OffsetCommitRequestTopic],
        Field("[]OffsetCommitRequestTopic", "0+"),
    ] = []
    """The topics to commit offsets for."""


class OffsetCommitResponse(KafkaMessage):
    """Response in versions 2-10, flexible in 8+.

    Versions 0-1 were removed in Apache Kafka 4.0, Version 2 is the new baseline.

    Versions 1 and 2 are the same as version 0.

    Version 3 adds the throttle time to the response.

    Starting in version 4, on quota violation, brokers send out responses before throttling.

    Versions 5 and 6 are the same as version 4.

    Version 7 offsetCommitRequest supports a new field called groupInstanceId to indicate member
    identity across restarts.

    Version 8 is the first flexible version.

    Version 9 is the first version that can be used with the new consumer group protocol
    (KIP-848). The response is the same as version 8 but can return STALE_MEMBER_EPOCH when the
    new consumer group protocol is used and GROUP_ID_NOT_FOUND when the group does not exist for
    both protocols.

    Version 10 adds support for topic ids and removes support for topic names (KIP-848).
    """

    VERSIONS = Versions("OffsetCommitResponse", "2-10", flexible="8+", api_key=8)

    class OffsetCommitResponsePartition(Struct):
        """The responses for each partition in the topic."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The error code, or 0 if there was no error."""

    class OffsetCommitResponseTopic(Struct):
        """The responses for each topic."""

        name: Annotated[str, Field("string", "0-9", ignorable=True)] = ""
        """The topic name."""
        topic_id: Annotated[bytes, Field("uuid", "10+", ignorable=True)] = UUID_ZERO
        """The topic ID."""
        partitions: Annotated[
            list[OffsetCommitResponse.OffsetCommitResponsePartition],
            Field("[]OffsetCommitResponsePartition", "0+"),
        ] = []
        """The responses for each partition in the topic."""

    throttle_time_ms: Annotated[int, Field("int32", "3+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    topics: Annotated[
        list[OffsetCommitResponse.OffsetCommitResponseTopic],
        Field("[]OffsetCommitResponseTopic", "0+"),
    ] = []
    """The responses for each topic."""
