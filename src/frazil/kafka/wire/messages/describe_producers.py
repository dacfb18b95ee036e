"""DescribeProducers, API 61, versions 0. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class DescribeProducersRequest(KafkaMessage):
    """Request in versions 0, flexible in 0+."""

    VERSIONS = Versions("DescribeProducersRequest", "0", flexible="0+", api_key=61)

    class TopicRequest(Struct):
        """The topics to list producers for."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partition_indexes: Annotated[list[int], Field("[]int32", "0+")] = []
        """The indexes of the partitions to list producers for."""

    topics: Annotated[
        list[DescribeProducersRequest.TopicRequest], Field("[]TopicRequest", "0+")
    ] = []
    """The topics to list producers for."""


class DescribeProducersResponse(KafkaMessage):
    """Response in versions 0, flexible in 0+."""

    VERSIONS = Versions("DescribeProducersResponse", "0", flexible="0+", api_key=61)

    class ProducerState(Struct):
        """The active producers for the partition."""

        producer_id: Annotated[int, Field("int64", "0+")] = 0
        """The producer id."""
        producer_epoch: Annotated[int, Field("int32", "0+")] = 0
        """The producer epoch."""
        last_sequence: Annotated[int, Field("int32", "0+")] = -1
        """The last sequence number sent by the producer."""
        last_timestamp: Annotated[int, Field("int64", "0+")] = -1
        """The last timestamp sent by the producer."""
        coordinator_epoch: Annotated[int, Field("int32", "0+")] = 0
        """The current epoch of the producer group."""
        current_txn_start_offset: Annotated[int, Field("int64", "0+")] = -1
        """The current transaction start offset of the producer."""

    class PartitionResponse(Struct):
        """Each partition in the response."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The partition error code, or 0 if there was no error."""
        error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = None
        """The partition error message, which may be null if no additional details are available."""
        active_producers: Annotated[
            list[DescribeProducersResponse.ProducerState], Field("[]ProducerState", "0+")
        ] = []
        """The active producers for the partition."""

    class TopicResponse(Struct):
        """Each topic in the response."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[
            list[DescribeProducersResponse.PartitionResponse], Field("[]PartitionResponse", "0+")
        ] = []
        """Each partition in the response."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    topics: Annotated[
        list[DescribeProducersResponse.TopicResponse], Field("[]TopicResponse", "0+")
    ] = []
    """Each topic in the response."""
