"""ConsumerGroup: a group whose partitions the server assigns (KIP-848).

What is durable is `data`. Requests change a copy of it; while that copy is on its way to the disk
it is `pending`, and further requests wait in `queue`.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from frazil.kafka.groups.group import GroupState
from frazil.kafka.groups.journal import KeyValue
from frazil.kafka.groups.timers import GroupTimer

JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH = 0, -1, -2
"""Epochs in a request that are none: join, leave, leave and come back as the same instance."""


class IdPartition(NamedTuple):
    """A partition of a topic that is named by its id."""

    topic_id: bytes
    partition: int


Partitions = frozenset[IdPartition]
NO_PARTITIONS: Partitions = frozenset()


class MemberState(enum.IntEnum):
    """How far a member is on its way to its target. Numbers are Kafka's."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has been told to give up partitions, and has not said yet that it did."""
    UNRELEASED_PARTITIONS = 2
    """Other members still own partitions that it shall get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """One member: what it has subscribed to, and what it owns."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topics: tuple[str, ...]
    """Names it has subscribed to, sorted."""
    regex: str | None
    assignor: str | None
    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    """Accepted too: the answer with the last epoch may have been lost."""
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NO_PARTITIONS
    revoking: Partitions = NO_PARTITIONS
    """It may still own these, and nobody else gets them."""

    @property
    def size_bytes(self) -> int:
        """Bytes of what it sent."""
        texts = (self.member_id, self.instance_id, self.rack_id, self.regex, self.assignor)
        return sum(len(each or "") for each in (*texts, *self.topics))


class SeenTopics(NamedTuple):
    """Topics that match the regular expression of a member, and that it may describe."""

    names: tuple[str, ...]
    version: tuple[int, int]
    """Of the topics and the ACLs."""


class ConsumerGroupData:
    """All that is stored of a group. No partition ever has two owners."""

    def __init__(self) -> None:
        self.epoch = 0
        """Rises with every change of members, subscriptions or topics."""
        self.metadata_hash = 0
        """Of the subscribed topics, as they were when the epoch began."""
        self.assignment_epoch = 0
        """The epoch that the target was computed for."""
        self.members: dict[str, ConsumerMember] = {}
        self.target: dict[str, Partitions] = {}
        """What each member shall own in the end."""
        self.regexes: dict[str, tuple[str, ...]] = {}
        """Topics that match each regular expression of a member."""
        self.seen: dict[str, SeenTopics] = {}
        """By member id, if there are ACLs. Not stored: until a member is heard of after a restart,
        the topics of its regular expression are what they were."""
        self.static: dict[str, str] = {}
        """Member id by instance id."""
        self.owners: dict[IdPartition, str] = {}
        """Who owns a partition, or may still own it."""
        self.size_bytes = 0

    def copy(self) -> ConsumerGroupData:
        other = ConsumerGroupData()
        other.epoch, other.metadata_hash = self.epoch, self.metadata_hash
        other.assignment_epoch, other.size_bytes = self.assignment_epoch, self.size_bytes
        other.members, other.target = dict(self.members), dict(self.target)
        other.regexes, other.static = dict(self.regexes), dict(self.static)
        other.owners, other.seen = dict(self.owners), dict(self.seen)
        return other

    def put(self, member: ConsumerMember) -> None:
        """Add a member, or replace what is known of it."""
        known = self.members.get(member.member_id)
        if known is member:
            return
        if known is not None:
            self._release(known)
        self.members[member.member_id] = member
        self.size_bytes += member.size_bytes
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        for partition in member.assigned | member.revoking:
            owner = self.owners.setdefault(partition, member.member_id)
            assert owner == member.member_id, f"{owner} owns {partition} already"

    def remove(self, member: ConsumerMember) -> None:
        """Forget a member. Its partitions are free."""
        self._release(member)
        del self.members[member.member_id]
        self.target.pop(member.member_id, None)
        self.seen.pop(member.member_id, None)

    def _release(self, member: ConsumerMember) -> None:
        self.size_bytes -= member.size_bytes
        if member.instance_id is not None:
            del self.static[member.instance_id]
        for partition in member.assigned | member.revoking:
            del self.owners[partition]

    def matching(self, member: ConsumerMember) -> tuple[str, ...]:
        """Return the topics that match the regular expression of a member."""
        if member.regex is None:
            return ()
        seen = self.seen.get(member.member_id)
        return self.regexes.get(member.regex, ()) if seen is None else seen.names

    def subscribed_topics(self) -> set[str]:
        """Return the names of all topics that members are subscribed to, existing or not."""
        found = {name for member in self.members.values() for name in member.topics}
        return found.union(*self.regexes.values())


@dataclass(slots=True)
class MemberSession:
    """Until when a member must be heard of."""

    deadline_ms: int
    timer: GroupTimer
    revoke_timer: GroupTimer | None = None
    """Runs while it has partitions to give up."""


@dataclass(eq=False)
class ConsumerGroup:
    """A group in memory."""

    group_id: str
    state_ms: int = 0
    """When the last member left, in wall time; when the node started, if that was before."""
    data: ConsumerGroupData = field(default_factory=ConsumerGroupData)
    pending: ConsumerGroupData | None = None
    queue: deque[Any] = field(default_factory=deque)
    is_saved: bool = False
    """There are records of it."""
    is_dead: bool = False
    """It is being deleted."""
    old_records: list[KeyValue] = field(default_factory=list)
    """Tombstones of the classic group that it was, until they are durable."""
    sessions: dict[str, MemberSession] = field(default_factory=dict)
    topics_version: int = -1
    """Version of the topics that were looked at last."""

    @property
    def members(self) -> dict[str, ConsumerMember]:
        return self.data.members

    @property
    def is_idle(self) -> bool:
        """Whether no request waits, and none is on its way to the disk."""
        return self.pending is None and not self.queue

    @property
    def is_removable(self) -> bool:
        """Whether nobody is, or is about to become, a member."""
        return not self.members and self.is_idle and not self.is_dead

    @property
    def state(self) -> GroupState:
        data = self.data
        if self.is_dead:
            return GroupState.DEAD
        if not data.members:
            return GroupState.EMPTY
        if data.epoch > data.assignment_epoch:
            return GroupState.ASSIGNING
        for member in list(data.members.values()):
            if member.state is not MemberState.STABLE or member.epoch != data.assignment_epoch:
                return GroupState.RECONCILING
        return GroupState.STABLE
