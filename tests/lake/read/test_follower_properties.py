"""Whatever happens to log and tables, a follower gets every row once, in order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from frazil.lake.read.follower import FollowedRows, Follower
from tests.lake.maintain.tables import compact, expire
from tests.lake.read.test_follower import follow, values
from tests.lake.read.topic_tables import TopicWorld

PARTITIONS = 2
NAMES = ("one", "two")


class Caller:
    """Somebody who works on rows. What was done is durable before it is acknowledged, as it is for
    one who keeps places beside his results."""

    def __init__(self, open_one: Callable[[], Follower]) -> None:
        self._open = open_one
        self._follower = open_one()
        self._waiting: list[FollowedRows] = []
        self.done: list[list[str]] = [[] for _ in range(PARTITIONS)]
        self._seen: list[list[str]] = [[] for _ in range(PARTITIONS)]

    def read(self, count: int) -> None:
        for _ in range(count):
            followed = self._follower.read()
            if followed is None:
                return
            self._waiting.append(followed)
            self._seen[followed.partition] += values(followed)

    def ack(self, count: int) -> None:
        """The oldest of those that wait."""
        some, self._waiting = self._waiting[:count], self._waiting[count:]
        for followed in some:
            self.done[followed.partition] += values(followed)
        if some:
            self._follower.ack(some[-1])

    def come_back(self, *, is_clean: bool) -> None:
        """After a stop, or a crash that leaves everything open. What was not acknowledged comes
        again, and nothing else does."""
        if is_clean:
            self._follower.close()
        self._follower = self._open()
        self._waiting = []
        self._seen = [list(done) for done in self.done]

    def check(self, counts: list[int]) -> None:
        for partition, seen in enumerate(self._seen):
            assert seen == [f"{partition}/{number}" for number in range(len(seen))]
            assert len(seen) <= counts[partition]

    def finish(self, counts: list[int]) -> None:
        self.read(sum(counts))
        self.ack(len(self._waiting))
        self.check(counts)
        assert [len(done) for done in self.done] == counts
        assert self._follower.dropped_count == 0
        self._follower.close()


class Following(RuleBasedStateMachine):
    """Commits, compactions, expiries, trims; two followers that read, acknowledge, crash."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._world = TopicWorld.open(Path(self._folder.name) / "data", partitions=PARTITIONS)
        self._callers: dict[str, Caller] = {}
        self._number = 0

    @initialize()
    def begin(self) -> None:
        for name in NAMES:
            self._callers[name] = Caller(partial(follow, self._world, name))

    @rule(count=st.integers(1, 60), partition=st.integers(0, PARTITIONS - 1))
    def add(self, count: int, partition: int) -> None:
        self._world.add(count, partition)

    @rule()
    def flush(self) -> None:
        self._world.flush()

    @rule()
    def trim(self) -> None:
        self._world.trim()

    @rule(is_trimmed=st.booleans())
    def flush_and_add(self, is_trimmed: bool) -> None:
        """What a node does most of the time."""
        self._world.flush()
        if is_trimmed:
            self._world.trim()
        self._world.add(20, 0)

    @precondition(lambda self: self._world.table().current_snapshot() is not None)
    @rule(is_expired=st.booleans())
    def maintain(self, is_expired: bool) -> None:
        self._number += 1
        compact(self._world.table(), f"compacted-{self._number}")
        if is_expired:
            expire(self._world.table())

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 8))
    def read(self, name: str, count: int) -> None:
        self._callers[name].read(count)
        self._callers[name].check(self._world.counts)

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 4))
    def ack(self, name: str, count: int) -> None:
        self._callers[name].ack(count)

    @rule(name=st.sampled_from(NAMES), is_clean=st.booleans())
    def come_back(self, name: str, is_clean: bool) -> None:
        self._callers[name].come_back(is_clean=is_clean)

    def teardown(self) -> None:
        for caller in self._callers.values():
            caller.finish(self._world.counts)
        self._world.close()
        self._folder.cleanup()


Following.TestCase.settings = settings(
    max_examples=6,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestFollowing = Following.TestCase
