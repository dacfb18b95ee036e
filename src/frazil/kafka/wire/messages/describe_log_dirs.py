"""DescribeLogDirs, API 35, versions 1-4. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class DescribeLogDirsRequest(KafkaMessage):
    """Request in versions 1-4, flexible in 2+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Version 1 is the same as version 0.

    Version 2 is the first flexible version.

    Version 3 is the same as version 2 (new field in response).

    Version 4 is the same as version 2 (new fields in response).
    """

    VERSIONS = Versions("DescribeLogDirsRequest", "1-4", flexible="2+", api_key=35)

    class DescribableLogDirTopic(Struct):
        """Each topic that we want to describe log directories for, or null for all topics."""

        topic: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[list[int], Field("[]int32", "0+")] = []
        """The partition indexes."""

    topics: Annotated[
        list[DescribeLogDirsRequest.DescribableLogDirTopic] | None,
        Field("[]DescribableLogDirTopic", "0+", nullable="0+"),
    ] = []
    """Each topic that we want to describe log directories for, or null for all topics."""


class DescribeLogDirsResponse(KafkaMessage):
    """Response in versions 1-4, flexible in 2+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Starting in version 1, on quota violation, brokers send out responses before throttling.

    Version 2 is the first flexible version.

    Version 3 adds the top-level ErrorCode field

    Version 4 adds the TotalBytes and UsableBytes fields
    """

    VERSIONS = Versions("DescribeLogDirsResponse", "1-4", flexible="2+", api_key=35)

    class DescribeLogDirsPartition(Struct):
        """The partitions."""

        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        partition_size: Annotated[int, Field("int64", "0+")] = 0
        """The size of the log segments in this partition in bytes."""
        offset_lag: Annotated[int, Field("int64", "0+")] = 0
        """The lag of the log's LEO w.r.t. partition's HW (if it is the current log for the
        partition) or current replica's LEO (if it is the future log for the partition)."""
        is_future_key: Annotated[bool, Field("bool", "0+")] = False
        """True if this log is created by AlterReplicaLogDirsRequest and will replace the current
        log of the replica in the future."""

    class DescribeLogDirsTopic(Struct):
        """The topics."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[
            list[DescribeLogDirsResponse.DescribeLogDirsPartition],
            Field("[]DescribeLogDirsPartition", "0+"),
        ] = []
        """The partitions."""

    class DescribeLogDirsResult(Struct):
        """The log directories."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The error code, or 0 if there was no error."""
        log_dir: Annotated[str, Field("string", "0+")] = ""
        """The absolute log directory path."""
        topics: Annotated[
            list[DescribeLogDirsResponse.DescribeLogDirsTopic],
            Field("[]DescribeLogDirsTopic", "0+"),
        ] = []
        """The topics."""
        total_bytes: Annotated[int, Field("int64", "4+", ignorable=True)] = -1
        """The total size in bytes of the volume the log directory is in. This value does not
        include the size of data stored in remote storage."""
        usable_bytes: Annotated[int, Field("int64", "4+", ignorable=True)] = -1
        """The usable size in bytes of the volume the log directory is in. This value does not
        include the size of data stored in remote storage."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "3+", ignorable=True)] = 0
    """The error code, or 0 if there was no error."""
    results: Annotated[
        list[DescribeLogDirsResponse.DescribeLogDirsResult], Field("[]DescribeLogDirsResult", "0+")
    ] = []
    """The log directories."""
