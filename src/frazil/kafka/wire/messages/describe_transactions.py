"""DescribeTransactions, API 65, versions 0. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class DescribeTransactionsRequest(KafkaMessage):
    """Request in versions 0, flexible in 0+."""

    VERSIONS = Versions("DescribeTransactionsRequest", "0", flexible="0+", api_key=65)

    transactional_ids: Annotated[list[str], Field("[]string", "0+")] = []
    """Array of transactionalIds to include in describe results. If empty, then no results will
    be returned."""


class DescribeTransactionsResponse(KafkaMessage):
    """Response in versions 0, flexible in 0+."""

    VERSIONS = Versions("DescribeTransactionsResponse", "0", flexible="0+", api_key=65)

    class TopicData(Struct):
        """The set of partitions included in the current transaction (if active). When a
        transaction is preparing to commit or abort, this will include only partitions which do
        not have markers."""

        topic: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[list[int], Field("[]int32", "0+")] = []
        """The partition ids included in the current transaction."""

    class TransactionState(Struct):
        """The current state of the transaction."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The error code."""
        transactional_id: Annotated[str, Field("string", "0+")] = ""
        """The transactional id."""
        transaction_state: Annotated[str, Field("string", "0+")] = ""
        """The current transaction state of the producer."""
        transaction_timeout_ms: Annotated[int, Field("int32", "0+")] = 0
        """The timeout in milliseconds for the transaction."""
        transaction_start_time_ms: Annotated[int, Field("int64", "0+")] = 0
        """The start time of the transaction in milliseconds."""
        producer_id: Annotated[int, Field("int64", "0+")] = 0
        """The current producer id associated with the transaction."""
        producer_epoch: Annotated[int, Field("int16", "0+")] = 0
        """The current epoch associated with the producer id."""
        topics: Annotated[
            list[DescribeTransactionsResponse.TopicData], Field("[]TopicData", "0+")
        ] = []
        """The set of partitions included in the current transaction (if active). When a
        transaction is preparing to commit or abort, this will include only partitions which do
        not have markers."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    transaction_states: Annotated[
        list[DescribeTransactionsResponse.TransactionState], Field("[]TransactionState", "0+")
    ] = []
    """The current state of the transaction."""
