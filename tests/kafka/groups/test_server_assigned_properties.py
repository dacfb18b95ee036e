"""Groups whose partitions the server assigns, with lost answers, kills and power cuts between and
within steps.

No two members own a partition; epochs never go back; only members commit; and once clients behave,
every subscribed partition has an owner.
"""

from __future__ import annotations

from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from frazil.errors import Malformed, Unknown
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.consumer_group import ConsumerGroup
from frazil.model import Rand
from frazil.settings import GroupsConfig, TopicConfig
from tests.kafka.groups.build import GROUP, REBALANCE_MS, TOPIC, Node, code_of
from tests.kafka.groups.server_assigned import BEAT_MS, ServerConsumer, partitions_of, settle
from tests.sim.disk import Faults, PowerCut, SimDisk

WHICH = st.integers(0, 3)
OTHER = "u"
CONFIG = GroupsConfig(expiry_interval_ms=10**12)
SESSION_MS = CONFIG.consumer_session_timeout_ms


class ServerAssignedMachine(RuleBasedStateMachine):
    """Four consumers; each step is one thing that a client, the network, time or the power does."""

    @initialize(
        model=st.sampled_from(["ext4", "weak"]),
        is_static=st.booleans(),
        assignor=st.sampled_from([None, "range"]),
    )
    def begin(self, model: str, is_static: bool, assignor: str | None) -> None:
        self.node = Node(SimDisk(model="weak" if model == "weak" else "ext4"), CONFIG)
        names = ["s" if is_static else None, None, None, None]
        self.consumers = [
            ServerConsumer(self.node, f"m{number}", name, assignor=assignor)
            for number, name in enumerate(names)
        ]
        self.processes = len(self.consumers)
        self.last_epoch = 0

    def _group(self) -> ConsumerGroup | None:
        group = self.node.coordinator.groups.get(GROUP)
        return group if isinstance(group, ConsumerGroup) else None

    @rule(which=WHICH)
    def send(self, which: int) -> None:
        """A client sends a heartbeat, unless one is on its way."""
        if self.consumers[which].waiting is None:
            self.consumers[which].send()

    @rule(which=WHICH)
    def look(self, which: int) -> None:
        self.consumers[which].look()

    @rule(which=WHICH)
    def lose(self, which: int) -> None:
        """The connection breaks: an answer is lost, and the client asks again."""
        self.consumers[which].lose()

    @rule(which=WHICH)
    def revoke(self, which: int) -> None:
        self.consumers[which].revoke()

    @rule(which=WHICH, is_for_a_while=st.booleans())
    def leave(self, which: int, is_for_a_while: bool) -> None:
        """A client leaves; a static one may come back. The next one has another id."""
        consumer = self.consumers[which]
        consumer.leave(-2 if is_for_a_while and consumer.instance_id else -1)
        self._restart(which)

    @rule(which=WHICH)
    def crash(self, which: int) -> None:
        """A client's process ends, and is started again."""
        self.consumers[which].drop()
        self._restart(which)

    def _restart(self, which: int) -> None:
        self.consumers[which].member_id = f"m{self.processes}"
        self.processes += 1

    @rule(
        which=WHICH,
        topics=st.sampled_from([(TOPIC,), (OTHER,), (TOPIC, OTHER), ()]),
        regex=st.sampled_from([None, "", ".*", "u"]),
    )
    def subscribe(self, which: int, topics: tuple[str, ...], regex: str | None) -> None:
        self.consumers[which].topics = topics
        self.consumers[which].regex = regex if regex is not None else ""

    @rule(what=st.sampled_from(["create", "grow", "delete"]))
    def change_topics(self, what: str) -> None:
        with suppress(Unknown, Malformed):
            match what:
                case "create":
                    if not self.node.log.has_topic(OTHER):
                        self.node.log.create_topic(OTHER, TopicConfig(partitions=2))
                case "grow":
                    count = len(self.node.log.topic(OTHER).partitions)
                    self.node.log.add_partitions(OTHER, min(5, count + 1))
                case _:
                    self.node.log.delete_topic(OTHER)
                    self.node.coordinator.topic_deleted(OTHER)

    @rule(which=WHICH)
    def commit(self, which: int) -> None:
        """Only who is a member commits, and only with its epoch."""
        consumer, group = self.consumers[which], self._group()
        if group is None or consumer.epoch <= 0:
            return
        member = group.members.get(consumer.member_id)
        box = self.node.commit(0, 1, generation=consumer.epoch, member_id=consumer.member_id)
        self.node.run()
        if code_of(box.got) is ErrorCode.NONE:
            assert member is not None and member.epoch == consumer.epoch

    @rule()
    def run(self) -> None:
        self.node.run()

    @rule(ms=st.sampled_from([1000, BEAT_MS, REBALANCE_MS, SESSION_MS]))
    def pass_time(self, ms: int) -> None:
        self.node.pass_time(ms)

    @rule(ms=st.sampled_from([BEAT_MS, REBALANCE_MS, SESSION_MS]))
    def fire(self, ms: int) -> None:
        """Time passes, and the disk is slower than that."""
        self.node.clock.advance(ms)
        self.node.coordinator.timers.run_due()

    @rule(first=WHICH, count=st.integers(1, 4), is_killed=st.booleans())
    def beat(self, first: int, count: int, is_killed: bool) -> None:
        """Some send a heartbeat each, and give nothing up meanwhile; perhaps the node is killed
        before the others do."""
        for number in range(first, first + 4):
            if is_killed and number == first + count:
                self.kill()
            consumer = self.consumers[number % 4]
            consumer.look()
            if consumer.waiting is None:
                consumer.send()
            self.node.run()
            consumer.look()
            self.no_partition_has_two_owners()

    @rule(rounds=st.integers(1, 3))
    def behave(self, rounds: int) -> None:
        settle(self.node, *self.consumers, rounds=rounds)

    @rule()
    def come_to_rest(self) -> None:
        """All behave until old sessions are over: each partition has one owner."""
        settle(self.node, *self.consumers, rounds=2 * SESSION_MS // BEAT_MS + 8)
        names = {name for each in self.consumers for name in each.topics}
        if any(each.regex == ".*" for each in self.consumers):
            names |= {TOPIC, OTHER}
        if any(each.regex == "u" for each in self.consumers):
            names.add(OTHER)
        wanted = partitions_of(self.node, *(n for n in names if self.node.log.has_topic(n)))
        owned = [each for consumer in self.consumers for each in consumer.owned]
        assert sorted(owned) == sorted(wanted)
        group = self._group()
        assert group is not None and group.state == "Stable"

    @rule()
    def kill(self) -> None:
        self.node.kill()
        self._restarted()

    @rule(seed=st.integers(0, 2**32 - 1), calls=st.integers(0, 6))
    def cut_power(self, seed: int, calls: int) -> None:
        """Cut the power now, or in the middle of the next storage calls."""
        if calls:
            self.node.disk.faults = Faults(crash_at=self.node.disk.calls + calls)
            with suppress(PowerCut):
                self.node.run()
        self.node.disk = self.node.disk.crash(Rand(seed), Faults())
        self.node.start()
        self._restarted()

    def _restarted(self) -> None:
        """Answers that were on their way are lost, unless they had arrived."""
        for consumer in self.consumers:
            if consumer.waiting is not None and consumer.waiting.value is None:
                consumer.lose()

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        """Who is no member any more does not count: it has been silent for too long."""
        group = self._group() if hasattr(self, "node") else None
        if group is None:
            return
        seen: dict[object, str] = {}
        for consumer in self.consumers:
            if consumer.member_id in group.members:
                for partition in consumer.owned:
                    other = seen.setdefault(partition, consumer.member_id)
                    assert other == consumer.member_id, f"{partition} has two owners"
        for member in group.members.values():
            assert member.epoch <= group.data.assignment_epoch <= group.data.epoch
        assert group.data.epoch >= self.last_epoch, "an epoch that was told is given again"
        told = max((each.epoch for each in self.consumers), default=0)
        self.last_epoch = max(self.last_epoch, told)


ServerAssignedMachine.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None
)
TestServerAssigned = ServerAssignedMachine.TestCase
