"""Fetch, API 1, versions 4-18. Generated from the definitions of Apache Kafka 4.2.1 by `python -m
tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License 2.0;
see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import UUID_ZERO, Bytes, Field, KafkaMessage, Struct, Versions


class FetchRequest(KafkaMessage):
    """Request in versions 4-18, flexible in 12+.

    Versions 0-3 were removed in Apache Kafka 4.0, Version 4 is the new baseline.

    Version 1 is the same as version 0.

    Starting in Version 2, the requester must be able to handle Kafka Log Message format version
    1.

    Version 3 adds MaxBytes. Starting in version 3, the partition ordering in the request is now
    relevant. Partitions will be processed in the order they appear in the request.

    Version 4 adds IsolationLevel. Starting in version 4, the requestor must be able to handle
    Kafka log message format version 2.

    Version 5 adds LogStartOffset to indicate the earliest available offset of partition data
    that can be consumed.

    Version 6 is the same as version 5.

    Version 7 adds incremental fetch request support.

    Version 8 is the same as version 7.

    Version 9 adds CurrentLeaderEpoch, as described in KIP-320.

    Version 10 indicates that we can use the ZStd compression algorithm, as described in KIP-110.

    Version 12 adds flexible versions support as well as epoch validation through the
    `LastFetchedEpoch` field

    Version 13 replaces topic names with topic IDs (KIP-516). May return UNKNOWN_TOPIC_ID error
    code.

    Version 14 is the same as version 13 but it also receives a new error called
    OffsetMovedToTieredStorageException(KIP-405)

    Version 15 adds the ReplicaState which includes new field ReplicaEpoch and the ReplicaId.
    Also, deprecate the old ReplicaId field and set its default value to -1. (KIP-903)

    Version 16 is the same as version 15 (KIP-951).

    Version 17 adds directory id support from KIP-853

    Version 18 adds high-watermark from KIP-1166
    """

    VERSIONS = Versions("FetchRequest", "4-18", flexible="12+", api_key=1)

    class ReplicaState(Struct):
        """The state of the replica in the follower."""

        replica_id: Annotated[int, Field("int32", "15+")] = -1
        """The replica ID of the follower, or -1 if this request is from a consumer."""
        replica_epoch: Annotated[int, Field("int64", "15+")] = -1
        """The epoch of this follower, or -1 if not available."""

    class FetchPartition(Struct):
        """The partitions to fetch."""

        partition: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        current_leader_epoch: Annotated[int, Field("int32", "9+", ignorable=True)] = -1
        """The current leader epoch of the partition."""
        fetch_offset: Annotated[int, Field("int64", "0+")] = 0
        """The message offset."""
        last_fetched_epoch: Annotated[int, Field("int32", "12+")] = -1
        """The epoch of the last fetched record or -1 if there is none."""
        log_start_offset: Annotated[int, Field("int64", "5+", ignorable=True)] = -1
        """The earliest available offset of the follower replica. The field is only used when the
        request is sent by the follower."""
        partition_max_bytes: Annotated[int, Field("int32", "0+")] = 0
        """The maximum bytes to fetch from this partition. See KIP-74 for cases where this limit
        may not be honored."""
        replica_directory_id: Annotated[
            bytes, Field("uuid", "17+", tagged="17+", tag=0, ignorable=True)
        ] = UUID_ZERO
        """The directory id of the follower fetching."""
        high_watermark: Annotated[
            int, Field("int64", "18+", tagged="18+", tag=1, ignorable=True)
        ] = 9223372036854775807
        """The high-watermark known by the replica. -1 if the high-watermark is not known and
        9223372036854775807 if the feature is not supported."""

    class FetchTopic(Struct):
        """The topics to fetch."""

        topic: Annotated[str, Field("string", "0-12", ignorable=True)] = ""
        """The name of the topic to fetch."""
        topic_id: Annotated[bytes, Field("uuid", "13+", ignorable=True)] = UUID_ZERO
        """The unique topic ID."""
        partitions: Annotated[
            list[FetchRequest.FetchPartition], Field("[]FetchPartition", "0+")
        ] = []
        """The partitions to fetch."""

    class ForgottenTopic(Struct):
        """In an incremental fetch request, the partitions to remove."""

        topic: Annotated[str, Field("string", "7-12", ignorable=True)] = ""
        """The topic name."""
        topic_id: Annotated[bytes, Field("uuid", "13+", ignorable=True)] = UUID_ZERO
        """The unique topic ID."""
        partitions: Annotated[list[int], Field("[]int32", "7+")] = []
        """The partitions indexes to forget."""

    cluster_id: Annotated[
        str | None, Field("string", "12+", nullable="12+", tagged="12+", tag=0, ignorable=True)
    ] = None
    """The clusterId if known. This is used to validate metadata fetches prior to broker
    registration."""
    replica_id: Annotated[int, Field("int32", "0-14")] = -1
    """The broker ID of the follower, of -1 if this request is from a consumer."""
    replica_state: Annotated[
        FetchRequest.ReplicaState | None, Field("ReplicaState", "15+", tagged="15+", tag=1)
    ] = None
    """The state of the replica in the follower."""
    max_wait_ms: Annotated[int, Field("int32", "0+")] = 0
    """The maximum time in milliseconds to wait for the response."""
    min_bytes: Annotated[int, Field("int32", "0+")] = 0
    """The minimum bytes to accumulate in the response."""
    max_bytes: Annotated[int, Field("int32", "3+", ignorable=True)] = 2147483647
    """The maximum bytes to fetch. See KIP-74 for cases where this limit may not be honored."""
    isolation_level: Annotated[int, Field("int8", "4+", ignorable=True)] = 0
    """This setting controls the visibility of transactional records. Using READ_UNCOMMITTED
    (isolation_level = 0) makes all records visible. With READ_COMMITTED (isolation_level = 1),
    non-transactional and COMMITTED transactional records are visible. To be more concrete,
    READ_COMMITTED returns all data from offsets smaller than the current LSO (last stable
    offset), and enables the inclusion of the list of aborted transactions in the result, which
    allows consumers to discard ABORTED transactional records."""
    session_id: Annotated[int, Field("int32", "7+", ignorable=True)] = 0
    """The fetch session ID."""
    session_epoch: Annotated[int, Field("int32", "7+", ignorable=True)] = -1
    """The fetch session epoch, which is used for ordering requests in a session."""
    topics: Annotated[list[FetchRequest.FetchTopic], Field("[]FetchTopic", "0+")] = []
    """The topics to fetch."""
    forgotten_topics_data: Annotated[
        list[FetchRequest.ForgottenTopic], Field("[]ForgottenTopic", "7+")
    ] = []
    """In an incremental fetch request, the partitions to remove."""
    rack_id: Annotated[str, Field("string", "11+", ignorable=True)] = ""
    """Rack ID of the consumer making this request."""


class FetchResponse(KafkaMessage):
    """Response in versions 4-18, flexible in 12+.

    Versions 0-3 were removed in Apache Kafka 4.0, Version 4 is the new baseline.

    Version 1 adds throttle time. Version 2 and 3 are the same as version 1.

    Version 4 adds features for transactional consumption.

    Version 5 adds LogStartOffset to indicate the earliest available offset of partition data
    that can be consumed.

    Starting in version 6, we may return KAFKA_STORAGE_ERROR as an error code.

    Version 7 adds incremental fetch request support.

    Starting in version 8, on quota violation, brokers send out responses before throttling.

    Version 9 is the same as version 8.

    Version 10 indicates that the response data can use the ZStd compression algorithm, as
    described in KIP-110.

    Version 12 adds support for flexible versions, epoch detection through the `TruncationOffset`
    field, and leader discovery through the `CurrentLeader` field

    Version 13 replaces the topic name field with topic ID (KIP-516).

    Version 14 is the same as version 13 but it also receives a new error called
    OffsetMovedToTieredStorageException (KIP-405)

    Version 15 is the same as version 14 (KIP-903).

    Version 16 adds the 'NodeEndpoints' field (KIP-951).

    Version 17 no changes to the response (KIP-853).

    Version 18 no changes to the response (KIP-1166)
    """

    VERSIONS = Versions("FetchResponse", "4-18", flexible="12+", api_key=1)

    class EpochEndOffset(Struct):
        """In case divergence is detected based on the `LastFetchedEpoch` and `FetchOffset` in
        the request, this field indicates the largest epoch and its end offset such that
        subsequent records are known to diverge."""

        epoch: Annotated[int, Field("int32", "12+")] = -1
        """The largest epoch."""
        end_offset: Annotated[int, Field("int64", "12+")] = -1
        """The end offset of the epoch."""

    class LeaderIdAndEpoch(Struct):
        """The current leader of the partition."""

        leader_id: Annotated[int, Field("int32", "12+")] = -1
        """The ID of the current leader or -1 if the leader is unknown."""
        leader_epoch: Annotated[int, Field("int32", "12+")] = -1
        """The latest known leader epoch."""

    class SnapshotId(Struct):
        """In the case of fetching an offset less than the LogStartOffset, this is the end offset
        and epoch that should be used in the FetchSnapshot request."""

        end_offset: Annotated[int, Field("int64", "0+")] = -1
        """The end offset of the epoch."""
        epoch: Annotated[int, Field("int32", "0+")] = -1
        """The largest epoch."""

    class AbortedTransaction(Struct):
        """The aborted transactions."""

        producer_id: Annotated[int, Field("int64", "4+")] = 0
        """The producer id associated with the aborted transaction."""
        first_offset: Annotated[int, Field("int64", "4+")] = 0
        """The first offset in the aborted transaction."""

    class PartitionData(Struct):
        """The topic partitions."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The error code, or 0 if there was no fetch error."""
        high_watermark: Annotated[int, Field("int64", "0+")] = 0
        """The current high water mark."""
        last_stable_offset: Annotated[int, Field("int64", "4+", ignorable=True)] = -1
        """The last stable offset (or LSO) of the partition. This is the last offset such that
        the state of all transactional records prior to this offset have been decided (ABORTED or
        COMMITTED)."""
        log_start_offset: Annotated[int, Field("int64", "5+", ignorable=True)] = -1
        """The current log start offset."""
        diverging_epoch: Annotated[
            FetchResponse.EpochEndOffset | None, Field("EpochEndOffset", "12+", tagged="12+", tag=0)
        ] = None
        """In case divergence is detected based on the `LastFetchedEpoch` and `FetchOffset` in
        the request, this field indicates the largest epoch and its end offset such that
        subsequent records are known to diverge."""
        current_leader: Annotated[
            FetchResponse.LeaderIdAndEpoch | None,
            Field("LeaderIdAndEpoch", "12+", tagged="12+", tag=1),
        ] = None
        """The current leader of the partition."""
        snapshot_id: Annotated[
            FetchResponse.SnapshotId | None, Field("SnapshotId", "12+", tagged="12+", tag=2)
        ] = None
        """In the case of fetching an offset less than the LogStartOffset, this is the end offset
        and epoch that should be used in the FetchSnapshot request."""
        aborted_transactions: Annotated[
            list[FetchResponse.AbortedTransaction] | None,
            Field("[]AbortedTransaction", "4+", nullable="4+", ignorable=True),
        ] = []
        """The aborted transactions."""
        preferred_read_replica: Annotated[int, Field("int32", "11+")] = -1
        """The preferred read replica for the consumer to use on its next fetch request."""
        records: Annotated[Bytes | None, Field("records", "0+", nullable="0+")] = b""
        """The record data."""

    class FetchableTopicResponse(Struct):
        """The response topics."""

        topic: Annotated[str, Field("string", "0-12", ignorable=True)] = ""
        """The topic name."""
        topic_id: Annotated[bytes, Field("uuid", "13+", ignorable=True)] = UUID_ZERO
        """The unique topic ID."""
        partitions: Annotated[
            list[FetchResponse.PartitionData], Field("[]PartitionData", "0+")
        ] = []
        """The topic partitions."""

    class NodeEndpoint(Struct):
        """Endpoints for all current-leaders enumerated in PartitionData, with errors
        NOT_LEADER_OR_FOLLOWER & FENCED_LEADER_EPOCH."""

        node_id: Annotated[int, Field("int32", "16+")] = 0
        """The ID of the associated node."""
        host: Annotated[str, Field("string", "16+")] = ""
        """The node's hostname."""
        port: Annotated[int, Field("int32", "16+")] = 0
        """The node's port."""
        rack: Annotated[str | None, Field("string", "16+", nullable="16+")] = None
        """The rack of the node, or null if it has not been assigned to a rack."""

    throttle_time_ms: Annotated[int, Field("int32", "1+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "7+", ignorable=True)] = 0
    """The top level response error code."""
    session_id: Annotated[int, Field("int32", "7+")] = 0
    """The fetch session ID, or 0 if this is not part of a fetch session."""
    responses: Annotated[
        list[FetchResponse.FetchableTopicResponse], Field("[]FetchableTopicResponse", "0+")
    ] = []
    """The response topics."""
    node_endpoints: Annotated[
        list[FetchResponse.NodeEndpoint], Field("[]NodeEndpoint", "16+", tagged="16+", tag=0)
    ] = []
    """Endpoints for all current-leaders enumerated in PartitionData, with errors
    NOT_LEADER_OR_FOLLOWER & FENCED_LEADER_EPOCH."""
