"""records of `__consumer_offsets`. Generated from the definitions of Apache Kafka 4.2.1 by `python
-m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License
2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from frazil.kafka.wire.schema import UUID_ZERO, Field, KafkaMessage, Struct, Versions


class ConsumerGroupCurrentMemberAssignmentKey(KafkaMessage):
    """Message in versions 0."""

    VERSIONS = Versions("ConsumerGroupCurrentMemberAssignmentKey", "0", api_key=8)

    group_id: Annotated[str, Field("string", "0")] = ""
    """The group id."""
    member_id: Annotated[str, Field("string", "0")] = ""
    """The member id."""


class ConsumerGroupCurrentMemberAssignmentValue(KafkaMessage):
    """Message in versions 0, flexible in 0+."""

    VERSIONS = Versions("ConsumerGroupCurrentMemberAssignmentValue", "0", flexible="0+", api_key=8)

    class TopicPartitions(Struct):
        """The partitions assigned to (or owned by) this member."""

        topic_id: Annotated[bytes, Field("uuid", "0+")] = UUID_ZERO
        """The topic Id."""
        partitions: Annotated[list[int], Field("[]int32", "0+")] = []
        """The partition Ids."""

    member_epoch: Annotated[int, Field("int32", "0+")] = 0
    """The current member epoch that is expected from the member in the heartbeat request."""
    previous_member_epoch: Annotated[int, Field("int32", "0+")] = 0
    """If the last epoch bump is lost before reaching the member, the member will retry with the
    previous epoch."""
    state: Annotated[int, Field("int8", "0+")] = 0
    """The member state. See MemberState for the possible values."""
    assigned_partitions: Annotated[
        list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions],
        Field("[]TopicPartitions", "0+"),
    ] = []
    """The partitions assigned to (or owned by) this member."""
    partitions_pending_revocation: Annotated[
        list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions],
        Field("[]TopicPartitions", "0+"),
    ] = []
    """The partitions that must be revoked by this member."""


class ConsumerGroupMemberMetadataKey(KafkaMessage):
    """Message in versions 0."""

    VERSIONS = Versions("ConsumerGroupMemberMetadataKey", "0", api_key=5)

    group_id: Annotated[str, Field("string", "0")] = ""
    """The group id."""
    member_id: Annotated[str, Field("string", "0")] = ""
    """The member id."""


class ConsumerGroupMemberMetadataValue(KafkaMessage):
    """Message in versions 0, flexible in 0+."""

    VERSIONS = Versions("ConsumerGroupMemberMetadataValue", "0", flexible="0+", api_key=5)

    class ClassicProtocol(Struct):
        """The list of protocols that the member supports if the consumer uses the classic
        protocol."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The protocol name."""
        metadata: Annotated[bytes, Field("bytes", "0+")] = b""
        """The protocol metadata."""

    class ClassicMemberMetadata(Struct):
        """The classic member metadata which includes the supported protocols of the consumer if
        it uses the classic protocol. The metadata is null if the consumer uses the consumer
        protocol."""

        session_timeout_ms: Annotated[int, Field("int32", "0+")] = 0
        """The session timeout if the consumer uses the classic protocol."""
        supported_protocols: Annotated[
            list[ConsumerGroupMemberMetadataValue.ClassicProtocol], Field("[]ClassicProtocol", "0+")
        ] = []
        """The list of protocols that the member supports if the consumer uses the classic
        protocol."""

    instance_id: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The (optional) instance id."""
    rack_id: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The (optional) rack id."""
    client_id: Annotated[str, Field("string", "0+")] = ""
    """The client id."""
    client_host: Annotated[str, Field("string", "0+")] = ""
    """The client host."""
    subscribed_topic_names: Annotated[list[str], Field("[]string", "0+")] = []
    """The list of subscribed topic names."""
    subscribed_topic_regex: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The subscribed topic regular expression."""
    rebalance_timeout_ms: Annotated[int, Field("int32", "0+")] = -1
    """The rebalance timeout."""
    server_assignor: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The server assignor to use; or null if not used."""
    classic_member_metadata: Annotated[
        ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None,
        Field("ClassicMemberMetadata", "0+", nullable="0+", tagged="0+", tag=0),
    ] = field(default_factory=lambda: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata())
    """The classic member metadata which includes the supported protocols of the consumer if it
    uses the classic protocol. The metadata is null if the consumer uses the consumer protocol."""


class ConsumerGroupMetadataKey(KafkaMessage):
    """Message in versions 0."""

    VERSIONS = Versions("ConsumerGroupMetadataKey", "0", api_key=3)

    group_id: Annotated[str, Field("string", "0")] = ""
    """The group id."""


class ConsumerGroupMetadataValue(KafkaMessage):
    """Message in versions 0, flexible in 0+."""

    VERSIONS = Versions("ConsumerGroupMetadataValue", "0", flexible="0+", api_key=3)

    epoch: Annotated[int, Field("int32", "0+")] = 0
    """The group epoch."""
    metadata_hash: Annotated[int, Field("int64", "0+", tagged="0+", tag=0)] = 0
    """The hash of all topics in the group."""


class ConsumerGroupRegularExpressionKey(KafkaMessage):
    """Message in versions 0."""

    VERSIONS = Versions("ConsumerGroupRegularExpressionKey", "0", api_key=16)

    group_id: Annotated[str, Field("string", "0")] = ""
    """The group id."""
    regular_expression: Annotated[str, Field("string", "0")] = ""
    """The regular expression."""


class ConsumerGroupRegularExpressionValue(KafkaMessage):
    """Message in versions 0, flexible in 0+."""

    VERSIONS = Versions("ConsumerGroupRegularExpressionValue", "0", flexible="0+", api_key=16)

    topics: Annotated[list[str], Field("[]string", "0+")] = []
    version: Annotated[int, Field("int64", "0+")] = 0
    timestamp: Annotated[int, Field("int64", "0+")] = 0


class ConsumerGroupTargetAssignmentMemberKey(KafkaMessage):
    """Message in versions 0."""

    VERSIONS = Versions("ConsumerGroupTargetAssignmentMemberKey", "0", api_key=7)

    group_id: Annotated[str, Field("string", "0")] = ""
    """The group id."""
    member_id: Annotated[str, Field("string", "0")] = ""
    """The member id."""


class ConsumerGroupTargetAssignmentMemberValue(KafkaMessage):
    """Message in versions 0, flexible in 0+."""

    VERSIONS = Versions("ConsumerGroupTargetAssignmentMemberValue", "0", flexible="0+", api_key=7)

    class TopicPartition(Struct):
        """The assigned partitions."""

        topic_id: Annotated[bytes, Field("uuid", "0+")] = UUID_ZERO
        """The topic id."""
        partitions: Annotated[list[int], Field("[]int32", "0+")] = []
        """The partition indexes."""

    topic_partitions: Annotated[
        list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition],
        Field("[]TopicPartition", "0+"),
    ] = []
    """The assigned partitions."""


class ConsumerGroupTargetAssignmentMetadataKey(KafkaMessage):
    """Message in versions 0."""

    VERSIONS = Versions("ConsumerGroupTargetAssignmentMetadataKey", "0", api_key=6)

    group_id: Annotated[str, Field("string", "0")] = ""
    """The group id."""


class ConsumerGroupTargetAssignmentMetadataValue(KafkaMessage):
    """Message in versions 0, flexible in 0+."""

    VERSIONS = Versions("ConsumerGroupTargetAssignmentMetadataValue", "0", flexible="0+", api_key=6)

    assignment_epoch: Annotated[int, Field("int32", "0+")] = 0
    """The assignment epoch."""


class GroupMetadataKey(KafkaMessage):
    """Message in versions 0."""

    VERSIONS = Versions("GroupMetadataKey", "0", api_key=2)

    group: Annotated[str, Field("string", "0")] = ""
    """The group id."""


class GroupMetadataValue(KafkaMessage):
    """Message in versions 0-4, flexible in 4+.

    Version 4 is the first flexible version. KIP-915: bumping the version will no longer make
    this record backward compatible. We suggest to add/remove only tagged fields to maintain
    backward compatibility.
    """

    VERSIONS = Versions("GroupMetadataValue", "0-4", flexible="4+", api_key=2)

    class MemberMetadata(Struct):
        """The group members."""

        member_id: Annotated[str, Field("string", "0+")] = ""
        """The member id."""
        group_instance_id: Annotated[
            str | None, Field("string", "3+", nullable="3+", ignorable=True)
        ] = None
        """The group instance id."""
        client_id: Annotated[str, Field("string", "0+")] = ""
        """The client id."""
        client_host: Annotated[str, Field("string", "0+")] = ""
        """The client host."""
        rebalance_timeout: Annotated[int, Field("int32", "1+", ignorable=True)] = -1
        """The rebalance timeout."""
        session_timeout: Annotated[int, Field("int32", "0+")] = 0
        """The session timeout."""
        subscription: Annotated[bytes, Field("bytes", "0+")] = b""
        """The subscription."""
        assignment: Annotated[bytes, Field("bytes", "0+")] = b""
        """The assignment."""

    protocol_type: Annotated[str, Field("string", "0+")] = ""
    """The protocol type."""
    generation: Annotated[int, Field("int32", "0+")] = 0
    """The generation id."""
    protocol: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The protocol name."""
    leader: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The leader id."""
    current_state_timestamp: Annotated[int, Field("int64", "2+", ignorable=True)] = -1
    """The timestamp of the last state change."""
    members: Annotated[
        list[GroupMetadataValue.MemberMetadata], Field("[]MemberMetadata", "0+")
    ] = []
    """The group members."""


class OffsetCommitKey(KafkaMessage):
    """Message in versions 0."""

    VERSIONS = Versions("OffsetCommitKey", "0", api_key=1)

    group: Annotated[str, Field("string", "0")] = ""
    """The consumer group id."""
    topic: Annotated[str, Field("string", "0")] = ""
    """The topic name."""
    partition: Annotated[int, Field("int32", "0")] = 0
    """The topic partition index."""


class OffsetCommitValue(KafkaMessage):
    """Message in versions 0-4, flexible in 4+.

    Version 4 is the first flexible version. KIP-915: bumping the version will no longer make
    this record backward compatible. We suggest to add/remove only tagged fields to maintain
    backward compatibility.
    """

    VERSIONS = Versions("OffsetCommitValue", "0-4", flexible="4+", api_key=1)

    offset: Annotated[int, Field("int64", "0+")] = 0
    """The offset that the consumer wants to store (for this partition)."""
    leader_epoch: Annotated[int, Field("int32", "3+", ignorable=True)] = -1
    """The leader epoch of the last consumed record."""
    metadata: Annotated[str, Field("string", "0+")] = ""
    """Any metadata the client wants to keep."""
    commit_timestamp: Annotated[int, Field("int64", "0+")] = 0
    """The time at which the commit was added to the log."""
    expire_timestamp: Annotated[int, Field("int64", "1", ignorable=True)] = -1
    """The time at which the offset will expire."""
    topic_id: Annotated[bytes, Field("uuid", "4+", tagged="4+", tag=0, ignorable=True)] = UUID_ZERO
    """The topic id of the committed offset."""


RECORDS: dict[int, tuple[type[KafkaMessage], type[KafkaMessage]]] = {
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}
"""Type of a record: classes of key and value."""
