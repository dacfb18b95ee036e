"""The partition: stage, write, sync, publish, in this order."""

from __future__ import annotations

import errno

import pytest

from frazil.disk import Budget
from frazil.log import Partition
from frazil.log.partition import APPENDED, APPENDED_BYTES, ROLLED
from frazil.log.reader import Reader
from frazil.log.segment import HEADER_BYTES
from frazil.log.topic import make_folders
from frazil.model import Rand, SteadyTime
from frazil.settings import LogConfig
from tests.log.build import (
    FIRST,
    FOLDER,
    SMALL,
    TOPIC,
    WIDE,
    batch,
    frames_of,
    numbered,
    numbers,
    paths,
    segments,
)
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, Model, PowerCut, SimDisk


class Bench:
    """A partition on a simulated disk, without a log around it."""

    def __init__(
        self, config: LogConfig = WIDE, disk: SimDisk | None = None, clock: SimClock | None = None
    ) -> None:
        self.disk = disk or SimDisk()
        self.clock = clock or SimClock()
        self.budget = Budget(
            hard_bytes_max=config.disk_bytes_max, segment_bytes_max=config.segment_bytes_max
        )
        make_folders(self.disk, TOPIC, 1)
        self.partition = Partition.open(
            self.disk,
            FOLDER,
            TOPIC,
            0,
            config,
            time=SteadyTime(self.clock),
            rand=Rand(self.disk.calls),
            budget=self.budget,
        )
        if not self.disk.files():
            self.partition.create_files()

    def add(self, *values: bytes) -> None:
        """One group, all the way."""
        for value in values:
            self.partition.stage(batch(value))
        self.partition.write()
        self.partition.sync()
        self.partition.publish()

    def roll(self) -> None:
        self.partition.roll()

    def read(self) -> list[bytes | None]:
        reader = Reader.open(self.partition, "earliest")
        found: list[bytes | None] = []
        while batches := reader.read():
            found += [record.value for stored in batches for record in stored.records()]
        reader.close()
        return found

    def reopened(self, config: LogConfig = WIDE) -> Bench:
        return Bench(config, self.disk.process_kill(), self.clock)


def test_readers_see_nothing_before_publish() -> None:
    """Staged, written, synced: still invisible, to new readers and to old ones; then all at
    once. A power cut can only undo what no reader has seen."""
    bench = Bench()
    bench.add(b"old")
    partition = bench.partition
    waiting = Reader.open(partition, "latest")
    before = partition.view
    for step in (
        lambda: partition.stage(batch(b"new")),
        partition.write,
        partition.sync,
    ):
        step()
        assert partition.view is before
        assert partition.durable_watermark == 1
        assert bench.read() == [b"old"]
        assert waiting.read() == []
    partition.publish()
    assert bench.read() == [b"old", b"new"]
    assert [stored.base_offset for stored in waiting.read()] == [1]


def test_a_view_is_immutable() -> None:
    """Over appends, rolls and trims."""
    bench = Bench(SMALL)
    bench.add(b"one")
    view = bench.partition.view
    facts = (view.start_offset, view.durable_watermark, view.size_bytes, len(view.segments))
    bench.add(*numbers(0, 20))
    bench.roll()
    bench.add(b"more")
    bench.partition.trim(21)
    assert facts == (
        view.start_offset,
        view.durable_watermark,
        view.size_bytes,
        len(view.segments),
    )
    assert bench.partition.view.start_offset == 21


def test_frames_have_the_durable_watermark_of_their_time() -> None:
    """All frames of a group have the end of the group before."""
    bench = Bench()
    bench.add(*numbers(0, 3))
    bench.add(*numbers(3, 5))
    bench.add(b"last")
    assert [frame.durable_watermark for frame in frames_of(bench.disk)] == [0, 0, 0, 3, 3, 5]


def test_abort_undoes_everything() -> None:
    """Bytes, offsets, producers and digests, also on disk."""
    bench = Bench()
    bench.add(b"old")
    partition = bench.partition
    whole, budget_bytes = bench.disk.data(FIRST), bench.budget.used_bytes
    for _ in range(2):
        partition.stage(batch(b"lost", digest=b"d" * 16))
        partition.stage(numbered(b"lost", 0))
        partition.stage(numbered(b"lost", 1))
        assert partition.is_staged
        partition.write()
        partition.abort()
        assert not partition.is_staged
        assert bench.disk.data(FIRST) == whole
        assert bench.budget.used_bytes == budget_bytes
    assert partition.stage(numbered(b"kept", 0)) == (1, 2, False)
    assert partition.stage(batch(b"kept", digest=b"d" * 16)) == (2, 3, False)
    partition.write()
    partition.sync()
    partition.publish()
    assert bench.reopened().read() == [b"old", b"kept", b"kept"]


def test_abort_restores_all_remembered_batches() -> None:
    """Also those the undone group had pushed out of the window of five."""
    bench = Bench()
    partition = bench.partition
    for sequence in range(5):
        partition.stage(numbered(b"x", sequence))
    partition.write()
    partition.sync()
    partition.publish()
    for sequence in range(5, 10):
        partition.stage(numbered(b"x", sequence))
    partition.write()
    partition.abort()
    for sequence in range(5):
        assert partition.stage(numbered(b"x", sequence)) == (sequence, sequence + 1, True)
    assert partition.stage(numbered(b"x", 5)) == (5, 6, False)


def test_offsets_count_records() -> None:
    partition = Bench().partition
    assert partition.stage(batch(b"a", b"b", b"c")) == (0, 3, False)
    assert partition.stage(batch(b"d")) == (3, 4, False)


def test_the_budget_follows_every_change() -> None:
    """Appends and rolls take, trims free, a restart counts the same."""
    bench = Bench(SMALL)
    assert bench.budget.used_bytes == on_disk(bench) == HEADER_BYTES
    bench.add(*numbers(0, 5))
    assert bench.budget.used_bytes == on_disk(bench)
    bench.roll()
    bench.add(b"x")
    assert bench.budget.used_bytes == on_disk(bench)
    bench = bench.reopened(SMALL)
    assert bench.budget.used_bytes == on_disk(bench)


def test_a_trim_frees_the_bytes_of_its_segments() -> None:
    bench = Bench(SMALL)
    for number in range(3):
        bench.add(*numbers(number, number + 5))
        bench.roll()
    before = bench.budget.used_bytes
    gone_bytes = sum(segment.info.size_bytes for segment in bench.partition.view.segments[:2])
    assert bench.partition.trim(10) == gone_bytes
    assert bench.budget.used_bytes == before == on_disk(bench), "kept to be written over"
    bench.partition.removed.drop_spares()
    assert bench.budget.used_bytes == before - gone_bytes == on_disk(bench)
    assert bench.partition.trim(10) == bench.partition.trim(0) == 0


def on_disk(bench: Bench) -> int:
    """Bytes of all segments, and of the files kept to be written over."""
    kept = segments(bench.disk) + paths(bench.disk, ".spare")
    return sum(len(bench.disk.data(path)) for path in kept)


def test_a_trimmed_file_is_reused() -> None:
    """A roll takes it; its old records are never seen again, it ends where its own records end
    once it is sealed, and a restart leaves no spare one."""
    bench = Bench(SMALL)
    begin = 0
    for count in (12, 11, 10, 9):
        bench.add(*numbers(begin, begin + count))
        bench.partition.trim(begin)
        assert len(paths(bench.disk, ".spare")) == (begin > 0)
        bench.roll()
        assert paths(bench.disk, ".spare") == []
        sealed = bench.partition.view.segments[0]
        assert sealed.info.size_bytes == len(bench.disk.data(sealed.path))
        assert bench.read() == numbers(begin, begin + count)
        begin += count
    bench.add(b"more")
    bench.partition.trim(begin)
    assert paths(bench.disk, ".spare") != []
    bench = bench.reopened(SMALL)
    assert paths(bench.disk, ".spare") == []
    assert bench.read() == [b"more"]


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_reused_file_survives_any_crash(model: Model) -> None:
    """At every storage call of a roll into it and of the appends after: what was acknowledged is
    there, and no stale frame."""
    for call in range(1, 60):
        bench = Bench(SMALL, SimDisk(model=model))
        bench.add(*numbers(0, 10))
        bench.roll()
        bench.add(*numbers(10, 14))
        bench.partition.trim(10)
        assert paths(bench.disk, ".spare") != []
        acknowledged = numbers(10, 14)
        bench.disk.faults = Faults(crash_at=bench.disk.calls + call)
        try:
            bench.roll()
            for value in numbers(14, 18):
                bench.add(value)
                acknowledged.append(value)
        except PowerCut:
            pass
        else:
            return
        for seed in range(6):
            after = bench.disk.crash(Rand(seed)) if seed else bench.disk.process_kill()
            found = Bench(SMALL, after).read()
            assert found[: len(acknowledged)] == acknowledged
            assert found == numbers(10, 10 + len(found))
    raise AssertionError("this takes fewer storage calls than that")


def test_a_segment_is_rolled_by_size() -> None:
    """Not before it is full, and never while empty."""
    bench = Bench(SMALL)
    assert not bench.partition.needs_roll
    while bench.partition.view.size_bytes < SMALL.segment_bytes_max:
        assert not bench.partition.needs_roll
        bench.add(b"x")
    assert bench.partition.needs_roll
    bench.roll()
    assert not bench.partition.needs_roll


def test_a_segment_is_rolled_by_age() -> None:
    """A clock change has no effect; an empty segment never ages."""
    bench = Bench()
    bench.clock.advance(WIDE.segment_age_ms_max)
    assert not bench.partition.needs_roll
    bench.add(b"x")
    assert bench.partition.needs_roll
    bench.roll()
    bench.add(b"y")
    bench.clock.advance(WIDE.segment_age_ms_max - 1)
    bench.clock.jump_wall(10**12)
    assert not bench.partition.needs_roll
    bench.clock.advance(1)
    assert bench.partition.needs_roll


def test_a_roll_seals_the_segment() -> None:
    """The next one starts where it ended."""
    bench = Bench()
    rolled_before = ROLLED.value()
    for number in range(4):
        bench.partition.stage(batch(b"v%d" % number, timestamp_ms=100 - number))
    bench.partition.write()
    bench.partition.sync()
    bench.partition.publish()
    bench.clock.advance(77)
    now_ms = bench.clock.wall_ms()
    bench.roll()
    sealed, active = bench.partition.view.segments
    assert (sealed.info.base_offset, sealed.info.end_offset) == (0, 4)
    assert sealed.info.size_bytes == len(bench.disk.data(FIRST))
    assert (sealed.info.max_timestamp_ms, sealed.info.sealed_ms) == (100, now_ms)
    assert (active.info.base_offset, active.info.size_bytes) == (4, HEADER_BYTES)
    assert active.header.salt != sealed.header.salt
    assert ROLLED.value() == rolled_before + 1
    again = bench.reopened()
    assert again.partition.recovered_rebuilt == ()
    assert again.partition.view.segments[0].info == sealed.info
    assert again.read() == [b"v0", b"v1", b"v2", b"v3"]


def test_trim_removes_only_whole_sealed_segments() -> None:
    bench = Bench()
    for number in range(3):
        bench.add(*numbers(10 * number, 10 * number + 10))
        if number < 2:
            bench.roll()
    partition = bench.partition
    for wanted, start in ((9, 0), (10, 10), (19, 10), (10**9, 20)):
        partition.trim(wanted)
        assert partition.view.start_offset == start
        assert bench.read() == numbers(start, 30)
        assert int(segments(bench.disk)[0][-24:-4]) == start
        assert all(int(path[-26:-6]) >= start for path in paths(bench.disk, ".index"))
    assert bench.reopened().read() == numbers(20, 30)


def test_dropped_offsets_are_counted_over_restarts() -> None:
    bench = Bench()
    for number in range(3):
        bench.add(*numbers(10 * number, 10 * number + 10))
        bench.roll()
    bench.partition.trim(10, dropped_count=7)
    bench.partition.trim(20)
    bench.partition.trim(30, dropped_count=5)
    assert bench.partition.dropped_count == 12
    assert bench.reopened().partition.dropped_count == 12


def test_a_trim_whose_sync_fails_removes_nothing() -> None:
    bench = Bench()
    bench.add(*numbers(0, 10))
    bench.roll()
    bench.add(b"more")
    bench.disk.faults = Faults(fail_sync_at=bench.disk.syncs + 1)
    with pytest.raises(OSError) as caught:
        bench.partition.trim(10)
    assert caught.value.errno == errno.EIO
    assert len(segments(bench.disk)) == 2
    assert bench.reopened().read() == [*numbers(0, 10), b"more"]


def test_trim_works_on_a_full_disk() -> None:
    bench = Bench()
    bench.add(*numbers(0, 10))
    bench.roll()
    bench.add(b"more")
    used_bytes = sum(len(bench.disk.data(path)) for path in bench.disk.files())
    bench.disk.faults = Faults(capacity_bytes=used_bytes)
    assert bench.partition.trim(10) > 0
    assert bench.reopened().read() == [b"more"]


def test_durable_batches_and_bytes_are_counted() -> None:
    """Frames included; undone groups are not."""
    bench = Bench()
    before = APPENDED.value(), APPENDED_BYTES.value()
    bench.partition.stage(batch(b"lost"))
    bench.partition.write()
    bench.partition.abort()
    bench.add(*numbers(0, 3))
    written_bytes = len(bench.disk.data(FIRST)) - HEADER_BYTES
    assert (APPENDED.value(), APPENDED_BYTES.value()) == (before[0] + 3, before[1] + written_bytes)


def test_a_batch_is_stored_unchanged() -> None:
    """Only the offset and the leader epoch are filled in."""
    bench = Bench()
    sizes = [0, 1, 2, 3, 10, 5000]
    sent = [batch(bytes(size)) for size in sizes]
    for append in sent:
        bench.partition.stage(append)
    bench.partition.write()
    bench.partition.sync()
    bench.partition.publish()
    reader = Reader.open(bench.partition, "earliest")
    for number, (stored, append) in enumerate(zip(reader.read(), sent, strict=True)):
        assert stored.payload[:16] == (number.to_bytes(8, "big") + append.payload[8:12] + bytes(4))
        assert stored.payload[16:] == append.payload[16:]
    reader.close()
