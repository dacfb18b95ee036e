"""ConsumerGroupDescribe, API 69, versions 0-1. Generated from the definitions of Apache Kafka 4.2.1
by `python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the
Apache License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from frazil.kafka.wire.schema import UUID_ZERO, Field, KafkaMessage, Struct, Versions


class ConsumerGroupDescribeRequest(KafkaMessage):
    """Request in versions 0-1, flexible in 0+.

    Version 1 adds MemberType field to ConsumerGroupDescribeResponse (KIP-1099). For
    ConsumerGroupDescribeRequest, version 1 is same as version 0.
    """

    VERSIONS = Versions("ConsumerGroupDescribeRequest", "0-1", flexible="0+", api_key=69)

    group_ids: Annotated[list[str], Field("[]string", "0+")] = []
    """The ids of the groups to describe."""
    include_authorized_operations: Annotated[bool, Field("bool", "0+")] = False
    """Whether to include authorized operations."""


class ConsumerGroupDescribeResponse(KafkaMessage):
    """Response in versions 0-1, flexible in 0+.

    Version 1 adds MemberType field (KIP-1099).
    """

    VERSIONS = Versions("ConsumerGroupDescribeResponse", "0-1", flexible="0+", api_key=69)

    class TopicPartitions(Struct):
        """The assigned topic-partitions to the member."""

        topic_id: Annotated[bytes, Field("uuid", "0+")] = UUID_ZERO
        """The topic ID."""
        topic_name: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[list[int], Field("[]int32", "0+")] = []
        """The partitions."""

    class Assignment(Struct):
        """The current assignment."""

        topic_partitions: Annotated[
            list[ConsumerGroupDescribeResponse.TopicPartitions], Field("[]TopicPartitions", "0+")
        ] = []
        """The assigned topic-partitions to the member."""

    class Member(Struct):
        """The members."""

        member_id: Annotated[str, Field("string", "0+")] = ""
        """The member ID."""
        instance_id: Annotated[str | None, Field("string", "0+", nullable="0+")] = None
        """The member instance ID."""
        rack_id: Annotated[str | None, Field("string", "0+", nullable="0+")] = None
        """The member rack ID."""
        member_epoch: Annotated[int, Field("int32", "0+")] = 0
        """The current member epoch."""
        client_id: Annotated[str, Field("string", "0+")] = ""
        """The client ID."""
        client_host: Annotated[str, Field("string", "0+")] = ""
        """The client host."""
        subscribed_topic_names: Annotated[list[str], Field("[]string", "0+")] = []
        """The subscribed topic names."""
        subscribed_topic_regex: Annotated[str | None, Field("string", "0+", nullable="0+")] = None
        """the subscribed topic regex otherwise or null of not provided."""
        assignment: Annotated[
            ConsumerGroupDescribeResponse.Assignment, Field("Assignment", "0+")
        ] = field(default_factory=lambda: ConsumerGroupDescribeResponse.Assignment())
        """The current assignment."""
        target_assignment: Annotated[
            ConsumerGroupDescribeResponse.Assignment, Field("Assignment", "0+")
        ] = field(default_factory=lambda: ConsumerGroupDescribeResponse.Assignment())
        """The target assignment."""
        member_type: Annotated[int, Field("int8", "1+", ignorable=True)] = -1
        """-1 for unknown. 0 for classic member. +1 for consumer member."""

    class DescribedGroup(Struct):
        """Each described group."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The describe error, or 0 if there was no error."""
        error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = None
        """The top-level error message, or null if there was no error."""
        group_id: Annotated[str, Field("string", "0+")] = ""
        """The group ID string."""
        group_state: Annotated[str, Field("string", "0+")] = ""
        """The group state string, or the empty string."""
        group_epoch: Annotated[int, Field("int32", "0+")] = 0
        """The group epoch."""
        assignment_epoch: Annotated[int, Field("int32", "0+")] = 0
        """The assignment epoch."""
        assignor_name: Annotated[str, Field("string", "0+")] = ""
        """The selected assignor."""
        members: Annotated[list[ConsumerGroupDescribeResponse.Member], Field("[]Member", "0+")] = []
        """The members."""
        authorized_operations: Annotated[int, Field("int32", "0+")] = -2147483648
        """32-bit bitfield to represent authorized operations for this group."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    groups: Annotated[
        list[ConsumerGroupDescribeResponse.DescribedGroup], Field("[]DescribedGroup", "0+")
    ] = []
    """Each described group."""
