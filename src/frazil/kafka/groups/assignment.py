"""Assignment: SyncGroup and Heartbeat of classic groups."""

from __future__ import annotations

from functools import partial

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.group import ClassicGroup, GroupState
from frazil.kafka.groups.groups import Groups
from frazil.kafka.groups.member import Member, Reply
from frazil.kafka.groups.rebalance import Rebalance
from frazil.kafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from frazil.kafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class Assignment:
    """Owned by one thread."""

    def __init__(self, groups: Groups, rebalance: Rebalance) -> None:
        self._groups = groups
        self._rebalance = rebalance

    def sync(self, request: SyncGroupRequest, reply: Reply[SyncGroupResponse]) -> None:
        """Answer a member with its partitions, once the leader has sent them and they are
        durable."""
        group = self._groups.classic(request.group_id)
        error = self._check(group, request)
        if error is not ErrorCode.NONE or group is None:
            reply(SyncGroupResponse(error_code=error))
            return
        member = group.members[request.member_id]
        group.to_sync.discard(member.member_id)
        self._rebalance.heard(group, member)
        if group.state is GroupState.STABLE:
            reply(_assigned(group, member))
            return
        member.answer_sync(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_reply = reply
        if member.member_id == group.leader_id and not group.is_assigning:
            self._assign(group, request)

    def _check(self, group: ClassicGroup | None, request: SyncGroupRequest) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if group is None or group.state in (GroupState.EMPTY, GroupState.DEAD):
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = group.check_generation(
            request.member_id, request.group_instance_id, request.generation_id
        )
        if error is not ErrorCode.NONE:
            return error
        if request.protocol_type not in (None, group.protocol_type) or (
            request.protocol_name not in (None, group.protocol_name)
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.state is GroupState.PREPARING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        size_bytes = sum(len(each.assignment) for each in request.assignments)
        if group.size_bytes + size_bytes > 2 * self._groups.config.group_bytes_max:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.NONE

    def _assign(self, group: ClassicGroup, request: SyncGroupRequest) -> None:
        """Store the leader's assignment, then tell all members that wait for it."""
        group.is_assigning = True
        assignments = {each.member_id: bytes(each.assignment) for each in request.assignments}
        saved = partial(self._assigned, group, group.generation, assignments)
        self._groups.save(group, assignments, saved)

    def _assigned(
        self,
        group: ClassicGroup,
        generation: int,
        assignments: dict[str, bytes],
        error: ErrorCode,
    ) -> None:
        if group.generation != generation or group.state is not GroupState.COMPLETING:
            return
        group.is_assigning = False
        if error is ErrorCode.NONE:
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
            self._groups.move(group, GroupState.STABLE)
        for member in group.members.values():
            if member.sync_reply is not None:
                failed = SyncGroupResponse(error_code=error)
                member.answer_sync(_assigned(group, member) if not error else failed)
                self._rebalance.heard(group, member)
        if error is not ErrorCode.NONE:
            self._rebalance.prepare(group)

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Note that a member lives, and tell it of a rebalance."""
        if not request.group_id:
            return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        group = self._groups.classic(request.group_id)
        if group is None or group.state in (GroupState.EMPTY, GroupState.DEAD):
            return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        error = group.check_generation(
            request.member_id, request.group_instance_id, request.generation_id
        )
        if error is not ErrorCode.NONE:
            return HeartbeatResponse(error_code=error)
        self._rebalance.heard(group, group.members[request.member_id])
        if group.state is GroupState.PREPARING:
            return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return HeartbeatResponse()


def _assigned(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )
