"""Compaction keeps the latest record of each key, at its offset."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.disk import is_full
from frazil.errors import Malformed
from frazil.log import (
    Append,
    AtTime,
    Compression,
    Log,
    Marker,
    PartitionView,
    Record,
    StoredBatch,
    append_of_marker,
    append_of_records,
    check_batch,
    encode_batch,
    parse_header,
)
from frazil.log import compaction as compaction_module
from frazil.log.compaction import INTERRUPTED, Compacted, compact, is_due
from frazil.log.produce import append_of_batch
from frazil.log.reader import Reader, offset_at_time
from frazil.model import Rand
from frazil.settings import TopicConfig
from tests.log.build import FOLDER, SMALL, TOPIC, Fatal, batches, open_log, paths, put, submit
from tests.log.test_retention import view_of
from tests.sim.clock import SimClock
from tests.sim.disk import Model, PowerCut, SimDisk

T = TypeVar("T")

GRACE_MS = 1000
KEYED = TopicConfig(
    cleanup="compact", compact_dirty_ratio_min=0, tombstone_grace_ms=GRACE_MS, retention_ms=0
)
Fold = dict[bytes, bytes]


def store(log: Log, *pairs: tuple[bytes, bytes | None], timestamp_ms: int = 1) -> int:
    """One batch of (key, value); its base offset."""
    records = [Record(offset=0, timestamp_ms=timestamp_ms, key=k, value=v) for k, v in pairs]
    (answer,) = submit(log, append_of_records(records))
    log.writer.step()
    return answer.result(0).base_offset


def seal(log: Log) -> None:
    """Begin a new segment, if there is anything in the open one."""
    partition = log.partition(TOPIC, 0)
    if partition.view.segments[-1].info.base_offset < partition.durable_watermark:
        log._on_writer(partition.roll)


def run_round(log: Log, clock: SimClock, config: TopicConfig = KEYED) -> Compacted:
    partition = log.partition(TOPIC, 0)
    limit = partition.durable_watermark
    return compact(partition, config, clock.wall_ms(), limit, log._on_writer)


def records_of(log: Log) -> list[Record]:
    return [record for stored in batches(log) for record in stored.records()]


def fold_of(records: list[Record]) -> Fold:
    """Return the latest value of each key."""
    latest = {record.key: record.value for record in records}
    return {key: value for key, value in latest.items() if key is not None and value is not None}


def fold(log: Log) -> Fold:
    return fold_of(records_of(log))


# What is kept.


def test_the_latest_record_of_each_key_stays_at_its_offset() -> None:
    clock = SimClock()
    log = open_log(SimDisk(), SMALL, clock=clock, topic=KEYED)
    store(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    store(log, (b"c", b"1"))
    store(log, (b"b", b"2"), (b"a", b"3"))
    seal(log)
    done = run_round(log, clock)
    assert (done.segments_count, done.removed_count) == (1, 3) and done.freed_bytes > 0
    kept = [(record.offset, record.key, record.value) for record in records_of(log)]
    assert kept == [(3, b"c", b"1"), (4, b"b", b"2"), (5, b"a", b"3")]
    assert [(b.base_offset, b.end_offset) for b in batches(log)] == [(3, 4), (4, 6)]
    assert run_round(log, clock) == Compacted(), "clean segments are left alone"


Step = tuple[str, int, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 4), st.integers(1, 9)),
        st.tuples(st.just("delete"), st.integers(0, 4), st.just(0)),
        st.tuples(
            st.sampled_from(["compact", "compact", "seal", "seal", "wait", "kill", "close"]),
            st.just(0),
            st.just(0),
        ),
    ),
    max_size=60,
)


@settings(max_examples=150)
@given(STEPS)
def test_compacted_records_fold_to_the_same_dict(steps: list[Step]) -> None:
    """Records keep offsets, order and content; none reappears; none is lost."""
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    model: Fold = {}
    history: dict[int, tuple[bytes, bytes | None]] = {}
    gone: set[int] = set()
    for step, number, value in steps:
        key = b"k%d" % number
        if step == "put":
            history[store(log, (key, b"%d" % value))] = (key, b"%d" % value)
            model[key] = b"%d" % value
        elif step == "delete":
            history[store(log, (key, None))] = (key, None)
            model.pop(key, None)
        elif step == "compact":
            run_round(log, clock)
        elif step == "seal":
            seal(log)
        elif step == "wait":
            clock.advance(GRACE_MS)
        elif step == "kill":
            disk = disk.process_kill()
            log = open_log(disk, SMALL, clock=clock)
        else:
            log.close()
            log = open_log(disk, SMALL, clock=clock)
        records = records_of(log)
        assert fold_of(records) == model
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets))
        assert all(history[r.offset] == (r.key, r.value) for r in records)
        assert not gone & set(offsets), "what is gone stays gone"
        gone = history.keys() - set(offsets)
    seal(log)
    run_round(log, clock)
    clock.advance(GRACE_MS)
    run_round(log, clock)
    records = records_of(log)
    assert fold_of(records) == model
    assert len(records) == len(model), "one record per living key, no tombstone"


@pytest.mark.parametrize("compression", list(Compression))
def test_compacted_batches_keep_their_metadata(compression: Compression) -> None:
    """Compression, producer, times and headers survive."""
    clock = SimClock()
    log = open_log(SimDisk(), SMALL, clock=clock, topic=KEYED)
    records = [
        Record(offset=i, timestamp_ms=50 + i, key=b"k%d" % (i % 3), value=b"v" * i, headers=HEADERS)
        for i in range(5)
    ]
    payload = encode_batch(
        records, compression=compression, producer_id=7, producer_epoch=1, base_sequence=0
    )
    submit(log, append_of_batch(payload))
    log.writer.step()
    seal(log)
    run_round(log, clock)
    (thinned,) = batches(log)
    header = check_batch(thinned.payload)
    assert thinned.records() == records[2:]
    assert header.compression is compression
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 0)
    assert (header.last_sequence, header.last_offset_delta, header.record_count) == (4, 4, 3)
    assert header.max_timestamp_ms == 54


HEADERS = (("name", b"value"), ("empty", None))


def test_control_batches_stay_and_delete_nothing() -> None:
    clock = SimClock()
    log = open_log(SimDisk(), SMALL, clock=clock, topic=KEYED)
    store(log, (b"\0\0\0\0", b"mine"))
    payload = encode_batch(
        [Record(offset=0, timestamp_ms=1, key=b"\0\0\0\0", value=None)],
        producer_id=3,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
        control=True,
    )
    submit(log, Append(parts=(payload,), header=parse_header(payload)))
    log.writer.step()
    seal(log)
    for _ in range(3):
        run_round(log, clock)
        clock.advance(GRACE_MS)
    assert [b.header.is_control for b in batches(log)] == [False, True]
    assert batches(log)[0].records()[0].value == b"mine"


def test_a_marker_goes_once_nothing_refers_to_it() -> None:
    """That of an aborted transaction, and that of a committed one whose records were superseded;
    after the grace period. A log that is read again from its start ends in the same state."""
    clock, disk = SimClock(), SimDisk()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)

    def write(sequence: int, key: bytes, marker: Marker | None) -> None:
        record = Record(offset=0, timestamp_ms=1, key=key, value=b"%d" % sequence)
        payload = encode_batch(
            [record], producer_id=3, producer_epoch=0, base_sequence=sequence, transactional=True
        )
        submit(log, Append(parts=(payload,), header=parse_header(payload)))
        if marker is not None:
            ended = append_of_marker(
                marker, producer_id=3, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1
            )
            submit(log, ended)
        log.writer.step()

    write(0, b"a", Marker.ABORT)
    write(1, b"a", Marker.COMMIT)
    for sequence in range(2, 10):
        write(sequence, b"b%d" % (sequence % 2), Marker.COMMIT)
    store(log, (b"a", b"last"))
    seal(log)
    partition = log.partition(TOPIC, 0)
    view = partition.view
    assert len(view.aborted) == 1
    stable = view.last_stable_offset
    for _ in range(4):
        run_round(log, clock)
        clock.advance(GRACE_MS)
        store(log, (b"c", b"x"))
        seal(log)
    kept = [b for b in batches(log) if b.header.is_control]
    data = [b.base_offset for b in batches(log) if b.header.is_transactional]
    assert 2 <= len(kept) <= 5, "of the ten markers, those of the remembered batches"
    assert not partition.view.aborted
    assert {b.base_offset - 1 for b in kept} <= set(data)
    folded = fold_of(records_of(log))
    after = disk.process_kill()
    for name in ("transactions.ckpt", "partition.ckpt"):
        if f"log/{TOPIC}/0/{name}" in after.files():
            after.unlink(f"log/{TOPIC}/0/{name}")
    again = open_log(after, SMALL, clock=clock, topic=KEYED)
    assert again.partition(TOPIC, 0).view.last_stable_offset >= stable
    assert again.partition(TOPIC, 0).transactions.open_offsets == {}
    assert fold_of(records_of(again)) == folded


def test_a_record_without_a_key_is_refused() -> None:
    log = open_log(SimDisk(), SMALL, topic=KEYED)
    with pytest.raises(Malformed, match="key"):
        submit(log, append_of_records([Record(offset=0, timestamp_ms=1, key=None, value=b"x")]))
    assert store(log, (b"", b"an empty key is a key")) == 0


# Tombstones.


def test_a_tombstone_stays_for_the_grace_period_after_it_was_applied() -> None:
    """However old it is: a reader from the start sees it within that time."""
    clock = SimClock()
    log = open_log(SimDisk(), SMALL, clock=clock, topic=KEYED)
    store(log, (b"a", b"1"))
    store(log, (b"b", b"1"))
    seal(log)
    tombstone = store(log, (b"a", None))
    seal(log)
    clock.advance(100 * GRACE_MS)
    slow = log.reader(TOPIC, "earliest")
    seen = [r for b in slow.read(1) for r in b.records()]
    assert fold_of(seen) == {b"a": b"1"}
    run_round(log, clock)
    assert [r.offset for r in records_of(log)] == [1, tombstone]
    clock.advance(GRACE_MS - 1)
    run_round(log, clock)
    seen += [r for chunk in iter(slow.read, []) for b in chunk for r in b.records()]
    assert fold_of(seen) == fold(log) == {b"b": b"1"}
    clock.advance(1)
    run_round(log, clock)
    assert [r.offset for r in records_of(log)] == [1]


def test_a_tombstone_waits_for_older_segments_to_be_compacted() -> None:
    """The older segment looks young, because its index was lost and rebuilt."""
    config = msgspec.structs.replace(KEYED, compact_age_ms_min=5000)
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=config)
    store(log, (b"a", b"1"))
    seal(log)
    store(log, (b"a", None))
    seal(log)
    log.close()
    clock.advance(6000)
    disk.unlink(f"{FOLDER}/00000000000000000000.index")
    log = open_log(disk, SMALL, clock=clock)
    for _ in range(8):
        run_round(log, clock, config)
        assert fold(log) == {}
        clock.advance(GRACE_MS)
    run_round(log, clock, config)
    assert records_of(log) == []


def test_readers_skip_an_empty_segment() -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    for _ in range(3):
        store(log, (b"a", b"1"))
        seal(log)
    store(log, (b"a", b"2"))
    run_round(log, clock)
    assert [r.offset for r in records_of(log)] == [2, 3]
    for path in paths(disk, ".index"):
        disk.unlink(path)
    again = open_log(disk.process_kill(), SMALL, clock=clock)
    assert [r.offset for r in records_of(again)] == [2, 3]
    assert again.partition(TOPIC, 0).durable_watermark == 4


# When a round is due, and how far it goes.

CLEAN, DIRTY = True, False


def view_with(*segments: tuple[int, int, bool]) -> PartitionView:
    """Segments of (bytes, sealed at, was rewritten)."""
    view = view_of(*((size, sealed_ms) for size, sealed_ms, _ in segments))
    marked = [
        segment._replace(header=replace(segment.header, is_rewritten=rewritten))
        for segment, (_, _, rewritten) in zip(view.segments, segments, strict=False)
    ]
    return PartitionView(
        start_offset=0,
        durable_watermark=view.durable_watermark,
        segments=(*marked, view.segments[-1]),
        last_stable_offset=view.durable_watermark,
        aborted=view.aborted,
    )


@pytest.mark.parametrize(
    ("view", "options", "limit", "expected"),
    [
        (view_with(), {}, 99, False),
        (view_with((100, 0, CLEAN)), {"compact_dirty_ratio_min": 0}, 99, False),
        (view_with((100, 0, DIRTY)), {}, 99, True),
        (view_with((100, 0, CLEAN), (100, 0, DIRTY)), {}, 99, True),
        (view_with((101, 0, CLEAN), (100, 0, DIRTY)), {}, 99, False),
        (view_with((900, 0, CLEAN), (1, 0, DIRTY)), {"compact_dirty_ratio_min": 0}, 99, True),
        (view_with((900, 0, CLEAN), (1, 500, DIRTY)), {"compact_lag_ms_max": 501}, 99, False),
        (view_with((900, 0, CLEAN), (1, 500, DIRTY)), {"compact_lag_ms_max": 500}, 99, True),
        (view_with((100, 900, DIRTY)), {"compact_age_ms_min": 101}, 99, False),
        (view_with((100, 900, DIRTY)), {"compact_age_ms_min": 100}, 99, True),
        (view_with((100, 0, DIRTY)), {}, 9, False),
        (view_with((100, 0, DIRTY)), {}, 10, True),
        (view_with((100, 0, CLEAN), (100, 0, DIRTY)), {}, 15, False),
    ],
)
def test_a_round_is_due_by_ratio_or_lag(
    view: PartitionView, options: dict[str, int], limit: int, expected: bool
) -> None:
    assert is_due(view, TopicConfig(cleanup="compact", **options), 1000, limit) is expected  # type: ignore[arg-type]


def test_records_not_in_the_lake_are_not_compacted() -> None:
    clock = SimClock()
    config = msgspec.structs.replace(KEYED, awaits_lake=True)
    log = open_log(SimDisk(), SMALL, clock=clock, topic=config)
    for value in range(6):
        store(log, (b"a", b"%d" % value))
        seal(log)
    assert log.maintain().compacted_count == 0
    assert len(records_of(log)) == 6
    log.publish(TOPIC, 0, 3)
    assert log.maintain().compacted_count == 2
    assert [r.offset for r in records_of(log)] == [2, 3, 4, 5]


def test_more_keys_than_fit_take_several_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clean segments, which grow with the keys, are never in the way."""
    monkeypatch.setattr(compaction_module, "KEYS_MAX", 3)
    clock = SimClock()
    log = open_log(SimDisk(), SMALL, clock=clock, topic=KEYED)
    for value in (b"old", b"new"):
        for number in range(20):
            store(log, (b"k%d" % number, value))
            if number % 2:
                seal(log)
    for _ in range(20):
        run_round(log, clock)
    assert [r.offset for r in records_of(log)] == list(range(20, 40))
    store(log, (b"k7", b"newest"))
    seal(log)
    run_round(log, clock)
    assert [r.offset for r in records_of(log)] == [*range(20, 27), *range(28, 41)]


# Readers, look-ups, retention and full disks meanwhile.


def many_versions(log: Log) -> Fold:
    for value in range(8):
        for number in range(4):
            store(log, (b"k%d" % number, b"%d" % value), timestamp_ms=100 * value + number)
    seal(log)
    return {b"k%d" % number: b"7" for number in range(4)}


def test_readers_continue_while_segments_are_replaced() -> None:
    """At every position of a reader, before the first byte and in the middle of a file."""
    for position in range(32):
        clock = SimClock()
        log = open_log(SimDisk(), SMALL, clock=clock, topic=KEYED)
        expected = many_versions(log)
        reader = log.reader(TOPIC, "earliest")
        seen: list[StoredBatch] = []
        while len(seen) < position:
            seen += reader.read(1)
        run_round(log, clock)
        seen += [b for chunk in iter(lambda: reader.read(1), []) for b in chunk]  # noqa: B023
        offsets = [b.base_offset for b in seen]
        assert offsets == sorted(set(offsets))
        assert fold_of([r for b in seen for r in b.records()]) == expected
        assert Reader.open(log.partition(TOPIC, 0), "earliest").read()[0].base_offset == 28


def lives(disk: SimDisk, log: Log, clock: SimClock) -> Iterator[Log]:
    """The log as it is, and as the next process finds it."""
    yield log
    yield open_log(disk.process_kill(), SMALL, clock=clock)


def test_times_are_found_after_compaction() -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    many_versions(log)
    store(log, (b"new", b"1"), timestamp_ms=2000)
    run_round(log, clock)
    for again in lives(disk, log, clock):
        partition = again.partition(TOPIC, 0)
        for timestamp_ms in (0, 1, 350, 699, 700, 702, 703, 704, 2000, 2001):
            found = offset_at_time(partition, timestamp_ms)
            later = [r.offset for r in records_of(again) if r.timestamp_ms >= timestamp_ms]
            assert found == min(later, default=partition.durable_watermark)
            assert again.reader(TOPIC, AtTime(timestamp_ms=timestamp_ms)).offset == found


def test_a_duplicate_request_is_known_after_its_record_was_compacted() -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    digest = bytes(range(16))
    request = append_of_records(
        [Record(offset=0, timestamp_ms=1, key=b"a", value=b"1")], digest=digest
    )
    submit(log, request)
    log.writer.step()
    store(log, (b"a", b"2"))
    seal(log)
    run_round(log, clock)
    assert [r.offset for r in records_of(log)] == [1]
    for again in lives(disk, log, clock):
        (answer,) = submit(again, request)
        again.writer.step()
        assert answer.result(0) == (0, 1, True)


@pytest.mark.parametrize("when", ["before reading", "before replacing"])
def test_a_segment_dropped_meanwhile_is_skipped(when: str) -> None:
    disk, clock, fatal = SimDisk(), SimClock(), Fatal()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED, fatal=fatal)
    expected = many_versions(log)
    partition = log.partition(TOPIC, 0)
    first_end = partition.view.segments[0].info.end_offset
    errands = itertools.count()

    def drop_then(work: Callable[[], T]) -> T:
        # The first errand asks for the producers, the others replace segments.
        if next(errands) == (0 if when == "before reading" else 1):
            log._on_writer(lambda: partition.trim(first_end))
        return log._on_writer(work)

    limit = partition.durable_watermark
    compact(partition, KEYED, clock.wall_ms(), limit, drop_then)
    assert fatal.errors == [] and partition.view.start_offset == first_end
    assert fold_of(records_of(log)) == expected
    assert not [p for p in disk.files() if p.endswith(".cleaned")]
    run_round(log, clock)
    assert [r.offset for r in records_of(log)] == [28, 29, 30, 31]


def test_a_missing_segment_is_an_error() -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    many_versions(log)
    disk.unlink(log.partition(TOPIC, 0).view.segments[1].path)
    with pytest.raises(FileNotFoundError):
        run_round(log, clock)


def test_a_full_disk_postpones_the_round() -> None:
    disk, clock, fatal = SimDisk(), SimClock(), Fatal()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED, fatal=fatal)
    expected = many_versions(log)
    before = INTERRUPTED.value()
    used = sum(len(disk.data(path)) for path in disk.files())
    for room in range(0, 2000, 50):
        disk.faults.capacity_bytes = used + room
        run_round(log, clock)
        assert fold(log) == expected
        assert not [p for p in disk.files() if p.endswith((".cleaned", ".tmp"))]
    assert INTERRUPTED.value() > before and fatal.errors == []
    disk.faults.capacity_bytes = None
    run_round(log, clock)
    assert len(records_of(log)) == 4
    kept = paths(disk, ".log") + paths(disk, ".spare")
    assert log.budget.used_bytes == sum(len(disk.data(p)) for p in kept)


def test_small_neighbours_are_merged() -> None:
    """A topic keeps few files over many rounds; large segments stay separate."""
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    for number in range(60):
        store(log, (b"%d" % (number % 4), b"%d" % number))
        seal(log)
        run_round(log, clock)
        assert len(log.partition(TOPIC, 0).view.segments) <= 3
    assert [r.value for r in records_of(log)] == [b"56", b"57", b"58", b"59"]
    large = open_log(SimDisk(), SMALL, clock=clock, topic=KEYED)
    for number in range(6):
        store(large, (b"%d" % number, bytes(700)))
        seal(large)
    run_round(large, clock)
    assert len(large.partition(TOPIC, 0).view.segments) == 7


def test_old_keys_expire_if_the_topic_expires_too() -> None:
    """Although small segments are merged all the time, and a segment is as old as its newest
    record. Keys written meanwhile stay."""
    clock = SimClock()
    config = msgspec.structs.replace(KEYED, cleanup="compact_expire", retention_ms=1000)
    log = open_log(SimDisk(), SMALL, clock=clock, topic=config)
    store(log, (b"old", b"1"))
    for number in range(40):
        store(log, (b"b%d" % (number % 2), b"%d" % number))
        seal(log)
        clock.advance(50)
        log.maintain()
        expected = {b"b0", b"b1"} if number else {b"b0"}
        if number < 19:
            assert set(fold(log)) == {b"old", *expected}
        else:
            assert expected <= set(fold(log))
        assert len(log.partition(TOPIC, 0).view.segments) <= 6
    assert fold(log) == {b"b0": b"38", b"b1": b"39"}


def test_an_interrupted_merge_is_finished_at_the_next_start() -> None:
    """The header of the new file shows which files it replaces."""
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    expected = many_versions(log)
    before = {path: disk.data(path) for path in paths(disk, ".log") + paths(disk, ".index")}
    run_round(log, clock)
    after = paths(disk, ".log")
    gone = [path for path in before if path.endswith(".log") and path not in after]
    assert gone
    disk = disk.process_kill()
    for path, data in before.items():
        if path not in disk.files():
            put(disk, path, data)
    again = open_log(disk, SMALL, clock=clock)
    assert fold(again) == expected
    assert paths(disk, ".log") == after
    assert len(paths(disk, ".index")) == len(after) - 1


def test_a_scratch_file_of_a_failed_round_is_overwritten() -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    expected = many_versions(log)
    put(disk, f"{log.partition(TOPIC, 0).view.segments[0].path}.cleaned", b"left over")
    run_round(log, clock)
    assert fold(log) == expected and len(records_of(log)) == 4


def test_a_disk_error_is_raised() -> None:
    for call in range(1, 40):
        disk, clock, fatal = SimDisk(), SimClock(), Fatal()
        log = open_log(disk, SMALL, clock=clock, topic=KEYED, fatal=fatal)
        expected = many_versions(log)
        disk.faults.fail_at = (disk.calls + call, errno.EIO)
        try:
            run_round(log, clock)
        except OSError as error:
            assert not is_full(error)
        else:
            assert disk.fired["fail"] == 0
        again = open_log(disk.process_kill(), SMALL, clock=clock)
        assert fold(again) == expected


# Power cuts.


def prepared(disk: SimDisk, clock: SimClock) -> tuple[Log, Fold]:
    """Dead keys, living ones, tombstones dated and not, a clean segment and dirty ones."""
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    store(log, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    store(log, (b"d", b"1"))
    seal(log)
    store(log, (b"a", None), (b"b", b"2"))
    seal(log)
    run_round(log, clock)
    clock.advance(GRACE_MS)
    store(log, (b"c", None), (b"d", b"2"))
    seal(log)
    store(log, (b"b", None), (b"e", b"1"))
    seal(log)
    store(log, (b"d", b"3"))
    return log, {b"d": b"3", b"e": b"1"}


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_power_cut_at_any_call_changes_nothing_for_readers(model: Model) -> None:
    """The fold by key is the same after it, and after the rounds that follow; tombstones do
    not go before what they delete."""
    for call in itertools.count(1):
        disk, clock = SimDisk(model=model, rand=Rand(call)), SimClock()
        log, expected = prepared(disk, clock)
        disk.faults.crash_at = disk.calls + call
        try:
            run_round(log, clock)
        except PowerCut:
            for seed in range(3):
                check_after_cut(disk.crash(Rand(seed)), clock.wall_ms(), expected)
        else:
            assert call > 25
            return


def check_after_cut(disk: SimDisk, wall_ms: int, expected: Fold) -> None:
    clock = SimClock(wall_ms=wall_ms)
    log = open_log(disk, SMALL, clock=clock)
    assert fold(log) == expected
    assert not [p for p in disk.files() if p.endswith((".cleaned", ".tmp"))]
    for _ in range(3):
        run_round(log, clock)
        assert fold(log) == expected
        clock.advance(GRACE_MS)
    assert log.partition(TOPIC, 0).durable_watermark == 11
