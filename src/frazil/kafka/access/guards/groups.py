"""Guards of the APIs of consumer groups and their offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from frazil.kafka.access.acls import CLUSTER, AclOperation, ResourceType
from frazil.kafka.access.guards.checks import (
    GROUP_REFUSED,
    NOT_ALLOWED,
    TOPIC_REFUSED,
    TRANSACTION_REFUSED,
    Guard,
    Guarded,
    split,
)
from frazil.kafka.context import TopicVisibility
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.router import Reply
from frazil.kafka.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from frazil.kafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from frazil.kafka.wire.messages.delete_groups import DeleteGroupsResponse
from frazil.kafka.wire.messages.describe_groups import DescribeGroupsResponse
from frazil.kafka.wire.messages.find_coordinator import FindCoordinatorResponse
from frazil.kafka.wire.messages.list_groups import ListGroupsResponse
from frazil.kafka.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from frazil.kafka.wire.messages.offset_delete import OffsetDeleteResponse
from frazil.kafka.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from frazil.kafka.wire.schema import KafkaMessage

KEYS_VERSION = 4
"""From this version on a FindCoordinator request names several keys."""
GROUPS_VERSION = 8
"""From this version on an OffsetFetch request names several groups."""
CODE_VERSION = 2
"""From this version on an OffsetFetch response has an error code of its own."""
GROUP_KEY, TRANSACTION_KEY = 0, 1
HIDDEN_TOPICS = "the group uses topics that no ACL allows to describe"


def member(response_class: type[KafkaMessage]) -> Guard:
    """Return the guard of an API for members of a group, who read it."""

    async def guard(guarded: Guarded) -> Reply:
        if guarded.caller.may_group(AclOperation.READ, guarded.request.group_id):
            return await guarded.go_on()
        response: Any = response_class()
        response.error_code = GROUP_REFUSED
        return response  # type: ignore[no-any-return]

    return guard


async def find_coordinator(guarded: Guarded) -> Reply:
    """Describe the group or the transactional id."""
    request, caller = guarded.request, guarded.caller

    def is_allowed(key: str) -> bool:
        if request.key_type == GROUP_KEY:
            return caller.may_group(AclOperation.DESCRIBE, key)
        if request.key_type == TRANSACTION_KEY:
            return caller.may_transaction(AclOperation.DESCRIBE, key)
        return True  # refused by the handler

    code = GROUP_REFUSED if request.key_type == GROUP_KEY else TRANSACTION_REFUSED
    if guarded.context.api_version < KEYS_VERSION:
        if is_allowed(request.key):
            return await guarded.go_on()
        return FindCoordinatorResponse(
            error_code=code, error_message=NOT_ALLOWED, node_id=-1, port=-1
        )
    request.coordinator_keys, refused = split(request.coordinator_keys, is_allowed)

    def add(response: FindCoordinatorResponse) -> None:
        response.coordinators += [
            FindCoordinatorResponse.Coordinator(
                key=key, node_id=-1, port=-1, error_code=code, error_message=NOT_ALLOWED
            )
            for key in refused
        ]

    return await guarded.answer_with(add)


async def offset_commit(guarded: Guarded) -> Reply:
    """Read the group and the topics."""
    request, caller = guarded.request, guarded.caller
    code, refused = GROUP_REFUSED, request.topics
    allowed: list[OffsetCommitRequest.OffsetCommitRequestTopic] = []
    is_member = caller.may_group(AclOperation.READ, request.group_id)
    if is_member:
        code = TOPIC_REFUSED
        allowed, refused = split(
            request.topics, lambda topic: _may_read(guarded, topic.name, topic.topic_id)
        )
    if not refused and is_member:
        return await guarded.go_on()
    errors = [_uncommitted(topic, code) for topic in refused]
    if not allowed:
        return OffsetCommitResponse(topics=errors)
    request.topics = allowed

    def add(response: OffsetCommitResponse) -> None:
        response.topics += errors

    return await guarded.answer_with(add)


def _may_read(guarded: Guarded, name: str, topic_id: bytes) -> bool:
    found = guarded.topic_name(name, topic_id)
    return found is None or guarded.caller.may_topic(AclOperation.READ, found)


def _uncommitted(
    topic: OffsetCommitRequest.OffsetCommitRequestTopic, code: ErrorCode
) -> OffsetCommitResponse.OffsetCommitResponseTopic:
    partition_class = OffsetCommitResponse.OffsetCommitResponsePartition
    return OffsetCommitResponse.OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[partition_class(each.partition_index, code) for each in topic.partitions],
    )


async def offset_fetch(guarded: Guarded) -> Reply:
    """Describe groups and topics. Without names, topics that a client may not see are left out."""
    if guarded.context.api_version < GROUPS_VERSION:
        return await _offset_fetch_one(guarded)
    request, caller = guarded.request, guarded.caller
    request.groups, refused = split(
        request.groups, lambda group: caller.may_group(AclOperation.DESCRIBE, group.group_id)
    )
    named = [group.topics is not None for group in request.groups]
    hidden = [_take_hidden(guarded, group) for group in request.groups]

    def add(response: OffsetFetchResponse) -> None:
        for group, is_named, topics in zip(response.groups, named, hidden, strict=True):
            if not is_named:
                group.topics = [
                    each
                    for each in group.topics
                    if caller.sees_topic(guarded.topic_name(each.name, each.topic_id) or "")
                ]
            group.topics += [
                OffsetFetchResponse.OffsetFetchResponseTopics(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetFetchResponse.OffsetFetchResponsePartitions(
                            index, -1, error_code=TOPIC_REFUSED
                        )
                        for index in topic.partition_indexes
                    ],
                )
                for topic in topics
            ]
        response.groups += [
            OffsetFetchResponse.OffsetFetchResponseGroup(
                group_id=group.group_id, error_code=GROUP_REFUSED
            )
            for group in refused
        ]

    return await guarded.answer_with(add)


def _take_hidden(
    guarded: Guarded, group: OffsetFetchRequest.OffsetFetchRequestGroup
) -> list[OffsetFetchRequest.OffsetFetchRequestTopics]:
    """Take the topics out of a group that a client may not see. Returns them."""
    if group.topics is None:
        return []

    def is_allowed(topic: OffsetFetchRequest.OffsetFetchRequestTopics) -> bool:
        name = guarded.topic_name(topic.name, topic.topic_id)
        return name is None or guarded.caller.may_topic(AclOperation.DESCRIBE, name)

    group.topics, refused = split(group.topics, is_allowed)
    return refused


async def _offset_fetch_one(guarded: Guarded) -> Reply:
    request, caller = guarded.request, guarded.caller
    if not caller.may_group(AclOperation.DESCRIBE, request.group_id):
        topics = request.topics or ()
        return OffsetFetchResponse(
            error_code=GROUP_REFUSED,
            topics=[_unfetched(topic, GROUP_REFUSED) for topic in topics]
            if guarded.context.api_version < CODE_VERSION
            else [],
        )
    is_all = request.topics is None
    refused: list[OffsetFetchRequest.OffsetFetchRequestTopic] = []
    if not is_all:
        request.topics, refused = split(
            request.topics, lambda topic: caller.may_topic(AclOperation.DESCRIBE, topic.name)
        )

    def add(response: OffsetFetchResponse) -> None:
        if is_all:
            response.topics = [each for each in response.topics if caller.sees_topic(each.name)]
        response.topics += [_unfetched(topic, TOPIC_REFUSED) for topic in refused]

    return await guarded.answer_with(add)


def _unfetched(
    topic: OffsetFetchRequest.OffsetFetchRequestTopic, code: ErrorCode
) -> OffsetFetchResponse.OffsetFetchResponseTopic:
    partition_class = OffsetFetchResponse.OffsetFetchResponsePartition
    return OffsetFetchResponse.OffsetFetchResponseTopic(
        topic.name,
        [partition_class(index, -1, error_code=code) for index in topic.partition_indexes],
    )


async def describe_groups(guarded: Guarded) -> Reply:
    """Describe groups."""
    request, caller = guarded.request, guarded.caller
    request.groups, refused = split(
        request.groups, lambda group: caller.may_group(AclOperation.DESCRIBE, group)
    )

    def add(response: DescribeGroupsResponse) -> None:
        for group in response.groups:
            if request.include_authorized_operations:
                operations = caller.operations(ResourceType.GROUP, group.group_id)
                group.authorized_operations = operations
        response.groups += [
            DescribeGroupsResponse.DescribedGroup(
                error_code=GROUP_REFUSED, error_message=None, group_id=group
            )
            for group in refused
        ]

    return await guarded.answer_with(add)


async def list_groups(guarded: Guarded) -> Reply:
    """List the groups that a client may describe; all if it may describe the cluster."""
    caller = guarded.caller
    if caller.sees(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER):
        return await guarded.go_on()

    def add(response: ListGroupsResponse) -> None:
        response.groups = [
            each
            for each in response.groups
            if caller.sees(AclOperation.DESCRIBE, ResourceType.GROUP, each.group_id)
        ]

    return await guarded.answer_with(add)


async def delete_groups(guarded: Guarded) -> Reply:
    """Delete groups."""
    request, caller = guarded.request, guarded.caller
    request.groups_names, refused = split(
        request.groups_names, lambda group: caller.may_group(AclOperation.DELETE, group)
    )

    def add(response: DeleteGroupsResponse) -> None:
        response.results += [
            DeleteGroupsResponse.DeletableGroupResult(group, GROUP_REFUSED) for group in refused
        ]

    return await guarded.answer_with(add)


async def offset_delete(guarded: Guarded) -> Reply:
    """Delete the group, and read the topics."""
    request, caller = guarded.request, guarded.caller
    if not caller.may_group(AclOperation.DELETE, request.group_id):
        return OffsetDeleteResponse(error_code=GROUP_REFUSED)
    request.topics, refused = split(
        request.topics, lambda topic: caller.may_topic(AclOperation.READ, topic.name)
    )

    def add(response: OffsetDeleteResponse) -> None:
        if response.error_code:
            return
        partition_class = OffsetDeleteResponse.OffsetDeleteResponsePartition
        response.topics += [
            OffsetDeleteResponse.OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    partition_class(each.partition_index, TOPIC_REFUSED)
                    for each in topic.partitions
                ],
            )
            for topic in refused
        ]

    return await guarded.answer_with(add)


async def consumer_group_heartbeat(guarded: Guarded) -> Reply:
    """Read the group, and describe the topics that are named. Of those that match a regular
    expression the handler takes what the client may describe."""
    request, caller = guarded.request, guarded.caller
    if not caller.may_group(AclOperation.READ, request.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=GROUP_REFUSED)
    for name in request.subscribed_topic_names or ():
        if not caller.may_topic(AclOperation.DESCRIBE, name):
            return ConsumerGroupHeartbeatResponse(
                error_code=TOPIC_REFUSED, error_message=NOT_ALLOWED
            )
    visibility = TopicVisibility(caller.sees_topic, caller.authorizer.version)
    return await guarded.handle(request, replace(guarded.context, visibility=visibility))


async def consumer_group_describe(guarded: Guarded) -> Reply:
    """Describe groups, and the topics that their members use."""
    request, caller = guarded.request, guarded.caller
    request.group_ids, refused = split(
        request.group_ids, lambda group: caller.may_group(AclOperation.DESCRIBE, group)
    )
    group_class = ConsumerGroupDescribeResponse.DescribedGroup

    def shown(
        group: ConsumerGroupDescribeResponse.DescribedGroup,
    ) -> ConsumerGroupDescribeResponse.DescribedGroup:
        if not all(caller.sees_topic(name) for name in _topics_of(group)):
            return group_class(
                error_code=TOPIC_REFUSED, error_message=HIDDEN_TOPICS, group_id=group.group_id
            )
        if request.include_authorized_operations:
            operations = caller.operations(ResourceType.GROUP, group.group_id)
            group.authorized_operations = operations
        return group

    def add(response: ConsumerGroupDescribeResponse) -> None:
        response.groups = [shown(group) for group in response.groups]
        response.groups += [
            group_class(error_code=GROUP_REFUSED, error_message=NOT_ALLOWED, group_id=group)
            for group in refused
        ]

    return await guarded.answer_with(add)


def _topics_of(group: ConsumerGroupDescribeResponse.DescribedGroup) -> set[str]:
    """Return the topics that members are subscribed to, or read."""
    found: set[str] = set()
    for each in group.members:
        found.update(each.subscribed_topic_names)
        for assignment in (each.assignment, each.target_assignment):
            found.update(topic.topic_name for topic in assignment.topic_partitions)
    return found
