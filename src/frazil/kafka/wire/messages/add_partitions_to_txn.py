"""AddPartitionsToTxn, API 24, versions 0-5. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class AddPartitionsToTxnRequest(KafkaMessage):
    """Request in versions 0-5, flexible in 3+.

    Version 1 is the same as version 0.

    Version 2 adds the support for new error code PRODUCER_FENCED.

    Version 3 enables flexible versions.

    Version 4 adds VerifyOnly field to check if partitions are already in transaction and adds
    support to batch multiple transactions.

    Version 5 adds support for new error code TRANSACTION_ABORTABLE (KIP-890). Versions 3 and
    below will be exclusively used by clients and versions 4 and above will be used by brokers.
    """

    VERSIONS = Versions("AddPartitionsToTxnRequest", "0-5", flexible="3+", api_key=24)

    class AddPartitionsToTxnTopic(Struct):
        """The partitions to add to the transaction."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The name of the topic."""
        partitions: Annotated[list[int], Field("[]int32", "0+")] = []
        """The partition indexes to add to the transaction."""

    class AddPartitionsToTxnTransaction(Struct):
        """List of transactions to add partitions to."""

        transactional_id: Annotated[str, Field("string", "4+")] = ""
        """The transactional id corresponding to the transaction."""
        producer_id: Annotated[int, Field("int64", "4+")] = 0
        """Current producer id in use by the transactional id."""
        producer_epoch: Annotated[int, Field("int16", "4+")] = 0
        """Current epoch associated with the producer id."""
        verify_only: Annotated[bool, Field("bool", "4+")] = False
        """Boolean to signify if we want to check if the partition is in the transaction rather
        than add it."""
        topics: Annotated[
            list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic],
            Field("[]AddPartitionsToTxnTopic", "4+"),
        ] = []
        """The partitions to add to the transaction."""

    transactions: Annotated[
        list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction],
        Field("[]AddPartitionsToTxnTransaction", "4+"),
    ] = []
    """List of transactions to add partitions to."""
    v3_and_below_transactional_id: Annotated[str, Field("string", "0-3")] = ""
    """The transactional id corresponding to the transaction."""
    v3_and_below_producer_id: Annotated[int, Field("int64", "0-3")] = 0
    """Current producer id in use by the transactional id."""
    v3_and_below_producer_epoch: Annotated[int, Field("int16", "0-3")] = 0
    """Current epoch associated with the producer id."""
    v3_and_below_topics: Annotated[
        list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic],
        Field("[]AddPartitionsToTxnTopic", "0-3"),
    ] = []
    """The partitions to add to the transaction."""


class AddPartitionsToTxnResponse(KafkaMessage):
    """Response in versions 0-5, flexible in 3+.

    Starting in version 1, on quota violation brokers send out responses before throttling.

    Version 2 adds the support for new error code PRODUCER_FENCED.

    Version 3 enables flexible versions.

    Version 4 adds support to batch multiple transactions and a top level error code.

    Version 5 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).
    """

    VERSIONS = Versions("AddPartitionsToTxnResponse", "0-5", flexible="3+", api_key=24)

    class AddPartitionsToTxnPartitionResult(Struct):
        """The results for each partition."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition indexes."""
        partition_error_code: Annotated[int, Field("int16", "0+")] = 0
        """The response error code."""

    class AddPartitionsToTxnTopicResult(Struct):
        """The results for each topic."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        results_by_partition: Annotated[
            list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult],
            Field("[]AddPartitionsToTxnPartitionResult", "0+"),
        ] = []
        """The results for each partition."""

    class AddPartitionsToTxnResult(Struct):
        """Results categorized by transactional ID."""

        transactional_id: Annotated[str, Field("string", "4+")] = ""
        """The transactional id corresponding to the transaction."""
        topic_results: Annotated[
            list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult],
            Field("[]AddPartitionsToTxnTopicResult", "4+"),
        ] = []
        """The results for each topic."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """Duration in milliseconds for which the request was throttled due to a quota violation, or
    zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "4+", ignorable=True)] = 0
    """The response top level error code."""
    results_by_transaction: Annotated[
        list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult],
        Field("[]AddPartitionsToTxnResult", "4+"),
    ] = []
    """Results categorized by transactional ID."""
    results_by_topic_v3_and_below: Annotated[
        list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult],
        Field("[]AddPartitionsToTxnTopicResult", "0-3"),
    ] = []
    """The results for each topic."""
