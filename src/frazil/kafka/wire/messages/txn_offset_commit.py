"""TxnOffsetCommit, API 28, versions 0-5. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class TxnOffsetCommitRequest(KafkaMessage):
    """Request in versions 0-5, flexible in 3+.

    Version 1 is the same as version 0.

    Version 2 adds the committed leader epoch.

    Version 3 adds the member.id, group.instance.id and generation.id.

    Version 4 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).

    Version 5 is the same as version 4 (KIP-890). Note when TxnOffsetCommit requests are used in
    transaction, if transaction V2 (KIP_890 part 2) is enabled, the TxnOffsetCommit request will
    also include the function for a AddOffsetsToTxn call. If V2 is disabled, the client can't use
    TxnOffsetCommit request version higher than 4 within a transaction.
    """

    VERSIONS = Versions("TxnOffsetCommitRequest", "0-5", flexible="3+", api_key=28)

    class TxnOffsetCommitRequestPartition(Struct):
        """The partitions inside the topic that we want to commit offsets for."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The index of the partition within the topic."""
        committed_offset: Annotated[int, Field("int64", "0+")] = 0
        """The message offset to be committed."""
        committed_leader_epoch: Annotated[int, Field("int32", "2+", ignorable=True)] = -1
        """The leader epoch of the last consumed record."""
        committed_metadata: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """Any associated metadata the client wants to keep."""

    class TxnOffsetCommitRequestTopic(Struct):
        """Each topic that we want to commit offsets for."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[
            list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition],
            Field("[]TxnOffsetCommitRequestPartition", "0+"),
        ] = []
        """The partitions inside the topic that we want to commit offsets for."""

    transactional_id: Annotated[str, Field("string", "0+")] = ""
    """The ID of the transaction."""
    group_id: Annotated[str, Field("string", "0+")] = ""
    """The ID of the group."""
    producer_id: Annotated[int, Field("int64", "0+")] = 0
    """The current producer ID in use by the transactional ID."""
    producer_epoch: Annotated[int, Field("int16", "0+")] = 0
    """The current epoch associated with the producer ID."""
    generation_id: Annotated[int, Field("int32", "3+")] = -1
    """The generation of the consumer."""
    member_id: Annotated[str, Field("string", "3+")] = ""
    """The member ID assigned by the group coordinator."""
    group_instance_id: Annotated[str | None, Field("string", "3+", nullable="3+")] = None
    """The unique identifier of the consumer instance provided by end user."""
    topics: Annotated[
        list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic],
        Field("[]TxnOffsetCommitRequestTopic", "0+"),
    ] = []
    """Each topic that we want to commit offsets for."""


class TxnOffsetCommitResponse(KafkaMessage):
    """Response in versions 0-5, flexible in 3+.

    Starting in version 1, on quota violation, brokers send out responses before throttling.

    Version 2 is the same as version 1.

    Version 3 adds illegal generation, fenced instance id, and unknown member id errors.

    Version 4 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).

    Version 5 is the same with version 3 (KIP-890).
    """

    VERSIONS = Versions("TxnOffsetCommitResponse", "0-5", flexible="3+", api_key=28)

    class TxnOffsetCommitResponsePartition(Struct):
        """The responses for each partition in the topic."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The error code, or 0 if there was no error."""

    class TxnOffsetCommitResponseTopic(Struct):
        """The responses for each topic."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[
            list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition],
            Field("[]TxnOffsetCommitResponsePartition", "0+"),
        ] = []
        """The responses for each partition in the topic."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    topics: Annotated[
        list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic],
        Field("[]TxnOffsetCommitResponseTopic", "0+"),
    ] = []
    """The responses for each topic."""
