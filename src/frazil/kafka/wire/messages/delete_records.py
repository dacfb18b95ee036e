"""DeleteRecords, API 21, versions 0-2. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class DeleteRecordsRequest(KafkaMessage):
    """Request in versions 0-2, flexible in 2+.

    Version 1 is the same as version 0.

    Version 2 is the first flexible version.
    """

    VERSIONS = Versions("DeleteRecordsRequest", "0-2", flexible="2+", api_key=21)

    class DeleteRecordsPartition(Struct):
        """Each partition that we want to delete records from."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        offset: Annotated[int, Field("int64", "0+")] = 0
        """The deletion offset. -1 means that records should be truncated to the high watermark."""

    class DeleteRecordsTopic(Struct):
        """Each topic that we want to delete records from."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[
            list[DeleteRecordsRequest.DeleteRecordsPartition],
            Field("[]DeleteRecordsPartition", "0+"),
        ] = []
        """Each partition that we want to delete records from."""

    topics: Annotated[
        list[DeleteRecordsRequest.DeleteRecordsTopic], Field("[]DeleteRecordsTopic", "0+")
    ] = []
    """Each topic that we want to delete records from."""
    timeout_ms: Annotated[int, Field("int32", "0+")] = 0
    """How long to wait for the deletion to complete, in milliseconds."""


class DeleteRecordsResponse(KafkaMessage):
    """Response in versions 0-2, flexible in 2+.

    Starting in version 1, on quota violation, brokers send out responses before throttling.

    Version 2 is the first flexible version.
    """

    VERSIONS = Versions("DeleteRecordsResponse", "0-2", flexible="2+", api_key=21)

    class DeleteRecordsPartitionResult(Struct):
        """Each partition that we wanted to delete records from."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        low_watermark: Annotated[int, Field("int64", "0+")] = 0
        """The partition low water mark."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The deletion error code, or 0 if the deletion succeeded."""

    class DeleteRecordsTopicResult(Struct):
        """Each topic that we wanted to delete records from."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[
            list[DeleteRecordsResponse.DeleteRecordsPartitionResult],
            Field("[]DeleteRecordsPartitionResult", "0+"),
        ] = []
        """Each partition that we wanted to delete records from."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    topics: Annotated[
        list[DeleteRecordsResponse.DeleteRecordsTopicResult],
        Field("[]DeleteRecordsTopicResult", "0+"),
    ] = []
    """Each topic that we wanted to delete records from."""
