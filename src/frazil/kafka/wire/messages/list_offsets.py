"""ListOffsets, API 2, versions 1-11. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class ListOffsetsRequest(KafkaMessage):
    """Request in versions 1-11, flexible in 6+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Version 1 removes MaxNumOffsets. From this version forward, only a single offset can be
    returned.

    Version 2 adds the isolation level, which is used for transactional reads.

    Version 3 is the same as version 2.

    Version 4 adds the current leader epoch, which is used for fencing.

    Version 5 is the same as version 4.

    Version 6 enables flexible versions.

    Version 7 enables listing offsets by max timestamp (KIP-734).

    Version 8 enables listing offsets by local log start offset (KIP-405).

    Version 9 enables listing offsets by last tiered offset (KIP-1005).

    Version 10 enables async remote list offsets support (KIP-1075)

    Version 11 enables listing offsets by earliest pending upload offset (KIP-1023)
    """

    VERSIONS = Versions("ListOffsetsRequest", "1-11", flexible="6+", api_key=2)

    class ListOffsetsPartition(Struct):
        """Each partition in the request."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        current_leader_epoch: Annotated[int, Field("int32", "4+", ignorable=True)] = -1
        """The current leader epoch."""
        timestamp: Annotated[int, Field("int64", "0+")] = 0
        """The current timestamp."""

    class ListOffsetsTopic(Struct):
        """Each topic in the request."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[
            list[ListOffsetsRequest.ListOffsetsPartition], Field("[]ListOffsetsPartition", "0+")
        ] = []
        """Each partition in the request."""

    replica_id: Annotated[int, Field("int32", "0+")] = 0
    """The broker ID of the requester, or -1 if this request is being made by a normal consumer."""
    isolation_level: Annotated[int, Field("int8", "2+")] = 0
    """This setting controls the visibility of transactional records. Using READ_UNCOMMITTED
    (isolation_level = 0) makes all records visible. With READ_COMMITTED (isolation_level = 1),
    non-transactional and COMMITTED transactional records are visible. To be more concrete,
    READ_COMMITTED returns all data from offsets smaller than the current LSO (last stable
    offset), and enables the inclusion of the list of aborted transactions in the result, which
    allows consumers to discard ABORTED transactional records."""
    topics: Annotated[
        list[ListOffsetsRequest.ListOffsetsTopic], Field("[]ListOffsetsTopic", "0+")
    ] = []
    """Each topic in the request."""
    timeout_ms: Annotated[int, Field("int32", "10+", ignorable=True)] = 0
    """The timeout to await a response in milliseconds for requests that require reading from
    remote storage for topics enabled with tiered storage."""


class ListOffsetsResponse(KafkaMessage):
    """Response in versions 1-11, flexible in 6+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Version 1 removes the offsets array in favor of returning a single offset.

    Version 1 also adds the timestamp associated with the returned offset.

    Version 2 adds the throttle time.

    Starting in version 3, on quota violation, brokers send out responses before throttling.

    Version 4 adds the leader epoch, which is used for fencing.

    Version 5 adds a new error code, OFFSET_NOT_AVAILABLE.

    Version 6 enables flexible versions.

    Version 7 is the same as version 6 (KIP-734).

    Version 8 enables listing offsets by local log start offset. This is the earliest log start
    offset in the local log. (KIP-405).

    Version 9 enables listing offsets by last tiered offset (KIP-1005).

    Version 10 enables async remote list offsets support (KIP-1075)

    Version 11 enables listing offsets by earliest pending upload offset (KIP-1023)
    """

    VERSIONS = Versions("ListOffsetsResponse", "1-11", flexible="6+", api_key=2)

    class ListOffsetsPartitionResponse(Struct):
        """Each partition in the response."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The partition error code, or 0 if there was no error."""
        timestamp: Annotated[int, Field("int64", "1+")] = -1
        """The timestamp associated with the returned offset."""
        offset: Annotated[int, Field("int64", "1+")] = -1
        """The returned offset."""
        leader_epoch: Annotated[int, Field("int32", "4+")] = -1
        """The leader epoch associated with the returned offset."""

    class ListOffsetsTopicResponse(Struct):
        """Each topic in the response."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[
            list[ListOffsetsResponse.ListOffsetsPartitionResponse],
            Field("[]ListOffsetsPartitionResponse", "0+"),
        ] = []
        """Each partition in the response."""

    throttle_time_ms: Annotated[int, Field("int32", "2+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    topics: Annotated[
        list[ListOffsetsResponse.ListOffsetsTopicResponse],
        Field("[]ListOffsetsTopicResponse", "0+"),
    ] = []
    """Each topic in the response."""
