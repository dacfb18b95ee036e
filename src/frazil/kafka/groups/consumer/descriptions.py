"""ConsumerDescriptions: ConsumerGroupDescribe, and DescribeGroups for tools that know nothing
else."""

from __future__ import annotations

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.consumer.known_topics import KnownTopics
from frazil.kafka.groups.consumer.records import by_topic
from frazil.kafka.groups.consumer.targets import assignor_of
from frazil.kafka.groups.consumer_group import (
    NO_PARTITIONS,
    ConsumerGroup,
    ConsumerMember,
    Partitions,
)
from frazil.kafka.groups.group import GroupState
from frazil.kafka.groups.groups import Groups
from frazil.kafka.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from frazil.kafka.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from frazil.kafka.wire.messages.describe_groups import DescribeGroupsResponse
from frazil.kafka.wire.records import encode_versioned

CONSUMER_MEMBER = 1
"""A member that uses this protocol."""
CLASSIC_STATES = {
    GroupState.ASSIGNING: GroupState.PREPARING,
    GroupState.RECONCILING: GroupState.COMPLETING,
}
"""What DescribeGroups calls the states that it does not have."""
METADATA_VERSION = 1

Response = ConsumerGroupDescribeResponse


class ConsumerDescriptions:
    """Owned by one thread."""

    def __init__(self, groups: Groups, topics: KnownTopics) -> None:
        self._groups = groups
        self._topics = topics

    def describe(self, request: ConsumerGroupDescribeRequest) -> Response:
        """Return epochs, members and assignments of groups."""
        self._topics.refresh_if_due()
        return Response(groups=[self._describe(group_id) for group_id in request.group_ids])

    def _describe(self, group_id: str) -> Response.DescribedGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            is_classic = group is not None
            message = f"group {group_id} is a classic one" if is_classic else "no such group"
            return Response.DescribedGroup(
                error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message, group_id=group_id
            )
        data = group.data
        return Response.DescribedGroup(
            group_id=group_id,
            group_state=group.state,
            group_epoch=data.epoch,
            assignment_epoch=data.assignment_epoch,
            assignor_name=assignor_of(data),
            members=[
                Response.Member(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    rack_id=member.rack_id,
                    member_epoch=member.epoch,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    subscribed_topic_names=list(member.topics),
                    subscribed_topic_regex=member.regex,
                    assignment=self._assignment(member.assigned),
                    target_assignment=self._assignment(
                        data.target.get(member.member_id, NO_PARTITIONS)
                    ),
                    member_type=CONSUMER_MEMBER,
                )
                for member in data.members.values()
            ],
        )

    def _assignment(self, partitions: Partitions) -> Response.Assignment:
        return Response.Assignment(
            topic_partitions=[
                Response.TopicPartitions(topic_id, self._topics.by_id[topic_id].name, numbers)
                for topic_id, numbers in by_topic(partitions).items()
                if topic_id in self._topics.by_id
            ]
        )

    def as_classic(self, group: ConsumerGroup) -> DescribeGroupsResponse.DescribedGroup:
        """Return the answer to DescribeGroups. Kafka answers that there is no such group; clients
        that cannot ask otherwise would not see its members."""
        self._topics.refresh_if_due()
        return DescribeGroupsResponse.DescribedGroup(
            group_id=group.group_id,
            group_state=CLASSIC_STATES.get(group.state, group.state),
            protocol_type="consumer",
            protocol_data=assignor_of(group.data),
            members=[
                DescribeGroupsResponse.DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=self._classic_subscription(group, member),
                    member_assignment=self._classic_assignment(member),
                )
                for member in group.members.values()
            ],
        )

    def _classic_subscription(self, group: ConsumerGroup, member: ConsumerMember) -> bytes:
        matching = group.data.regexes.get(member.regex or "", ())
        topics = sorted({*member.topics, *matching})
        return encode_versioned(ConsumerProtocolSubscription(topics=topics), METADATA_VERSION)

    def _classic_assignment(self, member: ConsumerMember) -> bytes:
        kind = ConsumerProtocolAssignment.TopicPartition
        listed = [
            kind(self._topics.by_id[topic_id].name, numbers)
            for topic_id, numbers in by_topic(member.assigned).items()
            if topic_id in self._topics.by_id
        ]
        assignment = ConsumerProtocolAssignment(assigned_partitions=listed)
        return encode_versioned(assignment, METADATA_VERSION)
