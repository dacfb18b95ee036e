"""Records of groups whose partitions the server assigns, in Kafka's own format. See
`docs/formats/consumer-offsets.md`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol, TypeVar

from frazil.errors import Malformed
from frazil.kafka.groups.consumer_group import (
    ConsumerGroup,
    ConsumerGroupData,
    ConsumerMember,
    IdPartition,
    MemberState,
    Partitions,
)
from frazil.kafka.groups.journal import KeyValue
from frazil.kafka.wire.messages.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from frazil.kafka.wire.records import decode_key, decode_versioned, encode_key, encode_versioned
from frazil.kafka.wire.schema import KafkaMessage

VERSION = 0
GROUP_TYPE, MEMBER_TYPE, TARGET_TYPE = 3, 5, 6
TARGET_MEMBER_TYPE, CURRENT_TYPE, REGEX_TYPE = 7, 8, 16
CONSUMER_TYPES = frozenset(
    {GROUP_TYPE, MEMBER_TYPE, TARGET_TYPE, TARGET_MEMBER_TYPE, CURRENT_TYPE, REGEX_TYPE}
)
"""Types of keys."""

P = TypeVar(
    "P",
    ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions,
    ConsumerGroupTargetAssignmentMemberValue.TopicPartition,
)


def by_topic(partitions: Iterable[IdPartition]) -> dict[bytes, list[int]]:
    """Return the numbers of partitions by topic id, sorted."""
    found: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        found.setdefault(topic_id, []).append(partition)
    return found


def _listed(kind: type[P], partitions: Partitions) -> list[P]:
    return [kind(topic_id, numbers) for topic_id, numbers in by_topic(partitions).items()]


class _Listed(Protocol):
    topic_id: bytes
    partitions: list[int]


def read_partitions(topics: Iterable[_Listed]) -> Partitions:
    """Return the partitions in a record or a message."""
    return frozenset(
        IdPartition(topic.topic_id, number) for topic in topics for number in topic.partitions
    )


def _record(key: KafkaMessage, value: KafkaMessage | None) -> KeyValue:
    return encode_key(key), None if value is None else encode_versioned(value, VERSION)


def group_tombstones(group_id: str, data: ConsumerGroupData) -> list[KeyValue]:
    """Return records that delete a group without members."""
    return [
        *(_record(_regex_key(group_id, regex), None) for regex in data.regexes),
        _record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        _record(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def records_between(
    group_id: str, before: ConsumerGroupData, after: ConsumerGroupData, now_ms: int
) -> list[KeyValue]:
    """Return the records that lead from one state to another."""
    removed = [each for each in before.members if each not in after.members]
    changed = [
        member
        for member_id, member in after.members.items()
        if before.members.get(member_id) is not member
    ]
    records = []
    for member_id in removed:
        records += _member_tombstones(group_id, member_id)
    for member in changed:
        if _metadata(before.members.get(member.member_id)) != _metadata(member):
            records.append(_member_record(group_id, member))
    for regex in before.regexes.keys() - after.regexes.keys():
        records.append(_record(_regex_key(group_id, regex), None))
    for regex, topics in after.regexes.items():
        if before.regexes.get(regex) != topics:
            value = ConsumerGroupRegularExpressionValue(topics=list(topics), timestamp=now_ms)
            records.append(_record(_regex_key(group_id, regex), value))
    if (before.epoch, before.metadata_hash) != (after.epoch, after.metadata_hash):
        group_value = ConsumerGroupMetadataValue(
            epoch=after.epoch, metadata_hash=after.metadata_hash
        )
        records.append(_record(ConsumerGroupMetadataKey(group_id=group_id), group_value))
    for member_id, partitions in after.target.items():
        if before.target.get(member_id) != partitions:
            key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
            kind = ConsumerGroupTargetAssignmentMemberValue.TopicPartition
            listed = _listed(kind, partitions)
            target = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=listed)
            records.append(_record(key, target))
    if before.assignment_epoch != after.assignment_epoch:
        epoch = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=after.assignment_epoch)
        records.append(_record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), epoch))
    for member in changed:
        if _current(before.members.get(member.member_id)) != _current(member):
            records.append(_current_record(group_id, member))
    return records


def _metadata(member: ConsumerMember | None) -> object:
    if member is None:
        return None
    return (
        *(member.instance_id, member.rack_id, member.client_id, member.client_host),
        *(member.rebalance_timeout_ms, member.topics, member.regex, member.assignor),
    )


def _current(member: ConsumerMember | None) -> object:
    if member is None:
        return None
    return (*(member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking),)


def _regex_key(group_id: str, regex: str) -> ConsumerGroupRegularExpressionKey:
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)


def _member_tombstones(group_id: str, member_id: str) -> list[KeyValue]:
    ids = {"group_id": group_id, "member_id": member_id}
    return [
        _record(ConsumerGroupCurrentMemberAssignmentKey(**ids), None),
        _record(ConsumerGroupTargetAssignmentMemberKey(**ids), None),
        _record(ConsumerGroupMemberMetadataKey(**ids), None),
    ]


def _member_record(group_id: str, member: ConsumerMember) -> KeyValue:
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=None,
    )
    return _record(key, value)


def _current_record(group_id: str, member: ConsumerMember) -> KeyValue:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    kind = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_listed(kind, member.assigned),
        partitions_pending_revocation=_listed(kind, member.revoking),
    )
    return _record(key, value)


class ConsumerGroupLoader:
    """Builds groups of their records, which come in any order, each key once."""

    def __init__(self) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self._stored: list[str] = []
        """Groups with a record of their own. Others were deleted."""
        self._members: dict[tuple[str, str], ConsumerMember] = {}
        self._current: dict[tuple[str, str], ConsumerGroupCurrentMemberAssignmentValue] = {}

    def _data(self, group_id: str) -> ConsumerGroupData:
        return self._groups.setdefault(group_id, ConsumerGroup(group_id, is_saved=True)).data

    def take(self, kind: int, key: bytes, value: bytes) -> None:
        """Take a record of one of `CONSUMER_TYPES`. Raises `Malformed`."""
        match kind:
            case 3:
                group_key = decode_key(ConsumerGroupMetadataKey, key)
                group = decode_versioned(ConsumerGroupMetadataValue, value)
                data = self._data(group_key.group_id)
                data.epoch, data.metadata_hash = group.epoch, group.metadata_hash
                self._stored.append(group_key.group_id)
            case 5:
                member_key = decode_key(ConsumerGroupMemberMetadataKey, key)
                ids = (member_key.group_id, member_key.member_id)
                metadata = decode_versioned(ConsumerGroupMemberMetadataValue, value)
                self._members[ids] = _read_member(member_key.member_id, metadata)
            case 6:
                target_key = decode_key(ConsumerGroupTargetAssignmentMetadataKey, key)
                epoch = decode_versioned(ConsumerGroupTargetAssignmentMetadataValue, value)
                self._data(target_key.group_id).assignment_epoch = epoch.assignment_epoch
            case 7:
                each_key = decode_key(ConsumerGroupTargetAssignmentMemberKey, key)
                target = decode_versioned(ConsumerGroupTargetAssignmentMemberValue, value)
                found = read_partitions(target.topic_partitions)
                self._data(each_key.group_id).target[each_key.member_id] = found
            case 8:
                current_key = decode_key(ConsumerGroupCurrentMemberAssignmentKey, key)
                current = decode_versioned(ConsumerGroupCurrentMemberAssignmentValue, value)
                self._current[current_key.group_id, current_key.member_id] = current
            case 16:
                regex_key = decode_key(ConsumerGroupRegularExpressionKey, key)
                regex = decode_versioned(ConsumerGroupRegularExpressionValue, value)
                data = self._data(regex_key.group_id)
                data.regexes[regex_key.regular_expression] = tuple(regex.topics)

    def finish(self) -> Iterable[ConsumerGroup]:
        """Yield the groups. Raises nothing: a member whose records contradict another's is left
        out, and joins again."""
        for (group_id, member_id), member in self._members.items():
            data = self._data(group_id)
            current = self._current.get((group_id, member_id))
            if current is not None:
                member = _with_current(member, current)
            if all(each not in data.owners for each in member.assigned | member.revoking):
                data.put(member)
        for group_id in self._stored:
            group = self._groups[group_id]
            target = group.data.target
            group.data.target = {key: target[key] for key in target if key in group.members}
            yield group


def _read_member(member_id: str, found: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    if found.classic_member_metadata is not None:
        raise Malformed("a classic member of a consumer group")
    return ConsumerMember(
        member_id=member_id,
        instance_id=found.instance_id,
        rack_id=found.rack_id,
        client_id=found.client_id,
        client_host=found.client_host,
        rebalance_timeout_ms=found.rebalance_timeout_ms,
        topics=tuple(sorted(found.subscribed_topic_names)),
        regex=found.subscribed_topic_regex,
        assignor=found.server_assignor,
    )


def _with_current(
    member: ConsumerMember, found: ConsumerGroupCurrentMemberAssignmentValue
) -> ConsumerMember:
    # A state of a later Kafka is taken for one in which nobody gets the partitions.
    states = {each.value: each for each in MemberState}
    return replace(
        member,
        epoch=found.member_epoch,
        previous_epoch=found.previous_member_epoch,
        state=states.get(found.state, MemberState.UNREVOKED_PARTITIONS),
        assigned=read_partitions(found.assigned_partitions),
        revoking=read_partitions(found.partitions_pending_revocation),
    )
