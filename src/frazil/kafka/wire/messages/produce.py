"""Produce, API 0, versions 3-13. Generated from the definitions of Apache Kafka 4.2.1 by `python -m
tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License 2.0;
see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import UUID_ZERO, Bytes, Field, KafkaMessage, Struct, Versions


class ProduceRequest(KafkaMessage):
    """Request in versions 3-13, flexible in 9+.

    Versions 0-2 were removed in Apache Kafka 4.0, version 3 is the new baseline. Due to a bug in
    librdkafka, these versions have to be included in the api versions response (see
    KAFKA-18659), but are rejected otherwise. See
    `ApiKeys.PRODUCE_API_VERSIONS_RESPONSE_MIN_VERSION` for more details.

    Version 1 and 2 are the same as version 0.

    Version 3 adds the transactional ID, which is used for authorization when attempting to write
    transactional data. Version 3 also adds support for Kafka Message Format v2.

    Version 4 is the same as version 3, but the requester must be prepared to handle a
    KAFKA_STORAGE_ERROR.

    Version 5 and 6 are the same as version 3.

    Starting in version 7, records can be produced using ZStandard compression. See KIP-110.

    Starting in Version 8, response has RecordErrors and ErrorMessage. See KIP-467.

    Version 9 enables flexible versions.

    Version 10 is the same as version 9 (KIP-951).

    Version 11 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).

    Version 12 is the same as version 11 (KIP-890). Note when produce requests are used in
    transaction, if transaction V2 (KIP_890 part 2) is enabled, the produce request will also
    include the function for a AddPartitionsToTxn call. If V2 is disabled, the client can't use
    produce request version higher than 11 within a transaction.

    Version 13 replaces topic names with topic IDs (KIP-516). May return UNKNOWN_TOPIC_ID error
    code.
    """

    VERSIONS = Versions("ProduceRequest", "3-13", flexible="9+", api_key=0)

    class PartitionProduceData(Struct):
        """Each partition to produce to."""

        index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        records: Annotated[Bytes | None, Field("records", "0+", nullable="0+")] = b""
        """The record data to be produced."""

    class TopicProduceData(Struct):
        """Each topic to produce to."""

        name: Annotated[str, Field("string", "0-12", ignorable=True)] = ""
        """The topic name."""
        topic_id: Annotated[bytes, Field("uuid", "13+", ignorable=True)] = UUID_ZERO
        """The unique topic ID"""
        partition_data: Annotated[
            list[ProduceRequest.PartitionProduceData], Field("[]PartitionProduceData", "0+")
        ] = []
        """Each partition to produce to."""

    transactional_id: Annotated[str | None, Field("string", "3+", nullable="3+")] = None
    """The transactional ID, or null if the producer is not transactional."""
    acks: Annotated[int, Field("int16", "0+")] = 0
    """The number of acknowledgments the producer requires the leader to have received before
    considering a request complete. Allowed values: 0 for no acknowledgments, 1 for only the
    leader and -1 for the full ISR."""
    timeout_ms: Annotated[int, Field("int32", "0+")] = 0
    """The timeout to await a response in milliseconds."""
    topic_data: Annotated[
        list[ProduceRequest.TopicProduceData], Field("[]TopicProduceData", "0+")
    ] = []
    """Each topic to produce to."""


class ProduceResponse(KafkaMessage):
    """Response in versions 3-13, flexible in 9+.

    Versions 0-2 were removed in Apache Kafka 4.0, version 3 is the new baseline. Due to a bug in
    librdkafka, these versions have to be included in the api versions response (see
    KAFKA-18659), but are rejected otherwise. See
    `ApiKeys.PRODUCE_API_VERSIONS_RESPONSE_MIN_VERSION` for more details.

    Version 1 added the throttle time.

    Version 2 added the log append time.

    Version 3 is the same as version 2.

    Version 4 added KAFKA_STORAGE_ERROR as a possible error code.

    Version 5 added LogStartOffset to filter out spurious OutOfOrderSequenceExceptions on the
    client.

    Version 8 added RecordErrors and ErrorMessage to include information about records that cause
    the whole batch to be dropped. See KIP-467 for details.

    Version 9 enables flexible versions.

    Version 10 adds 'CurrentLeader' and 'NodeEndpoints' as tagged fields (KIP-951)

    Version 11 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).

    Version 12 is the same as version 10 (KIP-890).

    Version 13 replaces topic names with topic IDs (KIP-516). May return UNKNOWN_TOPIC_ID error
    code.
    """

    VERSIONS = Versions("ProduceResponse", "3-13", flexible="9+", api_key=0)

    class BatchIndexAndErrorMessage(Struct):
        """The batch indices of records that caused the batch to be dropped."""

        batch_index: Annotated[int, Field("int32", "8+")] = 0
        """The batch index of the record that caused the batch to be dropped."""
        batch_index_error_message: Annotated[str | None, Field("string", "8+", nullable="8+")] = (
            None
        )
        """The error message of the record that caused the batch to be dropped."""

    class LeaderIdAndEpoch(Struct):
        """The leader broker that the producer should use for future requests."""

        leader_id: Annotated[int, Field("int32", "10+")] = -1
        """The ID of the current leader or -1 if the leader is unknown."""
        leader_epoch: Annotated[int, Field("int32", "10+")] = -1
        """The latest known leader epoch."""

    class PartitionProduceResponse(Struct):
        """Each partition that we produced to within the topic."""

        index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The error code, or 0 if there was no error."""
        base_offset: Annotated[int, Field("int64", "0+")] = 0
        """The base offset."""
        log_append_time_ms: Annotated[int, Field("int64", "2+", ignorable=True)] = -1
        """The timestamp returned by broker after appending the messages. If CreateTime is used
        for the topic, the timestamp will be -1. If LogAppendTime is used for the topic, the
        timestamp will be the broker local time when the messages are appended."""
        log_start_offset: Annotated[int, Field("int64", "5+", ignorable=True)] = -1
        """The log start offset."""
        record_errors: Annotated[
            list[ProduceResponse.BatchIndexAndErrorMessage],
            Field("[]BatchIndexAndErrorMessage", "8+", ignorable=True),
        ] = []
        """The batch indices of records that caused the batch to be dropped."""
        error_message: Annotated[
            str | None, Field("string", "8+", nullable="8+", ignorable=True)
        ] = None
        """The global error message summarizing the common root cause of the records that caused
        the batch to be dropped."""
        current_leader: Annotated[
            ProduceResponse.LeaderIdAndEpoch | None,
            Field("LeaderIdAndEpoch", "10+", tagged="10+", tag=0),
        ] = None
        """The leader broker that the producer should use for future requests."""

    class TopicProduceResponse(Struct):
        """Each produce response."""

        name: Annotated[str, Field("string", "0-12", ignorable=True)] = ""
        """The topic name."""
        topic_id: Annotated[bytes, Field("uuid", "13+", ignorable=True)] = UUID_ZERO
        """The unique topic ID"""
        partition_responses: Annotated[
            list[ProduceResponse.PartitionProduceResponse],
            Field("[]PartitionProduceResponse", "0+"),
        ] = []
        """Each partition that we produced to within the topic."""

    class NodeEndpoint(Struct):
        """Endpoints for all current-leaders enumerated in PartitionProduceResponses, with errors
        NOT_LEADER_OR_FOLLOWER."""

        node_id: Annotated[int, Field("int32", "10+")] = 0
        """The ID of the associated node."""
        host: Annotated[str, Field("string", "10+")] = ""
        """The node's hostname."""
        port: Annotated[int, Field("int32", "10+")] = 0
        """The node's port."""
        rack: Annotated[str | None, Field("string", "10+", nullable="10+")] = None
        """The rack of the node, or null if it has not been assigned to a rack."""

    responses: Annotated[
        list[ProduceResponse.TopicProduceResponse], Field("[]TopicProduceResponse", "0+")
    ] = []
    """Each produce response."""
    throttle_time_ms: Annotated[int, Field("int32", "1+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    node_endpoints: Annotated[
        list[ProduceResponse.NodeEndpoint], Field("[]NodeEndpoint", "10+", tagged="10+", tag=0)
    ] = []
    """Endpoints for all current-leaders enumerated in PartitionProduceResponses, with errors
    NOT_LEADER_OR_FOLLOWER."""
