"""A repair gives up the damaged bytes and nothing else."""

from __future__ import annotations

import errno
import itertools
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil import metrics
from frazil.disk import RealDisk
from frazil.errors import Corrupt, Held, Malformed, SequenceGap, SequenceOld, Unknown
from frazil.log import (
    Append,
    AppendResult,
    Log,
    Record,
    RepairReport,
    StoredBatch,
    SubscriberConfig,
    append_of_records,
    encode_batch,
    repair_partition,
)
from frazil.log.compaction import compact
from frazil.log.produce import append_of_batch
from frazil.log.segment import HEADER_BYTES
from frazil.log.subscribers import progress_path
from frazil.model import Rand
from frazil.settings import TopicConfig
from tests.log.build import (
    FIRST,
    FOLDER,
    MARKS,
    SMALL,
    STATE,
    TOPIC,
    add,
    batch,
    batches,
    flipped,
    frames_of,
    numbers,
    open_log,
    put,
    segments,
    submit,
)
from tests.sim.clock import SimClock
from tests.sim.disk import Model, PowerCut, Rot, SimDisk

NOW_MS = 1_700_000_000_000
Contents = dict[str, bytes]


def repair(disk: SimDisk, *, seed: int = 0, floor: int = 0) -> RepairReport:
    """Repair, after a dry run, which changes nothing and says what the repair then does."""

    def run(*, is_dry_run: bool) -> RepairReport:
        rand = Rand(seed)
        return repair_partition(
            disk, TOPIC, 0, SMALL, rand=rand, now_ms=NOW_MS, floor=floor, is_dry_run=is_dry_run
        )

    told = run(is_dry_run=True)  # from here on reads show what the disk really has
    before = contents(disk)
    assert run(is_dry_run=True) == told
    assert contents(disk) == before
    done = run(is_dry_run=False)
    assert (told.kept_count, told.lost) == (done.kept_count, done.lost)
    assert told.damaged_bytes == done.damaged_bytes
    assert bool(told.files) <= bool(done.files)
    return done


def filled(count: int = 30, *, topic: TopicConfig | None = None) -> tuple[SimDisk, list[bytes]]:
    """A log at rest: several sealed segments and an open one; its batches by offset."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=topic)
    for value in numbers(0, count):
        add(log, value)
    stored = payloads(log)
    log.close()
    return disk, stored


def payloads(log: Log) -> list[bytes]:
    return [stored.payload for stored in batches(log)]


def contents(disk: SimDisk) -> Contents:
    return {path: disk.data(path) for path in disk.files() if path != "frazil.lock"}


def offsets(log: Log) -> list[int]:
    return [stored.base_offset for stored in batches(log)]


def damage(disk: SimDisk, path: str, position: int) -> None:
    """Turn one bit over."""
    put(disk, path, flipped(disk.data(path), position * 8 + position % 8))


def next_offset(log: Log) -> int:
    (appended,) = add(log, b"after the repair")
    return appended.base_offset


# A healthy partition is left as it is.


def healthy_disks() -> dict[str, SimDisk]:
    disks = {"closed": filled()[0], "empty": filled(0)[0], "one segment": filled(3)[0]}
    disks["killed"] = filled_and_killed()
    torn = filled_and_killed()
    put(torn, segments(torn)[-1], torn.data(segments(torn)[-1]) + b"FRZF torn by a crash")
    disks["torn end"] = torn
    trimmed = SimDisk()
    log = open_log(trimmed, SMALL, topic=TopicConfig(retention_ms=0))
    for value in numbers(0, 30):
        add(log, value)
    log.maintain()
    disks["trimmed"] = trimmed.process_kill()
    disks["compacted"] = compacted_disk()
    return disks


def filled_and_killed() -> SimDisk:
    disk = SimDisk()
    log = open_log(disk, SMALL)
    for value in numbers(0, 20):
        add(log, value)
    return disk.process_kill()


KEYED = TopicConfig(cleanup="compact", compact_dirty_ratio_min=0, tombstone_grace_ms=1000)


def keyed(key: bytes, value: bytes | None) -> Append:
    return append_of_records([Record(offset=0, timestamp_ms=1, key=key, value=value)])


def compacted_disk() -> SimDisk:
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=KEYED)
    for number in range(30):
        submit(log, keyed(b"%d" % (number % 7), b"value %d" % number))
        log.writer.step()
    log.maintain()
    assert len(offsets(log)) < 20
    log.close()
    return disk


@pytest.mark.parametrize("name", healthy_disks())
def test_a_healthy_partition_is_not_changed(name: str) -> None:
    disk = healthy_disks()[name]
    kept = len(batches(open_log(disk.process_kill(), SMALL)))
    disk = disk.process_kill()
    before = contents(disk)
    assert repair(disk) == RepairReport(kept_count=kept)
    assert contents(disk) == before


def test_the_log_must_be_closed_and_the_partition_exist() -> None:
    disk = SimDisk()
    log = open_log(disk, SMALL)
    with pytest.raises(Held):
        repair(disk)
    log.close()
    for topic, partition in (("other", 0), (TOPIC, 1), (TOPIC, -1)):
        with pytest.raises(Unknown):
            repair_partition(disk, topic, partition, SMALL, rand=Rand(0), now_ms=NOW_MS)
    for topic in ("..", "a/b", "", "subscribers", "\0"):
        with pytest.raises(Malformed):
            repair_partition(disk, topic, 0, SMALL, rand=Rand(0), now_ms=NOW_MS)
    repair(disk)
    open_log(disk, SMALL).close()


# One piece of damage at a time.


@pytest.mark.parametrize("which", [0, 1, -1])
def test_only_the_damaged_batch_is_lost_and_set_aside(which: int) -> None:
    disk, stored = filled()
    path = segments(disk)[which]
    frames = frames_of(disk, path)
    disk = disk.process_kill()
    victim = frames[2]
    damage(disk, path, victim.position + 100)
    evidence = disk.data(path)[victim.position : victim.end]
    repaired = repair(disk)
    assert repaired.lost == ((victim.base_offset, victim.end_offset),)
    assert repaired.kept_count == 29 and repaired.damaged_bytes == len(evidence)
    aside = disk.data(f"{path}.damaged")
    title, _, rest = aside.partition(b"\n")
    assert title.startswith(b"bytes %d to %d of " % (victim.position, victim.end))
    assert rest == evidence + b"\n"
    log = open_log(disk, SMALL)
    assert payloads(log) == [p for i, p in enumerate(stored) if i != victim.base_offset]
    assert next_offset(log) == 30
    log.close()
    before = contents(disk)
    assert repair(disk) == RepairReport(kept_count=30)
    assert contents(disk) == before


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_damaged_header_loses_no_batch(which: int) -> None:
    """Even if it is the salt, without which no frame can be checked."""
    disk, stored = filled()
    path = segments(disk)[which]
    for position in range(HEADER_BYTES):
        trial = disk.process_kill()
        damage(trial, path, position)
        repaired = repair(trial)
        assert repaired.kept_count == 30
        assert repaired.lost in ((), ((30, 31),))
        log = open_log(trial, SMALL)
        assert payloads(log) == stored
        assert next_offset(log) >= 30


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_header_lost_with_the_first_batches_loses_no_others(which: int) -> None:
    disk, stored = filled()
    path = segments(disk)[which]
    frames = frames_of(disk, path)
    disk = disk.process_kill()
    put(disk, path, bytes(frames[1].end - 5) + disk.data(path)[frames[1].end - 5 :])
    lost = {frame.base_offset for frame in frames[:2]}
    repaired = repair(disk)
    assert {o for begin, end in repaired.lost for o in range(begin, end)} == lost
    log = open_log(disk, SMALL)
    assert payloads(log) == [p for i, p in enumerate(stored) if i not in lost]


@pytest.mark.parametrize("which", [0, 1, 2, -2, -1])
def test_a_missing_segment_becomes_a_gap(which: int) -> None:
    disk, stored = filled()
    path = segments(disk)[which]
    lost = [frame.base_offset for frame in frames_of(disk, path)]
    disk = disk.process_kill()
    disk.unlink(path)
    with pytest.raises(Corrupt):
        open_log(disk.process_kill(), SMALL)
    disk = disk.process_kill()
    repaired = repair(disk)
    assert repaired.lost == ((lost[0], lost[-1] + 1),)
    assert (repaired.kept_count, repaired.damaged_bytes) == (30 - len(lost), 0)
    log = open_log(disk, SMALL)
    assert payloads(log) == [p for i, p in enumerate(stored) if i not in lost]
    assert next_offset(log) == 30


def test_if_all_segments_are_missing_offsets_continue() -> None:
    disk, _ = filled()
    for path in segments(disk):
        disk.unlink(path)
    assert repair(disk).lost == ((0, 30),)
    log = open_log(disk, SMALL)
    assert offsets(log) == [] and next_offset(log) == 30


def test_if_the_folder_is_missing_the_floor_is_kept() -> None:
    disk = SimDisk()
    log = open_log(disk, SMALL)
    add(log, *numbers(0, 5))
    subscriber = log.subscribe("s", TOPIC, "earliest")
    subscriber.claim()[3].ack()
    subscriber.step()
    log.close()
    for path in [p for p in disk.files() if p.startswith(f"{FOLDER}/")]:
        disk.unlink(path)
    for floor, expected in ((0, 4), (100, 100)):
        trial = disk.process_kill()
        assert repair(trial, floor=floor).lost == ((0, expected),)
        assert next_offset(open_log(trial, SMALL)) == expected


def test_a_truncated_segment_loses_its_tail() -> None:
    """At every length."""
    disk, stored = filled()
    for path in (segments(disk)[1], segments(disk)[-1]):
        frames = frames_of(disk, path)
        whole = disk.data(path)
        for size in range(0, len(whole), 23):
            trial = disk.process_kill()
            put(trial, path, whole[:size])
            repair(trial)
            lost = {frame.base_offset for frame in frames if frame.end > size}
            log = open_log(trial, SMALL)
            assert payloads(log) == [p for i, p in enumerate(stored) if i not in lost]
            assert next_offset(log) >= 30


def test_acknowledged_offsets_are_never_reused() -> None:
    """Known from watermarks, checkpoint, subscribers or later frames, each alone."""
    disk = SimDisk()
    log = open_log(disk, SMALL)
    for value in numbers(0, 4):
        add(log, value)
    subscriber = log.subscribe("s", TOPIC, "earliest")
    claims = subscriber.claim()
    claims[3].ack()
    subscriber.step()
    log.close()
    whole = disk.data(FIRST)
    third = frames_of(disk)[2]

    def without(*names: str) -> SimDisk:
        trial = disk.process_kill()
        for name in names:
            if name == MARKS:
                put(trial, MARKS, bytes(2048))
            else:
                trial.unlink(name)
        return trial

    progress = progress_path("s")
    for silent in ((MARKS, STATE), (MARKS, progress), (STATE, progress)):
        trial = without(*silent)
        put(trial, FIRST, whole[:200])
        repair(trial)
        assert next_offset(open_log(trial, SMALL)) == 4
    # The last frame says that all before it was durable, and where it ends itself.
    trial = without(MARKS, STATE, progress)
    put(trial, FIRST, flipped(whole, 8 * (third.position + 40)))
    assert repair(trial).lost == ((2, 3),)
    assert next_offset(open_log(trial, SMALL)) == 4


def test_an_index_shows_that_more_was_acknowledged() -> None:
    """The last segments are missing, with watermarks and checkpoint."""
    disk, stored = filled()
    kept = len(frames_of(disk, segments(disk)[0]))
    end = frames_of(disk, segments(disk)[-1])[0].base_offset
    disk = disk.process_kill()
    for path in (*segments(disk)[1:], STATE):
        disk.unlink(path)
    put(disk, MARKS, bytes(2048))
    with pytest.raises(Corrupt):
        open_log(disk.process_kill(), SMALL)
    disk = disk.process_kill()
    assert repair(disk).lost == ((kept, end),)
    log = open_log(disk, SMALL)
    assert payloads(log) == stored[:kept] and next_offset(log) == end


def test_stale_frames_of_a_reused_file_stay_dead() -> None:
    """The file was trimmed and reused; then its header is damaged."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=TopicConfig(retention_ms=0))
    while not log.partition(TOPIC, 0)._active.has_stale_tail:
        add(log, b"trimmed long ago")
        log.maintain()
    begin = log.partition(TOPIC, 0).view.start_offset
    add(log, b"alive")
    expected = payloads(log)
    disk = disk.process_kill()
    damage(disk, segments(disk)[-1], 18)
    assert repair(disk).kept_count == len(expected)
    log = open_log(disk, SMALL)
    assert payloads(log) == expected and log.partition(TOPIC, 0).view.start_offset == begin


def test_a_damaged_frame_with_a_valid_header_keeps_its_offsets() -> None:
    """A batch of ten at the end: its header says how far it went."""
    disk = SimDisk()
    log = open_log(disk, SMALL)
    add(log, b"one")
    submit(log, batch(*numbers(0, 10)))
    log.writer.step()
    disk = disk.process_kill()
    put(disk, MARKS, bytes(2048))
    path = segments(disk)[-1]
    put(disk, path, flipped(disk.data(path), 8 * (len(disk.data(path)) - 3)))
    assert repair(disk).lost == ((1, 11),)
    assert next_offset(open_log(disk, SMALL)) == 11


# Marks, checkpoint and what cannot be repaired.


@pytest.mark.parametrize("marks", ["whole", "zero", "missing", "garbage"])
@pytest.mark.parametrize("state", ["whole", "damaged", "missing"])
@pytest.mark.parametrize("is_trimmed", [False, True])
def test_damaged_watermarks_and_checkpoints_are_rebuilt(
    marks: str, state: str, is_trimmed: bool
) -> None:
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=TopicConfig(retention_ms=0))
    for value in numbers(0, 30):
        add(log, value)
    if is_trimmed:
        log.maintain()
        add(log, b"more")
    expected, end = payloads(log), log.partition(TOPIC, 0).durable_watermark
    start = log.partition(TOPIC, 0).view.start_offset
    log.close()
    if marks != "whole":
        garbage = {"zero": bytes(2048), "missing": b"", "garbage": Rand(1).randbytes(2048)}
        put(disk, MARKS, garbage[marks])
    if marks == "missing":
        disk.unlink(MARKS)
    if state == "damaged":
        damage(disk, STATE, 25)
    elif state == "missing":
        disk.unlink(STATE)
    damaged_state = disk.data(STATE) if state == "damaged" else b""
    repaired = repair(disk)
    assert repaired.lost == ()
    if damaged_state:
        assert damaged_state in disk.data(f"{STATE}.damaged")
    log = open_log(disk, SMALL)
    assert payloads(log) == expected
    assert log.partition(TOPIC, 0).view.start_offset == start
    assert next_offset(log) == end
    log.close()
    before = contents(disk)
    repair(disk)
    assert contents(disk) == before


def test_damage_that_cannot_be_rebuilt_stops_the_repair() -> None:
    """The topic's settings, and progress: an offset might be reused."""
    disk = SimDisk()
    log = open_log(disk, SMALL)
    log.subscribe("s", TOPIC, "earliest")
    log.close()
    for path in (f"log/{TOPIC}/topic.ckpt", progress_path("s")):
        trial = disk.process_kill()
        damage(trial, path, 10)
        before = contents(trial)
        with pytest.raises(Corrupt) as caught:
            repair(trial)
        assert caught.value.path == path
        assert contents(trial) == before


# Files and pages in the wrong place.


def test_a_segment_of_another_partition_is_set_aside_completely() -> None:
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=TopicConfig(partitions=2))
    for value in numbers(0, 30):
        add(log, value)
        add(log, b"other " + value, partition=1)
    expected = payloads(log)
    log.close()
    foreign = disk.data(f"log/{TOPIC}/1/00000000000000000000.log")
    lost = len(frames_of(disk, FIRST))
    disk = disk.process_kill()
    put(disk, FIRST, foreign)
    repaired = repair(disk)
    assert repaired.lost == ((0, lost),) and repaired.damaged_bytes == len(foreign)
    assert foreign in disk.data(f"{FIRST}.damaged")
    assert payloads(open_log(disk, SMALL)) == expected[lost:]


def test_a_frame_of_another_partition_is_not_kept() -> None:
    """The header is lost, and a bad disk put another file's frame there."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=TopicConfig(partitions=2))
    for ours, theirs in zip(numbers(0, 5), numbers(100, 105), strict=True):
        add(log, ours)
        add(log, theirs, partition=1)
    expected = payloads(log)
    log.close()
    frame = frames_of(disk)[1]
    foreign = disk.data(f"log/{TOPIC}/1/00000000000000000000.log")[frame.position : frame.end]
    disk = disk.process_kill()
    data = disk.data(FIRST)
    put(disk, FIRST, bytes(64) + data[64 : frame.position] + foreign + data[frame.end :])
    assert repair(disk).lost == ((1, 2),)
    assert payloads(open_log(disk, SMALL)) == [expected[0], *expected[2:]]


@pytest.mark.parametrize("whole", [False, True])
def test_swapped_segments_keep_what_was_not_swapped(whole: bool) -> None:
    """Two files, or their first pages."""
    disk, stored = filled()
    one, two = segments(disk)[1], segments(disk)[-1]
    frames = {path: frames_of(disk, path) for path in (one, two)}
    first, second = disk.data(one), disk.data(two)
    size = max(len(first), len(second)) if whole else 512
    disk = disk.process_kill()
    put(disk, one, second[:size] + first[size:])
    put(disk, two, first[:size] + second[size:])
    lost = {f.base_offset for path in (one, two) for f in frames[path] if f.position < size}
    repair(disk)
    log = open_log(disk, SMALL)
    assert payloads(log) == [p for i, p in enumerate(stored) if i not in lost]
    assert next_offset(log) >= 30


# Producers, clients and subscribers after a repair.


def produced(sequence: int) -> Append:
    payload = encode_batch(
        [Record(offset=0, timestamp_ms=1, key=None, value=b"value %d" % sequence)],
        producer_id=9,
        producer_epoch=0,
        base_sequence=sequence,
    )
    return append_of_batch(payload)


def answer(log: Log, append: Append) -> AppendResult | BaseException:
    (future,) = submit(log, append)
    log.writer.step()
    return future.exception(0) or future.result(0)


@pytest.mark.parametrize("is_rolled", [False, True])
@pytest.mark.parametrize("is_state_lost", [False, True])
@pytest.mark.parametrize("lost", [(6,), (4,), (2, 4, 6), tuple(range(7))])
def test_a_lost_batch_is_no_duplicate_for_producers(
    lost: tuple[int, ...], is_state_lost: bool, is_rolled: bool
) -> None:
    disk = SimDisk()
    log = open_log(disk)
    for sequence in range(7):
        assert answer(log, produced(sequence)) == (sequence, sequence + 1, False)
    if is_rolled:
        log._on_writer(log.partition(TOPIC, 0).roll)
    log.close()
    frames = frames_of(disk)
    disk = disk.process_kill()
    for number in lost:
        damage(disk, FIRST, frames[number].position + 100)
    if is_state_lost:
        disk.unlink(STATE)
    repair(disk)
    log = open_log(disk)
    for sequence in set(range(2, 7)) - set(lost):
        assert answer(log, produced(sequence)) == (sequence, sequence + 1, True)
    for sequence in lost:
        told = answer(log, produced(sequence))
        if isinstance(told, AppendResult):
            assert not told.is_duplicate and told.base_offset >= 7
        else:
            assert isinstance(told, SequenceOld | SequenceGap)


@pytest.mark.parametrize("is_rolled", [False, True])
def test_a_producer_whose_last_batch_is_lost_gets_a_sequence_gap(is_rolled: bool) -> None:
    disk = SimDisk()
    log = open_log(disk)
    for sequence in range(3):
        answer(log, produced(sequence))
    if is_rolled:
        log._on_writer(log.partition(TOPIC, 0).roll)
    log.close()
    frames = frames_of(disk)
    disk = disk.process_kill()
    damage(disk, FIRST, frames[2].position + 100)
    repair(disk)
    log = open_log(disk)
    assert isinstance(answer(log, produced(3)), SequenceGap)
    assert answer(log, produced(2)) == (3, 4, False)


@pytest.mark.parametrize("fate", ["active", "sealed", "missing"])
def test_a_lost_request_is_stored_again_on_retry(fate: str) -> None:
    disk = SimDisk()
    log = open_log(disk)
    requests = [batch(b"%d" % i, digest=bytes([i]) * 16) for i in range(6)]
    for request in requests:
        answer(log, request)
    if fate != "active":
        log._on_writer(log.partition(TOPIC, 0).roll)
    log.close()
    frames = frames_of(disk)
    disk = disk.process_kill()
    if fate == "missing":
        disk.unlink(FIRST)
    else:
        damage(disk, FIRST, frames[4].position + 100)
    repair(disk)
    log = open_log(disk)
    lost = range(6) if fate == "missing" else [4]
    following = itertools.count(6)
    for number, request in enumerate(requests):
        told = answer(log, request)
        if number in lost:
            expected = next(following)
            assert told == (expected, expected + 1, False)
        else:
            assert told == (number, number + 1, True)


def test_subscribers_skip_lost_offsets() -> None:
    """They count as finished, so retention continues."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=TopicConfig(retention_ms=0))
    for value in numbers(0, 30):
        add(log, value)
    subscriber = log.subscribe("s", TOPIC, "earliest", SubscriberConfig(tries_max=99))
    claims = subscriber.claim(12)
    claims[0].ack()
    claims[10].nack("later")
    subscriber.step()
    log.close()
    path = segments(disk)[1]
    frames = frames_of(disk, path)
    assert 10 in range(frames[1].base_offset, frames[-1].end_offset)
    disk = disk.process_kill()
    for frame in frames[1:]:
        damage(disk, path, frame.position + 100)
    lost = {frame.base_offset for frame in frames[1:]}
    repair(disk)
    log = open_log(disk, SMALL)
    subscriber = log.subscribe("s", TOPIC, "earliest")
    claims = subscriber.claim()
    assert {c.batch.base_offset for c in claims} == set(range(1, 30)) - lost
    for claim in claims:
        claim.ack()
    subscriber.step()
    assert (subscriber.lag(), subscriber.saved_watermark(0)) == (0, 30)
    log.maintain()
    assert log.partition(TOPIC, 0).view.start_offset > 20


def test_a_repaired_compacted_topic_restores_no_deleted_key() -> None:
    """Repaired segments look clean but are not: their tombstones stay."""
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, SMALL, clock=clock, topic=KEYED)
    partition = log.partition(TOPIC, 0)

    def fold(log: Log) -> dict[bytes | None, bytes]:
        latest = {r.key: r.value for b in batches(log) for r in b.records()}
        return {key: value for key, value in latest.items() if value is not None}

    for key, value in ((b"dead", b"1"), (b"x", b"1"), (b"alive", b"1")):
        answer(log, keyed(key, value))
    log._on_writer(partition.roll)
    for key in (b"dead", b"y"):
        answer(log, keyed(key, None))
    log._on_writer(partition.roll)
    log.close()
    for path, number in zip(segments(disk)[:2], (1, 1), strict=True):
        position = frames_of(disk, path)[number].position
        disk = disk.process_kill()
        damage(disk, path, position + 100)
    assert repair(disk).lost == ((1, 2), (4, 5))
    log = open_log(disk, SMALL, clock=clock)
    for round_ in range(4):
        answer(log, keyed(b"%d" % round_, b"1"))
        log._on_writer(log.partition(TOPIC, 0).roll)
        limit = log.partition(TOPIC, 0).durable_watermark
        compact(log.partition(TOPIC, 0), KEYED, clock.wall_ms(), limit, log._on_writer)
        clock.advance(KEYED.tombstone_grace_ms)
        assert b"dead" not in fold(log) and fold(log)[b"alive"] == b"1"


def test_a_damaged_compacted_segment_loses_only_damaged_batches() -> None:
    """Gaps left by compaction are no loss."""
    disk = compacted_disk()
    path = next(p for p in segments(disk) if len(disk.data(p)) > 400)
    log = open_log(disk.process_kill(), SMALL)
    kept = offsets(log)
    disk = disk.process_kill()
    data = disk.data(path)
    damage(disk, path, len(data) - 5)
    repaired = repair(disk)
    ((begin, end),) = repaired.lost
    log = open_log(disk, SMALL)
    assert offsets(log) == [o for o in kept if not begin <= o < end]
    assert len(kept) - len(offsets(log)) == 1


# Anything at random.

ROTS: list[Rot] = [
    "flip",
    "zero_page",
    "duplicate_page",
    "swap_page",
    "cut",
    "append_garbage",
    "replace",
]


@dataclass
class Original:
    """A log before it was damaged."""

    disk: SimDisk
    batches: dict[int, bytes]
    places: dict[int, tuple[str, StoredBatch]]
    files: Contents
    end: int

    def untouched(self, after: Contents) -> set[int]:
        """The offsets of batches that lie as they lay."""
        return {
            offset
            for offset, (path, frame) in self.places.items()
            if after.get(path, b"")[frame.position : frame.end]
            == self.files[path][frame.position : frame.end]
        }


Shape = Literal["plain", "compacted", "trimmed"]
TRIMMED = TopicConfig(retention_ms=0)
"""Its segments are written over files that were trimmed, and may end in stale frames."""


def original(sizes: list[int], *, is_closed: bool, shape: Shape) -> Original:
    disk = SimDisk()
    topics: dict[Shape, TopicConfig] = {"compacted": KEYED, "trimmed": TRIMMED}
    log = open_log(disk, SMALL, topic=topics.get(shape))
    for number, size in enumerate(sizes):
        values, key = [b"%d" % number * 9] * size, b"%d" % (number % 5)
        submit(log, batch(*values, key=key, digest=b"%016d" % number))
        if number % 3:
            log.writer.step()
        if number in (len(sizes) // 3, len(sizes) * 2 // 3):
            log.maintain()
    log.writer.step()
    stored = {b.base_offset: b.payload for b in batches(log)}
    end = log.partition(TOPIC, 0).durable_watermark
    if is_closed:
        log.close()
    places = {
        frame.base_offset: (path, frame)
        for path in segments(disk)
        for frame in frames_of(disk, path)
    }
    return Original(disk.process_kill(), stored, places, contents(disk), end)


@settings(max_examples=250)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=40),
    rots=st.lists(st.tuples(st.sampled_from(ROTS), st.integers(0, 10**6)), min_size=1, max_size=4),
    removed=st.integers(0, 20),
    seed=st.integers(0, 10**6),
    is_closed=st.booleans(),
    shape=st.sampled_from(["plain", "compacted", "trimmed"]),
    hurts_marks=st.booleans(),
)
def test_undamaged_batches_are_kept(
    sizes: list[int],
    rots: list[tuple[Rot, int]],
    removed: int,
    seed: int,
    is_closed: bool,
    shape: Shape,
    hurts_marks: bool,
) -> None:
    """Random damage to random files: every untouched batch is read at its old offset, nothing
    is invented, the rest is named as lost, and no offset is given twice."""
    before = original(sizes, is_closed=is_closed, shape=shape)
    disk = before.disk
    ours = [p for p in disk.files() if p.startswith(f"{FOLDER}/") and (hurts_marks or p != MARKS)]
    for kind, number in rots:
        rand = Rand(number)
        other = rand.choice(ours) if hurts_marks or rand.random() < 0.5 else None
        disk.rot(rand.choice(ours), rand, kind, other=other)
    if removed < 3:
        disk.unlink(ours[seed % len(ours)])
    untouched = before.untouched(contents(disk))
    if hurts_marks:  # without marks damage at the open end may pass for a torn write
        last = segments(disk)[-1:]
        untouched -= {o for o, (path, _) in before.places.items() if path in last}
    repaired = repair(disk, seed=seed)
    log = open_log(disk, SMALL)
    found = {b.base_offset: b.payload for b in batches(log)}
    assert untouched <= found.keys()
    assert all(before.batches[offset] == payload for offset, payload in found.items())
    (appended,) = submit(log, batch(b"after the repair", key=b"key"))
    log.writer.step()
    following = appended.result(0).base_offset
    if not hurts_marks:
        assert following >= before.end
        gone = {o for begin, end in repaired.lost for o in range(begin, end)}
        assert gone >= before.batches.keys() - found.keys()
        assert not gone & found.keys()
    log.close()
    left = contents(disk)
    assert repair(disk).lost == ()
    assert contents(disk) == left


# Power cuts and errors halfway.


def wounded(model: Model, seed: int) -> tuple[SimDisk, list[bytes]]:
    """A damaged batch, a damaged header, a missing segment, a damaged end; no checkpoint left.
    With the payloads that are whole."""
    disk = SimDisk(model=model, rand=Rand(seed))
    log = open_log(disk, SMALL)
    for number, value in enumerate(numbers(0, 30)):
        submit(log, batch(value, digest=b"%016d" % number))
        log.writer.step()
    stored = payloads(log)
    log.close()
    frames = {path: frames_of(disk, path) for path in segments(disk)}
    disk = disk.process_kill()
    names = list(frames)
    first, last = frames[names[0]][1], frames[names[-1]][0]
    damage(disk, names[0], first.position + 100)
    damage(disk, names[1], 20)
    missing = {frame.base_offset for frame in frames[names[2]]}
    disk.unlink(names[2])
    disk.sync_directory(FOLDER)
    damage(disk, names[-1], last.position + 100)
    damage(disk, STATE, 25)
    lost = missing | {first.base_offset, last.base_offset}
    return disk, [p for i, p in enumerate(stored) if i not in lost]


def check_repaired(disk: SimDisk, expected: list[bytes]) -> None:
    log = open_log(disk, SMALL)
    assert payloads(log) == expected
    assert next_offset(log) == 30
    assert answer(log, batch(b"lost", digest=b"%016d" % 1)) == (31, 32, False)


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_after_a_power_cut_at_any_call_another_repair_succeeds(model: Model) -> None:
    """Without one, the log refuses to open or shows all whole batches; offsets are never reused."""
    for call in itertools.count(1):
        disk, expected = wounded(model, call)
        disk.faults.crash_at = disk.calls + call
        try:
            repair(disk)
        except PowerCut:
            for seed in range(2):
                after = disk.crash(Rand(seed))
                try:
                    log = open_log(after.process_kill(), SMALL)
                    assert payloads(log) == expected
                    assert next_offset(log) == 30
                except Corrupt:
                    pass
                after = after.process_kill()
                repair(after)
                check_repaired(after, expected)
                assert repair(after.process_kill()).lost == ()
        else:
            assert call > 80
            check_repaired(disk.process_kill(), expected)
            return


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_disk_error_is_raised_and_another_repair_succeeds(number: int) -> None:
    for call in itertools.count(1, 3):
        disk, expected = wounded("ext4", call)
        disk.faults.fail_at = (disk.calls + call, number)
        try:
            repair(disk)
        except OSError as error:
            assert error.errno == number
        disk.faults.fail_at = None
        repair(disk)
        check_repaired(disk.process_kill(), expected)
        if disk.fired["fail"] == 0:
            return


def test_damaged_bytes_are_copied_before_anything_changes() -> None:
    """At any power cut they are in place or in the copy."""
    patient, _ = wounded("weak", 0)
    before = contents(patient)
    finished = patient.process_kill()
    repair(finished)
    evidence = {p: d for p, d in contents(finished).items() if p.endswith(".damaged")}
    assert len(evidence) == 4
    for call in itertools.count(1):
        disk = patient.process_kill()
        disk.faults.crash_at = call
        try:
            repair(disk)
        except PowerCut:
            after = contents(disk.crash(Rand(call)))
            for path, data in evidence.items():
                source = path.removesuffix(".damaged")
                assert after.get(source) == before[source] or after[path] == data
        else:
            return


# What the operator reads.

PAGE = Path(__file__).parents[3] / "docs" / "operating.md"


def test_the_examples_in_operating_md_work(tmp_path: Path) -> None:
    """One of them against a damaged folder."""
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) == 3
    disk = RealDisk(tmp_path / "data")
    with Log.open(disk, clock=SimClock(), rand=Rand(1)) as log:
        log.create_topic("events")
        for value in numbers(0, 5):
            log.append("events", batch(value)).result()
        subscriber = log.subscribe("s", "events", "earliest")
        subscriber.claim()[4].nack("never", is_permanent=True)
        subscriber.step()
    path = tmp_path / "data/log/events/0/00000000000000000000.log"
    path.write_bytes(flipped(path.read_bytes(), 8 * 200))
    said = ""
    for example in examples:
        done = subprocess.run(
            [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        said += done.stdout
    assert "4 batches are intact" in said and "'1 up to 2'" in said
    assert "s events lag 5" in said and "value-000004" in said


def test_metrics_named_in_operating_md_exist() -> None:
    named = set(re.findall(r"`(frazil\.(?:log|disk)\.[a-z_]+\.[a-z_]+)`", PAGE.read_text()))
    assert len(named) > 8
    assert named <= metrics._DECLARED.keys()
