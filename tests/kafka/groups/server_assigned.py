"""Consumers that follow the protocol in which the server assigns the partitions (KIP-848)."""

from __future__ import annotations

from dataclasses import dataclass, field

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.consumer.records import by_topic, read_partitions
from frazil.kafka.groups.consumer_group import ConsumerGroup, IdPartition
from frazil.kafka.groups.member import JoiningClient
from frazil.kafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.kafka.groups.build import GROUP, REBALANCE_MS, TOPIC, Box, Node

BEAT_MS = 5_000
REJOIN = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_INSTANCE_ID}


def group_of(node: Node) -> ConsumerGroup:
    group = node.coordinator.groups.get(GROUP)
    assert isinstance(group, ConsumerGroup)
    return group


def partitions_of(node: Node, *names: str) -> set[IdPartition]:
    """All partitions of these topics."""
    topics = [node.log.topic(name) for name in names]
    return {
        IdPartition(topic.topic_id.bytes, number)
        for topic in topics
        for number in range(len(topic.partitions))
    }


@dataclass(eq=False)
class ServerConsumer:
    """Sends heartbeats as a client library does: what has changed, and all after an error."""

    node: Node
    member_id: str
    instance_id: str | None = None
    topics: tuple[str, ...] = (TOPIC,)
    regex: str | None = None
    assignor: str | None = None
    epoch: int = 0
    owned: frozenset[IdPartition] = frozenset()
    assigned: frozenset[IdPartition] = frozenset()
    """What it was told to own. It gives up the rest with `revoke`."""
    must_say_all: bool = True
    told: tuple[object, ...] = ()
    """What the coordinator knows, if the answer comes."""
    waiting: Box[ConsumerGroupHeartbeatResponse] | None = None
    errors: list[ErrorCode] = field(default_factory=list)

    @property
    def _says(self) -> tuple[object, ...]:
        return (self.topics, self.regex, self.owned)

    def send(self) -> Box[ConsumerGroupHeartbeatResponse]:
        """Send a heartbeat; `look` takes the answer."""
        is_whole = self.must_say_all or self.epoch == 0
        is_other = is_whole or self.told != self._says
        kind = ConsumerGroupHeartbeatRequest.TopicPartitions
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=REBALANCE_MS if is_whole else -1,
            subscribed_topic_names=list(self.topics) if is_other else None,
            subscribed_topic_regex=self.regex if is_other else None,
            server_assignor=self.assignor if is_whole else None,
            topic_partitions=(
                [kind(*each) for each in by_topic(self.owned).items()] if is_other else None
            ),
        )
        self.told = self._says
        self.waiting = self._ask(request)
        return self.waiting

    def _ask(self, request: ConsumerGroupHeartbeatRequest) -> Box[ConsumerGroupHeartbeatResponse]:
        box: Box[ConsumerGroupHeartbeatResponse] = Box()
        client = JoiningClient(client_id="c", client_host="/here", api_version=1)
        self.node.coordinator.heartbeats.heartbeat(request, client, box)
        return box

    def look(self) -> None:
        """Take the answer, if it is there."""
        if self.waiting is None or self.waiting.value is None:
            return
        response, self.waiting = self.waiting.value, None
        code = ErrorCode(response.error_code)
        self.must_say_all = code is not ErrorCode.NONE
        if code is not ErrorCode.NONE:
            self.errors.append(code)
            if code in REJOIN:
                self.drop()
            return
        assert response.member_epoch >= self.epoch
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.assigned = read_partitions(response.assignment.topic_partitions)
            self.owned |= self.assigned

    def revoke(self) -> None:
        """Give up what it was told to give up."""
        self.owned &= self.assigned

    def drop(self) -> None:
        """Own nothing, and join again."""
        self.owned = self.assigned = frozenset()
        self.epoch, self.must_say_all, self.waiting = 0, True, None

    def lose(self) -> None:
        """Its answer does not arrive."""
        self.waiting, self.must_say_all = None, True

    def leave(self, epoch: int = -1) -> Box[ConsumerGroupHeartbeatResponse]:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
        )
        self.drop()
        return self._ask(request)


def settle(node: Node, *consumers: ServerConsumer, rounds: int = 6) -> None:
    """Let consumers follow the protocol for some heartbeats."""
    for _ in range(rounds):
        for each in consumers:
            each.look()
            each.revoke()
            if each.waiting is None:
                each.send()
            node.run()
            each.look()
        node.pass_time(BEAT_MS)
