"""MemberSessions: members that are silent for too long, or do not give up partitions in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from frazil.kafka.groups.consumer_group import (
    ConsumerGroup,
    ConsumerGroupData,
    ConsumerMember,
    MemberSession,
    MemberState,
)
from frazil.kafka.groups.timers import GroupTimers
from frazil.settings import GroupsConfig

RETRY_MS = 1_000
"""After this a member is removed again, if that could not be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dismissal:
    """A member is to be removed."""

    member_id: str
    is_due: Callable[[ConsumerMember], bool]
    """Whether it still is, when its turn comes."""
    retry: Callable[[], None]
    """Called if that could not be stored."""


Dismiss = Callable[[ConsumerGroup, Dismissal], None]


class MemberSessions:
    """Owned by one thread."""

    def __init__(self, timers: GroupTimers, config: GroupsConfig, dismiss: Dismiss) -> None:
        self._timers = timers
        self._timeout_ms = config.consumer_session_timeout_ms
        self._dismiss = dismiss

    def heard(self, group: ConsumerGroup, member_id: str) -> None:
        """A member shows that it lives: its session begins anew."""
        group.sessions[member_id].deadline_ms = self._timers.now_ms() + self._timeout_ms

    def follow(self, group: ConsumerGroup, before: ConsumerGroupData) -> None:
        """Begin and end sessions after members have changed."""
        members = group.members
        for member_id in before.members.keys() - members.keys():
            session = group.sessions.pop(member_id)
            session.timer.cancel()
            if session.revoke_timer is not None:
                session.revoke_timer.cancel()
        for member_id, member in members.items():
            known = before.members.get(member_id)
            if known is member:
                continue
            if member_id not in group.sessions:
                now_ms = self._timers.now_ms()
                timer = self._timers.after(self._timeout_ms, partial(self._check, group, member_id))
                group.sessions[member_id] = MemberSession(now_ms + self._timeout_ms, timer)
            self._follow_revocation(group.sessions[member_id], group, member, known)

    def _follow_revocation(
        self,
        session: MemberSession,
        group: ConsumerGroup,
        member: ConsumerMember,
        known: ConsumerMember | None,
    ) -> None:
        is_revoking = bool(member.revoking)
        if is_revoking and known is not None and known.revoking and known.epoch == member.epoch:
            return
        if session.revoke_timer is not None:
            session.revoke_timer.cancel()
            session.revoke_timer = None
        if is_revoking:
            action = partial(self._end_revocation, group, member.member_id, member.epoch)
            session.revoke_timer = self._timers.after(member.rebalance_timeout_ms, action)

    def _check(self, group: ConsumerGroup, member_id: str) -> None:
        """Remove a member whose session is over."""
        session = group.sessions.get(member_id)
        if session is None:
            return

        def check_after(delay_ms: int) -> None:
            session.timer = self._timers.after(delay_ms, partial(self._check, group, member_id))

        def is_due(_: ConsumerMember) -> bool:
            left_ms = session.deadline_ms - self._timers.now_ms()
            if left_ms > 0:  # it was heard of meanwhile
                check_after(left_ms)
            return left_ms <= 0

        left_ms = session.deadline_ms - self._timers.now_ms()
        if left_ms > 0:
            check_after(left_ms)
            return
        retry = partial(check_after, RETRY_MS)
        self._dismiss(group, Dismissal(member_id=member_id, is_due=is_due, retry=retry))

    def _end_revocation(self, group: ConsumerGroup, member_id: str, epoch: int) -> None:
        """Remove a member that has not given up its partitions."""

        def is_due(member: ConsumerMember) -> bool:
            is_unrevoked = member.state is MemberState.UNREVOKED_PARTITIONS
            return is_unrevoked and member.epoch == epoch

        def retry() -> None:
            session = group.sessions.get(member_id)
            if session is not None:
                action = partial(self._end_revocation, group, member_id, epoch)
                session.revoke_timer = self._timers.after(RETRY_MS, action)

        self._dismiss(group, Dismissal(member_id=member_id, is_due=is_due, retry=retry))
