"""Consumer groups as the node's API shows them: state, members, lag by partition.

Any thread may ask. Lists are bounded, whatever clients have committed or joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nlargest
from itertools import islice

from frazil.errors import Malformed
from frazil.kafka.groups.administration import CLASSIC, CONSUMER, CONSUMER_PROTOCOL
from frazil.kafka.groups.consumer.known_topics import KnownTopics
from frazil.kafka.groups.consumer.records import by_topic
from frazil.kafka.groups.consumer.targets import assignor_of
from frazil.kafka.groups.consumer_group import ConsumerMember
from frazil.kafka.groups.coordinator import GroupCoordinator
from frazil.kafka.groups.group import ClassicGroup
from frazil.kafka.groups.groups import Group
from frazil.kafka.groups.lag import GroupLag
from frazil.kafka.groups.member import Member
from frazil.kafka.wire.messages.consumer_protocol import ConsumerProtocolAssignment
from frazil.kafka.wire.records import decode_versioned
from frazil.model import KiB, TopicPartition
from frazil.status import (
    AssignedTopic,
    ConsumerGroupDetail,
    ConsumerGroupMember,
    ConsumerGroupOffset,
    ConsumerGroups,
    ConsumerGroupSummary,
    GroupsQuery,
)

GROUPS_MAX = 1000
MEMBERS_MAX = 500
OFFSETS_MAX = 2000
TOPICS_MAX = 20
ASSIGNMENT_BYTES_MAX = 64 * KiB
"""A longer assignment is not decoded: that takes the writer's time."""


def consumer_groups(coordinator: GroupCoordinator, query: GroupsQuery) -> ConsumerGroups:
    """Return the groups that match. If one is named, with its members and offsets."""
    lags: dict[str, list[GroupLag]] = {}
    for each in coordinator.recent_lag.get():
        if query.topic in (None, each.partition.topic):
            lags.setdefault(each.group_id, []).append(each)
    # `list` copies: the owner of the groups may change them meanwhile.
    found = [group for group in list(coordinator.groups) if _matches(group, query, lags)]
    groups = nlargest(
        GROUPS_MAX,
        (_summary(group, lags.get(group.group_id, ())) for group in found),
        key=lambda group: group.lag_offsets,
    )
    detail = None
    if query.name is not None and found:
        lag = lags.get(found[0].group_id, [])
        detail = _detail(found[0], coordinator.known_topics, lag)
    return ConsumerGroups(is_enabled=True, group_count=len(found), groups=groups, detail=detail)


def _matches(group: Group, query: GroupsQuery, lags: dict[str, list[GroupLag]]) -> bool:
    if query.name is not None:
        return group.group_id == query.name
    if query.topic is not None and group.group_id not in lags:
        return False
    return query.search.lower() in group.group_id.lower()


def _summary(group: Group, lags: Iterable[GroupLag]) -> ConsumerGroupSummary:
    lags = list(lags)
    topics = dict.fromkeys(each.partition.topic for each in lags)
    if isinstance(group, ClassicGroup):
        kind, protocol_type, protocol = CLASSIC, group.protocol_type, group.protocol_name
    else:
        kind, protocol_type, protocol = CONSUMER, CONSUMER_PROTOCOL, assignor_of(group.data)
    return ConsumerGroupSummary(
        group=group.group_id,
        type=kind.lower(),
        state=group.state,
        protocol_type=protocol_type,
        protocol=protocol,
        members=len(group.members),
        topics=list(islice(topics, TOPICS_MAX)),
        partitions=len(lags),
        lag_offsets=sum(each.lag for each in lags),
    )


def _detail(group: Group, topics: KnownTopics, lags: list[GroupLag]) -> ConsumerGroupDetail:
    if isinstance(group, ClassicGroup):
        listed = islice(list(group.members.values()), MEMBERS_MAX)
        members = [_member(group, each) for each in listed]
    else:
        assigned = islice(list(group.members.values()), MEMBERS_MAX)
        members = [_assigned_member(topics, each) for each in assigned]
    owners = dict(_owned(members))
    offsets = [
        ConsumerGroupOffset(
            topic=each.partition.topic,
            partition=each.partition.partition,
            committed_offset=each.committed_offset,
            end_offset=each.end_offset,
            lag_offsets=each.lag,
            member_id=owners.pop(each.partition, None),
        )
        for each in lags
    ]
    offsets += [
        ConsumerGroupOffset(
            topic=partition.topic,
            partition=partition.partition,
            committed_offset=None,
            end_offset=None,
            lag_offsets=None,
            member_id=member_id,
        )
        for partition, member_id in owners.items()
    ]
    largest = nlargest(OFFSETS_MAX, offsets, key=lambda each: each.lag_offsets or 0)
    return ConsumerGroupDetail(
        members=members,
        offsets=sorted(largest, key=lambda each: (each.topic, each.partition)),
        offset_count=len(offsets),
    )


def _owned(members: list[ConsumerGroupMember]) -> Iterator[tuple[TopicPartition, str]]:
    for member in members:
        for assigned in member.assignment or ():
            for partition in assigned.partitions:
                yield TopicPartition(assigned.topic, partition), member.member_id


def _member(group: ClassicGroup, member: Member) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assignment=_assignment(member) if group.protocol_type == CONSUMER_PROTOCOL else None,
    )


def _assigned_member(topics: KnownTopics, member: ConsumerMember) -> ConsumerGroupMember:
    """Return a member whose partitions the server assigns."""
    known = topics.by_id
    return ConsumerGroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assignment=[
            AssignedTopic(topic=known[topic_id].name, partitions=sorted(numbers))
            for topic_id, numbers in by_topic(member.assigned).items()
            if topic_id in known
        ],
    )


def _assignment(member: Member) -> list[AssignedTopic] | None:
    """Return the partitions of a member, which its leader has encoded."""
    if not member.assignment:
        return []
    if len(member.assignment) > ASSIGNMENT_BYTES_MAX:
        return None
    try:
        found = decode_versioned(
            ConsumerProtocolAssignment, member.assignment, is_newer_allowed=True
        )
    except Malformed:
        return None
    return [
        AssignedTopic(topic=each.topic, partitions=sorted(each.partitions))
        for each in found.assigned_partitions
    ]
