"""Membership: JoinGroup and LeaveGroup of classic groups."""

from __future__ import annotations

from functools import partial

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.consumer.records import group_tombstones
from frazil.kafka.groups.consumer_group import ConsumerGroup
from frazil.kafka.groups.group import ClassicGroup, GroupState
from frazil.kafka.groups.groups import Groups
from frazil.kafka.groups.member import JoiningClient, Member, Protocols, Reply, protocols_bytes
from frazil.kafka.groups.rebalance import Rebalance, describe_members, join_error
from frazil.kafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from frazil.kafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from frazil.kafka.wire.messages.sync_group import SyncGroupResponse

MEMBER_ID_REQUIRED_VERSION = 4
"""From this version on a client gets its id first and joins with it, so that a lost response
leaves no member behind (KIP-394)."""
SKIP_ASSIGNMENT_VERSION = 9
"""From this version on a leader can be told that the assignment stays (KIP-814)."""
LEAVE_MANY_VERSION = 3
"""From this version on several members leave by one request."""


class Membership:
    """Owned by one thread."""

    def __init__(self, groups: Groups, rebalance: Rebalance) -> None:
        self._groups = groups
        self._rebalance = rebalance

    def join(
        self, request: JoinGroupRequest, client: JoiningClient, reply: Reply[JoinGroupResponse]
    ) -> None:
        """Take a member into the next generation. The answer waits for the others."""
        error = self._check_request(request)
        if error is not ErrorCode.NONE:
            reply(join_error(error, request.member_id))
            return
        known = self._groups.get(request.group_id)
        if isinstance(known, ConsumerGroup) and known.is_removable:
            known = self._make_classic(known)
        if isinstance(known, ConsumerGroup):
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            if known.is_dead:
                error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            reply(join_error(error, request.member_id))
            return
        if known is None and request.member_id:
            reply(join_error(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
            return
        group = known or self._groups.create(request.group_id)
        if group is None:
            reply(join_error(ErrorCode.GROUP_MAX_SIZE_REACHED))
            return
        error = self._check_group(group, request)
        if error is not ErrorCode.NONE:
            is_full = error is ErrorCode.GROUP_MAX_SIZE_REACHED
            reply(join_error(error, "" if is_full else request.member_id))
        elif request.member_id:
            self._join_known(group, request, client, reply)
        else:
            self._join_unknown(group, request, client, reply)

    def _make_classic(self, before: ConsumerGroup) -> ClassicGroup:
        """Replace a group without members, whose partitions the server has assigned."""
        group = ClassicGroup(before.group_id, self._groups.time.now_ms())
        # Generations go on where the epochs ended: no number is used twice.
        group.generation = before.data.epoch
        group.old_records = [*before.old_records]
        if before.is_saved:
            group.old_records += group_tombstones(before.group_id, before.data)
        self._groups.put(group)
        return group

    def _check_request(self, request: JoinGroupRequest) -> ErrorCode:
        config = self._groups.config
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        timeout_ms = request.session_timeout_ms
        if not config.session_timeout_ms_min <= timeout_ms <= config.session_timeout_ms_max:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if _member_bytes(request) > config.member_bytes_max:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.NONE

    def _check_group(self, group: ClassicGroup, request: JoinGroupRequest) -> ErrorCode:
        config = self._groups.config
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not group.supports(request.protocol_type, _protocols(request)):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        known = request.member_id in group.members or request.member_id in group.invited
        known = known or request.group_instance_id in group.static
        if not known and (
            len(group.members) + len(group.invited) >= config.members_max
            or group.size_bytes + _member_bytes(request) > config.group_bytes_max
        ):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        return ErrorCode.NONE

    def _join_unknown(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: JoiningClient,
        reply: Reply[JoinGroupResponse],
    ) -> None:
        """Join a client without a member id."""
        instance_id = request.group_instance_id
        if instance_id is not None:
            member_id = self._groups.new_member_id(instance_id)
            if instance_id in group.static:
                self._replace_static(group, member_id, request, client, reply)
            else:
                self._add(group, member_id, request, client, reply)
            return
        member_id = self._groups.new_member_id(client.client_id)
        if client.api_version < MEMBER_ID_REQUIRED_VERSION:
            self._add(group, member_id, request, client, reply)
            return
        action = partial(self._uninvite, group, member_id)
        group.invited[member_id] = self._groups.timers.after(request.session_timeout_ms, action)
        reply(join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))

    def _uninvite(self, group: ClassicGroup, member_id: str) -> None:
        timer = group.invited.pop(member_id, None)
        if timer is not None:
            timer.cancel()
            self._rebalance.try_complete(group)

    def _join_known(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: JoiningClient,
        reply: Reply[JoinGroupResponse],
    ) -> None:
        """Join a client that has a member id."""
        member_id = request.member_id
        if member_id in group.invited and request.group_instance_id is None:
            group.invited.pop(member_id).cancel()
            self._add(group, member_id, request, client, reply)
            return
        error = group.check_member(member_id, request.group_instance_id)
        if error is not ErrorCode.NONE:
            reply(join_error(error, member_id))
            return
        member = group.members[member_id]
        is_same = member.protocols == _protocols(request)
        is_leader = member_id == group.leader_id
        if is_same and (
            group.state is GroupState.COMPLETING
            or (group.state is GroupState.STABLE and not is_leader)
        ):
            # It may have missed the first answer, or looks whether something has changed.
            self._rebalance.heard(group, member)
            self._rebalance.answer_when_saved(group, self._rebalance.joined(group, member), reply)
            return
        self._update(group, member, request, client, reply)
        self._rejoin(group)

    def _add(
        self,
        group: ClassicGroup,
        member_id: str,
        request: JoinGroupRequest,
        client: JoiningClient,
        reply: Reply[JoinGroupResponse],
    ) -> None:
        member = Member(
            member_id=member_id,
            instance_id=request.group_instance_id,
            client_id=client.client_id,
            client_host=client.client_host,
            rebalance_timeout_ms=_rebalance_timeout_ms(request),
            session_timeout_ms=request.session_timeout_ms,
            protocols=_protocols(request),
            is_new=True,
            join_reply=reply,
        )
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        group.is_growing = True
        self._rebalance.heard(group, member)
        self._rejoin(group)

    def _update(
        self,
        group: ClassicGroup,
        member: Member,
        request: JoinGroupRequest,
        client: JoiningClient,
        reply: Reply[JoinGroupResponse],
    ) -> None:
        group.update_protocols(member, _protocols(request))
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
        member.session_timeout_ms = request.session_timeout_ms
        member.client_id, member.client_host = client.client_id, client.client_host
        # Its client gave up waiting and asks again: only the last request is answered.
        member.answer_join(join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        member.join_reply = reply
        self._rebalance.heard(group, member)

    def _rejoin(self, group: ClassicGroup) -> None:
        if group.state is GroupState.PREPARING:
            self._rebalance.try_complete(group)
        else:
            self._rebalance.prepare(group)

    def _replace_static(
        self,
        group: ClassicGroup,
        member_id: str,
        request: JoinGroupRequest,
        client: JoiningClient,
        reply: Reply[JoinGroupResponse],
    ) -> None:
        """Join the new process of a static member. It keeps the assignment if nothing changed."""
        assert request.group_instance_id is not None
        old_id = group.static[request.group_instance_id]
        member = group.members[old_id]
        member.answer_join(join_error(ErrorCode.FENCED_INSTANCE_ID, old_id))
        member.answer_sync(SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        leader_before = group.leader_id
        group.rename(member, member_id)
        before = member.metadata_of(group.protocol_name)
        self._update(group, member, request, client, reply)
        if (
            group.state is not GroupState.STABLE
            or group.select_protocol() != group.protocol_name
            or member.metadata_of(group.protocol_name) != before
        ):
            self._rejoin(group)
            return
        member.join_reply = None
        self._rebalance.heard(group, member)
        self._keep_static(group, member, client, leader_before or "", reply)

    def _keep_static(
        self,
        group: ClassicGroup,
        member: Member,
        client: JoiningClient,
        leader_before: str,
        reply: Reply[JoinGroupResponse],
    ) -> None:
        """Answer with the current generation once the new member id is durable."""
        is_leader = group.leader_id == member.member_id
        can_skip = client.api_version >= SKIP_ASSIGNMENT_VERSION
        response = JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            # An older client must not take itself for the leader: it would assign anew.
            leader=(group.leader_id or "") if can_skip else leader_before,
            skip_assignment=can_skip and is_leader,
            member_id=member.member_id,
            members=describe_members(group) if can_skip and is_leader else [],
        )

        def saved(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                reply(response)
                return
            reply(join_error(error, member.member_id))
            if group.state is GroupState.STABLE:
                self._rebalance.prepare(group)

        assignments = {each.member_id: each.assignment for each in group.members.values()}
        self._groups.save(group, assignments, saved)

    def leave(self, request: LeaveGroupRequest, api_version: int) -> LeaveGroupResponse:
        """Remove members at once, so that nobody has to wait for their sessions to end."""
        if not request.group_id:
            return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        group = self._groups.classic(request.group_id)
        is_single = api_version < LEAVE_MANY_VERSION
        identities = request.members
        if is_single:
            identities = [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
        leaving: list[Member] = []
        results = []
        for each in identities:
            error = self._leave_one(group, each, leaving)
            results.append(
                LeaveGroupResponse.MemberResponse(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=error,
                )
            )
        if leaving:
            assert group is not None
            self._rebalance.dismiss(group, leaving)
        if is_single:
            return LeaveGroupResponse(error_code=results[0].error_code)
        return LeaveGroupResponse(members=results)

    def _leave_one(
        self,
        group: ClassicGroup | None,
        identity: LeaveGroupRequest.MemberIdentity,
        leaving: list[Member],
    ) -> ErrorCode:
        if group is None or group.state is GroupState.DEAD:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if instance_id is None and member_id in group.invited:
            self._uninvite(group, member_id)
            return ErrorCode.NONE
        if instance_id is not None and not member_id:
            member_id = group.static.get(instance_id, "")  # an administrator removes it
        error = group.check_member(member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
        if group.members[member_id] not in leaving:
            leaving.append(group.members[member_id])
        return ErrorCode.NONE


def _protocols(request: JoinGroupRequest) -> Protocols:
    return tuple((each.name, each.metadata) for each in request.protocols)


def _member_bytes(request: JoinGroupRequest) -> int:
    ids = len(request.group_instance_id or "") + len(request.protocol_type)
    return ids + protocols_bytes(_protocols(request))


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """Return how long others wait for this member; version 0 has no such field."""
    timeout_ms = request.rebalance_timeout_ms
    return timeout_ms if timeout_ms >= 0 else request.session_timeout_ms
