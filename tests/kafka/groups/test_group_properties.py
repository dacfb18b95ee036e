"""Groups against a small model, with kills and power cuts between and within steps.

No two members own a partition in one generation; a generation never gets other members; no commit
that was acknowledged is lost, and none that was refused appears.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.messages.offset_commit import OffsetCommitResponse
from frazil.model import Rand
from frazil.settings import GroupsConfig
from tests.kafka.groups.build import PARTITIONS, SESSION_MS, Box, Consumer, Node, code_of
from tests.sim.disk import Faults, PowerCut, SimDisk

WHICH = st.integers(0, 3)
NEVER_MS = 10**12
CONFIG = GroupsConfig(expiry_interval_ms=NEVER_MS, initial_rebalance_delay_ms=500)
"""An expired group begins again at generation 1, which this model does not know."""


class GroupMachine(RuleBasedStateMachine):
    """Four consumers; each step is one thing that a client, the network, time or the power does."""

    @initialize(
        model=st.sampled_from(["ext4", "weak"]),
        is_static=st.booleans(),
        delay_ms=st.sampled_from([0, 500]),
        version=st.sampled_from([3, 9]),
    )
    def begin(self, model: str, is_static: bool, delay_ms: int, version: int) -> None:
        config = msgspec.structs.replace(CONFIG, initial_rebalance_delay_ms=delay_ms)
        self.node = Node(SimDisk(model="weak" if model == "weak" else "ext4"), config)
        self.consumers = [
            Consumer(
                self.node, f"c{number}", "static" if is_static and not number else None, version
            )
            for number in range(4)
        ]
        self.owners: dict[tuple[int, int], str] = {}
        """Who was told to own a partition in a generation."""
        self.memberships: dict[int, frozenset[str]] = {}
        self.acknowledged: dict[int, int] = {}
        self.waiting: list[tuple[int, int, Box[OffsetCommitResponse]]] = []
        self.unknown: dict[int, set[int]] = {number: set() for number in range(PARTITIONS)}
        """Commits without an answer, sent after the last acknowledged one."""
        self.number = 0

    @rule(which=WHICH)
    def join(self, which: int) -> None:
        """A client joins, or joins again, whatever it was doing."""
        self.consumers[which].join()

    @rule(which=WHICH)
    def look(self, which: int) -> None:
        """A client gets its answers, and sends what follows."""
        consumer = self.consumers[which]
        self._note_membership(consumer)
        consumer.look()
        self._note_owner(consumer)

    @rule(which=WHICH)
    def heartbeat(self, which: int) -> None:
        if self.consumers[which].generation >= 0:
            self.consumers[which].heartbeat()

    @rule(which=WHICH)
    def leave(self, which: int) -> None:
        if self.consumers[which].member_id:
            self.consumers[which].leave()

    @rule(which=WHICH, is_stale=st.booleans())
    def commit(self, which: int, is_stale: bool) -> None:
        """A member commits for a partition it owns, or one that was replaced tries to."""
        consumer = self.consumers[which]
        if not consumer.owned:
            return
        self.number += 1
        partition = min(consumer.owned)
        generation = consumer.generation - is_stale
        box = self.node.commit(
            partition, self.number, generation=generation, member_id=consumer.member_id
        )
        if box.value is None:
            self.waiting.append((partition, self.number, box))
            self.unknown[partition].add(self.number)

    @rule()
    def run(self) -> None:
        self.node.run()
        self._collect()

    @rule(ms=st.sampled_from([100, 600, SESSION_MS // 2, SESSION_MS, 3 * SESSION_MS]))
    def pass_time(self, ms: int) -> None:
        self.node.pass_time(ms)
        self._collect()

    @rule(ms=st.sampled_from([100, 600, SESSION_MS]))
    def fire(self, ms: int) -> None:
        """Time passes, and the disk is slower than that."""
        self.node.clock.advance(ms)
        self.node.coordinator.timers.run_due()

    @rule()
    def settle(self) -> None:
        """All clients behave for a while, so that generations become stable."""
        for _ in range(6):
            for number, consumer in enumerate(self.consumers):
                self.look(number)
                if consumer.is_idle:
                    consumer.join()
                elif consumer.generation >= 0 and consumer.syncing is None:
                    consumer.heartbeat()
            self.node.pass_time(600)
            self._collect()

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
            self._collect()
        self.node.disk = self.node.disk.crash(Rand(seed), Faults())
        self.node.start()
        self._restarted()

    def _restarted(self) -> None:
        """Answers that were on their way are lost; clients notice and ask again."""
        self._collect()
        self.waiting = []
        for consumer in self.consumers:
            consumer.joining = consumer.syncing = None
            if not consumer.owned:
                consumer.generation = -1
        found = self.node.fetch()
        for partition in range(PARTITIONS):
            offset = found.get(partition, (None, "", 0))[0]
            possible = {self.acknowledged.get(partition), *self.unknown[partition]}
            assert offset in possible, f"partition {partition}: {offset} is none of {possible}"
            if offset is not None:
                self.acknowledged[partition] = offset
            self.unknown[partition] = set()

    def _collect(self) -> None:
        """Take the answers of commits, in the order they were sent."""
        left = []
        for partition, number, box in self.waiting:
            if box.value is None:
                left.append((partition, number, box))
                continue
            self.unknown[partition].discard(number)
            if code_of(box.value) is ErrorCode.NONE:
                self.acknowledged[partition] = number
                self.unknown[partition] = {n for n in self.unknown[partition] if n > number}
        self.waiting = left

    def _note_membership(self, consumer: Consumer) -> None:
        response = consumer.joining.value if consumer.joining else None
        if response is None or response.error_code:
            return
        if response.members and consumer.instance_id is None:
            members = frozenset(each.member_id for each in response.members)
            if not any(each.group_instance_id for each in response.members):
                known = self.memberships.setdefault(response.generation_id, members)
                assert known == members, f"generation {response.generation_id} has other members"

    def _note_owner(self, consumer: Consumer) -> None:
        name = consumer.instance_id or consumer.member_id
        for partition in consumer.owned:
            key = (consumer.generation, partition)
            assert self.owners.setdefault(key, name) == name, f"{key} has two owners"

    @invariant()
    def committed_is_what_was_acknowledged(self) -> None:
        """What can be fetched was acknowledged, or waits for its answer."""
        if not hasattr(self, "node"):
            return
        for partition, (offset, _, _) in self.node.fetch().items():
            assert offset in {self.acknowledged.get(partition), *self.unknown[partition]}
        if not self.waiting:
            found = {key: value[0] for key, value in self.node.fetch().items()}
            assert found == self.acknowledged


GroupMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestGroups = GroupMachine.TestCase
