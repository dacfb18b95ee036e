"""A coordinator over a log on a simulated disk, and consumers that follow the classic protocol.

Nothing happens by itself: `run` completes appends and replies, `pass_time` fires timers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.coordinator import GroupCoordinator
from frazil.kafka.groups.member import JoiningClient
from frazil.kafka.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from frazil.kafka.wire.messages.heartbeat import HeartbeatRequest
from frazil.kafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from frazil.kafka.wire.messages.leave_group import LeaveGroupRequest
from frazil.kafka.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from frazil.kafka.wire.messages.offset_fetch import OffsetFetchRequest
from frazil.kafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from frazil.kafka.wire.records import encode_versioned
from frazil.log import Log
from frazil.model import KiB, Rand
from frazil.settings import GroupsConfig, LogConfig, TopicConfig
from tests.log.build import Fatal
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk

GROUP = "g"
TOPIC = "t"
PARTITIONS = 3
SESSION_MS = 10_000
REBALANCE_MS = 30_000
CONFIG = GroupsConfig(initial_rebalance_delay_ms=500)
LOG = LogConfig(
    segment_bytes_max=4 * KiB,
    batch_bytes_max=64 * KiB,
    queue_bytes_max=256 * KiB,
    disk_bytes_max=1024 * KiB,
    index_interval_bytes=512,
)
"""Segments of some dozen commits, so that compaction has something to do."""

T = TypeVar("T")


class Box(Generic[T]):
    """Takes one reply."""

    def __init__(self) -> None:
        self.value: T | None = None

    def __call__(self, value: T) -> None:
        assert self.value is None, "a request was answered twice"
        self.value = value

    @property
    def got(self) -> T:
        assert self.value is not None, "the request was not answered"
        return self.value


class Node:
    """A coordinator that can be killed and started again."""

    def __init__(self, disk: SimDisk | None = None, config: GroupsConfig = CONFIG) -> None:
        self.disk = disk or SimDisk()
        self.clock = SimClock()
        self.config = config
        self._seed = 0
        self.start()

    def start(self) -> None:
        self._seed += 1
        self.posted: deque[Callable[[], None]] = deque()
        rand = Rand(self._seed)
        self.log = Log.open(
            self.disk, LOG, clock=self.clock, rand=rand, fatal=Fatal(), threaded=False
        )
        self.log.create_topic(TOPIC, TopicConfig(partitions=PARTITIONS))
        self.coordinator = GroupCoordinator(
            self.log, self.config, clock=self.clock, rand=rand, post=self.posted.append
        )
        self.coordinator.groups.journal.create_topic()

    def kill(self) -> None:
        """kill -9: what was written stays, whether it was synced or not."""
        self.disk = self.disk.process_kill()
        self.start()

    def run(self) -> None:
        """Complete what waits for the disk, and all that follows from it."""
        while self.log.writer.step() or self.posted:
            while self.posted:
                self.posted.popleft()()

    def pass_time(self, ms: int) -> None:
        """Fire timers one after the other, with what follows from each."""
        end_ms = self.coordinator.timers.now_ms() + ms
        while True:
            self.run()
            next_ms = self.coordinator.timers.next_ms
            now_ms = self.coordinator.timers.now_ms()
            if next_ms is None or next_ms > end_ms:
                self.clock.advance(end_ms - now_ms)
                return
            self.clock.advance(max(0, next_ms - now_ms))
            self.coordinator.timers.run_due()

    def commit(
        self,
        partition: int,
        offset: int,
        *,
        generation: int = -1,
        member_id: str = "",
        metadata: str = "",
        group: str = GROUP,
    ) -> Box[OffsetCommitResponse]:
        """Send OffsetCommit of one partition."""
        box: Box[OffsetCommitResponse] = Box()
        each = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[each])],
        )
        self.coordinator.commits.commit(request, 9, box)
        return box

    def fetch(
        self, *, is_stable: bool = False, group: str = GROUP
    ) -> dict[int, tuple[int, str, int]]:
        """Return offset, metadata and error by partition, of all that is committed."""
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=None)],
            require_stable=is_stable,
        )
        (found,) = self.coordinator.queries.fetch(request, 9).groups
        return {
            each.partition_index: (each.committed_offset, each.metadata or "", each.error_code)
            for topic in found.topics
            for each in topic.partitions
        }


def code_of(response: OffsetCommitResponse) -> ErrorCode:
    """The error of a response with one partition."""
    return ErrorCode(response.topics[0].partitions[0].error_code)


def subscription() -> bytes:
    return encode_versioned(ConsumerProtocolSubscription(topics=[TOPIC]), 1)


@dataclass(eq=False)
class Consumer:
    """Follows the classic protocol as a client library does. Its assignment is a set of partitions,
    written as bytes."""

    node: Node
    name: str = "c"
    instance_id: str | None = None
    version: int = 9
    member_id: str = ""
    generation: int = -1
    owned: frozenset[int] = frozenset()
    is_leader: bool = False
    is_lost: bool = False
    """It learned that it is no member any more."""
    joining: Box[JoinGroupResponse] | None = None
    syncing: Box[SyncGroupResponse] | None = None
    errors: list[ErrorCode] = field(default_factory=list)

    def join(self) -> None:
        """Send JoinGroup; `look` takes the answer."""
        self.joining, self.syncing = Box(), None
        self.owned, self.generation = frozenset(), -1
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=subscription())
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[protocol],
        )
        client = JoiningClient(client_id=self.name, client_host="/here", api_version=self.version)
        self.node.coordinator.membership.join(request, client, self.joining)

    def look(self) -> None:
        """Take answers that are there, and go on as the protocol says."""
        if self.joining is not None and self.joining.value is not None:
            response, self.joining = self.joining.value, None
            self._joined(response)
        if self.syncing is not None and self.syncing.value is not None:
            synced, self.syncing = self.syncing.value, None
            if synced.error_code:
                self.fail(ErrorCode(synced.error_code))
            else:
                self.owned = frozenset(synced.assignment)

    def _joined(self, response: JoinGroupResponse) -> None:
        code = ErrorCode(response.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self.join()
            return
        if code is not ErrorCode.NONE:
            self.fail(code)
            return
        self.member_id, self.generation = response.member_id, response.generation_id
        self.is_leader = response.leader == self.member_id and not response.skip_assignment
        members = sorted(each.member_id for each in response.members) if self.is_leader else []
        self.sync(
            {
                member: bytes(range(number, PARTITIONS, len(members)))
                for number, member in enumerate(members)
            }
        )

    def sync(self, assignments: dict[str, bytes]) -> None:
        self.syncing = Box()
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=key, assignment=value)
                for key, value in assignments.items()
            ],
        )
        self.node.coordinator.assignment.sync(request, self.syncing)

    def fail(self, code: ErrorCode) -> None:
        """Give up what it owns; join again, with a new id if the old one is unknown."""
        self.errors.append(code)
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
            self.is_lost = True
        self.owned, self.generation = frozenset(), -1
        self.joining = self.syncing = None

    def heartbeat(self) -> ErrorCode:
        """Send Heartbeat, and join again if told so."""
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        code = ErrorCode(self.node.coordinator.assignment.heartbeat(request).error_code)
        if code is not ErrorCode.NONE:
            self.fail(code)
        return code

    def leave(self) -> None:
        identity = LeaveGroupRequest.MemberIdentity(
            member_id=self.member_id, group_instance_id=self.instance_id
        )
        request = LeaveGroupRequest(group_id=GROUP, members=[identity])
        self.node.coordinator.membership.leave(request, 5)
        self.fail(ErrorCode.NONE)
        self.member_id = ""

    @property
    def is_idle(self) -> bool:
        """Whether it has neither a generation nor a request on its way."""
        return self.joining is None and self.syncing is None and self.generation < 0


def settle(node: Node, *consumers: Consumer, rounds: int = 20) -> None:
    """Let consumers follow the protocol until all own something, or for some rounds."""
    for _ in range(rounds):
        for each in consumers:
            if each.is_idle:
                each.join()
            elif each.generation >= 0 and each.syncing is None:
                each.heartbeat()
        node.pass_time(600)
        for each in consumers:
            each.look()
        node.run()
        for each in consumers:
            each.look()
