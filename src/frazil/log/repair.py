"""Repair: give up exactly the damaged bytes of a partition, keep every batch that is whole.

For a log that is not open, when recovery or a reader has raised `Corrupt` and there is no copy to
restore. All files are looked through first; then, in this order, so that a crash at any place
leaves a partition that can be repaired again:

1. Damaged bytes are copied to `<file>.damaged`, durably. Nothing has been changed until then.
2. What the partition remembers of lost batches is forgotten: nobody is told that they are there.
3. Behind a damaged end a new segment begins, at an offset that nobody was ever promised.
4. Damaged segments are rewritten as compaction does it, with gaps where batches are lost; an
   empty rewritten segment stands in the place of a missing one.

Offsets are never used twice. Readers and subscribers pass over the gaps.
"""

from __future__ import annotations

import logging
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from google_crc32c import value as crc32c

from frazil.disk import (
    HEAD_BYTES,
    PAYLOAD_BYTES_MAX,
    SALT_BYTES,
    Disk,
    File,
    find_frames,
    frame_header,
    make_directories,
    read_checkpoint,
)
from frazil.errors import Corrupt, Malformed, Unknown
from frazil.log.batch import check_batch, parse_header
from frazil.log.compaction import rewrite
from frazil.log.config import LogConfig
from frazil.log.index import NO_TIME, SegmentFacts, SparseIndex
from frazil.log.log import LOCK_NAME
from frazil.log.marks import NAME as MARKS_NAME
from frazil.log.marks import Marks
from frazil.log.partition import LEADER_EPOCH
from frazil.log.producers import Producers
from frazil.log.recovery import (
    DERIVED_HINT,
    STATE,
    STATE_KIND,
    STATE_NAME,
    STATE_VERSION,
    Place,
    save_index,
    save_state,
)
from frazil.log.segment import (
    HEADER_BYTES,
    LogSegment,
    SegmentHeader,
    StoredBatch,
    base_offsets,
    decode_segment_header,
    identity_of,
    promised_after,
    segment_name,
    side_name,
    walk_batches,
)
from frazil.log.subscribers import load_progress
from frazil.log.topic import (
    SUBSCRIBERS_FOLDER,
    check_name,
    load_config,
    partition_folder,
    topic_names,
)
from frazil.log.view import SegmentView
from frazil.model import Rand

logger = logging.getLogger(__name__)

FRAME = struct.Struct("<4sIQQII")
"""A frame header: magic, payload length, base offset, watermark, flags, CRC32C."""
FRAME_MAGIC = b"FRZF"


class Range(NamedTuple):
    """From `begin` up to, not including, `end`: offsets, or positions in a file."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """What a repair found and did. All but `kept_count` is empty where nothing was damaged."""

    kept_count: int
    """Batches that are whole, in the partition as it is now."""
    lost: tuple[Range, ...] = ()
    """Offsets that are gone. Where compaction had left gaps, not all of them were in use."""
    damaged_bytes: int = 0
    """Bytes set aside in `.damaged` files."""
    files: tuple[str, ...] = ()
    """Files written or removed, in that order."""


def repair_partition(
    disk: Disk,
    topic: str,
    partition: int,
    config: LogConfig,
    *,
    rand: Rand,
    now_ms: int,
    floor: int = 0,
) -> Repaired:
    """Make a damaged partition one that opens. Changes nothing where nothing is damaged.

    Raises `Held` while somebody has the log open, `Unknown` when there is no such partition and
    `Corrupt` when the topic's settings or a subscriber's progress are damaged: those cannot be
    rebuilt. `floor` is an offset below which somebody outside, such as the lake, was promised
    all; subscribers are known. After a crash halfway, repair again.
    """
    lock = disk.lock(LOCK_NAME, "a repair")
    try:
        check_name(topic, "topic")
        if topic not in topic_names(disk):
            raise Unknown(f"there is no topic {topic}")
        count = load_config(disk, topic).partitions
        if not 0 <= partition < count:
            raise Unknown(f"topic {topic} has {count} partitions, not number {partition}")
        place = Place(
            disk=disk,
            folder=partition_folder(topic, partition),
            identity=identity_of(topic, partition),
            config=config,
            rand=rand,
        )
        floor = max([floor, *_reached_by_subscribers(disk, topic, partition)])
        return _repair(place, floor, now_ms)
    finally:
        lock.close()


def _reached_by_subscribers(disk: Disk, topic: str, partition: int) -> Iterator[int]:
    suffix = ".progress"
    for name in disk.list(SUBSCRIBERS_FOLDER):
        if name.endswith(suffix):
            read_topic, partitions = load_progress(disk, name.removesuffix(suffix))
            if read_topic == topic and partition < len(partitions):
                progress = partitions[partition]
                yield max([progress.watermark, *(span.end for span in progress.done)])


def _repair(place: Place, floor: int, now_ms: int) -> Repaired:
    """Look at everything, then do the four steps."""
    disk, folder = place.disk, place.folder
    make_directories(disk, folder)
    disk.sync_directory(folder)  # names that a killed process gave and did not sync
    had_marks = MARKS_NAME in disk.list(folder)
    marks, promise = Marks.open(disk, folder)
    try:
        state = _State.load(place, now_ms)
        floor = max(floor, promise.durable_watermark, state.end_offset)
        bases = base_offsets(disk.list(folder), ".log")
        start = max(promise.start_offset, state.start_offset)
        if not promise.is_known and not state.is_known:
            start = bases[0] if bases else 0
        while len(bases) > 1 and bases[1] <= start:
            bases.pop(0)  # recovery finishes this trim
        kept_count, findings, new_base = _inspect(
            place, start, bases, floor, now_ms, is_promise_known=promise.is_known
        )

        work = _Work(place, now_ms)
        for finding in findings:
            work.set_aside(segment_name(finding.base), finding.damaged)
        if state.is_damaged:
            work.set_aside(STATE_NAME)
        if had_marks and not promise.is_known:
            work.set_aside(MARKS_NAME)
        work.forget(state, findings)
        if new_base is not None:
            work.begin_segment(new_base)
        for finding in findings:
            work.rewrite(finding)
        if not promise.is_known:
            marks.trim(start, promise.dropped_count)
    finally:
        marks.close()
    lost = tuple(gap for finding in findings for gap in finding.lost)
    for finding in findings:
        logger.warning(
            "log segment repaired", extra={"path": finding.path(place), "lost": finding.lost}
        )
    return Repaired(
        kept_count=kept_count,
        lost=lost,
        damaged_bytes=work.damaged_bytes,
        files=tuple(work.files),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """A segment to be written: at `base`, reaching to `end`, with the whole batches of the file
    that is there; none where `header` is None, which stands for a file that is missing."""

    base: int
    end: int
    header: SegmentHeader | None
    damaged: tuple[Range, ...] = ()
    lost: tuple[Range, ...] = ()

    def path(self, place: Place) -> str:
        return f"{place.folder}/{segment_name(self.base)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What `partition.ckpt` says; nothing where it is missing or damaged."""

    start_offset: int = 0
    end_offset: int = 0
    producers: Producers | None = None
    is_damaged: bool = False

    @property
    def is_known(self) -> bool:
        return self.producers is not None

    @classmethod
    def load(cls, place: Place, now_ms: int) -> _State:
        path = f"{place.folder}/{STATE_NAME}"
        try:
            body = read_checkpoint(place.disk, path, STATE_KIND, STATE_VERSION, DERIVED_HINT)
        except Corrupt:
            return cls(is_damaged=True)
        if body is None:
            return cls()
        start, end = STATE.unpack_from(body)
        producers = Producers.decode(body[STATE.size :], now_ms)
        return cls(start_offset=start, end_offset=end, producers=producers)


# Looking. Nothing is changed here.


def _inspect(
    place: Place,
    start: int,
    bases: list[int],
    floor: int,
    now_ms: int,
    *,
    is_promise_known: bool,
) -> tuple[int, list[_Finding], int | None]:
    """How many batches are whole, what is to be written, and where a new segment must begin."""
    kept_count, new_base = 0, max(start, floor) if not bases else None
    if bases:
        new_base, kept_count = _inspect_last(
            place, bases[-1], floor, now_ms, is_promise_known=is_promise_known
        )
    ends = bases if new_base is None else [*bases, new_base]
    findings = [_hole(start, ends[0])] if ends[0] > start else []
    for base, end in pairwise(ends):
        count, found = _inspect_sealed(place, base, end, now_ms)
        kept_count += count
        findings += found
    return kept_count, findings, new_base


def _hole(begin: int, end: int) -> _Finding:
    return _Finding(base=begin, end=end, header=None, lost=(Range(begin, end),))


def _inspect_last(
    place: Place, base: int, floor: int, now_ms: int, *, is_promise_known: bool
) -> tuple[int | None, int]:
    """Where a new segment must begin because the last one, which is open, is damaged; None where
    it is not, and the batches in it. By the rules of recovery, which cuts a torn end itself."""
    file = place.disk.open(f"{place.folder}/{segment_name(base)}", "edit")
    try:
        file.settle()
        size = file.size()
        header, is_own = _header_of(place, file, base, None, now_ms)
        if is_own and not header.is_rewritten:
            offset, position, count = base, HEADER_BYTES, 0
            for batch in walk_batches(file, header, HEADER_BYTES, size, base):
                offset, position, count = batch.end_offset, batch.end, count + 1
            promised = max(floor, promised_after(file, header, position, size))
            if promised <= offset and (position == size or is_promise_known):
                return None, count
        elif not is_own and size <= HEADER_BYTES and floor <= base:
            return None, 0
        return max(floor, base + 1, header.sealed_end_offset, *_reach(file, size, header)), 0
    finally:
        file.close()


def _reach(file: File, size: int, header: SegmentHeader) -> Iterator[int]:
    """How far each frame goes by its header, whether its batch is whole or not."""
    data = file.read(0, size)
    for position, _, _ in find_frames(data, 0, header.salt):
        try:
            yield parse_header(data, position + FRAME.size).end_offset
        except Malformed:
            continue


def _inspect_sealed(place: Place, base: int, end: int, now_ms: int) -> tuple[int, list[_Finding]]:
    """How many batches of a sealed segment are whole, and what is to be written in its place."""
    file = place.disk.open(f"{place.folder}/{segment_name(base)}")
    try:
        size = file.size()
        header, is_own = _header_of(place, file, base, end, now_ms)
        if is_own:
            offset, position, count = base, HEADER_BYTES, 0
            for batch in walk_batches(file, header, HEADER_BYTES, size, base):
                offset, position, count = batch.end_offset, batch.end, count + 1
            is_whole = position == size
            if header.is_rewritten:
                is_whole = is_whole and size == header.sealed_bytes
                offset = header.sealed_end_offset
            if is_whole and offset == end:
                return count, []
            if is_whole and base < offset < end:
                return count, [_hole(offset, end)]
        batches = _whole_batches(file, size, header, end)
    finally:
        file.close()
    finding = _Finding(
        base=base,
        end=end,
        header=header,
        damaged=tuple(_uncovered(batches, HEADER_BYTES if is_own else 0, size)),
        lost=tuple(_gaps(batches, header, size, end)),
    )
    return len(batches), [finding]


def _header_of(
    place: Place, file: File, base: int, end: int | None, now_ms: int
) -> tuple[SegmentHeader, bool]:
    """The segment's own header; where that is damaged one to read by, and False."""
    foreign_salt = None
    try:
        header = decode_segment_header(file.read(0, HEADER_BYTES), "")
        if (header.identity, header.base_offset) == (place.identity, base):
            return header, True
        foreign_salt = header.salt
    except Corrupt:
        pass
    salt = _salt_of(file.read(0, file.size()), base, end, foreign_salt)
    return replace(place.new_header(base, now_ms), salt=salt), False


def _salt_of(data: bytes, base: int, end: int | None, foreign_salt: bytes | None) -> bytes:
    """The salt that most frames agree on, for a file that has lost its own.

    A frame that is whole but for the unknown salt shows what the salt did to its checksum. A
    valid header of another file, moved here by a bad disk, speaks for frames that are not ours.
    """
    votes: Counter[int] = Counter()
    at = data.find(FRAME_MAGIC)
    while at >= 0:
        frame_end, effect = _salt_effect(data, at, base, end)
        if effect is not None:
            votes[effect] += 1
        at = data.find(FRAME_MAGIC, frame_end)
    if foreign_salt is not None:
        votes.pop(_effect_of(foreign_salt), None)
    return _salt_with(votes.most_common(1)[0][0] if votes else 0)


def _salt_effect(data: bytes, at: int, base: int, end: int | None) -> tuple[int, int | None]:
    """Where to look next, and what the salt did to the header here, if that can be told."""
    if len(data) - at < FRAME.size:
        return len(data), None
    _, length, base_offset, durable_watermark, flags, check = FRAME.unpack_from(data, at)
    frame_end = at + FRAME.size + length
    payload = data[at + FRAME.size : frame_end]
    try:
        header = check_batch(payload)
    except Malformed:
        return at + 1, None
    if (header.base_offset, len(payload), header.leader_epoch) != (
        base_offset,
        length,
        LEADER_EPOCH,  # not covered by the batch's own checksum
    ):
        return at + 1, None
    if not HEAD_BYTES <= length <= PAYLOAD_BYTES_MAX:
        return frame_end, None
    if base_offset < base or (end is not None and header.end_offset > end):
        return frame_end, None
    unsalted = frame_header(
        payload[:HEAD_BYTES], length, base_offset, durable_watermark, flags, bytes(SALT_BYTES)
    )
    return frame_end, check ^ int.from_bytes(unsalted[-4:], "little")


def _effect_of(salt: bytes) -> int:
    """What a salt does to the checksum of a header, as against a salt of zeros.

    A CRC is linear: that does not depend on the header, nor on the payload behind it.
    """
    rest = bytes(HEAD_BYTES)
    effect: int = crc32c(salt + rest) ^ crc32c(bytes(SALT_BYTES) + rest)
    return effect


def _salt_with(effect: int) -> bytes:
    """A salt with this effect. There are many, and to a frame they are all the same."""
    basis: dict[int, tuple[int, int]] = {}
    for bit in range(32):
        salt = 1 << bit
        change = _effect_of(salt.to_bytes(SALT_BYTES, "little"))
        while change.bit_length() in basis:
            other_change, other_salt = basis[change.bit_length()]
            change, salt = change ^ other_change, salt ^ other_salt
        basis[change.bit_length()] = (change, salt)
    found = 0
    while effect:
        change, salt = basis[effect.bit_length()]
        effect, found = effect ^ change, found ^ salt
    return found.to_bytes(SALT_BYTES, "little")


def _whole_batches(file: File, size: int, header: SegmentHeader, end: int) -> list[StoredBatch]:
    """Every whole batch of this segment, wherever in the file it lies, by offset."""
    data = file.read(0, size)
    with_gaps = replace(header, is_rewritten=True)
    found: list[StoredBatch] = []
    position = HEADER_BYTES
    for head, _, _ in find_frames(data, 0, header.salt):
        if head >= position:  # not inside a batch that is whole
            for batch in walk_batches(file, with_gaps, head, size, header.base_offset):
                found.append(batch)
                position = batch.end
    batches: list[StoredBatch] = []
    offset = header.base_offset
    # Of two batches at one place the later one is right: the other was taken back.
    for batch in sorted(found, key=lambda b: (b.base_offset, -b.durable_watermark)):
        if offset <= batch.base_offset and batch.end_offset <= end:
            batches.append(batch)
            offset = batch.end_offset
    return batches


def _uncovered(batches: list[StoredBatch], position: int, size: int) -> Iterator[Range]:
    """The bytes of a file that belong to none of the batches."""
    for batch in sorted(batches, key=lambda b: b.position):
        if batch.position > position:
            yield Range(position, batch.position)
        position = batch.end
    if position < size:
        yield Range(position, size)


def _gaps(
    batches: list[StoredBatch], header: SegmentHeader, size: int, end: int
) -> Iterator[Range]:
    """The offsets that are lost. A gap between batches that lie side by side in a rewritten
    segment is none: compaction has left it."""
    offset, position = header.base_offset, HEADER_BYTES
    for batch in batches:
        is_beside = header.is_rewritten and batch.position == position
        if batch.base_offset > offset and not is_beside:
            yield Range(offset, batch.base_offset)
        offset, position = batch.end_offset, batch.end
    if header.is_rewritten and position == size == header.sealed_bytes:
        offset = max(offset, header.sealed_end_offset)
    if offset < end:
        yield Range(offset, end)


# Doing.


class _Work:
    """The changes of one repair, and a list of them."""

    def __init__(self, place: Place, now_ms: int) -> None:
        self._place = place
        self._now_ms = now_ms
        self.damaged_bytes = 0
        self.files: list[str] = []

    def set_aside(self, name: str, damaged: tuple[Range, ...] | None = None) -> None:
        """Copy bytes of a file, all of them unless told, to the end of `<name>.damaged`.

        Each copy begins with a line that says where the bytes come from.
        """
        disk, folder = self._place.disk, self._place.folder
        if damaged == ():
            return
        source = disk.open(f"{folder}/{name}")
        try:
            parts = [
                (begin, end, source.read(begin, end - begin))
                for begin, end in damaged or [Range(0, source.size())]
            ]
        finally:
            source.close()
        target = f"{folder}/{name}.damaged"
        is_there = f"{name}.damaged" in disk.list(folder)
        file = disk.open(target, "edit" if is_there else "create")
        try:
            for begin, end, data in parts:
                title = f"bytes {begin} to {end} of {name}, set aside at {self._now_ms} ms\n"
                file.append([title.encode(), data, b"\n"])
                self.damaged_bytes += len(data)
            file.sync()
        finally:
            file.close()
        disk.sync_directory(folder)
        self.files.append(target)

    def forget(self, state: _State, findings: list[_Finding]) -> None:
        """No producer and no sender may be told that a lost batch is stored.

        A damaged checkpoint and the digests of damaged segments go: recovery makes them anew
        from the batches that are left.
        """
        disk, folder = self._place.disk, self._place.folder
        gone = [STATE_NAME] if state.is_damaged else []
        gone += [
            side_name(base, ".digests")
            for base in base_offsets(disk.list(folder), ".digests")
            if any(finding.base <= base < finding.end for finding in findings)
        ]
        for name in gone:
            disk.unlink(f"{folder}/{name}")
            self.files.append(f"{folder}/{name}")
        if gone:
            disk.sync_directory(folder)
        lost = [gap for finding in findings for gap in finding.lost]
        if state.producers is not None and state.producers.forget(lost):
            save_state(self._place, state.start_offset, state.end_offset, state.producers)
            self.files.append(f"{folder}/{STATE_NAME}")

    def begin_segment(self, base: int) -> None:
        """A new, empty last segment."""
        place = self._place
        header = place.new_header(base, self._now_ms)
        interval_bytes = place.config.index_interval_bytes
        segment = LogSegment.create(place.disk, place.folder, header, interval_bytes)
        segment.close()
        self.files.append(segment.path)

    def rewrite(self, finding: _Finding) -> None:
        """Put the whole batches, or a gap, in the place of what is there: one rename."""
        place, path = self._place, finding.path(self._place)
        batches: list[StoredBatch] = []
        if finding.header is not None:
            file = place.disk.open(path)
            try:
                batches = _whole_batches(file, file.size(), finding.header, finding.end)
            finally:
                file.close()
        old = SegmentView(
            path=path,
            header=finding.header or place.new_header(finding.base, self._now_ms),
            facts=SegmentFacts(
                base_offset=finding.base,
                end_offset=finding.end,
                size_bytes=0,
                max_timestamp_ms=NO_TIME,
                sealed_ms=self._now_ms,
                digest_count=0,
            ),
            sparse=SparseIndex(place.config.index_interval_bytes),
        )
        kept = [(batch.header, batch.payload, batch.flags) for batch in batches]
        new, scratch = rewrite(place, old, kept, finding.end)
        place.disk.rename(scratch, path)
        place.disk.sync_directory(place.folder)
        save_index(place, new.header.salt, new.facts, new.sparse)
        self.files.append(path)
