"""Repair: set aside exactly the damaged bytes of a partition, keep every whole batch.

For a log that is not open, if recovery or a reader raised `Corrupt` and there is no copy to
restore. All files are inspected first. Then, in this order, so that a repair can be repeated after
a crash at any point:

1. Copy damaged bytes to `<file>.damaged`, durably. Nothing is changed before that.
2. Forget producer state and digests of lost batches, so that no retry counts as a duplicate.
3. If the last segment is damaged, start a new one at an offset that was never used.
4. Rewrite damaged segments as compaction does, with gaps for lost batches; an empty rewritten
   segment replaces a missing one.

Offsets are never reused. Readers and subscribers skip the gaps.
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
    SOURCES_NAME,
    STATE_NAME,
    TRANSACTIONS_NAME,
    CheckpointState,
    PartitionFiles,
    load_index,
    save_index,
    save_state,
    save_transactions,
)
from frazil.log.compaction import rewrite
from frazil.log.index import NO_TIME, SegmentInfo, SparseIndex
from frazil.log.log import LOCK_NAME
from frazil.log.recovery import merged_segments
from frazil.log.repair import sources
from frazil.log.repair.salvage import (
    DamagedBytes,
    frame_end_offsets,
    gaps,
    header_of,
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
    load_topic,
    partition_folder,
    topic_names,
)
from frazil.log.transactions.state import Transactions
from frazil.log.view import SegmentView
from frazil.log.watermarks import FILE_BYTES as WATERMARK_BYTES
from frazil.log.watermarks import NAME as WATERMARK_NAME
from frazil.log.watermarks import StoredWatermarks, WatermarkFile, read_watermarks
from frazil.model import OffsetRange, Rand
from frazil.settings import LogConfig

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """What a repair found and did. Only `kept_count` is set if nothing was damaged."""

    kept_count: int
    """Whole batches in the partition."""
    lost: tuple[OffsetRange, ...] = ()
    """Lost offsets. If compaction had left gaps, not all of them were in use."""
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
    """Repair a damaged partition so that it opens. Changes nothing if nothing is damaged; a dry run
    changes nothing at all and reports what a repair would do.

    Raises `Held` while the log is open, `Unknown` if there is no such partition, and `Corrupt` if
    the topic's settings or a subscriber's progress are damaged: those cannot be rebuilt. `floor` is
    an offset below which everything was acknowledged outside, such as by the lake; subscribers are
    considered anyway. After a crash, repair again.
    """
    lock = disk.lock(LOCK_NAME, "a repair")
    try:
        check_name(topic, "topic")
        if topic not in topic_names(disk):
            raise Unknown(f"there is no topic {topic}")
        count = load_topic(disk, topic).config.partitions
        if not 0 <= partition < count:
            raise Unknown(f"topic {topic} has {count} partitions, but no partition {partition}")
        files = PartitionFiles(
            disk=disk,
            folder=partition_folder(topic, partition),
            identity=identity_of(topic, partition),
            config=config,
            rand=rand,
        )
        floor = max([floor, *_reached_by_subscribers(disk, topic, partition)])
        if is_dry_run:
            return _inspect(files, _settled_watermarks(files), floor, now_ms).dry_run_report()
        repaired = _repair(files, floor, now_ms)
        LOST.add(sum(end - begin for begin, end in repaired.lost), reason="repair", topic=topic)
        return repaired
    finally:
        lock.close()


def _reached_by_subscribers(disk: Disk, topic: str, partition: int) -> Iterator[int]:
    for name in subscriber_names(disk):
        saved = load_progress(disk, name)
        if saved.topic == topic and partition < len(saved.partitions):
            yield saved.partitions[partition].end_offset


def _repair(files: PartitionFiles, floor: int, now_ms: int) -> RepairReport:
    """Inspect everything, then run the four steps."""
    disk, folder = files.disk, files.folder
    make_directories(disk, folder)
    disk.sync_directory(folder)  # a killed process may not have synced its last file names
    had_watermarks = WATERMARK_NAME in disk.list(folder)
    watermarks, stored = WatermarkFile.open(disk, folder)
    try:
        inspection = _inspect(files, stored, floor, now_ms)
        work = _Repair(files, now_ms)
        for finding in inspection.findings:
            work.set_aside(segment_name(finding.base), finding.damaged)
        if inspection.state.is_damaged:
            work.set_aside(STATE_NAME)
        if sources.is_damaged(files):
            work.set_aside(SOURCES_NAME)
            disk.unlink(f"{folder}/{SOURCES_NAME}")
        if had_watermarks and not stored.is_known:
            work.set_aside(WATERMARK_NAME)
        work.forget(inspection.state, inspection.findings)
        if inspection.new_base is not None:
            work.begin_segment(inspection.new_base)
        for finding in inspection.findings:
            work.rewrite(finding)
        if not stored.is_known and base_offsets(disk.list(folder), ".log"):
            watermarks.trim(inspection.start, stored.dropped_count)
    finally:
        watermarks.close()
    for finding in inspection.findings:
        logger.warning(
            "log segment repaired", extra={"path": finding.path(files), "lost": finding.lost}
        )
    return RepairReport(
        kept_count=inspection.kept_count,
        lost=inspection.lost,
        damaged_bytes=work.damaged_bytes,
        files=tuple(work.files),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """A segment to write: from `base` to `end`, with the whole batches of the existing file, if
    any."""

    base: int
    end: int
    is_missing: bool = False
    damaged: tuple[DamagedBytes, ...] = ()
    lost: tuple[OffsetRange, ...] = ()

    def path(self, files: PartitionFiles) -> str:
        return f"{files.folder}/{segment_name(self.base)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inspection:
    """What is damaged in a partition, and what is whole."""

    files: PartitionFiles
    stored: StoredWatermarks
    state: CheckpointState
    start: int
    kept_count: int
    new_base: int | None
    """Where a new segment must start if the last one is damaged."""
    findings: list[_Finding]

    @property
    def lost(self) -> tuple[OffsetRange, ...]:
        return tuple(gap for finding in self.findings for gap in finding.lost)

    def dry_run_report(self) -> RepairReport:
        """Return the report of a dry run."""
        folder = self.files.folder
        whole_files = [STATE_NAME] if self.state.is_damaged else []
        whole_files += [SOURCES_NAME] if sources.is_damaged(self.files) else []
        if not self.stored.is_known and WATERMARK_NAME in self.files.disk.list(folder):
            whole_files.append(WATERMARK_NAME)
        damaged = sum(end - begin for finding in self.findings for begin, end in finding.damaged)
        files = [finding.path(self.files) for finding in self.findings]
        for name in whole_files:
            file = self.files.disk.open(f"{folder}/{name}")
            damaged += max(file.size(), WATERMARK_BYTES if name == WATERMARK_NAME else 0)
            file.close()
            files.append(f"{folder}/{name}")
        return RepairReport(
            kept_count=self.kept_count, lost=self.lost, damaged_bytes=damaged, files=tuple(files)
        )


def _settled_watermarks(files: PartitionFiles) -> StoredWatermarks:
    """Return the watermarks that are on disk, not those in the page cache."""
    if WATERMARK_NAME in files.disk.list(files.folder):
        file = files.disk.open(f"{files.folder}/{WATERMARK_NAME}", "edit")
        file.settle()
        file.close()
    return read_watermarks(files.disk, files.folder)


def _inspect(
    files: PartitionFiles, stored: StoredWatermarks, floor: int, now_ms: int
) -> _Inspection:
    """Inspect all files. Changes nothing."""
    disk, folder = files.disk, files.folder
    state = CheckpointState.load(files, now_ms)
    sealed_ends = _sealed_ends(files)
    floor = max(floor, stored.durable_watermark, state.end_offset, *sealed_ends.values())
    bases = base_offsets(disk.list(folder), ".log")
    for base in merged_segments(files, bases):
        bases.remove(base)  # recovery finishes this merge
    start = max(stored.start_offset, state.start_offset)
    if not stored.is_known and not state.is_known:
        start = bases[0] if bases else 0
    while len(bases) > 1 and bases[1] <= start:
        bases.pop(0)  # recovery finishes this trim
    if not bases and max(start, floor) == 0:  # nothing was ever appended
        return _Inspection(
            files=files,
            stored=stored,
            state=state,
            start=0,
            kept_count=0,
            new_base=None,
            findings=[],
        )
    kept_count, new_base = 0, max(start, floor) if not bases else None
    if bases:
        kept_count, new_base = _inspect_last(
            files,
            bases[-1],
            floor,
            is_sealed=bases[-1] in sealed_ends,
            has_watermarks=stored.is_known,
        )
    ends = bases if new_base is None else [*bases, new_base]
    findings = [_missing(start, ends[0])] if ends[0] > start else []
    for base, end in pairwise(ends):
        count, segment_findings = _inspect_sealed(files, base, end)
        kept_count += count
        findings += segment_findings
    return _Inspection(
        files=files,
        stored=stored,
        state=state,
        start=start,
        kept_count=kept_count,
        new_base=new_base,
        findings=findings,
    )


class _Readable(NamedTuple):
    """How far a segment can be read in order, as recovery does."""

    offset: int
    position: int
    batch_count: int


def _walk(file: File, header: SegmentHeader, size: int) -> _Readable:
    readable = _Readable(header.base_offset, HEADER_BYTES, 0)
    for batch in walk_batches(file, header, HEADER_BYTES, size, header.base_offset):
        readable = _Readable(batch.end_offset, batch.end, readable.batch_count + 1)
    return readable


def _sealed_ends(files: PartitionFiles) -> dict[int, int]:
    """Return the end offsets of segments by their index, which is written once the next exists."""
    bases = base_offsets(files.disk.list(files.folder), ".index")
    loaded = [(base, load_index(files, base)) for base in bases]
    return {base: index[1].end_offset for base, index in loaded if index is not None}


def _missing(begin: int, end: int) -> _Finding:
    return _Finding(base=begin, end=end, is_missing=True, lost=(OffsetRange(begin, end),))


def _inspect_last(
    files: PartitionFiles, base: int, floor: int, *, is_sealed: bool, has_watermarks: bool
) -> tuple[int, int | None]:
    """Return the batch count of the last segment if it is whole; else where a new one must
    start. Follows the rules of recovery, which cuts a torn or stale tail itself."""
    file = files.disk.open(f"{files.folder}/{segment_name(base)}", "edit")
    try:
        file.settle()
        size = file.size()
        header, foreign_salt = header_of(files, file, base)
        if header is None and size <= HEADER_BYTES and floor <= base:
            return 0, None
        if header is not None and not header.is_rewritten and not is_sealed:
            readable = _walk(file, header, size)
            acknowledged = max(floor, acknowledged_after(file, header, readable.position, size))
            if acknowledged <= readable.offset and (readable.position == size or has_watermarks):
                return readable.batch_count, None
        data = file.read(0, size)
    finally:
        file.close()
    ends = [floor, base + 1]
    if header is None:
        ends += [batch.end_offset for batch in unsalted_batches(data, base, None, foreign_salt)]
    else:
        ends += [header.sealed_end_offset, *frame_end_offsets(data, header)]
    return 0, max(ends)


def _inspect_sealed(files: PartitionFiles, base: int, end: int) -> tuple[int, list[_Finding]]:
    """Return the whole batches of a sealed segment, and the segments to write instead of it."""
    file = files.disk.open(f"{files.folder}/{segment_name(base)}")
    try:
        size = file.size()
        header, _ = header_of(files, file, base)
        if header is not None:
            readable = _walk(file, header, size)
            offset, is_whole = readable.offset, readable.position == size
            if header.is_rewritten:
                offset = header.sealed_end_offset
                is_whole = is_whole and size == header.sealed_bytes
            if is_whole and offset == end:
                return readable.batch_count, []
            if is_whole and base < offset < end:
                return readable.batch_count, [_missing(offset, end)]
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


class _Repair:
    """Makes the changes of one repair and lists them."""

    def __init__(self, files: PartitionFiles, now_ms: int) -> None:
        self._files = files
        self._now_ms = now_ms
        self.damaged_bytes = 0
        self.files: list[str] = []

    def set_aside(self, name: str, damaged: tuple[DamagedBytes, ...] | None = None) -> None:
        """Append bytes of a file, by default all, to `<name>.damaged`.

        Each copy starts with a line that states their origin.
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
        exists = f"{name}.damaged" in disk.list(folder)
        file = disk.open(target, "edit" if exists else "create")
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
        """Make sure that no lost batch counts as a duplicate, or as part of a transaction.

        A damaged checkpoint and the digests of damaged segments are removed; recovery rebuilds them
        from the remaining batches.
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
        if findings and TRANSACTIONS_NAME in disk.list(folder):
            save_transactions(self._files, Transactions(), 0)  # recovery replays the whole log
            self.files.append(f"{folder}/{TRANSACTIONS_NAME}")
        lost = [gap for finding in findings for gap in finding.lost]
        if sources.lose(self._files, lost):
            self.files.append(f"{folder}/{SOURCES_NAME}")
        if state.is_known and state.producers.forget(lost):
            save_state(self._files, state.start_offset, state.end_offset, state.producers)
            self.files.append(f"{folder}/{STATE_NAME}")

    def begin_segment(self, base: int) -> None:
        """Create a new, empty last segment."""
        files = self._files
        header = files.new_header(base, self._now_ms)
        interval_bytes = files.config.index_interval_bytes
        segment = LogSegment.create(files.disk, files.folder, header, interval_bytes)
        segment.close()
        self.files.append(segment.path)

    def rewrite(self, finding: _Finding) -> None:
        """Replace the file with the whole batches, or a gap, by one rename."""
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
