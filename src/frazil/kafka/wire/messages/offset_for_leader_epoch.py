"""OffsetForLeaderEpoch, API 23, versions 2-4. Generated from the definitions of Apache Kafka 4.2.1
by `python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the
Apache License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class OffsetForLeaderEpochRequest(KafkaMessage):
    """Request in versions 2-4, flexible in 4+.

    Versions 0-1 were removed in Apache Kafka 4.0, Version 2 is the new baseline.

    Version 1 is the same as version 0.

    Version 2 adds the current leader epoch to support fencing.

    Version 3 adds ReplicaId (the default is -2 which conventionally represents a "debug"
    consumer which is allowed to see offsets beyond the high watermark). Followers will use this
    replicaId when using an older version of the protocol.

    Version 4 enables flexible versions.
    """

    VERSIONS = Versions("OffsetForLeaderEpochRequest", "2-4", flexible="4+", api_key=23)

    class OffsetForLeaderPartition(Struct):
        """Each partition to get offsets for."""

        partition: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        current_leader_epoch: Annotated[int, Field("int32", "2+", ignorable=True)] = -1
        """An epoch used to fence consumers/replicas with old metadata. If the epoch provided by
        the client is larger than the current epoch known to the broker, then the
        UNKNOWN_LEADER_EPOCH error code will be returned. If the provided epoch is smaller, then
        the FENCED_LEADER_EPOCH error code will be returned."""
        leader_epoch: Annotated[int, Field("int32", "0+")] = 0
        """The epoch to look up an offset for."""

    class OffsetForLeaderTopic(Struct):
        """Each topic to get offsets for."""

        topic: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[
            list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition],
            Field("[]OffsetForLeaderPartition", "0+"),
        ] = []
        """Each partition to get offsets for."""

    replica_id: Annotated[int, Field("int32", "3+", ignorable=True)] = -2
    """The broker ID of the follower, of -1 if this request is from a consumer."""
    topics: Annotated[
        list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic],
        Field("[]OffsetForLeaderTopic", "0+"),
    ] = []
    """Each topic to get offsets for."""


class OffsetForLeaderEpochResponse(KafkaMessage):
    """Response in versions 2-4, flexible in 4+.

    Versions 0-1 were removed in Apache Kafka 4.0, Version 2 is the new baseline.

    Version 1 added the leader epoch to the response.

    Version 2 added the throttle time.

    Version 3 is the same as version 2.

    Version 4 enables flexible versions.
    """

    VERSIONS = Versions("OffsetForLeaderEpochResponse", "2-4", flexible="4+", api_key=23)

    class EpochEndOffset(Struct):
        """Each partition in the topic we fetched offsets for."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The error code 0, or if there was no error."""
        partition: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        leader_epoch: Annotated[int, Field("int32", "1+", ignorable=True)] = -1
        """The leader epoch of the partition."""
        end_offset: Annotated[int, Field("int64", "0+")] = -1
        """The end offset of the epoch."""

    class OffsetForLeaderTopicResult(Struct):
        """Each topic we fetched offsets for."""

        topic: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[
            list[OffsetForLeaderEpochResponse.EpochEndOffset], Field("[]EpochEndOffset", "0+")
        ] = []
        """Each partition in the topic we fetched offsets for."""

    throttle_time_ms: Annotated[int, Field("int32", "2+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    topics: Annotated[
        list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult],
        Field("[]OffsetForLeaderTopicResult", "0+"),
    ] = []
    """Each topic we fetched offsets for."""
