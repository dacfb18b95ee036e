"""Batches with a sequence are stored once: a duplicate gets its first offset."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Fenced, FrazilError, SequenceGap, SequenceOld
from frazil.log import Append, AppendResult, Log, Record, encode_batch
from frazil.log.checkpoint import CheckpointState
from frazil.log.dedup import producers as producers_module
from frazil.log.dedup.producers import (
    REMEMBERED,
    SEQUENCE_MAX,
    PastBatch,
    Producer,
    Producers,
    next_sequence,
)
from frazil.log.format.batch import CONTROL, NO_SEQUENCE, BatchHeader, parse_header
from frazil.log.produce import append_of_batch
from frazil.model import OffsetRange
from frazil.settings import TopicConfig
from tests.log.build import SMALL, STATE, TOPIC, add, batches, open_log
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk

PRODUCER = 9
EXPIRE_AT_ONCE = TopicConfig(retention_ms=0)
COMPACT = TopicConfig(cleanup="compact", compact_dirty_ratio_min=0, tombstone_grace_ms=0)


def produced(
    sequence: int, count: int = 1, *, producer: int = PRODUCER, epoch: int = 0, key: bytes = b"k"
) -> Append:
    """A batch of `count` records whose first has this sequence."""
    records = [
        Record(offset=i, timestamp_ms=1, key=key, value=b"%d" % sequence) for i in range(count)
    ]
    payload = encode_batch(
        records, producer_id=producer, producer_epoch=epoch, base_sequence=sequence
    )
    return append_of_batch(payload)


def header(
    sequence: int, count: int = 1, *, producer: int = PRODUCER, epoch: int = 0
) -> BatchHeader:
    return produced(sequence, count, producer=producer, epoch=epoch).header


def marker(epoch: int, *, producer: int = PRODUCER) -> Append:
    """A control batch that commits a transaction."""
    record = Record(offset=0, timestamp_ms=1, key=b"\0\0\0\1", value=b"\0\0\0\0\0\0")
    payload = encode_batch(
        [record], control=True, transactional=True, producer_id=producer, producer_epoch=epoch
    )
    return Append(parts=(payload,), header=parse_header(payload))


def send(log: Log, *appends: Append) -> list[AppendResult | FrazilError]:
    """Queue all in one group; what each was told."""
    answers = [log.append(TOPIC, append) for append in appends]
    log.writer.step()
    return [answer.exception(0) or answer.result(0) for answer in answers]  # type: ignore[misc]


def known(log: Log) -> dict[int, tuple[int, tuple[PastBatch, ...]]]:
    """What the log remembers, but for when."""
    state = log.partition(TOPIC, 0).producers._known
    return {key: (value.epoch, value.past) for key, value in state.items()}


def remembering(*sent: tuple[int, int]) -> Producers:
    """The state after batches of (sequence, count), one after the other from offset 0 on."""
    producers, offset = Producers(), 0
    for sequence, count in sent:
        producers.remember(header(sequence, count), offset, now_ms=1)
        offset += count
    return producers


# The rules, on the state alone.


def test_each_of_the_last_five_batches_is_found_and_others_are_refused() -> None:
    producers = remembering(*((i * 2, 2) for i in range(7)))
    for i in range(2, 7):
        past = PastBatch(2 * i, 2 * i + 1, base_offset=2 * i, end_offset=2 * i + 2)
        assert producers.find_duplicate(header(2 * i, 2)) == past
    for sequence in (0, 2):
        with pytest.raises(SequenceOld):
            producers.find_duplicate(header(sequence, 2))
    assert producers.find_duplicate(header(14, 5)) is None
    for sequence in (15, 16, 1000):
        with pytest.raises(SequenceGap):
            producers.find_duplicate(header(sequence))


def test_a_batch_of_another_length_is_no_duplicate() -> None:
    """Same first sequence, other length."""
    producers = remembering((0, 2), (2, 2))
    for sequence, count in ((2, 1), (2, 3), (0, 4), (1, 2), (3, 1)):
        with pytest.raises(SequenceOld):
            producers.find_duplicate(header(sequence, count))


@pytest.mark.parametrize("sequence", [0, 1, SEQUENCE_MAX])
def test_an_unknown_producer_starts_at_any_sequence(sequence: int) -> None:
    """Its state may have expired."""
    producers = Producers()
    assert producers.find_duplicate(header(sequence, 3)) is None
    producers.remember(header(sequence, 3), 0, now_ms=1)
    assert producers.find_duplicate(header(sequence, 3)) == PastBatch(
        sequence, (sequence + 2) & SEQUENCE_MAX, 0, 3
    )
    with pytest.raises(SequenceGap):
        producers.find_duplicate(header((sequence + 4) & SEQUENCE_MAX))


def test_a_new_epoch_starts_at_zero_and_fences_the_old() -> None:
    producers = remembering((0, 1), (1, 1))
    with pytest.raises(SequenceGap):
        producers.find_duplicate(header(2, epoch=1))
    assert producers.find_duplicate(header(0, epoch=1)) is None
    producers.remember(header(0, epoch=1), 2, now_ms=1)
    for sequence in (0, 1, 2):
        with pytest.raises(Fenced):
            producers.find_duplicate(header(sequence, epoch=0))
    assert producers.find_duplicate(header(0, epoch=1)) == PastBatch(0, 0, 2, 3)
    assert producers.find_duplicate(header(1, epoch=1)) is None


def test_the_largest_epoch_works() -> None:
    producers = Producers()
    producers.remember(header(0, epoch=2**15 - 1), 0, now_ms=1)
    with pytest.raises(Fenced):
        producers.find_duplicate(header(0, epoch=0))
    assert producers.find_duplicate(header(1, epoch=2**15 - 1)) is None


@pytest.mark.parametrize(
    ("sequence", "count", "following"),
    [
        (SEQUENCE_MAX - 1, 1, SEQUENCE_MAX),
        (SEQUENCE_MAX, 1, 0),
        (SEQUENCE_MAX - 2, 3, 0),
        (SEQUENCE_MAX - 1, 3, 1),  # the wrap lies inside the batch
        (SEQUENCE_MAX, 5, 4),
    ],
)
def test_sequences_wrap_to_zero(sequence: int, count: int, following: int) -> None:
    before = sequence - 4
    producers = remembering((before, 4), (sequence, count))
    assert producers.find_duplicate(header(following)) is None
    found = producers.find_duplicate(header(sequence, count))
    assert found is not None and (found.base_offset, found.end_offset) == (4, 4 + count)
    with pytest.raises(SequenceGap):
        producers.find_duplicate(header(next_sequence(following)))
    with pytest.raises(SequenceOld):
        producers.find_duplicate(header(before - 1))
    with pytest.raises(SequenceOld):
        producers.find_duplicate(header(SEQUENCE_MAX - 100))


def test_beyond_the_limit_the_producer_unseen_for_longest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(producers_module, "PRODUCERS_MAX", 3)
    producers = Producers()
    for producer in (1, 2, 3):
        producers.remember(header(0, producer=producer), producer, now_ms=1)
    producers.remember(header(1, producer=1), 4, now_ms=2)
    producers.remember(header(0, producer=4), 5, now_ms=2)
    assert len(producers) == 3
    assert producers.find_duplicate(header(0, producer=2)) is None
    assert producers.find_duplicate(header(1, producer=1)) is not None
    assert producers.find_duplicate(header(0, producer=3)) is not None


def test_a_producer_is_forgotten_after_its_time_and_not_before() -> None:
    producers = Producers()
    producers.remember(header(0, producer=1), 0, now_ms=100)
    producers.remember(header(0, producer=2), 1, now_ms=200)
    assert producers.expire(100) == 0
    assert producers.expire(200) == 1
    assert producers.find_duplicate(header(0, producer=1)) is None
    assert producers.find_duplicate(header(0, producer=2)) is not None


def test_a_marker_sets_the_epoch_and_keeps_the_batches_of_its_own() -> None:
    producers = remembering((0, 2), (2, 2))
    producers.remember(marker(0).header, 4, now_ms=1)
    assert producers.find_duplicate(header(2, 2)) == PastBatch(2, 3, 2, 4)
    assert producers.find_duplicate(header(4)) is None
    producers.remember(marker(1).header, 5, now_ms=1)
    assert producers.remembered_offsets() == {5}
    for sequence in (1, 4, SEQUENCE_MAX):
        with pytest.raises(SequenceGap):
            producers.find_duplicate(header(sequence, epoch=1))
    for late in (header(2, 2), marker(0).header):
        with pytest.raises(Fenced):
            producers.find_duplicate(late)
    assert producers.find_duplicate(header(0, epoch=1)) is None
    assert producers.forget([OffsetRange(5, 6)]) == 1 and not len(producers)


def test_a_batch_without_sequence_is_checked_by_its_epoch() -> None:
    """As the group coordinator writes offsets in a transaction."""
    producers = remembering((0, 2))
    commit = header(0, epoch=1)._replace(base_sequence=NO_SEQUENCE)
    for offset in (2, 3):
        assert producers.find_duplicate(commit) is None
        producers.remember(commit, offset, now_ms=1)
    with pytest.raises(Fenced):
        producers.find_duplicate(commit._replace(producer_epoch=0))


def test_no_batch_overtakes_the_first_ones_when_they_are_undone() -> None:
    """Batches in flight behind them wait for their repetition."""
    producers = Producers()
    undone = [producers.remember(header(5 + i), i, now_ms=1) for i in range(2)]
    for before in reversed(undone):
        producers.restore(PRODUCER, before)
    for sequence in (6, 7):
        with pytest.raises(SequenceGap):
            producers.find_duplicate(header(sequence))
    assert producers.find_duplicate(header(7, epoch=1)) is None
    assert producers.find_duplicate(header(5)) is None
    producers.remember(header(5), 0, now_ms=1)
    assert producers.find_duplicate(header(6)) is None
    assert producers.expire(2) == 1
    producers.restore(PRODUCER, producers.remember(header(0), 0, now_ms=1))
    assert producers.expire(2) == 0
    assert producers.find_duplicate(header(9)) is None


class KafkaState:
    """What `ProducerStateManager` and `ProducerAppendInfo` of Apache Kafka 4.2 decide, in their
    order."""

    def __init__(self) -> None:
        self._epochs: dict[int, int] = {}
        self._batches: dict[int, list[tuple[int, int, int]]] = {}

    def append(self, batch: BatchHeader, offset: int) -> tuple[str, int]:
        """Return the answer to a client: a duplicate's offset, an error code, or the offset."""
        key, epoch = batch.producer_id, batch.producer_epoch
        current = self._epochs.get(key, -1)
        batches = self._batches.get(key, [])
        if not batch.is_control and epoch == current:
            for first, last, stored in batches:
                if (batch.base_sequence, batch.last_sequence) == (first, last):
                    return "duplicate", stored
        if epoch < current:
            return "error", 47
        if not batch.is_control:
            if epoch != current:
                if batch.base_sequence != 0 and current != -1:
                    return "error", 45
            else:
                last = batches[-1][1] if batches else -1
                follows = batch.base_sequence == last + 1
                if not (follows or (batch.base_sequence == 0 and last == 2**31 - 1)):
                    return "error", 45
        if epoch != current:
            batches = []
        if not batch.is_control:
            batches = [*batches, (batch.base_sequence, batch.last_sequence, offset)][-5:]
        self._epochs[key], self._batches[key] = epoch, batches
        return "appended", offset

    def next_sequence(self, producer: int) -> int:
        batches = self._batches.get(producer)
        return (batches[-1][1] + 1) % 2**31 if batches else 0


KAFKA_STEPS = st.tuples(
    st.integers(1, 2),
    st.sampled_from([0, 0, 0, 0, 1, -1]),
    st.sampled_from(["next", "next", "next", "zero", "repeat", "repeat", "near", "end", "marker"]),
    st.integers(-8, 8),
    st.integers(1, 3),
    st.booleans(),
)
"""(producer, change of its epoch, kind, how far off, records, whether the state is reloaded)"""


@settings(max_examples=150)
@given(st.lists(KAFKA_STEPS, max_size=50))
def test_producers_are_accepted_as_kafka_accepts_them(
    steps: list[tuple[int, int, str, int, int, bool]],
) -> None:
    kafka, producers, sent = KafkaState(), Producers(), [header(0)]
    epochs = {1: 3, 2: 3}
    for offset, (producer, rise, kind, off, count, is_reloaded) in enumerate(steps):
        epoch = max(0, epochs[producer] + rise)
        sequence = kafka.next_sequence(producer)
        match kind:
            case "zero":
                sequence = 0
            case "near":
                sequence = (sequence + off) % 2**31
            case "end":
                sequence = SEQUENCE_MAX - abs(off)
        batch = header(sequence, count, producer=producer, epoch=epoch)
        if kind == "marker":
            batch = batch._replace(attributes=CONTROL, base_sequence=NO_SEQUENCE)
        elif kind == "repeat":
            batch = sent[off % len(sent)]
        expected = kafka.append(batch, offset)
        try:
            found = producers.find_duplicate(batch)
        except Fenced:
            assert expected == ("error", 47)
        except (SequenceGap, SequenceOld):
            assert expected == ("error", 45)
        else:
            if found is None:
                assert expected == ("appended", offset)
                producers.remember(batch, offset, now_ms=1)
                epochs[producer] = max(epochs[producer], epoch)
                sent.append(batch)
            else:
                assert expected == ("duplicate", found.base_offset)
        if is_reloaded:
            producers = Producers.decode(producers.encode(), now_ms=2)


STEPS = st.tuples(st.integers(1, 4), st.integers(0, 2), st.integers(1, 3))
"""(producer, how far the epoch rises, records)"""


@given(st.lists(STEPS, max_size=40), st.integers(0, 2**40))
def test_producer_state_round_trips(steps: list[tuple[int, int, int]], now: int) -> None:
    """All count as seen now, whatever the clock did."""
    producers, offset = Producers(), 0
    for producer, rise, count in steps:
        before = producers._known.get(producer)
        epoch = rise + (before.epoch if before else 0)
        is_same = before is not None and epoch == before.epoch
        sequence = before.next_sequence if before and is_same else 0
        batch = header(sequence, count, producer=producer, epoch=epoch)
        if rise == 2:
            batch = marker(epoch, producer=producer).header
        producers.remember(batch, offset, now_ms=7)
        offset += count
    decoded = Producers.decode(producers.encode(), now)
    expected = {key: value._replace(seen_ms=now) for key, value in producers._known.items()}
    assert decoded._known == expected
    assert list(decoded._known) == list(expected)


@given(st.lists(STEPS, max_size=20), st.lists(STEPS, max_size=20))
def test_restore_undoes_remember(
    kept: list[tuple[int, int, int]], undone: list[tuple[int, int, int]]
) -> None:
    producers = Producers()

    def take(steps: list[tuple[int, int, int]]) -> list[tuple[int, Producer | None]]:
        befores = []
        for producer, rise, count in steps:
            last = producers._known.get(producer)
            epoch = rise + (last.epoch if last else 0)
            one = header(0, count, producer=producer, epoch=epoch)
            befores.append((producer, producers.remember(one, 0, now_ms=1)))
        return befores

    take(kept)
    expected = dict(producers._known)
    for producer, before in reversed(take(undone)):
        producers.restore(producer, before)
    assert producers._known == expected


# The same, in a log that is closed, killed, rolled, trimmed and compacted.

Fate = Callable[[SimDisk, Log], tuple[SimDisk, Log]]


def nothing(disk: SimDisk, log: Log) -> tuple[SimDisk, Log]:
    return disk, log


def closed(disk: SimDisk, log: Log) -> tuple[SimDisk, Log]:
    log.close()
    return disk, open_log(disk, SMALL)


def killed(disk: SimDisk, log: Log) -> tuple[SimDisk, Log]:
    disk = disk.process_kill()
    return disk, open_log(disk, SMALL)


def state_lost(disk: SimDisk, log: Log) -> tuple[SimDisk, Log]:
    log.close()
    disk = disk.process_kill()
    disk.unlink(STATE)
    return disk, open_log(disk, SMALL)


def state_damaged(disk: SimDisk, log: Log) -> tuple[SimDisk, Log]:
    log.close()
    disk = disk.process_kill()
    disk.open(STATE, "edit").write_at(20, b"damage")
    return disk, open_log(disk, SMALL)


def rolled(disk: SimDisk, log: Log) -> tuple[SimDisk, Log]:
    end = log.partition(TOPIC, 0).durable_watermark
    while log.partition(TOPIC, 0).view.segments[-1].header.base_offset < end:
        add(log, b"filler" * 30)
    return disk, log


def rolled_killed(disk: SimDisk, log: Log) -> tuple[SimDisk, Log]:
    return killed(*rolled(disk, log))


def rolled_state_lost(disk: SimDisk, log: Log) -> tuple[SimDisk, Log]:
    return state_lost(*rolled(disk, log))


def trimmed(disk: SimDisk, log: Log) -> tuple[SimDisk, Log]:
    end = log.partition(TOPIC, 0).durable_watermark
    disk, log = rolled(disk, log)
    log.maintain()
    assert log.partition(TOPIC, 0).view.start_offset >= end
    return disk, log


def trimmed_closed(disk: SimDisk, log: Log) -> tuple[SimDisk, Log]:
    return closed(*trimmed(disk, log))


def trimmed_killed(disk: SimDisk, log: Log) -> tuple[SimDisk, Log]:
    return killed(*trimmed(disk, log))


FATES: list[Fate] = [
    nothing,
    closed,
    killed,
    state_lost,
    state_damaged,
    rolled,
    rolled_killed,
    rolled_state_lost,
    trimmed,
    trimmed_closed,
    trimmed_killed,
]


@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.__name__)
def test_the_last_five_batches_return_their_first_offsets(fate: Fate) -> None:
    """The sixth, a gap and an old epoch are refused; nothing is stored."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=EXPIRE_AT_ONCE)
    sent = [send(log, produced(2 * i, 2))[0] for i in range(7)]
    disk, log = fate(disk, log)
    end = log.partition(TOPIC, 0).durable_watermark
    for i in range(2, 7):
        assert send(log, produced(2 * i, 2)) == [(*sent[i][:2], True)]  # type: ignore[index]
    for sequence, error in ((0, SequenceOld), (2, SequenceOld), (16, SequenceGap)):
        assert isinstance(send(log, produced(sequence, 2))[0], error)
    assert log.partition(TOPIC, 0).durable_watermark == end
    assert send(log, produced(14, 2)) == [(end, end + 2, False)]
    assert send(log, produced(14, 2)) == [(end, end + 2, True)]


@pytest.mark.parametrize("fate", [killed, state_lost, rolled_state_lost, trimmed_killed])
def test_an_old_epoch_stays_fenced(fate: Fate) -> None:
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=EXPIRE_AT_ONCE)
    send(log, produced(0), produced(1), produced(0, epoch=3))
    disk, log = fate(disk, log)
    assert isinstance(send(log, produced(2))[0], Fenced)
    assert isinstance(send(log, produced(1, epoch=4))[0], SequenceGap)
    appended = send(log, produced(0, epoch=4))[0]
    assert isinstance(appended, AppendResult) and not appended.is_duplicate


@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.__name__)
def test_the_epoch_of_a_marker_stays(fate: Fate) -> None:
    """Even if the producer has no batch in it, and the marker is trimmed."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=EXPIRE_AT_ONCE)
    send(log, produced(0), produced(1), marker(3), marker(8, producer=2))
    disk, log = fate(disk, log)
    assert isinstance(send(log, produced(2))[0], Fenced)
    assert isinstance(send(log, produced(0, epoch=7, producer=2))[0], Fenced)
    assert isinstance(send(log, produced(2, epoch=3))[0], SequenceGap)
    appended = send(log, produced(0, epoch=3))[0]
    assert isinstance(appended, AppendResult) and not appended.is_duplicate


VERSION_1 = bytes.fromhex(
    "46525a4350415254 0100000037000000 1204000000000000 d107000000000000"
    "010000004d000000 000000000200010a 0000000b00000010 0400000000000012"
    "04000000000000dc c63448"
)
"""A checkpoint of producer 77 in epoch 2 with sequences 10 to 11 at offsets 1040 to 1042."""


def test_a_checkpoint_of_version_1_is_read() -> None:
    disk = SimDisk()
    log = open_log(disk, SMALL)
    files = log.partition(TOPIC, 0).files
    log.close()
    disk.unlink(STATE)
    disk.open(STATE, "create").append([VERSION_1])
    state = CheckpointState.load(files, now_ms=1)
    assert (state.start_offset, state.end_offset, state.is_known) == (1042, 2001, True)
    assert state.producers._known == {77: Producer(2, 1, (PastBatch(10, 11, 1040, 1042),))}


def test_duplicates_in_one_group_are_stored_once() -> None:
    log = open_log(SimDisk(), SMALL)
    sent = [produced(i) for i in range(5)]
    answers = send(log, *sent, *sent, produced(5), sent[3])
    assert answers[:5] == [(i, i + 1, False) for i in range(5)]
    assert answers[5:10] == [(i, i + 1, True) for i in range(5)]
    assert answers[10:] == [(5, 6, False), (3, 4, True)]
    assert log.partition(TOPIC, 0).durable_watermark == 6


def test_a_gap_in_one_group_refuses_only_later_batches() -> None:
    """Five in flight, the second lost: after a resend all arrive in order."""
    log = open_log(SimDisk(), SMALL)
    sent = [produced(i) for i in range(5)]
    first, *others = send(log, sent[0], *sent[2:])
    assert first == (0, 1, False)
    assert [type(error) for error in others] == [SequenceGap] * 3
    assert send(log, *sent[1:]) == [(i, i + 1, False) for i in range(1, 5)]


def test_wrapping_in_the_middle_of_a_batch_survives_a_crash() -> None:
    disk = SimDisk()
    log = open_log(disk, SMALL)
    # Two billion batches before this one would take too long to send.
    log.partition(TOPIC, 0).producers.remember(header(SEQUENCE_MAX - 1), 0, now_ms=1)
    wrapping = produced(SEQUENCE_MAX, 4)
    assert send(log, wrapping) == [(0, 4, False)]
    for _ in range(2):
        assert send(log, wrapping) == [(0, 4, True)]
        assert isinstance(send(log, produced(4))[0], SequenceGap)
        disk, log = killed(disk, log)
    assert send(log, produced(3)) == [(4, 5, False)]


def test_producers_do_not_expire_by_a_clock_jump() -> None:
    """A year ahead while running, and again between two runs."""
    disk, clock = SimDisk(), SimClock()
    config = msgspec.structs.replace(SMALL, producer_expiry_ms=60_000)
    log = open_log(disk, config, clock=clock)
    send(log, produced(0))
    clock.jump_wall(365 * 86_400_000)
    rolled(disk, log)
    assert send(log, produced(0)) == [(0, 1, True)]
    log.close()
    clock.jump_wall(365 * 86_400_000)
    log = open_log(disk, config, clock=clock)
    rolled(disk, log)
    assert send(log, produced(0)) == [(0, 1, True)]
    clock.advance(60_001)
    rolled(disk, log)
    end = log.partition(TOPIC, 0).durable_watermark
    assert send(log, produced(0)) == [(end, end + 1, False)]


def keyed_log(disk: SimDisk) -> Log:
    return open_log(disk, SMALL, topic=COMPACT)


def compacted(disk: SimDisk, log: Log) -> tuple[SimDisk, Log]:
    """All that was sent so far is replaced by later records of the same key, and compacted."""
    end = log.partition(TOPIC, 0).durable_watermark
    while log.partition(TOPIC, 0).view.segments[-1].header.base_offset <= end:
        send(log, produced(0, producer=1000 + log.partition(TOPIC, 0).durable_watermark))
    log.maintain()
    assert {b.header.record_count for b in batches(log) if b.base_offset < end} == {0}
    return disk, log


@pytest.mark.parametrize("fate", [nothing, closed, killed, state_lost, state_damaged])
def test_compaction_keeps_what_duplicates_are_detected_by(fate: Fate) -> None:
    """All records of the last five batches are gone; their empty batches remain."""
    disk = SimDisk()
    log = keyed_log(disk)
    sent = [send(log, produced(2 * i, 2))[0] for i in range(7)]
    before = known(log)[PRODUCER]
    disk, log = fate(*compacted(disk, log))
    assert known(log)[PRODUCER] == before
    for i in range(2, 7):
        assert send(log, produced(2 * i, 2)) == [(*sent[i][:2], True)]  # type: ignore[index]
    assert isinstance(send(log, produced(2, 2))[0], SequenceOld)
    appended = send(log, produced(14, 2))[0]
    assert isinstance(appended, AppendResult) and not appended.is_duplicate


Word = tuple[str, int, int]

WORDS = st.one_of(
    st.tuples(st.just("next"), st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.just("repeat"), st.integers(1, 3), st.integers(0, 6)),
    st.tuples(st.just("epoch"), st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.sampled_from(["kill", "close", "compact"]), st.just(0), st.just(0)),
)


@settings(max_examples=60)
@given(st.lists(WORDS, max_size=60))
def test_producer_state_is_rebuilt_from_the_log(words: list[Word]) -> None:
    """Whatever was sent, repeated, rolled, compacted: without the checkpoint the log says the
    same of every producer, and every repetition is answered with the offset of the first."""
    disk = SimDisk()
    log = keyed_log(disk)
    sent: dict[int, list[tuple[Append, AppendResult]]] = {1: [], 2: [], 3: []}
    for word, producer, number in words:
        if word == "kill":
            disk, log = killed(disk, log)
        elif word == "close":
            disk, log = closed(disk, log)
        elif word == "compact":
            log.maintain()
        elif word == "repeat":
            if sent[producer]:
                append, first = sent[producer][-1 - number % len(sent[producer])]
                is_remembered = number % len(sent[producer]) < REMEMBERED
                (answer,) = send(log, append)
                if is_remembered:
                    assert answer == (first.base_offset, first.end_offset, True)
                else:
                    assert isinstance(answer, SequenceOld)
        else:
            last = sent[producer][-1][0].header if sent[producer] else None
            epoch, sequence = (last.producer_epoch, last.last_sequence + 1) if last else (0, 0)
            if word == "epoch":
                epoch, sequence, sent[producer] = epoch + 1, 0, []
            append = produced(sequence, number, producer=producer, epoch=epoch)
            (answer,) = send(log, append)
            assert isinstance(answer, AppendResult) and not answer.is_duplicate
            sent[producer].append((append, answer))
    expected = known(log)
    disk, log = state_lost(disk, log)
    assert known(log) == expected
