"""Recovery: acknowledged data is kept, unacknowledged data may be cut, damage is never mistaken
for either."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from frazil.errors import Corrupt
from frazil.log import Log
from frazil.log.recovery import CUT, REBUILT
from frazil.log.segment import HEADER_BYTES
from frazil.model import Rand, TopicPartition
from frazil.settings import TopicConfig
from tests.log.build import (
    FIRST,
    FOLDER,
    MARKS,
    SMALL,
    STATE,
    TOPIC,
    add,
    add_each,
    batch,
    flipped,
    frame_bytes,
    frames_of,
    numbered,
    numbers,
    open_log,
    paths,
    put,
    segments,
    submit,
    values,
)
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, Model, PowerCut, SimDisk

TOTAL = 8
KEPT = 5
"""Of eight batches the last three are cut; the ones before them stay."""


def killed(log: Log, disk: SimDisk) -> SimDisk:
    """Kill -9: what the log wrote is there, synced or not."""
    del log
    return disk.process_kill()


def eight_batches(*, in_one_group: bool) -> tuple[SimDisk, bytes]:
    """A killed disk with eight batches, and the marks as they were after the first five."""
    disk = SimDisk()
    log = open_log(disk)
    add_each(log, *numbers(0, KEPT))
    watermarks = disk.data(MARKS)
    if in_one_group:
        add(log, *numbers(KEPT, TOTAL))
    else:
        add_each(log, *numbers(KEPT, TOTAL))
    return killed(log, disk), watermarks


@pytest.mark.parametrize("in_one_group", [True, False])
def test_a_torn_tail_is_cut_to_whole_frames_at_every_byte(in_one_group: bool) -> None:
    """The last three batches were not acknowledged: whole ones stay, the rest is cut, and
    appends continue."""
    before, watermarks = eight_batches(in_one_group=in_one_group)
    frames = frames_of(before)
    for size in range(frames[KEPT - 1].end, frames[-1].end + 1):
        disk = before.process_kill()
        put(disk, FIRST, before.data(FIRST)[:size])
        put(disk, MARKS, watermarks)
        whole = [frame for frame in frames if frame.end <= size]
        log = open_log(disk)
        assert log.partition(TOPIC, 0).recovered_cut_bytes == size - whole[-1].end
        assert disk.data(FIRST) == before.data(FIRST)[: whole[-1].end]
        assert values(log) == numbers(0, len(whole))
        assert add(log, b"next") == [(len(whole), len(whole) + 1, False)]
        log = open_log(killed(log, disk))
        assert values(log) == [*numbers(0, len(whole)), b"next"], f"cut to {size} bytes"


def by_watermarks(disk: SimDisk, watermarks: bytes) -> dict[TopicPartition, int]:
    """Kill -9 leaves exact marks."""
    return {}


def by_checkpoint(disk: SimDisk, watermarks: bytes) -> dict[TopicPartition, int]:
    """A clean stop, then marks from before."""
    log = open_log(disk)
    log.close()
    put(disk, MARKS, watermarks)
    return {}


def by_subscriber(disk: SimDisk, watermarks: bytes) -> dict[TopicPartition, int]:
    """A subscriber has finished the last batch, though not the ones before it."""
    log = open_log(disk)
    subscriber = log.subscribe("reader", TOPIC, "earliest")
    subscriber.claim()[-1].ack()
    subscriber.step()
    put(disk, MARKS, watermarks)
    return {}


def by_floor(disk: SimDisk, watermarks: bytes) -> dict[TopicPartition, int]:
    """The lake has acknowledged more."""
    put(disk, MARKS, watermarks)
    return {TopicPartition(TOPIC, 0): TOTAL}


@pytest.mark.parametrize("evidence", [by_watermarks, by_checkpoint, by_subscriber, by_floor])
def test_an_acknowledged_tail_is_never_cut(
    evidence: Callable[[SimDisk, bytes], dict[TopicPartition, int]],
) -> None:
    """With any evidence that the batches were acknowledged: refuse to open, name file and byte,
    change nothing."""
    before, watermarks = eight_batches(in_one_group=True)
    floors = evidence(before, watermarks)
    before = before.process_kill()
    frames = frames_of(before)
    for size in range(HEADER_BYTES, frames[-1].end):
        disk = before.process_kill()
        put(disk, FIRST, before.data(FIRST)[:size])
        whole = [frame for frame in frames if frame.end <= size]
        with pytest.raises(Corrupt) as caught:
            open_log(disk, floors=floors)
        assert caught.value.path == FIRST
        assert caught.value.position == (whole[-1].end if whole else HEADER_BYTES)
        assert f"offset {len(whole)}" in caught.value.expected
        assert f"below {TOTAL} " in caught.value.expected
        assert disk.data(FIRST) == before.data(FIRST)[:size]


def test_without_watermarks_a_tail_is_not_cut() -> None:
    """The lost watermark might have covered it: refuse."""
    before, _ = eight_batches(in_one_group=True)
    put(before, FIRST, before.data(FIRST)[:-1])
    before.unlink(MARKS)
    with pytest.raises(Corrupt) as caught:
        open_log(before)
    assert (caught.value.path, caught.value.position) == (FIRST, frames_of(before)[-1].end)


def test_recovered_batches_count_as_acknowledged() -> None:
    """Watermarks that a power cut left behind are brought up to date, because readers have seen
    the batches."""
    disk, watermarks = eight_batches(in_one_group=True)
    put(disk, MARKS, watermarks)
    log = open_log(disk)
    assert values(log) == numbers(0, TOTAL)
    disk = killed(log, disk)
    put(disk, FIRST, disk.data(FIRST)[:-1])
    with pytest.raises(Corrupt, match=f"everything below {TOTAL} was acknowledged"):
        open_log(disk)


def test_a_cut_tail_stays_cut() -> None:
    """Also after a power cut right afterwards."""
    before, watermarks = eight_batches(in_one_group=True)
    put(before, FIRST, before.data(FIRST)[:-1])
    put(before, MARKS, watermarks)
    for seed in range(20):
        disk = before.process_kill()
        log = open_log(disk)
        add(log, b"next")
        assert values(open_log(disk.crash(Rand(seed)))) == [*numbers(0, TOTAL - 1), b"next"]


# Bytes after the tail.


def another_partition_s_frames(before: SimDisk) -> bytes:
    """The whole of a longer segment of the same topic, salt and all its own."""
    disk = SimDisk()
    log = open_log(disk, topic=TopicConfig(partitions=2))
    for number in numbers(0, 20):
        add(log, number, partition=1)
    return b"".join(frame_bytes(disk, f"log/{TOPIC}/1/00000000000000000000.log"))


def same_offsets_of_another_file(before: SimDisk) -> bytes:
    """Frames that would come next, offsets and all, had they this file's salt."""
    disk = SimDisk()
    add_each(open_log(disk), *numbers(0, 20))
    return b"".join(frame_bytes(disk)[TOTAL:])


JUNK: dict[str, Callable[[SimDisk], bytes]] = {
    "one byte": lambda before: b"x",
    "garbage": lambda before: Rand(1).randbytes(5000),
    "zeros": lambda before: bytes(5000),
    "zeros as long as a header": lambda before: bytes(32),
    "magic": lambda before: b"FRZF" * 100,
    "own first frame again": lambda before: frame_bytes(before)[0],
    "own last frame again": lambda before: frame_bytes(before)[-1],
    "all own frames again": lambda before: b"".join(frame_bytes(before)),
    "own frames after garbage": lambda before: b"?" * 77 + b"".join(frame_bytes(before)),
    "the file again": lambda before: before.data(FIRST),
    "another partition's frames": another_partition_s_frames,
    "another file's next frames": same_offsets_of_another_file,
}


@pytest.mark.parametrize("kind", JUNK)
def test_bytes_after_the_tail_are_no_records(kind: str) -> None:
    """Garbage, zeros and valid old frames of any origin."""
    disk, _ = eight_batches(in_one_group=False)
    whole = disk.data(FIRST)
    junk = JUNK[kind](disk)
    put(disk, FIRST, whole + junk)
    log = open_log(disk)
    assert values(log) == numbers(0, TOTAL)
    assert log.partition(TOPIC, 0).recovered_cut_bytes == len(junk)
    assert disk.data(FIRST) == whole
    add(log, b"next")
    assert values(open_log(killed(log, disk))) == [*numbers(0, TOTAL), b"next"]


def test_a_refused_batch_does_not_reappear_after_the_tail() -> None:
    """Frames of this file that were undone and overwritten."""
    disk = SimDisk()
    log = open_log(disk)
    add_each(log, *numbers(0, 3))
    partition = log.partition(TOPIC, 0)
    for refused in numbers(100, 104):
        partition.stage(batch(refused))
    partition.write()
    refused_bytes = b"".join(frame_bytes(disk)[3:])
    partition.abort()
    add_each(log, *numbers(3, 5))
    disk = killed(log, disk)
    whole = disk.data(FIRST)
    for cut in range(0, len(refused_bytes), 16):
        copy = disk.process_kill()
        put(copy, FIRST, whole + refused_bytes[cut:])
        assert values(open_log(copy)) == numbers(0, 5)


# Damage in the middle.


def test_a_flipped_bit_in_the_middle_is_damage() -> None:
    """Every bit of a frame that later frames know to be durable: refuse, name the place, leave
    the file as it is, with the good frames behind the bad one. The watermark file is not needed."""
    disk = SimDisk()
    log = open_log(disk)
    watermarks = disk.data(MARKS)
    add_each(log, *numbers(0, TOTAL))
    before = killed(log, disk)
    put(before, MARKS, watermarks)
    whole = before.data(FIRST)
    middle = frames_of(before)[3]
    for bit in range(8 * middle.position, 8 * middle.end):
        disk = before.process_kill()
        put(disk, FIRST, flipped(whole, bit))
        with pytest.raises(Corrupt) as caught:
            open_log(disk)
        assert (caught.value.path, caught.value.position) == (FIRST, middle.position)
        assert "offset 3;" in caught.value.expected
        assert disk.data(FIRST) == flipped(whole, bit), f"bit {bit}"


def test_a_flipped_bit_in_the_last_acknowledged_frame_is_damage() -> None:
    """No later frame covers it, but the watermark does."""
    before, _ = eight_batches(in_one_group=False)
    whole = before.data(FIRST)
    last = frames_of(before)[-1]
    for bit in range(8 * last.position, 8 * last.end, 5):
        disk = before.process_kill()
        put(disk, FIRST, flipped(whole, bit))
        with pytest.raises(Corrupt) as caught:
            open_log(disk)
        assert (caught.value.path, caught.value.position) == (FIRST, last.position)
        assert disk.data(FIRST) == flipped(whole, bit)


@pytest.mark.parametrize("kind", ["zero", "duplicate", "swap", "remove"])
def test_a_frame_that_is_zeroed_doubled_swapped_or_left_out_is_damage(kind: str) -> None:
    disk, _ = eight_batches(in_one_group=False)
    head = disk.data(FIRST)[:HEADER_BYTES]
    frames = frame_bytes(disk)
    if kind == "zero":
        frames[3] = bytes(len(frames[3]))
    elif kind == "duplicate":
        frames[3] = frames[2]
    elif kind == "swap":
        frames[3], frames[4] = frames[4], frames[3]
    else:
        del frames[3]
    put(disk, FIRST, head + b"".join(frames))
    with pytest.raises(Corrupt) as caught:
        open_log(disk)
    assert (caught.value.path, caught.value.position) == (FIRST, frames_of(disk)[2].end)


def test_damage_to_the_header_of_a_segment_with_records_is_refused() -> None:
    """Each bit of the 64 bytes."""
    before, watermarks = eight_batches(in_one_group=False)
    put(before, MARKS, watermarks)
    whole = before.data(FIRST)
    for bit in range(8 * HEADER_BYTES):
        disk = before.process_kill()
        put(disk, FIRST, flipped(whole, bit))
        with pytest.raises(Corrupt) as caught:
            open_log(disk)
        assert (caught.value.path, caught.value.position) == (FIRST, 0)
        assert disk.data(FIRST) == flipped(whole, bit)


# Sealed segments.

MANY = 30


def sealed_log(*, is_closed: bool = False) -> SimDisk:
    """A killed or closed disk with several sealed segments."""
    disk = SimDisk()
    log = open_log(disk, SMALL)
    add_each(log, *numbers(0, MANY))
    if is_closed:
        log.close()
    disk = killed(log, disk)
    assert len(segments(disk)) == 4
    return disk


def test_a_flipped_bit_in_a_sealed_segment_raises_on_read() -> None:
    """The batches before it are read."""
    before = sealed_log(is_closed=True)
    path = segments(before)[1]
    whole, frames = before.data(path), frames_of(before, path)
    for bit in range(8 * HEADER_BYTES, 8 * len(whole), 31):
        disk = before.process_kill()
        put(disk, path, flipped(whole, bit))
        log = open_log(disk, SMALL)
        damaged = next(frame for frame in frames if bit < 8 * frame.end)
        reader = log.reader(TOPIC, "earliest")
        seen: list[bytes | None] = []
        with pytest.raises(Corrupt) as caught:
            while stored := reader.read(1):
                seen += [record.value for one in stored for record in one.records()]
        assert (caught.value.path, caught.value.position) == (path, damaged.position)
        assert seen == numbers(0, damaged.base_offset)


@pytest.mark.parametrize("is_closed", [True, False])
@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_a_missing_segment_is_detected(which: int, is_closed: bool) -> None:
    """The first, a middle one, the last: the error names the missing offsets."""
    disk = sealed_log(is_closed=is_closed)
    bases = [int(path[-24:-4]) for path in segments(disk)]
    disk.unlink(segments(disk)[which])
    with pytest.raises(Corrupt) as caught:
        open_log(disk, SMALL)
    begin, end = bases[which], [*bases[1:], MANY][which]
    assert f"offset {begin}" in str(caught.value) or f"offsets {begin}" in str(caught.value)
    assert str(end) in str(caught.value)
    assert segments(disk) == [p for p in segments(disk) if int(p[-24:-4]) != begin]


def test_a_missing_last_segment_is_detected_by_the_index_before_it() -> None:
    """As after a power cut that cost the file system a file: the index of the segment before
    says that it was sealed, so there was a next one."""
    disk = SimDisk()
    log = open_log(disk, SMALL)
    watermarks, state = disk.data(MARKS), None
    for value in numbers(0, MANY):
        if len(segments(disk)) == 3 and state is None:
            watermarks, state = disk.data(MARKS), disk.data(STATE)
        add(log, value)
    assert state is not None
    disk = killed(log, disk)
    put(disk, MARKS, watermarks)
    put(disk, STATE, state)
    *_, before, last = (int(path[-24:-4]) for path in segments(disk))
    disk.unlink(f"{FOLDER}/{last:020d}.log")
    with pytest.raises(Corrupt, match=f"expected offsets {last} to "):
        open_log(disk, SMALL)
    assert int(segments(disk)[-1][-24:-4]) == before


def test_an_emptied_folder_does_not_start_at_zero() -> None:
    disk = sealed_log()
    for path in segments(disk):
        disk.unlink(path)
    with pytest.raises(Corrupt, match=rf"{FOLDER} is damaged.*offsets 0 to {MANY}"):
        open_log(disk, SMALL)
    for path in (MARKS, STATE):
        disk.unlink(path)
    with pytest.raises(Corrupt, match=f"{FOLDER} is damaged"):
        open_log(disk, SMALL)


@pytest.mark.parametrize("name", ["00000000000000000010.log", "copy.log", "9.log", "x9.log.bak"])
@pytest.mark.parametrize("which", [1, 3])
def test_a_renamed_segment_is_detected(name: str, which: int) -> None:
    disk = sealed_log()
    disk.rename(segments(disk)[which], f"{FOLDER}/{name}")
    with pytest.raises(Corrupt):
        open_log(disk, SMALL)


@pytest.mark.parametrize("name", ["copy.log", "9.log", "x.index", "notes", "x.digests"])
def test_a_foreign_file_is_ignored(name: str) -> None:
    disk = sealed_log()
    put(disk, f"{FOLDER}/{name}", b"a foreign file")
    assert values(open_log(disk, SMALL)) == numbers(0, MANY)
    assert disk.data(f"{FOLDER}/{name}") == b"a foreign file"


@pytest.mark.parametrize("which", [0, 1, 3])
def test_a_segment_of_another_partition_is_detected(which: int) -> None:
    """Same name, same offsets, valid bytes, wrong folder."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=TopicConfig(partitions=2))
    for number in numbers(0, MANY):
        add(log, number, partition=0)
        add(log, number, partition=1)
    disk = killed(log, disk)
    mine, theirs = segments(disk)[which], segments(disk, f"log/{TOPIC}/1")[which]
    assert mine.rpartition("/")[2] == theirs.rpartition("/")[2]
    put(disk, mine, disk.data(theirs))
    with pytest.raises(Corrupt, match="another partition") as caught:
        open_log(disk, SMALL)
    assert caught.value.path == mine


def test_an_older_copy_of_the_open_segment_is_detected() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add_each(log, *numbers(0, 3))
    copy = disk.data(FIRST)
    add_each(log, *numbers(3, 6))
    log.close()
    put(disk, FIRST, copy)
    with pytest.raises(Corrupt, match="a batch at offset 3; everything below 6 was acknowledged"):
        open_log(disk)


def test_an_older_copy_of_a_sealed_segment_is_detected() -> None:
    """Even if its index matches: sizes are compared."""
    disk = sealed_log()
    path = segments(disk)[1]
    cut = frames_of(disk, path)[3]
    put(disk, path, disk.data(path)[: cut.end])
    with pytest.raises(Corrupt, match=f"a batch at offset {cut.end_offset}, before the next"):
        open_log(disk, SMALL)


# Files that are derived.


def filled(disk: SimDisk, clock: SimClock) -> list[bytes]:
    """Many segments, digests, a numbering producer; trimmed at the front. What must be there."""
    log = open_log(disk, SMALL, clock=clock)
    for number, value in enumerate(numbers(0, MANY)):
        digest = b"%016d" % number
        submit(log, batch(value, timestamp_ms=number, digest=digest), numbered(value, number))
        log.writer.step()
    partition = log.partition(TOPIC, 0)
    partition.trim(partition.view.segments[2].info.base_offset)
    kept = values(log)
    log.close()
    return [value for value in kept if value is not None]


DERIVED = [".index", ".digests", "partition.ckpt", "marks"]


def lose(disk: SimDisk, path: str) -> None:
    disk.unlink(path)


def empty(disk: SimDisk, path: str) -> None:
    put(disk, path, b"")


def halve(disk: SimDisk, path: str) -> None:
    put(disk, path, disk.data(path)[: len(disk.data(path)) // 2])


def scramble(disk: SimDisk, path: str) -> None:
    put(disk, path, Rand(1).randbytes(len(disk.data(path))))


def flip(disk: SimDisk, path: str) -> None:
    put(disk, path, flipped(disk.data(path), 8 * len(disk.data(path)) // 2))


@pytest.mark.parametrize("damage", [lose, empty, halve, scramble, flip])
@pytest.mark.parametrize("suffix", DERIVED)
def test_derived_files_are_rebuilt(suffix: str, damage: Callable[[SimDisk, str], None]) -> None:
    """Index, digests, producer state, watermarks: lost or damaged, the responses stay the same."""
    disk, clock = SimDisk(), SimClock()
    kept = filled(disk, clock)
    damaged = paths(disk, suffix)
    assert damaged
    for path in damaged:
        damage(disk, path)
    log = open_log(disk, SMALL, clock=clock)
    assert values(log) == kept
    start = log.partition(TOPIC, 0).view.start_offset
    assert log.reader(TOPIC, "earliest").offset == start == 2 * MANY - len(kept)
    last = MANY - 1
    repeated = submit(
        log, batch(b"again", digest=b"%016d" % last), numbered(numbers(last, MANY)[0], last)
    )
    log.writer.step()
    assert [answer.result(0).is_duplicate for answer in repeated] == [True, True]
    assert [answer.result(0).base_offset for answer in repeated] == [2 * last, 2 * last + 1]
    assert add(log, b"next") == [(2 * MANY, 2 * MANY + 1, False)]
    again = open_log(killed(log, disk), SMALL, clock=clock)
    assert values(again) == [*kept, b"next"]


@pytest.mark.parametrize("suffix", [".index", ".digests", "partition.ckpt"])
def test_a_rebuild_is_counted(suffix: str) -> None:
    disk, clock = SimDisk(), SimClock()
    filled(disk, clock)
    count = len(paths(disk, suffix))
    for path in paths(disk, suffix):
        flip(disk, path)
    before = REBUILT.value()
    partition = open_log(disk, SMALL, clock=clock).partition(TOPIC, 0)
    assert len(partition.recovered_rebuilt) >= min(count, 1)
    assert REBUILT.value() - before == len(partition.recovered_rebuilt)


@pytest.mark.parametrize("which", [0, 1])
def test_an_index_of_another_segment_is_ignored(which: int) -> None:
    """Two swapped indexes differ by their salts."""
    disk = sealed_log()
    one, two = paths(disk, ".index")[which : which + 2]
    first, second = disk.data(one), disk.data(two)
    put(disk, one, second)
    put(disk, two, first)
    log = open_log(disk, SMALL)
    assert values(log) == numbers(0, MANY)
    assert len(log.partition(TOPIC, 0).recovered_rebuilt) == 2


def test_without_watermarks_and_checkpoint_a_trimmed_log_is_refused() -> None:
    """The missing start might be trimmed, or lost."""
    disk = SimDisk()
    filled(disk, SimClock())
    disk.unlink(MARKS)
    disk.unlink(STATE)
    with pytest.raises(Corrupt, match="a watermark file or checkpoint with the log's start offset"):
        open_log(disk, SMALL)


def test_without_watermarks_and_checkpoint_a_log_from_zero_opens() -> None:
    disk = sealed_log()
    disk.unlink(MARKS)
    disk.unlink(STATE)
    assert values(open_log(disk, SMALL)) == numbers(0, MANY)


# Work that was cut short.


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_an_interrupted_trim_is_finished(model: Model) -> None:
    """Marked as gone, not yet removed: after every storage call of a trim, the log begins where
    it said or where it did before, and no file of a trimmed segment stays for ever."""
    starts = set()
    for call in range(1, 100):
        disk = SimDisk(model=model)
        log = open_log(disk, SMALL)
        add_each(log, *numbers(0, MANY))
        partition = log.partition(TOPIC, 0)
        third = partition.view.segments[2].info.base_offset
        disk.faults = Faults(crash_at=disk.calls + call)
        try:
            partition.trim(third)
        except PowerCut:
            pass
        else:
            break
        for after in (disk.process_kill(), *(disk.crash(Rand(seed)) for seed in range(10))):
            log = open_log(after, SMALL)
            start = log.partition(TOPIC, 0).view.start_offset
            starts.add(start)
            assert start in (0, third)
            assert values(log) == numbers(start, MANY)
            bases = [int(path[-24:-4]) for path in segments(after)]
            assert bases[0] == start
            assert all(int(path[-26:-6]) in bases for path in paths(after, ".index"))
    assert starts == {0, third}


def test_scratch_files_are_removed() -> None:
    disk = sealed_log()
    for name in ("partition.ckpt.tmp", "00000000000000000000.index.tmp"):
        put(disk, f"{FOLDER}/{name}", b"half")
    put(disk, f"{FIRST}.cleaned", b"half")
    log = open_log(disk, SMALL)
    assert paths(disk, ".tmp") == paths(disk, ".cleaned") == []
    assert values(log) == numbers(0, MANY)


@pytest.mark.parametrize("size", [0, 1, 63, 64])
@pytest.mark.parametrize("content", [b"\0", b"\xff", None])
def test_a_torn_new_segment_is_created_again(size: int, content: bytes | None) -> None:
    """An interrupted roll, before anything was acknowledged in the new file."""
    disk = sealed_log()
    path = f"{FOLDER}/{MANY:020d}.log"
    header = disk.data(FIRST)[:HEADER_BYTES]
    put(disk, path, header[:size] if content is None else content * size)
    log = open_log(disk, SMALL)
    assert values(log) == numbers(0, MANY)
    add(log, b"next")
    assert values(open_log(killed(log, disk), SMALL)) == [*numbers(0, MANY), b"next"]


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_crash_at_any_call_of_a_roll_loses_nothing(model: Model) -> None:
    """Power cut or kill -9, once or twice: after each call that seals a segment and begins the
    next, the acknowledged batches are there, and go on being there."""
    for call in range(1, 100):
        disk = SimDisk(model=model)
        log = open_log(disk, SMALL)
        while not log.partition(TOPIC, 0).needs_roll:
            add(log, b"before")
        before = values(log)
        disk.faults = Faults(crash_at=disk.calls + call)
        try:
            log.partition(TOPIC, 0).roll()
        except PowerCut:
            pass
        else:
            return
        for seed in range(8):
            rand = Rand(seed)
            after = disk.process_kill() if seed % 2 else disk.crash(rand)
            log = open_log(after, SMALL)
            assert values(log) == before
            add(log, b"after")
            again = open_log(after.crash(rand), SMALL)
            assert values(again) == [*before, b"after"], (call, seed)
    raise AssertionError("a roll takes fewer storage calls than that")


def test_recovery_may_be_interrupted_repeatedly() -> None:
    """A power cut at every storage call of recovery, five deep."""
    before, watermarks = eight_batches(in_one_group=True)
    put(before, FIRST, before.data(FIRST)[:-1])
    put(before, MARKS, watermarks)
    whole = frames_of(before)[-1].end
    undisturbed = before.process_kill()
    open_log(undisturbed)
    for call in range(1, undisturbed.calls + 1):
        disk, rand = before, Rand(call)
        for _ in range(5):
            disk = disk.crash(rand, Faults(crash_at=call))
            with suppress(PowerCut):  # once the tail is cut, the next recovery has less to do
                open_log(disk)
        disk = disk.crash(rand)
        assert values(open_log(disk)) == numbers(0, TOTAL - 1)
        assert disk.data(FIRST) == before.data(FIRST)[:whole]
    assert before.fired["cut"] >= undisturbed.calls


def test_recovery_is_idempotent() -> None:
    before, watermarks = eight_batches(in_one_group=True)
    put(before, FIRST, before.data(FIRST)[:-1])
    put(before, MARKS, watermarks)
    log = open_log(before)
    cut_before = CUT.value()
    once = killed(log, before)
    twice = killed(open_log(once), once)
    assert CUT.value() == cut_before
    assert {p: once.data(p) for p in segments(once)} == {p: twice.data(p) for p in segments(twice)}


# Offsets never start again.


def test_a_subscriber_ahead_of_an_emptied_log_stops_the_start() -> None:
    """A log that starts below its progress would be skipped silently."""
    disk = SimDisk()
    log = open_log(disk)
    add_each(log, *numbers(0, 5))
    subscriber = log.subscribe("reader", TOPIC, "earliest")
    for claim in subscriber.claim():
        claim.ack()
    log.close()
    fresh = SimDisk()
    open_log(fresh).close()
    for path in paths(fresh, ""):
        put(disk, path, fresh.data(path))
    disk.unlink(STATE)
    put(disk, MARKS, fresh.data(MARKS))
    with pytest.raises(Corrupt, match="everything below 5 was acknowledged"):
        open_log(disk)
    disk.unlink(FIRST)
    with pytest.raises(Corrupt, match="offsets 0 to 5"):
        open_log(disk)


def test_a_missing_topic_with_acknowledged_offsets_is_damage() -> None:
    with pytest.raises(Corrupt, match=r"log/gone/0 is damaged.*below 7"):
        open_log(SimDisk(), floors={TopicPartition("gone", 0): 7})
    open_log(SimDisk(), floors={TopicPartition("never", 0): 0})
    disk = SimDisk()
    log = open_log(disk)
    log.subscribe("reader", TOPIC, "earliest")
    log.close()
    for path in [p for p in disk.files() if p.startswith(f"log/{TOPIC}/")]:
        disk.unlink(path)
    with pytest.raises(Corrupt, match=TOPIC):
        open_log(disk)


def test_offsets_continue_after_everything_was_trimmed() -> None:
    """After kill -9 no offset is reused."""
    disk = SimDisk()
    log = open_log(disk, SMALL)
    add_each(log, *numbers(0, MANY))
    partition = log.partition(TOPIC, 0)
    partition.roll()
    partition.trim(MANY)
    assert values(log) == []
    for _ in range(3):
        disk = killed(log, disk)
        log = open_log(disk, SMALL)
        assert log.partition(TOPIC, 0).durable_watermark == MANY
    assert add(log, b"next") == [(MANY, MANY + 1, False)]
