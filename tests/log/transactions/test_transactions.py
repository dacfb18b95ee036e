"""Transactions against a list: whatever reads committed records sees the same ones, always."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from frazil.log import (
    Append,
    Isolation,
    Marker,
    Reader,
    Record,
    StoredBatch,
    append_of_marker,
    encode_batch,
    parse_header,
    plan_ranges,
    read_range,
)
from frazil.log.external.observed_log import ObservedPartition
from frazil.log.readable import ReadablePartition
from frazil.model import KiB, Rand
from frazil.settings import LogConfig, TopicConfig
from tests.log.build import FOLDER, TOPIC, flipped, open_log, put
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk

CONFIG = LogConfig(
    segment_bytes_max=700,
    batch_bytes_max=4 * KiB,
    group_bytes_max=1 * KiB,
    queue_bytes_max=8 * KiB,
    disk_bytes_max=256 * KiB,
    index_interval_bytes=150,
)
"""Segments of four batches."""
KEEPING = TopicConfig(awaits_lake=True)
EXPIRING = TopicConfig(retention_ms=0)
COMPACTED = TopicConfig(cleanup="compact", compact_dirty_ratio_min=0.0)
PRODUCERS = st.integers(0, 2)
KEYS = 3


@dataclass
class Written:
    """One batch of one record."""

    offset: int
    value: bytes
    producer: int | None
    end: Marker | None = None
    """How its transaction ended; None if it is open, or if it is part of none."""


class TransactionMachine(RuleBasedStateMachine):
    """`written` is the model: every batch but markers, from offset 0 on."""

    @initialize(topic=st.sampled_from([KEEPING, EXPIRING, COMPACTED]))
    def begin(self, topic: TopicConfig) -> None:
        self.disk = SimDisk()
        self.clock = SimClock()
        self.topic = topic
        self.written: list[Written] = []
        self.sequences = [0, 0, 0]
        self.open_log()

    def open_log(self) -> None:
        self.log = open_log(self.disk, CONFIG, clock=self.clock, topic=self.topic)
        self.partition = self.log.partition(TOPIC, 0)

    def append(self, append: Append) -> int:
        answer = self.log.append(TOPIC, append)
        self.log.writer.step()
        return answer.result(0).base_offset

    # What producers do.

    def write(self, producer: int | None) -> None:
        value = b"%d" % len(self.written)
        fields = {}
        if producer is not None:
            fields = {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": self.sequences[producer],
                "transactional": True,
            }
            self.sequences[producer] += 1
        key = b"%d" % (len(self.written) % KEYS)
        record = Record(offset=0, timestamp_ms=1, key=key, value=value)
        payload = encode_batch([record], **fields)  # type: ignore[arg-type]
        offset = self.append(Append(parts=(payload,), header=parse_header(payload)))
        self.written.append(Written(offset, value, producer))

    @rule()
    def write_plain(self) -> None:
        self.write(None)

    @rule(producer=PRODUCERS)
    def write_transactional(self, producer: int) -> None:
        self.write(producer)

    @rule(producer=PRODUCERS, marker=st.sampled_from(Marker))
    def end(self, producer: int, marker: Marker) -> None:
        """End a transaction. Without batches in this partition the marker changes nothing."""
        self.append(
            append_of_marker(
                marker, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1
            )
        )
        for each in self.written:
            if each.producer == producer and each.end is None:
                each.end = marker

    # What happens to the log.

    @rule(how=st.sampled_from(["close", "kill", "power cut"]), seed=st.integers(0, 2**32 - 1))
    def restart(self, how: str, seed: int) -> None:
        if how == "close":
            self.log.close()
        self.disk = self.disk.crash(Rand(seed)) if how == "power cut" else self.disk.process_kill()
        self.open_log()

    @rule(name=st.sampled_from(["aborted", "transactions.ckpt"]), bit=st.integers(0, 500))
    def damage(self, name: str, bit: int) -> None:
        """Both files can be rebuilt from the log, as far as it goes back."""
        self.log.close()
        self.disk = self.disk.process_kill()
        path = f"{FOLDER}/{name}"
        if path in self.disk.files():
            data = self.disk.data(path)
            put(self.disk, path, flipped(data, bit % (8 * len(data))))
        self.open_log()

    @precondition(lambda self: self.topic is not KEEPING)
    @rule()
    def maintain(self) -> None:
        self.clock.advance(1000)
        before = self.partition.view.last_stable_offset
        self.log.maintain()
        assert self.partition.view.start_offset <= before

    # What readers must see.

    def undecided(self) -> int:
        waiting = (w.offset for w in self.written if w.producer is not None and w.end is None)
        return min(waiting, default=self.partition.view.durable_watermark)

    def expected(self, isolation: Isolation) -> list[tuple[int, bytes]]:
        start = self.partition.view.start_offset
        if isolation == "uncommitted":
            seen = self.written
        else:
            limit = self.undecided()
            seen = [w for w in self.written if w.offset < limit and w.end is not Marker.ABORT]
        return [(w.offset, w.value) for w in seen if w.offset >= start]

    @invariant()
    def the_last_stable_offset_is_the_first_undecided_one(self) -> None:
        assert self.partition.view.last_stable_offset == self.undecided()

    @invariant()
    def every_reader_sees_the_same(self) -> None:
        with closing(ObservedPartition(self.disk, TOPIC, 0)) as observed:
            for partition in (self.partition, observed):
                view = partition.current_view(is_indexed=True)
                assert view.last_stable_offset == self.undecided()
                begin, end = view.start_offset, view.last_stable_offset
                ranges = plan_ranges(view, begin, end, 200)
                self.check("committed", [b for r in ranges for b in read_range(self.disk, r)])
                self.check("committed", read_all(partition, begin, "committed"))
                self.check("uncommitted", read_all(partition, begin, "uncommitted"))
                overlapping = view.aborted.overlapping(begin, view.durable_watermark)
                assert overlapping == sorted(overlapping, key=lambda each: each.first_offset)
                for each in self.written:
                    if each.producer is not None and each.offset >= begin:
                        is_aborted = view.aborted.covers(each.producer, each.offset)
                        assert is_aborted == (each.end is Marker.ABORT)

    def check(self, isolation: Isolation, batches: list[StoredBatch]) -> None:
        records = [r for b in batches if not b.header.is_control for r in b.records()]
        found = [(r.offset, r.value or b"") for r in records]
        expected = self.expected(isolation)
        if self.topic is not COMPACTED:
            assert found == expected
            return
        if isolation == "committed":
            assert set(found) <= set(expected)
            latest = {int(value) % KEYS: (offset, value) for offset, value in expected}
            assert {int(value) % KEYS: (offset, value) for offset, value in found} == latest


def read_all(partition: ReadablePartition, begin: int, isolation: Isolation) -> list[StoredBatch]:
    with closing(Reader(partition, begin, isolation=isolation)) as reader:
        return [batch for batches in iter(lambda: reader.read(300), []) for batch in batches]


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_an_aborted_transaction_is_not_read_from_another_process() -> None:
    """Also while the process that observes already has an older view."""
    disk = SimDisk()
    log = open_log(disk)
    with closing(ObservedPartition(disk, TOPIC, 0)) as partition:
        reader = Reader(partition, 0)
        record = Record(offset=0, timestamp_ms=1, key=None, value=b"x")
        payload = encode_batch(
            [record], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True
        )
        for append in (
            Append(parts=(payload,), header=parse_header(payload)),
            append_of_marker(
                Marker.ABORT, producer_id=5, producer_epoch=0, coordinator_epoch=3, timestamp_ms=2
            ),
        ):
            assert reader.read() == []
            log.append(TOPIC, append)
            log.writer.step()
        assert [batch.header.is_control for batch in reader.read()] == [True]
        assert reader.offset == 2
