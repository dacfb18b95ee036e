"""The log against a list: acknowledged batches are read back in order, exactly once."""

from __future__ import annotations

import errno
from concurrent.futures import Future
from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from frazil.errors import Overloaded, Unavailable, Unresolved
from frazil.log import Append, AppendResult, Log, Reader, Record, append_of_records
from frazil.log.reader import offset_at_time
from frazil.model import KiB, Rand
from frazil.settings import LogConfig, TopicConfig
from tests.log.build import Fatal, open_log
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, SimDisk

TOPIC = "t"
CONFIG = LogConfig(
    segment_bytes_max=600,
    batch_bytes_max=4 * KiB,
    group_bytes_max=1 * KiB,
    queue_bytes_max=8 * KiB,
    queue_count_max=12,
    disk_bytes_max=256 * KiB,
    index_interval_bytes=150,
)
"""Segments of four batches, groups of seven."""

KEEPING = TopicConfig(awaits_lake=True)
"""Nothing is released, so nothing goes by itself when the disk is full."""
TIMES = st.integers(0, 50)
SEEDS = st.integers(0, 2**32 - 1)


class LogMachine(RuleBasedStateMachine):
    """Batches are numbered, so that each value says which one it is and where in it.

    `stored` is the model: what the log must hold from offset 0 on, as (value, timestamp). A batch
    whose outcome is unknown sits in `unresolved` until the next start shows whether it is there.
    """

    @initialize(model=st.sampled_from(["ext4", "weak"]), short_writes=st.booleans())
    def begin(self, model: str, short_writes: bool) -> None:
        self.disk = SimDisk(model="weak" if model == "weak" else "ext4")
        self.short_writes = short_writes
        self.clock = SimClock()
        self.stored: list[tuple[bytes, int]] = []
        self.start = 0
        self.batch_count = 0
        self.waiting: list[tuple[Append, list[tuple[bytes, int]], Future[AppendResult]]] = []
        self.unresolved: list[list[tuple[bytes, int]]] = []
        self.sent: dict[bytes, tuple[list[tuple[bytes, int]], int]] = {}
        self.open()

    def open(self) -> None:
        """Start the log, and settle what was unknown by looking."""
        self.fatal = Fatal()
        self.disk.faults = Faults(short_writes=self.short_writes)
        self.log: Log = open_log(
            self.disk,
            CONFIG,
            clock=self.clock,
            fatal=self.fatal,
            topic=KEEPING,
            has_files=False,
        )
        self.partition = self.log.partition(TOPIC, 0)
        self.waiting = []
        self.tail: Reader = self.log.reader(TOPIC, "latest")
        found = self.read_all()
        for records in self.unresolved:
            if found[len(self.stored) - self.start :][: len(records)] == records:
                self.stored += records
        self.unresolved = []
        self.tail_seen = len(self.stored)

    def read_all(self) -> list[tuple[bytes, int]]:
        reader = self.log.reader(TOPIC, "earliest")
        assert reader.offset == self.partition.view.start_offset == self.start
        found: list[tuple[bytes, int]] = []
        while batches := reader.read(300):
            for record in (record for stored in batches for record in stored.records()):
                if record.offset >= self.start:  # the first batch may have deleted records
                    assert record.offset == self.start + len(found)
                    found.append((record.value or b"", record.timestamp_ms))
        reader.close()
        return found

    # What producers do.

    @rule(times=st.lists(TIMES, min_size=1, max_size=3), has_digest=st.booleans())
    def append(self, times: list[int], has_digest: bool) -> None:
        """Queue one batch."""
        self.batch_count += 1
        pairs = [(b"%d.%d" % (self.batch_count, i), t) for i, t in enumerate(times)]
        records = [Record(offset=0, timestamp_ms=t, key=None, value=v) for v, t in pairs]
        digest = b"%016d" % self.batch_count if has_digest else None
        self.submit(append_of_records(records, digest=digest), pairs)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def append_again(self, data: st.DataObject) -> None:
        """Repeat a batch that was acknowledged: it gets its old offset and is not stored twice."""
        digest = data.draw(st.sampled_from(sorted(self.sent)))
        pairs, base_offset = self.sent[digest]
        records = [Record(offset=0, timestamp_ms=t, key=None, value=v) for v, t in pairs]
        try:
            answer = self.log.append(TOPIC, append_of_records(records, digest=digest))
        except Overloaded:
            return
        while not answer.done():
            self.step()
        if answer.exception(0) is None:
            assert answer.result(0) == (base_offset, base_offset + len(pairs), True)

    def submit(self, append: Append, pairs: list[tuple[bytes, int]]) -> None:
        with suppress(Overloaded):  # the queue is full: nothing is stored, nothing is expected
            self.waiting.append((append, pairs, self.log.append(TOPIC, append)))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Give up on a batch that waits."""
        number = data.draw(st.integers(0, len(self.waiting) - 1))
        assert self.waiting.pop(number)[2].cancel()

    @rule()
    def step(self) -> None:
        """Run one group. Its batches are done, the others wait."""
        self.log.writer.step()
        self.settle()

    def settle(self) -> None:
        left = []
        for append, pairs, answer in self.waiting:
            if not answer.done():
                left.append((append, pairs, answer))
            elif answer.exception(0) is None:
                assert answer.result(0) == (
                    len(self.stored),
                    len(self.stored) + len(pairs),
                    False,
                )
                if append.digest is not None:
                    self.sent[append.digest] = (pairs, len(self.stored))
                self.stored += pairs
            elif isinstance(answer.exception(0), Unresolved):
                self.unresolved.append(pairs)
            else:
                assert isinstance(answer.exception(0), Overloaded | Unavailable)
        self.waiting = left

    # What the machine does.

    @rule()
    def restart(self) -> None:
        """Close: what waits is finished. Then open."""
        self.log.close()
        self.settle()
        assert self.waiting == []
        self.open()

    @rule()
    def kill(self) -> None:
        """Kill -9."""
        self.disk = self.disk.process_kill()
        self.open()

    @rule(seed=SEEDS)
    def cut_power(self, seed: int) -> None:
        """Everything that is not durable is left to chance."""
        self.disk = self.disk.crash(Rand(seed))
        self.open()

    @rule(room_bytes=st.integers(0, 700), seed=SEEDS)
    def step_on_a_full_disk(self, room_bytes: int, seed: int) -> None:
        """A group while there is little room; then the room is back."""
        used_bytes = sum(len(self.disk.data(path)) for path in self.disk.files())
        self.disk.rand = Rand(seed)
        self.disk.faults = Faults(capacity_bytes=used_bytes + room_bytes)
        self.step()
        self.disk.faults = Faults(short_writes=self.short_writes)
        assert not self.fatal.errors

    @precondition(lambda self: self.waiting)
    @rule(seed=SEEDS, has_power=st.booleans(), nth=st.integers(1, 3))
    def fail_a_sync(self, seed: int, has_power: bool, nth: int) -> None:
        """End this process; the next one reads what is on disk."""
        self.disk.faults = Faults(fail_sync_at=self.disk.syncs + nth)
        while self.waiting:
            self.step()
        self.disk = self.disk.process_kill() if has_power else self.disk.crash(Rand(seed))
        self.open()

    @precondition(lambda self: self.waiting)
    @rule(call=st.integers(1, 8), number=st.sampled_from([errno.EIO, errno.ENOSPC, errno.EDQUOT]))
    def fail_a_call(self, call: int, number: int) -> None:
        """Any storage call of the next groups fails once."""
        self.disk.faults = Faults(
            fail_at=(self.disk.calls + call, number), short_writes=self.short_writes
        )
        while self.waiting:
            self.step()
        self.disk = self.disk.process_kill()
        self.open()

    # What maintenance does.

    @precondition(lambda self: len(self.partition.view.segments) > 1)
    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        """Remove sealed segments from the front."""
        segments = self.partition.view.segments
        at = data.draw(st.integers(1, len(segments) - 1))
        self.partition.trim(segments[at].info.base_offset)
        self.start = segments[at].info.base_offset
        if self.tail.offset < self.start:
            self.tail, self.tail_seen = self.log.reader(TOPIC, self.start), self.start

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        """Make any offset the start of the log."""
        before = data.draw(st.integers(self.start, len(self.stored)))
        while self.waiting:  # deletion is a step, too
            self.step()
        assert self.log.delete_records(TOPIC, 0, before) == before
        self.start = before
        if self.tail.offset < self.start:
            self.tail, self.tail_seen = self.log.reader(TOPIC, self.start), self.start

    @rule(ms=st.integers(1, 10_000))
    def wait(self, ms: int) -> None:
        self.clock.advance(ms)

    # What readers see.

    @rule()
    def follow(self) -> None:
        """A reader that stays open sees each record once, over rolls and trims."""
        while batches := self.tail.read(200):
            for record in (record for stored in batches for record in stored.records()):
                if record.offset >= self.tail_seen:
                    assert record.offset == self.tail_seen
                    assert record.value == self.stored[self.tail_seen][0]
                    self.tail_seen += 1
        assert self.tail_seen == len(self.stored)

    @rule(timestamp_ms=TIMES)
    def look_up_a_time(self, timestamp_ms: int) -> None:
        """The index finds what a scan finds."""
        expected = next(
            (
                offset
                for offset in range(self.start, len(self.stored))
                if self.stored[offset][1] >= timestamp_ms
            ),
            len(self.stored),
        )
        assert offset_at_time(self.partition, timestamp_ms) == expected

    @invariant()
    def holds_what_was_acknowledged(self) -> None:
        """In order, exactly once, and nothing else."""
        if hasattr(self, "log"):
            assert self.read_all() == self.stored[self.start :]
            assert self.partition.durable_watermark == len(self.stored)


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=60, stateful_step_count=40)
