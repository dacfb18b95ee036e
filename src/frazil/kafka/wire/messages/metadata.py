"""Metadata, API 3, versions 0-13. Generated from the definitions of Apache Kafka 4.2.1 by `python
-m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License
2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import UUID_ZERO, Field, KafkaMessage, Struct, Versions


class MetadataRequest(KafkaMessage):
    """Request in versions 0-13, flexible in 9+."""

    VERSIONS = Versions("MetadataRequest", "0-13", flexible="9+", api_key=3)

    class MetadataRequestTopic(Struct):
        """The topics to fetch metadata for."""

        topic_id: Annotated[bytes, Field("uuid", "10+", ignorable=True)] = UUID_ZERO
        """The topic id."""
        name: Annotated[str | None, Field("string", "0+", nullable="10+")] = ""
        """The topic name."""

    topics: Annotated[
        list[MetadataRequest.MetadataRequestTopic] | None,
        Field("[]MetadataRequestTopic", "0+", nullable="1+"),
    ] = []
    """The topics to fetch metadata for."""
    allow_auto_topic_creation: Annotated[bool, Field("bool", "4+")] = True
    """If this is true, the broker may auto-create topics that we requested which do not already
    exist, if it is configured to do so."""
    include_cluster_authorized_operations: Annotated[bool, Field("bool", "8-10")] = False
    """Whether to include cluster authorized operations."""
    include_topic_authorized_operations: Annotated[bool, Field("bool", "8+")] = False
    """Whether to include topic authorized operations."""


class MetadataResponse(KafkaMessage):
    """Response in versions 0-13, flexible in 9+.

    Version 1 adds fields for the rack of each broker, the controller id, and whether or not the
    topic is internal.

    Version 2 adds the cluster ID field.

    Version 3 adds the throttle time.

    Version 4 is the same as version 3.

    Version 5 adds a per-partition offline_replicas field. This field specifies the list of
    replicas that are offline.

    Starting in version 6, on quota violation, brokers send out responses before throttling.

    Version 7 adds the leader epoch to the partition metadata.

    Starting in version 8, brokers can send authorized operations for topic and cluster.

    Version 9 is the first flexible version.

    Version 10 adds topicId.

    Version 11 deprecates ClusterAuthorizedOperations. This is now exposed by the DescribeCluster
    API (KIP-700).

    Version 12 supports topicId.

    Version 13 supports top-level error code in the response.
    """

    VERSIONS = Versions("MetadataResponse", "0-13", flexible="9+", api_key=3)

    class MetadataResponseBroker(Struct):
        """A list of brokers present in the cluster."""

        node_id: Annotated[int, Field("int32", "0+")] = 0
        """The broker ID."""
        host: Annotated[str, Field("string", "0+")] = ""
        """The broker hostname."""
        port: Annotated[int, Field("int32", "0+")] = 0
        """The broker port."""
        rack: Annotated[str | None, Field("string", "1+", nullable="1+", ignorable=True)] = None
        """The rack of the broker, or null if it has not been assigned to a rack."""

    class MetadataResponsePartition(Struct):
        """Each partition in the topic."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The partition error, or 0 if there was no error."""
        partition_index: Annotated[int, Field("int32", "0+")] = 0
        """The partition index."""
        leader_id: Annotated[int, Field("int32", "0+")] = 0
        """The ID of the leader broker."""
        leader_epoch: Annotated[int, Field("int32", "7+", ignorable=True)] = -1
        """The leader epoch of this partition."""
        replica_nodes: Annotated[list[int], Field("[]int32", "0+")] = []
        """The set of all nodes that host this partition."""
        isr_nodes: Annotated[list[int], Field("[]int32", "0+")] = []
        """The set of nodes that are in sync with the leader for this partition."""
        offline_replicas: Annotated[list[int], Field("[]int32", "5+", ignorable=True)] = []
        """The set of offline replicas of this partition."""

    class MetadataResponseTopic(Struct):
        """Each topic in the response."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The topic error, or 0 if there was no error."""
        name: Annotated[str | None, Field("string", "0+", nullable="12+")] = ""
        """The topic name. Null for non-existing topics queried by ID. This is never null when
        ErrorCode is zero. One of Name and TopicId is always populated."""
        topic_id: Annotated[bytes, Field("uuid", "10+", ignorable=True)] = UUID_ZERO
        """The topic id. Zero for non-existing topics queried by name. This is never zero when
        ErrorCode is zero. One of Name and TopicId is always populated."""
        is_internal: Annotated[bool, Field("bool", "1+", ignorable=True)] = False
        """True if the topic is internal."""
        partitions: Annotated[
            list[MetadataResponse.MetadataResponsePartition],
            Field("[]MetadataResponsePartition", "0+"),
        ] = []
        """Each partition in the topic."""
        topic_authorized_operations: Annotated[int, Field("int32", "8+")] = -2147483648
        """32-bit bitfield to represent authorized operations for this topic."""

    throttle_time_ms: Annotated[int, Field("int32", "3+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    brokers: Annotated[
        list[MetadataResponse.MetadataResponseBroker], Field("[]MetadataResponseBroker", "0+")
    ] = []
    """A list of brokers present in the cluster."""
    cluster_id: Annotated[str | None, Field("string", "2+", nullable="2+", ignorable=True)] = None
    """The cluster ID that responding broker belongs to."""
    controller_id: Annotated[int, Field("int32", "1+", ignorable=True)] = -1
    """The ID of the controller broker."""
    topics: Annotated[
        list[MetadataResponse.MetadataResponseTopic], Field("[]MetadataResponseTopic", "0+")
    ] = []
    """Each topic in the response."""
    cluster_authorized_operations: Annotated[int, Field("int32", "8-10")] = -2147483648
    """32-bit bitfield to represent authorized operations for this cluster."""
    error_code: Annotated[int, Field("int16", "13+", ignorable=True)] = 0
    """The top-level error code, or 0 if there was no error."""
