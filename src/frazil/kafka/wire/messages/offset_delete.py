"""OffsetDelete, API 47, versions 0. Generated from the definitions of Apache Kafka 4.2.1 by `python
-m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License
2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class OffsetDeleteRequest(KafkaMessage):
    """Request in versions 0."""

    VERSIONS = Versions("OffsetDeleteRequest", "0", api_key=47)

    class OffsetDeleteRequestPartition(Struct):
        """Each partition to delete offsets for."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""

    class OffsetDeleteRequestTopic(Struct):
        """The topics to delete offsets for."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[
            list[OffsetDeleteRequest.OffsetDeleteRequestPartition],
            Field("[]OffsetDeleteRequestPartition", "0+"),
        ] = []
        """Each partition to delete offsets for."""

    group_id: Annotated[str, Field("string", "0+")] = ""
    """The unique group identifier."""
    topics: Annotated[
        list[OffsetDeleteRequest.OffsetDeleteRequestTopic],
        Field("[]OffsetDeleteRequestTopic", "0+"),
    ] = []
    """The topics to delete offsets for."""


class OffsetDeleteResponse(KafkaMessage):
    """Response in versions 0."""

    VERSIONS = Versions("OffsetDeleteResponse", "0", api_key=47)

    class OffsetDeleteResponsePartition(Struct):
        """The responses for each partition in the topic."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The error code, or 0 if there was no error."""

    class OffsetDeleteResponseTopic(Struct):
        """The responses for each topic."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[
            list[OffsetDeleteResponse.OffsetDeleteResponsePartition],
            Field("[]OffsetDeleteResponsePartition", "0+"),
        ] = []
        """The responses for each partition in the topic."""

    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The top-level error code, or 0 if there was no error."""
    throttle_time_ms: Annotated[int, Field("int32", "0+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    topics: Annotated[
        list[OffsetDeleteResponse.OffsetDeleteResponseTopic],
        Field("[]OffsetDeleteResponseTopic", "0+"),
    ] = []
    """The responses for each topic."""
