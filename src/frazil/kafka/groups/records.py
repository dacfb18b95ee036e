"""Records of `__consumer_offsets`, in Kafka's own format. See `docs/formats/consumer-offsets.md`.

Versions are those that Kafka 4.2 writes, so that its tools read the topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from frazil.kafka.groups.group import ClassicGroup, GroupState
from frazil.kafka.groups.journal import KeyValue
from frazil.kafka.groups.member import Member
from frazil.kafka.wire.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from frazil.kafka.wire.records import (
    decode_key,
    decode_versioned,
    encode_key,
    encode_versioned,
    prefix_of,
)
from frazil.model import TopicPartition

OFFSET_VERSION = 3
OFFSET_EXPIRING_VERSION = 1
"""The only version that has a time of expiry, which old clients set."""
GROUP_VERSION = 3
NO_TIME = -1

OFFSET_TYPES = (0, 1)
"""Types of keys of offsets. Kafka before 0.9 wrote type 0 with the same layout."""
GROUP_TYPE = 2


class CommittedOffset(NamedTuple):
    """An offset that a group has committed for a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = NO_TIME
    """Set by old clients; `NO_TIME` leaves the expiry to the settings."""
    log_offset: int = -1
    """Where the record is in the log; -1 until it is durable."""


def offset_key(group_id: str, partition: TopicPartition) -> bytes:
    """Return the key of an offset."""
    key = OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)
    return encode_key(key)


def offset_record(group_id: str, partition: TopicPartition, committed: CommittedOffset) -> KeyValue:
    """Return the record of an offset."""
    is_expiring = committed.expire_ms != NO_TIME
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_ms,
        expire_timestamp=committed.expire_ms,
    )
    version = OFFSET_EXPIRING_VERSION if is_expiring else OFFSET_VERSION
    return offset_key(group_id, partition), encode_versioned(value, version)


def read_offset_key(key: bytes) -> tuple[str, TopicPartition]:
    """Return group and partition of an offset's key."""
    found = decode_key(OffsetCommitKey, key)
    return found.group, TopicPartition(found.topic, found.partition)


def read_offset(value: bytes, log_offset: int) -> CommittedOffset:
    """Return the offset in a record."""
    found = decode_versioned(OffsetCommitValue, value)
    return CommittedOffset(
        found.offset,
        found.leader_epoch,
        found.metadata,
        found.commit_timestamp,
        found.expire_timestamp,
        log_offset,
    )


def group_key(group_id: str) -> bytes:
    """Return the key of a classic group."""
    return encode_key(GroupMetadataKey(group=group_id))


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> KeyValue:
    """Return the record of a classic group with these assignments of its members. Without any, it
    says that the members have the generation and wait for their leader."""
    protocol = group.protocol_name
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=protocol,
        leader=group.leader_id,
        current_state_timestamp=group.state_ms,
        members=[
            GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata_of(protocol),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )
    return group_key(group.group_id), encode_versioned(value, GROUP_VERSION)


def is_offset_key(key: bytes) -> bool:
    """Return whether a record is about an offset."""
    return prefix_of(key) in OFFSET_TYPES


def is_group_key(key: bytes) -> bool:
    """Return whether a record is about a classic group."""
    return prefix_of(key) == GROUP_TYPE


def read_group(key: bytes, value: bytes) -> ClassicGroup:
    """Return the group in a record, without timers."""
    found = decode_versioned(GroupMetadataValue, value)
    group = ClassicGroup(decode_key(GroupMetadataKey, key).group)
    group.generation = group.saved_generation = found.generation
    group.protocol_type = found.protocol_type or None
    group.protocol_name = found.protocol
    group.state_ms = max(0, found.current_state_timestamp)
    for each in found.members:
        member = Member(
            member_id=each.member_id,
            instance_id=each.group_instance_id,
            client_id=each.client_id,
            client_host=each.client_host,
            rebalance_timeout_ms=(
                each.rebalance_timeout if each.rebalance_timeout >= 0 else each.session_timeout
            ),
            session_timeout_ms=each.session_timeout,
            protocols=((found.protocol or "", each.subscription),),
        )
        member.assignment = each.assignment
        group.add(member)
    group.leader_id = found.leader
    if group.members:
        is_assigned = any(member.assignment for member in group.members.values())
        group.state = GroupState.STABLE if is_assigned else GroupState.COMPLETING
    return group
