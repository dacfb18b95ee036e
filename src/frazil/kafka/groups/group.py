"""ClassicGroup: members, generation and state of a group whose leader assigns the partitions.

Empty ──join──> PreparingRebalance ──all joined──> CompletingRebalance ──leader syncs──> Stable
  ^                 │    ^                                 │                               │
  └──all have left──┘    └──a member joins, leaves or times out────────────────────────────┘
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.journal import KeyValue
from frazil.kafka.groups.member import Member, Protocols
from frazil.kafka.groups.timers import GroupTimer

NO_GENERATION = -1


class GroupState(enum.StrEnum):
    """Names are Kafka's."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    """The last two are states of groups whose partitions the server assigns."""
    DEAD = "Dead"


class ClassicGroup:
    """Data only: `Rebalance`, `Membership` and `Assignment` say what happens."""

    def __init__(self, group_id: str, state_ms: int = 0) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_ms = state_ms
        """When the state began, in wall time."""
        self.generation = 0
        self.saved_generation = NO_GENERATION
        """The last generation that is durable. Nobody is told of a later one."""
        self.protocol_type: str | None = None
        """Such as `consumer` or `connect`; None for a group that only commits offsets."""
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}
        """Member id by instance id."""
        self.invited: dict[str, GroupTimer] = {}
        """Ids given to clients that have not joined with them yet."""
        self.to_sync: set[str] = set()
        """Members that have the generation and have not sent SyncGroup yet."""
        self.rebalance_timer: GroupTimer | None = None
        self.delay_left_ms = 0
        """How long the first rebalance may still be delayed for more members."""
        self.is_growing = False
        """A member joined during the delay of the first rebalance."""
        self.is_assigning = False
        """The leader's assignment is on its way to the disk."""
        self.when_saved: list[Callable[[ErrorCode], None]] = []
        """What waits until the generation is durable."""
        self.old_records: list[KeyValue] = []
        """Tombstones of what the group was before it became a classic one, until they are
        durable."""
        self.size_bytes = 0
        self._supporters: Counter[str] = Counter()

    @property
    def is_saved(self) -> bool:
        """Whether there is a record of it."""
        return self.saved_generation != NO_GENERATION

    @property
    def is_dead(self) -> bool:
        """Whether it is being deleted."""
        return self.state is GroupState.DEAD

    @property
    def is_removable(self) -> bool:
        """Whether nobody is, or is about to become, a member."""
        return self.state is GroupState.EMPTY and not self.invited

    def add(self, member: Member) -> None:
        """Add a member; the first one leads."""
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        self._count(member, 1)
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member: Member) -> None:
        """Remove a member. Another one leads if it did."""
        del self.members[member.member_id]
        if member.instance_id is not None:
            self.static.pop(member.instance_id, None)
        self.to_sync.discard(member.member_id)
        self._count(member, -1)
        if member.timer is not None:
            member.timer.cancel()
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member another id: its process was restarted."""
        assert member.instance_id is not None
        is_leader = self.leader_id == member.member_id
        self.members = {
            (member_id if key == member.member_id else key): value
            for key, value in self.members.items()
        }
        self.static[member.instance_id] = member_id
        if member.member_id in self.to_sync:
            self.to_sync.remove(member.member_id)
            self.to_sync.add(member_id)
        member.member_id = member_id
        if is_leader:
            self.leader_id = member_id

    def update_protocols(self, member: Member, protocols: Protocols) -> None:
        """Take what a member sent when it joined again."""
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)

    def _count(self, member: Member, sign: int) -> None:
        self.size_bytes += sign * member.size_bytes
        for name in {name for name, _ in member.protocols}:
            self._supporters[name] += sign
            if not self._supporters[name]:
                del self._supporters[name]

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols has one in common with all others."""
        if not protocol_type or not protocols:
            return False
        if not self.members:
            return True
        candidates = self._candidates()
        return self.protocol_type == protocol_type and any(n in candidates for n, _ in protocols)

    def _candidates(self) -> set[str]:
        count = len(self.members)
        return {name for name, supporters in self._supporters.items() if supporters == count}

    def select_protocol(self) -> str:
        """Return the protocol that most members like best, of those that all can use."""
        candidates = self._candidates()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that a member asked for."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    @property
    def has_all_joined(self) -> bool:
        """Whether every member waits for the next generation, and nobody else was invited."""
        return not self.invited and all(m.join_reply is not None for m in self.members.values())

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Return the error of a request by this member."""
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        elif member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    def check_generation(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Return the error of a request by this member in this generation."""
        error = self.check_member(member_id, instance_id)
        if error is ErrorCode.NONE and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error
