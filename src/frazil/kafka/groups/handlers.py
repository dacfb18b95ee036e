"""GroupHandlers: connects the coordinator to the port: requests in, responses out, time."""

from __future__ import annotations

from collections.abc import Callable

from frazil.errors import FrazilError
from frazil.httpd import WorkerThreads
from frazil.kafka.context import ConnectionState, NetworkAddress, RequestContext
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.alarm import Alarm
from frazil.kafka.groups.coordinator import GroupCoordinator
from frazil.kafka.groups.member import JoiningClient
from frazil.kafka.router import ApiRouter, PendingReply
from frazil.kafka.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from frazil.kafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from frazil.kafka.wire.messages.delete_groups import DeleteGroupsRequest
from frazil.kafka.wire.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from frazil.kafka.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from frazil.kafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from frazil.kafka.wire.messages.join_group import JoinGroupRequest
from frazil.kafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from frazil.kafka.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from frazil.kafka.wire.messages.offset_commit import OffsetCommitRequest
from frazil.kafka.wire.messages.offset_delete import OffsetDeleteRequest
from frazil.kafka.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from frazil.kafka.wire.messages.sync_group import SyncGroupRequest

KEYS_VERSION = 4
"""From this version on a FindCoordinator request names several groups."""
GROUP_FEATURE, GROUP_FEATURE_LEVEL = "group.version", 1
"""Tells clients that the server can assign partitions (KIP-848)."""
GROUP_OPERATIONS = 0b1101_0100_1000
"""Read, delete, describe, describe and alter settings: what everybody may do without ACLs."""
GROUP_KEY, TRANSACTION_KEY = 0, 1
"""What a coordinator is asked for."""

Address = Callable[[ConnectionState], NetworkAddress]
"""Where a client should connect to."""


class GroupHandlers:
    """Owned by the event loop. Responses that wait for other members or for the disk are
    pending, so that a connection can send more requests meanwhile."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        node_id: int,
        address: Address,
        threads: WorkerThreads,
    ) -> None:
        self.coordinator = coordinator
        self._threads = threads
        self._node_id = node_id
        self._address = address
        self._alarm = Alarm(coordinator.timers)

    def register(self, router: ApiRouter) -> None:
        """Offer the APIs."""
        router.add(10, "0-6", self.find_coordinator)
        router.add(11, "0-9", self.join_group)
        router.add(14, "0-5", self.sync_group)
        router.add(12, "0-4", self.heartbeat)
        router.add(13, "0-5", self.leave_group)
        router.add(8, "2-9", self.offset_commit)
        router.add(9, "1-9", self.offset_fetch)
        router.add(15, "0-6", self.describe_groups)
        router.add(16, "0-5", self.list_groups)
        router.add(42, "0-2", self.delete_groups)
        router.add(47, "0", self.offset_delete)
        router.add(68, "0-1", self.consumer_group_heartbeat)
        router.add(69, "0-1", self.consumer_group_describe)
        router.add_feature(GROUP_FEATURE, GROUP_FEATURE_LEVEL)

    def close(self) -> None:
        """Run no more timers."""
        self._alarm.close()

    async def find_coordinator(
        self, request: FindCoordinatorRequest, context: RequestContext
    ) -> FindCoordinatorResponse:
        """This node coordinates all groups and transactions. The first one who asks has the topic
        of groups created."""
        code, message = await self._find(request.key_type)
        node_id, (host, port) = self._node_id, self._address(context.connection)
        if code is not ErrorCode.NONE:
            node_id, host, port = -1, "", -1
        if context.api_version < KEYS_VERSION:
            return FindCoordinatorResponse(
                error_code=code,
                error_message=message,
                node_id=node_id,
                host=host,
                port=port,
            )
        return FindCoordinatorResponse(
            coordinators=[
                FindCoordinatorResponse.Coordinator(
                    key=key,
                    node_id=node_id,
                    host=host,
                    port=port,
                    error_code=code,
                    error_message=message,
                )
                for key in request.coordinator_keys
            ]
        )

    async def _find(self, key_type: int) -> tuple[ErrorCode, str | None]:
        if key_type not in (GROUP_KEY, TRANSACTION_KEY):
            return ErrorCode.INVALID_REQUEST, f"there is no coordinator of type {key_type}"
        journal = self.coordinator.groups.journal
        if key_type == GROUP_KEY and not journal.has_topic:
            try:
                await self._threads.run(journal.create_topic)
            except FrazilError as error:
                return ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)
        return ErrorCode.NONE, None

    async def join_group(self, request: JoinGroupRequest, context: RequestContext) -> PendingReply:
        """Answered when the generation is complete."""
        pending = PendingReply()
        self.coordinator.membership.join(request, _client_of(context), pending.complete)
        return pending

    async def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: RequestContext
    ) -> PendingReply:
        """Answered when the epoch and the partitions of the member are durable."""
        pending = PendingReply()
        self.coordinator.heartbeats.heartbeat(request, _client_of(context), pending.complete)
        return pending

    async def consumer_group_describe(
        self, request: ConsumerGroupDescribeRequest, context: RequestContext
    ) -> ConsumerGroupDescribeResponse:
        return self.coordinator.descriptions.describe(request)

    async def sync_group(self, request: SyncGroupRequest, context: RequestContext) -> PendingReply:
        """Answered when the leader's assignment is durable."""
        pending = PendingReply()
        self.coordinator.assignment.sync(request, pending.complete)
        return pending

    async def heartbeat(
        self, request: HeartbeatRequest, context: RequestContext
    ) -> HeartbeatResponse:
        return self.coordinator.assignment.heartbeat(request)

    async def leave_group(
        self, request: LeaveGroupRequest, context: RequestContext
    ) -> LeaveGroupResponse:
        return self.coordinator.membership.leave(request, context.api_version)

    async def offset_commit(
        self, request: OffsetCommitRequest, context: RequestContext
    ) -> PendingReply:
        """Answered when the offsets are durable."""
        pending = PendingReply()
        self.coordinator.commits.commit(request, context.api_version, pending.complete)
        return pending

    async def offset_fetch(
        self, request: OffsetFetchRequest, context: RequestContext
    ) -> OffsetFetchResponse:
        return self.coordinator.queries.fetch(request, context.api_version)

    async def describe_groups(
        self, request: DescribeGroupsRequest, context: RequestContext
    ) -> DescribeGroupsResponse:
        response = self.coordinator.administration.describe(request, context.api_version)
        if request.include_authorized_operations:
            for group in response.groups:
                group.authorized_operations = GROUP_OPERATIONS
        return response

    async def list_groups(
        self, request: ListGroupsRequest, context: RequestContext
    ) -> ListGroupsResponse:
        return self.coordinator.administration.list_groups(request)

    async def delete_groups(
        self, request: DeleteGroupsRequest, context: RequestContext
    ) -> PendingReply:
        """Answered when the deletion is durable."""
        pending = PendingReply()
        self.coordinator.administration.delete(request, pending.complete)
        return pending

    async def offset_delete(
        self, request: OffsetDeleteRequest, context: RequestContext
    ) -> PendingReply:
        """Answered when the deletion is durable."""
        pending = PendingReply()
        self.coordinator.administration.delete_offsets(request, pending.complete)
        return pending


def _client_of(context: RequestContext) -> JoiningClient:
    return JoiningClient(
        client_id=context.client_id,
        client_host=f"/{context.client_host}",
        api_version=context.api_version,
        visibility=context.visibility,
    )
