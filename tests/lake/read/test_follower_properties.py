"""A follower gets every row once, in order, during commits, maintenance, trims and crashes."""

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
    """A consumer of rows. Its results are durable before it acknowledges them, as with offsets
    stored beside the results."""

    def __init__(self, open_follower: Callable[[], Follower]) -> None:
        self._open = open_follower
        self._follower = open_follower()
        self._pending: list[FollowedRows] = []
        self.done: list[list[str]] = [[] for _ in range(PARTITIONS)]
        self._seen: list[list[str]] = [[] for _ in range(PARTITIONS)]

    def read(self, count: int) -> None:
        for _ in range(count):
            followed = self._follower.read()
            if followed is None:
                return
            self._pending.append(followed)
            self._seen[followed.partition] += values(followed)

    def ack(self, count: int) -> None:
        """Process and acknowledge the oldest pending rows."""
        done, self._pending = self._pending[:count], self._pending[count:]
        for followed in done:
            self.done[followed.partition] += values(followed)
        if done:
            self._follower.ack(done[-1])

    def reopen(self, *, is_clean: bool) -> None:
        """Reopen after a stop or a crash. Exactly the rows that were not acknowledged are read
        again."""
        if is_clean:
            self._follower.close()
        self._follower = self._open()
        self._pending = []
        self._seen = [list(done) for done in self.done]

    def check(self, counts: list[int]) -> None:
        for partition, seen in enumerate(self._seen):
            assert seen == [f"{partition}/{number}" for number in range(len(seen))]
            assert len(seen) <= counts[partition]

    def finish(self, counts: list[int]) -> None:
        self.read(sum(counts))
        self.ack(len(self._pending))
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
        """Flush, trim and add, like a node."""
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
    def reopen(self, name: str, is_clean: bool) -> None:
        self._callers[name].reopen(is_clean=is_clean)

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
