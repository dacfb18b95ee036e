"""Rebalance: from one generation of a classic group to the next.

A generation is durable before a member is told of it, so that a restart never gives its number to
other members. If the node stops after that, the members still find their generation and wait for
the leader's assignment.
"""

from __future__ import annotations

from functools import partial

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.group import NO_GENERATION, ClassicGroup, GroupState
from frazil.kafka.groups.groups import Groups
from frazil.kafka.groups.member import Member, Reply
from frazil.kafka.wire.messages.join_group import JoinGroupResponse
from frazil.kafka.wire.messages.sync_group import SyncGroupResponse
from frazil.metrics import Counter

NEW_MEMBER_TIMEOUT_MS = 300_000
"""A member that waits for its first generation is removed after this, as its client may be gone."""

REBALANCES = Counter(
    "frazil.kafka.group.rebalances", "Generations and epochs of groups that were formed."
)
EXPIRED = Counter(
    "frazil.kafka.group.expired.members", "Members removed because they were silent for too long."
)


class Rebalance:
    """Owned by one thread."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._timers = groups.timers

    def abandon(self, group: ClassicGroup) -> None:
        """Answer members that wait: the node stops. They come back after its start."""
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        for member in group.members.values():
            member.answer_join(join_error(error, member.member_id))
            member.answer_sync(SyncGroupResponse(error_code=error))

    def resume(self, group: ClassicGroup) -> None:
        """Watch the members of a group that was read from the log."""
        for member in group.members.values():
            self.heard(group, member)
        if group.state is GroupState.COMPLETING:
            group.to_sync = set(group.members)
            self._await_syncs(group)

    def heard(self, group: ClassicGroup, member: Member) -> None:
        """A member shows that it lives: its session begins anew."""
        timeout_ms = member.session_timeout_ms
        if member.is_new and member.join_reply is not None:
            timeout_ms = max(timeout_ms, NEW_MEMBER_TIMEOUT_MS)
        member.deadline_ms = self._timers.now_ms() + timeout_ms
        timer = member.timer
        if timer is None or timer.action is None or timer.at_ms > member.deadline_ms:
            if timer is not None:
                timer.cancel()
            member.timer = self._timers.after(timeout_ms, partial(self._check, group, member))

    def _check(self, group: ClassicGroup, member: Member) -> None:
        """Remove a member whose session is over."""
        if group.members.get(member.member_id) is not member:
            return
        now_ms = self._timers.now_ms()
        is_waiting = member.sync_reply is not None or (
            member.join_reply is not None and not member.is_new
        )
        if is_waiting:
            member.deadline_ms = now_ms + member.session_timeout_ms
        if member.deadline_ms > now_ms:
            action = partial(self._check, group, member)
            member.timer = self._timers.after(member.deadline_ms - now_ms, action)
            return
        EXPIRED.add()
        self.dismiss(group, [member])

    def dismiss(self, group: ClassicGroup, members: list[Member]) -> None:
        """Remove members, and share their partitions among the others."""
        for member in members:
            self._remove(group, member)
        if group.state in (GroupState.STABLE, GroupState.COMPLETING):
            self.prepare(group)
        else:
            self.try_complete(group)

    def _remove(self, group: ClassicGroup, member: Member) -> None:
        group.remove(member)
        member.answer_join(join_error(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))
        member.answer_sync(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))

    def prepare(self, group: ClassicGroup) -> None:
        """Begin a rebalance: all members must join again."""
        is_first = group.state is GroupState.EMPTY
        for member in group.members.values():
            if member.sync_reply is not None:
                member.answer_sync(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
                self.heard(group, member)
        group.to_sync.clear()
        group.is_assigning = False
        self._stop_timer(group)
        self._groups.move(group, GroupState.PREPARING)
        delay_ms = self._groups.config.initial_rebalance_delay_ms
        if is_first and delay_ms:
            self._delay(group, delay_ms, group.rebalance_timeout_ms)
            return
        self._limit(group)
        self.try_complete(group)

    def _delay(self, group: ClassicGroup, delay_ms: int, left_ms: int) -> None:
        """Wait for more members before the first generation, as long as some keep coming."""
        delay_ms = min(delay_ms, left_ms)
        group.delay_left_ms = max(1, left_ms - delay_ms)
        group.is_growing = False
        group.rebalance_timer = self._timers.after(delay_ms, partial(self._end_delay, group))

    def _end_delay(self, group: ClassicGroup) -> None:
        if group.is_growing and group.delay_left_ms > 1:
            delay_ms = self._groups.config.initial_rebalance_delay_ms
            self._delay(group, delay_ms, group.delay_left_ms)
            return
        group.delay_left_ms = 0
        self._limit(group)
        self.try_complete(group)

    def _limit(self, group: ClassicGroup) -> None:
        """Go on without members that do not join in time."""
        self._stop_timer(group)
        action = partial(self.complete, group)
        group.rebalance_timer = self._timers.after(group.rebalance_timeout_ms, action)

    def _stop_timer(self, group: ClassicGroup) -> None:
        group.delay_left_ms = 0
        if group.rebalance_timer is not None:
            group.rebalance_timer.cancel()
            group.rebalance_timer = None

    def try_complete(self, group: ClassicGroup) -> None:
        """End the rebalance if nobody is missing."""
        is_delayed = group.delay_left_ms > 0 and group.members
        if group.state is GroupState.PREPARING and not is_delayed and group.has_all_joined:
            self.complete(group)

    def complete(self, group: ClassicGroup) -> None:
        """Form the next generation of those that have joined."""
        if group.state is not GroupState.PREPARING:
            return
        joined = [member for member in group.members.values() if member.join_reply is not None]
        if not joined and group.static:
            self._limit(group)  # static members may come back later
            return
        for member in list(group.members.values()):
            if member.join_reply is None and member.instance_id is None:
                group.remove(member)
        self._stop_timer(group)
        group.generation += 1
        if group.members:
            self._begin_generation(group, joined)
        else:
            self._empty(group)

    def _empty(self, group: ClassicGroup) -> None:
        group.protocol_name = group.leader_id = None
        self._groups.move(group, GroupState.EMPTY)
        self._groups.save(group, {}, partial(self._generation_saved, group, group.generation))

    def _begin_generation(self, group: ClassicGroup, joined: list[Member]) -> None:
        REBALANCES.add()
        group.protocol_name = group.select_protocol()
        if group.leader_id not in {member.member_id for member in joined}:
            group.leader_id = joined[0].member_id
        self._groups.move(group, GroupState.COMPLETING)
        group.to_sync = set(group.members)
        for member in group.members.values():
            member.assignment = b""
        waiting = []
        for member in joined:
            reply, member.join_reply = member.join_reply, None
            member.is_new = False
            self.heard(group, member)
            assert reply is not None
            waiting.append((member, reply, self.joined(group, member)))
        generation = group.generation

        def saved(error: ErrorCode) -> None:
            for member, reply, response in waiting:
                failed = join_error(error, member.member_id)
                reply(response if error is ErrorCode.NONE else failed)
            self._generation_saved(group, generation, error)

        self._groups.save(group, {}, saved)
        self._await_syncs(group)

    def _generation_saved(self, group: ClassicGroup, generation: int, error: ErrorCode) -> None:
        if group.generation != generation:
            return
        waiting, group.when_saved = group.when_saved, []
        for each in waiting:
            each(error)
        if error is not ErrorCode.NONE and group.state is GroupState.COMPLETING:
            self.prepare(group)

    def _await_syncs(self, group: ClassicGroup) -> None:
        """Remove members that do not send SyncGroup in time."""
        self._stop_timer(group)
        action = partial(self._end_syncs, group, group.generation)
        group.rebalance_timer = self._timers.after(group.rebalance_timeout_ms, action)

    def _end_syncs(self, group: ClassicGroup, generation: int) -> None:
        if group.generation != generation or group.state is GroupState.PREPARING:
            return
        late = [group.members[key] for key in group.to_sync if key in group.members]
        if late:
            EXPIRED.add(len(late))
            self.dismiss(group, late)

    def joined(self, group: ClassicGroup, member: Member) -> JoinGroupResponse:
        """Return what a member learns of its generation. The leader gets all members."""
        is_leader = group.leader_id == member.member_id
        return JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=group.leader_id or "",
            member_id=member.member_id,
            members=describe_members(group) if is_leader else [],
        )

    def answer_when_saved(
        self, group: ClassicGroup, response: JoinGroupResponse, reply: Reply[JoinGroupResponse]
    ) -> None:
        """Tell a member of its generation once it is durable."""
        if group.saved_generation >= group.generation:
            reply(response)
            return

        def saved(error: ErrorCode) -> None:
            failed = join_error(error, response.member_id)
            reply(response if error is ErrorCode.NONE else failed)

        group.when_saved.append(saved)


def describe_members(group: ClassicGroup) -> list[JoinGroupResponse.JoinGroupResponseMember]:
    """Return all members with the metadata of the selected protocol, for the leader."""
    return [
        JoinGroupResponse.JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata_of(group.protocol_name),
        )
        for member in group.members.values()
    ]


def join_error(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """Return a refused JoinGroup."""
    return JoinGroupResponse(
        error_code=error,
        generation_id=NO_GENERATION,
        protocol_type=None,
        protocol_name="",
        member_id=member_id,
    )
