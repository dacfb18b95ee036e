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
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from frazil.disk import Disk, File, make_directories
from frazil.errors import Unknown
from frazil.log.checkpoint import (
    STATE_NAME,
    CheckpointState,
    PartitionFiles,
    load_index,
    save_index,
    save_state,
)
from frazil.log.compaction import rewrite
from frazil.log.config import LogConfig
from frazil.log.index import NO_TIME, SegmentInfo, SparseIndex
from frazil.log.log import LOCK_NAME
from frazil.log.recovery import merged_segments
from frazil.log.repair.salvage import (
    DamagedBytes,
    gaps,
    header_of,
    reach,
    uncovered,
    unsalted_batches,
    whole_batches,
)
from frazil.log.retention import LOST
from frazil.log.segment import (
    HEADER_BYTES,
    LogSegment,
    SegmentHeader,
    StoredBatch,
    acknowledged_after,
    base_offsets,
    identity_of,
    segment_name,
    side_name,
    walk_batches,
)
from frazil.log.subscribers import load_progress, subscriber_names
from frazil.log.topic import (
    check_name,
    load_config,
    partition_folder,
    topic_names,
)
from frazil.log.view import SegmentView
from frazil.log.watermarks import FILE_BYTES as MARKS_BYTES
from frazil.log.watermarks import NAME as MARKS_NAME
from frazil.log.watermarks import StoredWatermarks, WatermarkFile, read_marks
from frazil.model import OffsetRange, Rand

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """What a repair found and did. All but `kept_count` is empty where nothing was damaged."""

    kept_count: int
    """Batches that are whole, in the partition as it is now."""
    lost: tuple[OffsetRange, ...] = ()
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
    is_dry_run: bool = False,
) -> RepairReport:
    """Make a damaged partition one that opens. Changes nothing where nothing is damaged, and
    nothing at all in a dry run, which says what a repair would do.

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
        files = PartitionFiles(
            disk=disk,
            folder=partition_folder(topic, partition),
            identity=identity_of(topic, partition),
            config=config,
            rand=rand,
        )
        floor = max([floor, *_reached_by_subscribers(disk, topic, partition)])
        if is_dry_run:
            return _looked_at(files, _settled_promise(files), floor, now_ms).would_do()
        repaired = _repair(files, floor, now_ms)
        LOST.add(sum(end - begin for begin, end in repaired.lost), reason="repair", topic=topic)
        return repaired
    finally:
        lock.close()


def _reached_by_subscribers(disk: Disk, topic: str, partition: int) -> Iterator[int]:
    for name in subscriber_names(disk):
        read_topic, partitions = load_progress(disk, name)
        if read_topic == topic and partition < len(partitions):
            yield partitions[partition].reach


def _repair(files: PartitionFiles, floor: int, now_ms: int) -> RepairReport:
    """Look at everything, then do the four steps."""
    disk, folder = files.disk, files.folder
    make_directories(disk, folder)
    disk.sync_directory(folder)  # names that a killed process gave and did not sync
    had_marks = MARKS_NAME in disk.list(folder)
    marks, promise = WatermarkFile.open(disk, folder)
    try:
        looked = _looked_at(files, promise, floor, now_ms)
        work = _Work(files, now_ms)
        for finding in looked.findings:
            work.set_aside(segment_name(finding.base), finding.damaged)
        if looked.state.is_damaged:
            work.set_aside(STATE_NAME)
        if had_marks and not promise.is_known:
            work.set_aside(MARKS_NAME)
        work.forget(looked.state, looked.findings)
        if looked.new_base is not None:
            work.begin_segment(looked.new_base)
        for finding in looked.findings:
            work.rewrite(finding)
        if not promise.is_known:
            marks.trim(looked.start, promise.dropped_count)
    finally:
        marks.close()
    for finding in looked.findings:
        logger.warning(
            "log segment repaired", extra={"path": finding.path(files), "lost": finding.lost}
        )
    return RepairReport(
        kept_count=looked.kept_count,
        lost=looked.lost,
        damaged_bytes=work.damaged_bytes,
        files=tuple(work.files),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """A segment to be written: at `base`, reaching to `end`, with the whole batches of the file
    that is there, if there is one."""

    base: int
    end: int
    is_missing: bool = False
    damaged: tuple[DamagedBytes, ...] = ()
    lost: tuple[OffsetRange, ...] = ()

    def path(self, files: PartitionFiles) -> str:
        return f"{files.folder}/{segment_name(self.base)}"


# Looking. Nothing is changed here.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """What is damaged in a partition, and what is whole."""

    files: PartitionFiles
    promise: StoredWatermarks
    state: CheckpointState
    start: int
    kept_count: int
    new_base: int | None
    """Where a new segment must begin, when the last one is damaged."""
    findings: list[_Finding]

    @property
    def lost(self) -> tuple[OffsetRange, ...]:
        return tuple(gap for finding in self.findings for gap in finding.lost)

    def would_do(self) -> RepairReport:
        """What a repair would find and do."""
        folder = self.files.folder
        whole_files = [STATE_NAME] if self.state.is_damaged else []
        if not self.promise.is_known and MARKS_NAME in self.files.disk.list(folder):
            whole_files.append(MARKS_NAME)
        damaged = sum(end - begin for each in self.findings for begin, end in each.damaged)
        files = [finding.path(self.files) for finding in self.findings]
        for name in whole_files:
            file = self.files.disk.open(f"{folder}/{name}")
            damaged += max(file.size(), MARKS_BYTES if name == MARKS_NAME else 0)
            file.close()
            files.append(f"{folder}/{name}")
        return RepairReport(
            kept_count=self.kept_count, lost=self.lost, damaged_bytes=damaged, files=tuple(files)
        )


def _settled_promise(files: PartitionFiles) -> StoredWatermarks:
    """What the marks say, by what the disk really has."""
    if MARKS_NAME in files.disk.list(files.folder):
        file = files.disk.open(f"{files.folder}/{MARKS_NAME}", "edit")
        file.settle()
        file.close()
    return read_marks(files.disk, files.folder)


def _looked_at(
    files: PartitionFiles, promise: StoredWatermarks, floor: int, now_ms: int
) -> _Looked:
    """Look through all files."""
    disk, folder = files.disk, files.folder
    state = CheckpointState.load(files, now_ms)
    sealed_ends = _sealed_ends(files)
    floor = max(floor, promise.durable_watermark, state.end_offset, *sealed_ends.values())
    bases = base_offsets(disk.list(folder), ".log")
    for base in merged_segments(files, bases):
        bases.remove(base)  # recovery finishes this merge
    start = max(promise.start_offset, state.start_offset)
    if not promise.is_known and not state.is_known:
        start = bases[0] if bases else 0
    while len(bases) > 1 and bases[1] <= start:
        bases.pop(0)  # recovery finishes this trim
    kept_count, new_base = 0, max(start, floor) if not bases else None
    if bases:
        kept_count, new_base = _inspect_last(
            files,
            bases[-1],
            floor,
            is_sealed=bases[-1] in sealed_ends,
            is_promise_known=promise.is_known,
        )
    ends = bases if new_base is None else [*bases, new_base]
    findings = [_hole(start, ends[0])] if ends[0] > start else []
    for base, end in pairwise(ends):
        count, found = _inspect_sealed(files, base, end)
        kept_count += count
        findings += found
    return _Looked(
        files=files,
        promise=promise,
        state=state,
        start=start,
        kept_count=kept_count,
        new_base=new_base,
        findings=findings,
    )


class _Walked(NamedTuple):
    """How far a segment can be read as recovery reads it."""

    offset: int
    position: int
    batch_count: int


def _walk(file: File, header: SegmentHeader, size: int) -> _Walked:
    walked = _Walked(header.base_offset, HEADER_BYTES, 0)
    for batch in walk_batches(file, header, HEADER_BYTES, size, header.base_offset):
        walked = _Walked(batch.end_offset, batch.end, walked.batch_count + 1)
    return walked


def _sealed_ends(files: PartitionFiles) -> dict[int, int]:
    """Where segments end by what their index says; it is written once the next one is there."""
    bases = base_offsets(files.disk.list(files.folder), ".index")
    loaded = [(base, load_index(files, base)) for base in bases]
    return {base: index[1].end_offset for base, index in loaded if index is not None}


def _hole(begin: int, end: int) -> _Finding:
    return _Finding(base=begin, end=end, is_missing=True, lost=(OffsetRange(begin, end),))


def _inspect_last(
    files: PartitionFiles, base: int, floor: int, *, is_sealed: bool, is_promise_known: bool
) -> tuple[int, int | None]:
    """How many batches the last segment holds, when it is whole and open; or where a new one must
    begin, when it is not. By the rules of recovery, which cuts a torn or stale end itself."""
    file = files.disk.open(f"{files.folder}/{segment_name(base)}", "edit")
    try:
        file.settle()
        size = file.size()
        header, foreign_salt = header_of(files, file, base)
        if header is None and size <= HEADER_BYTES and floor <= base:
            return 0, None
        if header is not None and not header.is_rewritten and not is_sealed:
            walked = _walk(file, header, size)
            promised = max(floor, acknowledged_after(file, header, walked.position, size))
            if promised <= walked.offset and (walked.position == size or is_promise_known):
                return walked.batch_count, None
        data = file.read(0, size)
    finally:
        file.close()
    ends = [floor, base + 1]
    if header is None:
        ends += [batch.end_offset for batch in unsalted_batches(data, base, None, foreign_salt)]
    else:
        ends += [header.sealed_end_offset, *reach(data, header)]
    return 0, max(ends)


def _inspect_sealed(files: PartitionFiles, base: int, end: int) -> tuple[int, list[_Finding]]:
    """How many batches of a sealed segment are whole, and what is to be written in its place."""
    file = files.disk.open(f"{files.folder}/{segment_name(base)}")
    try:
        size = file.size()
        header, _ = header_of(files, file, base)
        if header is not None:
            walked = _walk(file, header, size)
            offset, is_whole = walked.offset, walked.position == size
            if header.is_rewritten:
                offset = header.sealed_end_offset
                is_whole = is_whole and size == header.sealed_bytes
            if is_whole and offset == end:
                return walked.batch_count, []
            if is_whole and base < offset < end:
                return walked.batch_count, [_hole(offset, end)]
        batches = whole_batches(files, file, base, end)
    finally:
        file.close()
    finding = _Finding(
        base=base,
        end=end,
        damaged=tuple(uncovered(batches, 0 if header is None else HEADER_BYTES, size)),
        lost=tuple(gaps(batches, OffsetRange(base, end), header, size)),
    )
    return len(batches), [finding]


# Doing.


class _Work:
    """The changes of one repair, and a list of them."""

    def __init__(self, files: PartitionFiles, now_ms: int) -> None:
        self._files = files
        self._now_ms = now_ms
        self.damaged_bytes = 0
        self.files: list[str] = []

    def set_aside(self, name: str, damaged: tuple[DamagedBytes, ...] | None = None) -> None:
        """Copy bytes of a file, all of them unless told, to the end of `<name>.damaged`.

        Each copy begins with a line that says where the bytes come from.
        """
        disk, folder = self._files.disk, self._files.folder
        if damaged == ():
            return
        source = disk.open(f"{folder}/{name}")
        try:
            parts = [
                (begin, end, source.read(begin, end - begin))
                for begin, end in damaged or [DamagedBytes(0, source.size())]
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

    def forget(self, state: CheckpointState, findings: list[_Finding]) -> None:
        """No producer and no sender may be told that a lost batch is stored.

        A damaged checkpoint and the digests of damaged segments go: recovery makes them anew
        from the batches that are left.
        """
        disk, folder = self._files.disk, self._files.folder
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
        if state.is_known and state.producers.forget(lost):
            save_state(self._files, state.start_offset, state.end_offset, state.producers)
            self.files.append(f"{folder}/{STATE_NAME}")

    def begin_segment(self, base: int) -> None:
        """A new, empty last segment."""
        files = self._files
        header = files.new_header(base, self._now_ms)
        interval_bytes = files.config.index_interval_bytes
        segment = LogSegment.create(files.disk, files.folder, header, interval_bytes)
        segment.close()
        self.files.append(segment.path)

    def rewrite(self, finding: _Finding) -> None:
        """Put the whole batches, or a gap, in the place of what is there: one rename."""
        files, path = self._files, finding.path(self._files)
        batches: list[StoredBatch] = []
        if not finding.is_missing:
            file = files.disk.open(path)
            try:
                batches = whole_batches(files, file, finding.base, finding.end)
            finally:
                file.close()
        old = SegmentView(
            path=path,
            header=files.new_header(finding.base, self._now_ms),
            info=SegmentInfo(
                base_offset=finding.base,
                end_offset=finding.end,
                size_bytes=0,
                max_timestamp_ms=NO_TIME,
                sealed_ms=self._now_ms,
                digest_count=0,
            ),
            sparse=SparseIndex(files.config.index_interval_bytes),
        )
        kept = [(batch.header, batch.payload, batch.flags) for batch in batches]
        new, scratch = rewrite(files, [old], kept, finding.end)
        files.disk.rename(scratch, path)
        files.disk.sync_directory(files.folder)
        save_index(files, new.header.salt, new.info, new.sparse)
        self.files.append(path)
