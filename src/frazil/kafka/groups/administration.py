"""Administration: what tools ask of groups: describe, list, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from frazil.errors import Malformed
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.consumer.descriptions import ConsumerDescriptions
from frazil.kafka.groups.consumer.records import group_tombstones
from frazil.kafka.groups.consumer_group import ConsumerGroup
from frazil.kafka.groups.errors import storage_error
from frazil.kafka.groups.group import ClassicGroup, GroupState
from frazil.kafka.groups.groups import Group, Groups
from frazil.kafka.groups.journal import KeyValue
from frazil.kafka.groups.member import Reply
from frazil.kafka.groups.offset_commits import PartitionCount
from frazil.kafka.groups.offsets import OffsetStore
from frazil.kafka.groups.records import group_key, offset_key
from frazil.kafka.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from frazil.kafka.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from frazil.kafka.wire.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from frazil.kafka.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from frazil.kafka.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from frazil.kafka.wire.records import decode_versioned
from frazil.log import AppendResult
from frazil.model import TopicPartition

NOT_FOUND_VERSION = 6
"""From this version on a group that does not exist is an error; before, it is described as dead."""
CLASSIC, CONSUMER = "Classic", "Consumer"
"""Types of groups."""
CONSUMER_PROTOCOL = "consumer"
"""Protocol type of groups whose members subscribe to topics."""

Removed = Callable[[ErrorCode], None]


class Administration:
    """Owned by one thread."""

    def __init__(
        self,
        groups: Groups,
        offsets: OffsetStore,
        descriptions: ConsumerDescriptions,
        partition_count: PartitionCount,
    ) -> None:
        self._groups = groups
        self._descriptions = descriptions
        self._offsets = offsets
        self._partition_count = partition_count

    def describe(self, request: DescribeGroupsRequest, api_version: int) -> DescribeGroupsResponse:
        """Return state and members of groups."""
        return DescribeGroupsResponse(
            groups=[self._describe(group_id, api_version) for group_id in request.groups]
        )

    def _describe(self, group_id: str, api_version: int) -> DescribeGroupsResponse.DescribedGroup:
        group = self._groups.get(group_id)
        if group is None:
            missing = DescribeGroupsResponse.DescribedGroup(
                group_id=group_id, group_state=GroupState.DEAD
            )
            if api_version >= NOT_FOUND_VERSION:
                missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                missing.error_message = f"there is no group {group_id}"
            return missing
        if isinstance(group, ConsumerGroup):
            return self._descriptions.as_classic(group)
        is_stable = group.state is GroupState.STABLE
        return DescribeGroupsResponse.DescribedGroup(
            group_id=group_id,
            group_state=group.state,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol_name or "") if is_stable else "",
            members=[
                DescribeGroupsResponse.DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=(member.metadata_of(group.protocol_name) if is_stable else b""),
                    member_assignment=member.assignment,
                )
                for member in group.members.values()
            ],
        )

    def list_groups(self, request: ListGroupsRequest) -> ListGroupsResponse:
        """Return groups by state and type."""
        states = {state.lower() for state in request.states_filter}
        types = {name.lower() for name in request.types_filter}
        return ListGroupsResponse(
            groups=[
                ListGroupsResponse.ListedGroup(
                    group_id=group.group_id,
                    protocol_type=_protocol_type(group),
                    group_state=group.state,
                    group_type=_type_of(group),
                )
                for group in self._groups
                if not states or group.state.lower() in states
                if not types or _type_of(group).lower() in types
            ]
        )

    def delete(self, request: DeleteGroupsRequest, reply: Reply[DeleteGroupsResponse]) -> None:
        """Delete groups without members, and their offsets. Answers when that is durable."""
        results: dict[str, ErrorCode] = {}
        names = list(dict.fromkeys(request.groups_names))

        def finish(group_id: str, error: ErrorCode) -> None:
            results[group_id] = error
            if len(results) == len(names):
                reply(_deleted(names, results))

        if not names:
            reply(DeleteGroupsResponse())
        for group_id in names:
            group = self._groups.get(group_id)
            if group is None:
                finish(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
            elif group.state is GroupState.DEAD:
                finish(group_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            elif not group.is_removable:
                finish(group_id, ErrorCode.NON_EMPTY_GROUP)
            else:
                self._delete(group, partial(finish, group_id))

    def _delete(self, group: Group, removed: Removed) -> None:
        """Delete a group. Nobody can join it meanwhile."""
        self._groups.set_dead(group, True)

        def done(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                self._groups.remove(group)
            else:
                self._groups.set_dead(group, False)
            removed(error)

        partitions = self._offsets.known_partitions(group.group_id)
        self.remove_offsets(group.group_id, partitions, done, group=group)

    def remove_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        removed: Removed,
        *,
        group: Group | None = None,
    ) -> None:
        """Write tombstones of offsets, and of the group; then forget the offsets."""
        keys = list(partitions)
        records: list[KeyValue] = [(offset_key(group_id, each), None) for each in keys]
        if group is not None:
            records += [*group.old_records, *_tombstones(group)]
        if not records:
            removed(ErrorCode.NONE)
            return

        def done(result: AppendResult | Exception) -> None:
            if isinstance(result, Exception):
                removed(storage_error(result))
                return
            for number, each in enumerate(keys):
                self._offsets.remove(group_id, each, result.base_offset + number)
            removed(ErrorCode.NONE)

        self._groups.journal.append(records, done)

    def delete_offsets(
        self, request: OffsetDeleteRequest, reply: Reply[OffsetDeleteResponse]
    ) -> None:
        """Delete offsets of topics that no member is subscribed to."""
        group = self._groups.get(request.group_id)
        if group is None or group.state is GroupState.DEAD:
            reply(OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
            return
        if group.members and _protocol_type(group) != CONSUMER_PROTOCOL:
            reply(OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP))
            return
        subscribed = subscribed_topics(group)
        errors: dict[TopicPartition, ErrorCode] = {}
        for topic in request.topics:
            count = self._partition_count(topic.name)
            for each in topic.partitions:
                key = TopicPartition(topic.name, each.partition_index)
                errors[key] = ErrorCode.NONE
                if subscribed is None or topic.name in subscribed:
                    errors[key] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                elif not 0 <= each.partition_index < count and not self._has(group, key):
                    errors[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        chosen = [key for key, error in errors.items() if error is ErrorCode.NONE]

        def removed(error: ErrorCode) -> None:
            final = dict.fromkeys(chosen, error)
            reply(_offsets_deleted(request, {**errors, **final}))

        self.remove_offsets(group.group_id, chosen, removed)

    def _has(self, group: Group, key: TopicPartition) -> bool:
        return key in self._offsets.known_partitions(group.group_id)


def _type_of(group: Group) -> str:
    return CLASSIC if isinstance(group, ClassicGroup) else CONSUMER


def _protocol_type(group: Group) -> str:
    return CONSUMER_PROTOCOL if isinstance(group, ConsumerGroup) else group.protocol_type or ""


def _tombstones(group: Group) -> list[KeyValue]:
    if isinstance(group, ConsumerGroup):
        return group_tombstones(group.group_id, group.data)
    return [(group_key(group.group_id), None)]


def subscribed_topics(group: Group) -> set[str] | None:
    """Return the topics that members are subscribed to; None if a member does not say."""
    if isinstance(group, ConsumerGroup):
        return group.data.subscribed_topics()
    topics: set[str] = set()
    for member in group.members.values():
        for _, metadata in member.protocols:
            try:
                found = decode_versioned(
                    ConsumerProtocolSubscription, metadata, is_newer_allowed=True
                )
            except Malformed:
                return None
            topics.update(found.topics)
    return topics


def _deleted(names: list[str], results: dict[str, ErrorCode]) -> DeleteGroupsResponse:
    result_class = DeleteGroupsResponse.DeletableGroupResult
    return DeleteGroupsResponse(
        results=[result_class(group_id=name, error_code=results[name]) for name in names]
    )


def _offsets_deleted(
    request: OffsetDeleteRequest, errors: dict[TopicPartition, ErrorCode]
) -> OffsetDeleteResponse:
    partition_class = OffsetDeleteResponse.OffsetDeleteResponsePartition
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponse.OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    partition_class(
                        partition_index=each.partition_index,
                        error_code=errors[TopicPartition(topic.name, each.partition_index)],
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
