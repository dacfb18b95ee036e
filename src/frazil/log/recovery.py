"""Recovery: open a partition after a crash, cut a torn tail, refuse damage.

1. The watermark file and the checkpoint give the log's start and how far it was durable.
2. Segments must be contiguous. A sealed segment is opened by its index, or scanned if the index
   is missing or does not match.
3. The open segment is scanned. Bytes that are not a frame are the torn tail of the last write if
   nothing from there on was acknowledged: they are cut. Otherwise they are damage.
4. Producer state, transactions, positions of sources and digests are brought up to date from the
   log.

Acknowledged data is never cut: in doubt, recovery raises `Corrupt`.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise

from frazil.disk import File, read_checkpoint
from frazil.errors import Corrupt
from frazil.log.append import digest_of
from frazil.log.checkpoint import (
    DIGESTS_KIND,
    DIGESTS_VERSION,
    STATE_NAME,
    CheckpointState,
    PartitionFiles,
    load_index,
    load_sources,
    load_transactions,
)
from frazil.log.dedup.digests import Digest, DigestWindow, decode_digests
from frazil.log.dedup.producers import Producers
from frazil.log.dedup.source_positions import step_in
from frazil.log.format.batch import BatchHeader
from frazil.log.index import NO_TIME, SegmentInfo, SparseIndex
from frazil.log.partition_sources import PartitionSources
from frazil.log.partition_transactions import PartitionTransactions
from frazil.log.segment import (
    FLAG_DIGEST,
    FLAG_STEP,
    HEADER_BYTES,
    REPAIR_HINT,
    LogSegment,
    SegmentHeader,
    StoredBatch,
    acknowledged_after,
    base_offsets,
    decode_segment_header,
    segment_name,
    side_name,
    walk_batches,
)
from frazil.log.transactions.state import step_of
from frazil.log.view import SegmentView, batches_of
from frazil.log.watermarks import StoredWatermarks, WatermarkFile
from frazil.metrics import Counter

logger = logging.getLogger(__name__)

SCRATCH_SUFFIXES = (".tmp", ".cleaned", ".spare")

CUT = Counter("frazil.log.recovery.cut.bytes", "Bytes of torn, unacknowledged tails cut.")
REBUILT = Counter("frazil.log.recovery.rebuilt.files", "Side files rebuilt from the log.")


@dataclass(slots=True, kw_only=True)
class Recovered:
    """State from which a `Partition` starts."""

    start_offset: int
    end_offset: int
    saved_offset: int
    dropped_count: int
    sealed: list[SegmentView]
    active: LogSegment
    active_digests: list[Digest]
    producers: Producers
    transactions: PartitionTransactions
    sources: PartitionSources
    digests: DigestWindow
    watermarks: WatermarkFile
    digest_files: dict[str, int]
    exempt_offset: int = 0
    is_saved: bool = False
    """Whether the checkpoint has all of this."""
    cut_bytes: int = 0
    rebuilt: list[str] = field(default_factory=list)


def recover(files: PartitionFiles, now_ms: int, *, floor: int) -> Recovered:
    """Open and verify the partition's files. Raises `Corrupt` if acknowledged data is damaged.
    Without files the partition is new: the first append creates them.

    `floor` is the highest offset that subscribers or the lake have acknowledged.
    """
    disk, folder = files.disk, files.folder
    try:
        disk.sync_directory(folder)  # a killed process may not have synced its last file names
    except FileNotFoundError:
        raise _missing(folder, 0, max(floor, 1)) from None
    for name in disk.list(folder):
        if name.endswith(SCRATCH_SUFFIXES):
            disk.unlink(f"{folder}/{name}")
    watermarks, stored = WatermarkFile.open(disk, folder)
    with ExitStack() as undo:
        undo.callback(watermarks.close)
        recovered = _read_all(files, watermarks, stored, now_ms, floor)
        undo.pop_all()
        return recovered


def _read_all(
    files: PartitionFiles,
    watermarks: WatermarkFile,
    stored: StoredWatermarks,
    now_ms: int,
    floor: int,
) -> Recovered:
    """Read all files except the watermark file, which says what they must contain."""
    state = CheckpointState.load(files, now_ms)
    floor = max(floor, stored.durable_watermark, state.end_offset)
    start_offset, bases = _surviving_segments(files, stored, state, floor)

    sealed: list[SegmentView] = []
    rebuilt = [f"{files.folder}/{STATE_NAME}"] if state.is_damaged else []
    for base, next_base in pairwise(bases):
        view, was_rebuilt = _open_sealed(files, base, next_base, now_ms)
        sealed.append(view)
        rebuilt += [view.path] if was_rebuilt else []

    is_whole = start_offset == 0 and not any(view.header.is_rewritten for view in sealed)
    replay = _Replay(files, state, now_ms, is_whole=is_whole)
    replay.load_digests(sealed)
    replay.read_sealed(sealed)
    if bases:
        active, end_offset, cut_bytes = _open_active(
            files, bases[-1], now_ms, floor, replay, has_watermarks=stored.is_known
        )
    else:
        interval_bytes = files.config.index_interval_bytes
        active = LogSegment.planned(files.folder, files.new_header(0, now_ms), interval_bytes)
        end_offset = cut_bytes = 0
    replay.transactions.forget_below(start_offset)
    transactions = PartitionTransactions(files, replay.transactions)
    stable = transactions.stable_point(start_offset, end_offset)
    known = (stored.durable_watermark, stored.tail, stored.stable)
    if active.has_file and known != (end_offset, active.tail, stable):
        # Readers will see it, so it counts as acknowledged from now on.
        watermarks.durable(end_offset, active.tail, stable)
    if not stored.is_known and (active.has_file or watermarks.has_file):
        watermarks.trim(start_offset, stored.dropped_count)
    rebuilt += replay.rebuilt
    REBUILT.add(len(rebuilt))
    CUT.add(cut_bytes)
    return Recovered(
        start_offset=start_offset,
        end_offset=end_offset,
        saved_offset=state.end_offset,
        dropped_count=stored.dropped_count,
        sealed=sealed,
        active=active,
        active_digests=replay.active_digests,
        producers=state.producers,
        transactions=transactions,
        sources=PartitionSources(files, replay.sources),
        digests=replay.window,
        watermarks=watermarks,
        digest_files=replay.trimmed_files,
        exempt_offset=stored.exempt_offset,
        is_saved=(
            state.is_known
            and state.start_offset == start_offset
            and replay.from_offset >= end_offset
        ),
        cut_bytes=cut_bytes,
        rebuilt=rebuilt,
    )


def _surviving_segments(
    files: PartitionFiles,
    stored: StoredWatermarks,
    state: CheckpointState,
    floor: int,
) -> tuple[int, list[int]]:
    """Return the log's start offset and the base offsets of its segments; none if nothing was ever
    appended."""
    disk, folder = files.disk, files.folder
    names = disk.list(folder)
    bases = base_offsets(names, ".log")
    start_offset = max(stored.start_offset, state.start_offset)
    if not bases:
        if max(floor, start_offset) > 0 or base_offsets(names, ".index"):
            raise _missing(folder, start_offset, max(floor, start_offset + 1))
        return 0, []
    if not stored.is_known and not state.is_known and bases[0] > 0:
        raise Corrupt(
            path=folder,
            position=0,
            expected="a watermark file or checkpoint with the log's start offset",
            found=f"neither, and a first segment at offset {bases[0]}",
            hint=REPAIR_HINT,
        )
    for base in merged_segments(files, bases):  # finish an interrupted merge
        bases.remove(base)
        for name in (segment_name(base), side_name(base, ".index")):
            if name in names:
                disk.unlink(f"{folder}/{name}")
    while len(bases) > 1 and bases[1] <= start_offset:  # finish an interrupted trim
        disk.unlink(f"{folder}/{segment_name(bases.pop(0))}")
    if bases[0] > start_offset:
        raise _missing(folder, start_offset, bases[0])
    for base in base_offsets(disk.list(folder), ".index"):
        if base < bases[0]:
            disk.unlink(f"{folder}/{side_name(base, '.index')}")
    # Only sealed segments have an index: if the last one has, its successor is missing.
    if (sealed := load_index(files, bases[-1])) is not None:
        end_offset = sealed[1].end_offset
        raise _missing(folder, end_offset, max(floor, end_offset + 1))
    return start_offset, bases


def merged_segments(files: PartitionFiles, bases: list[int]) -> list[int]:
    """Return the segments whose batches were merged into a rewritten segment before them."""
    merged_end, merged = 0, []
    for base in bases:
        if base < merged_end:
            merged.append(base)
            continue
        path = f"{files.folder}/{segment_name(base)}"
        file = files.disk.open(path)
        try:
            header = _own_header(files, file.read(0, HEADER_BYTES), path, base)
        except Corrupt:
            continue  # raised again when the segment is opened
        finally:
            file.close()
        if header.is_rewritten:
            merged_end = header.sealed_end_offset
    return merged


def _missing(folder: str, begin: int, end: int) -> Corrupt:
    return Corrupt(
        path=folder,
        position=0,
        expected=f"offsets {begin} to {end}",
        found="no file that holds them",
        hint=REPAIR_HINT,
    )


def _open_sealed(
    files: PartitionFiles, base: int, next_base: int, now_ms: int
) -> tuple[SegmentView, bool]:
    """Open a sealed segment by its index, or scan it. Returns the view and whether it was scanned.

    Raises `Corrupt` unless it ends at `next_base`.
    """
    path = f"{files.folder}/{segment_name(base)}"
    file = files.disk.open(path)
    try:
        size = file.size()
        header = _own_header(files, file.read(0, HEADER_BYTES), path, base)
        stored = load_index(files, base)
        if stored is not None:
            salt, info, index = stored
            indexed = (salt, info.base_offset, info.end_offset, info.size_bytes)
            if indexed == (header.salt, base, next_base, size):
                if info.sealed_ms > now_ms:  # the wall clock was wrong then, or is now
                    info = info._replace(sealed_ms=now_ms)
                return SegmentView(path=path, header=header, info=info, sparse=index), False
        index = SparseIndex(files.config.index_interval_bytes)
        offset, position, max_timestamp, digest_count = base, HEADER_BYTES, NO_TIME, 0
        for batch in walk_batches(file, header, HEADER_BYTES, size, base):
            index.add(batch.base_offset, batch.position, max_timestamp)
            max_timestamp = max(max_timestamp, batch.header.max_timestamp_ms)
            offset, position = batch.end_offset, batch.end
            digest_count += batch.flags & FLAG_DIGEST
    finally:
        file.close()
    if header.is_rewritten and (header.sealed_bytes, header.sealed_end_offset) == (size, next_base):
        offset = next_base if position == size else offset
    if offset != next_base:
        raise Corrupt(
            path=path,
            position=position,
            expected=f"a batch at offset {offset}, before the next segment at {next_base}",
            found="other bytes" if position < size else "the end of the file",
            hint=REPAIR_HINT,
        )
    info = SegmentInfo(
        base_offset=base,
        end_offset=next_base,
        size_bytes=position,
        max_timestamp_ms=max_timestamp,
        sealed_ms=now_ms,
        digest_count=digest_count,
    )
    return SegmentView(path=path, header=header, info=info, sparse=index), True


def _own_header(files: PartitionFiles, data: bytes, path: str, base: int) -> SegmentHeader:
    """Decode a header. Raises `Corrupt` unless it belongs to this partition and offset."""
    header = decode_segment_header(data, path)
    if (header.identity, header.base_offset) != (files.identity, base):
        raise Corrupt(
            path=path,
            position=0,
            expected=f"the segment of this partition at offset {base}",
            found=f"one of another partition or at offset {header.base_offset}",
            hint=REPAIR_HINT,
        )
    return header


def _open_active(
    files: PartitionFiles,
    base: int,
    now_ms: int,
    floor: int,
    replay: _Replay,
    *,
    has_watermarks: bool,
) -> tuple[LogSegment, int, int]:
    """Open and scan the last segment. Returns it, the end offset and the bytes cut."""
    opened = _open_whole_header(files, base, floor)
    if opened is None:
        if floor > base:
            raise _missing(files.folder, base, floor)
        new = files.new_header(base, now_ms)
        interval_bytes = files.config.index_interval_bytes
        return LogSegment.create(files.disk, files.folder, new, interval_bytes), base, 0
    file, header = opened
    index = SparseIndex(files.config.index_interval_bytes)
    path = f"{files.folder}/{segment_name(base)}"
    segment = LogSegment(file, path, header, index, HEADER_BYTES)
    with ExitStack() as undo:
        undo.callback(file.close)
        offset, cut_bytes = _read_active(segment, floor, replay, has_watermarks)
        undo.pop_all()
        return segment, offset, cut_bytes


def _open_whole_header(
    files: PartitionFiles, base: int, floor: int
) -> tuple[File, SegmentHeader] | None:
    """Open the last segment's file; None if it was never created or its creation was torn."""
    path = f"{files.folder}/{segment_name(base)}"
    try:
        file = files.disk.open(path, "edit")
    except FileNotFoundError:
        return None
    try:
        return file, _own_header(files, file.read(0, HEADER_BYTES), path, base)
    except Corrupt:
        size = file.size()
        file.close()
        if size > HEADER_BYTES or floor > base:
            raise
        files.disk.unlink(path)  # nothing in it was acknowledged
        return None


def _read_active(
    segment: LogSegment, floor: int, replay: _Replay, has_watermarks: bool
) -> tuple[int, int]:
    """Scan the last segment and cut a torn tail. Returns the end offset and the bytes cut."""
    file, header, offset = segment.file, segment.header, segment.base_offset
    file.settle()  # page cache left by kill -9 must be durable before it is served
    size = file.size()
    for batch in walk_batches(file, header, HEADER_BYTES, size, offset):
        batch_header = batch.header
        segment.add_to_index(batch.base_offset, batch.position, batch_header.max_timestamp_ms)
        replay.take(batch, batch_header, is_active=True)
        offset, segment.size_bytes = batch.end_offset, batch.end
    cut_bytes = size - segment.size_bytes
    acknowledged = max(floor, acknowledged_after(file, header, segment.size_bytes, size))
    if acknowledged > offset or (cut_bytes and not has_watermarks):
        limit = str(acknowledged) if acknowledged > offset else "the lost watermark"
        raise Corrupt(
            path=segment.path,
            position=segment.size_bytes,
            expected=f"a batch at offset {offset}; everything below {limit} was acknowledged",
            found="other bytes" if cut_bytes else "the end of the file",
            hint=REPAIR_HINT,
        )
    if cut_bytes:
        logger.info("log tail cut", extra={"path": segment.path, "bytes": cut_bytes})
        segment.truncate(segment.size_bytes)
    return offset, cut_bytes


class _Replay:
    """Brings producer state, transactions, positions of sources and digests up to date while
    segments are read."""

    def __init__(
        self, files: PartitionFiles, state: CheckpointState, now_ms: int, *, is_whole: bool
    ) -> None:
        self._files = files
        self._now_ms = now_ms
        self._producers = state.producers
        self._from_offset = state.end_offset
        self.transactions, self._transactions_from = load_transactions(files, state.end_offset)
        self.sources, self._sources_from = load_sources(files, state.end_offset, is_whole=is_whole)
        self.window = DigestWindow(
            window_ms=files.config.digest_window_ms, count_max=files.config.digest_count_max
        )
        self.active_digests: list[Digest] = []
        self.trimmed_files: dict[str, int] = {}
        self.rebuilt: list[str] = []

    @property
    def from_offset(self) -> int:
        """Where the oldest checkpoint ends."""
        return min(self._from_offset, self._transactions_from, self._sources_from)

    def take(self, batch: StoredBatch, header: BatchHeader, *, is_active: bool) -> None:
        if batch.base_offset >= self._from_offset and header.has_producer:
            self._producers.remember(header, batch.base_offset, self._now_ms)
        if batch.base_offset >= self._transactions_from:
            step = step_of(header, batch.base_offset, batch.payload)
            if step is not None:
                self.transactions.apply(step)
        if batch.flags & FLAG_STEP and batch.base_offset >= self._sources_from:
            copied = step_in(batch.records())
            if copied is not None:
                self.sources.remember(copied, batch.base_offset, batch.end_offset)
        if is_active and batch.flags & FLAG_DIGEST:
            digest = digest_of(batch.records())
            if digest is not None:
                self.window.add(digest, batch.base_offset, self._now_ms)
                self.active_digests.append((digest, batch.base_offset))

    def load_digests(self, sealed: list[SegmentView]) -> None:
        """Load the digests of sealed segments, including trimmed ones.

        All count as seen now, so that a clock change between two runs expires none early.
        """
        disk, folder = self._files.disk, self._files.folder
        views = {view.info.base_offset: view for view in sealed}
        stored = base_offsets(disk.list(folder), ".digests")
        expected = [base for base, view in views.items() if view.info.digest_count]
        for base in sorted({*stored, *expected}):
            path = f"{folder}/{side_name(base, '.digests')}"
            view = views.get(base)
            if view is None:
                self.trimmed_files[path] = self._now_ms
            for digest, offset in self._digests_of(path, view):
                self.window.add(digest, offset, self._now_ms)

    def _digests_of(self, path: str, view: SegmentView | None) -> list[Digest]:
        hint = "It is rebuilt from the log if its segment still exists."
        try:
            body = read_checkpoint(self._files.disk, path, DIGESTS_KIND, DIGESTS_VERSION, hint)
            if body is not None:
                return decode_digests(body)
        except Corrupt as damage:
            logger.warning("request digests are damaged", extra={"reason": str(damage)})
        self.rebuilt.append(path)
        if view is None:
            return []  # the segment is trimmed: these digests are lost before their window ends
        return digests_in(self._files, view)

    def read_sealed(self, sealed: list[SegmentView]) -> None:
        """Replay sealed segments that the checkpoints do not cover."""
        for view in sealed:
            if view.info.end_offset > self.from_offset:
                for batch in batches_of(self._files.disk, view):
                    self.take(batch, batch.header, is_active=False)


def digests_in(files: PartitionFiles, view: SegmentView) -> list[Digest]:
    """Read the digests of a sealed segment from its batches."""
    return [
        (digest, batch.base_offset)
        for batch in batches_of(files.disk, view)
        if batch.flags & FLAG_DIGEST and (digest := digest_of(batch.records()))
    ]
