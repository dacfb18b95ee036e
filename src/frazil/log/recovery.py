"""Opening a partition after a crash: what is kept, what is cut, and when to stop.

1. The marks and the checkpoint say where the log begins and how far it was durable.
2. Segments must follow each other without a hole; sealed ones are taken by their index, or read
   through where the index is missing or wrong.
3. The open segment is read through. Bytes that are no frame are the torn end of the last write
   when nothing behind or beside them was promised: cut. Otherwise they are damage: stop, say where.
4. Producer state and digests are brought up to date from the log itself.

Nothing that was acknowledged is ever cut: when in doubt this raises `Corrupt`.
"""

from __future__ import annotations

import logging
import struct
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise

from frazil.disk import SALT_BYTES, Disk, File, read_checkpoint, write_checkpoint
from frazil.errors import Corrupt
from frazil.log.append import digest_of
from frazil.log.config import LogConfig
from frazil.log.dedup.digests import Digest, DigestWindow, decode_digests, encode_digests
from frazil.log.dedup.producers import Producers
from frazil.log.format.batch import BatchHeader
from frazil.log.index import (
    INDEX_KIND,
    INDEX_VERSION,
    NO_TIME,
    SegmentInfo,
    SparseIndex,
    decode_index,
    encode_index,
)
from frazil.log.segment import (
    FLAG_DIGEST,
    HEADER_BYTES,
    REPAIR_HINT,
    LogSegment,
    SegmentHeader,
    StoredBatch,
    base_offsets,
    decode_segment_header,
    promised_after,
    segment_name,
    side_name,
    walk_batches,
)
from frazil.log.view import SegmentView, batches_of
from frazil.log.watermarks import StoredWatermarks, WatermarkFile
from frazil.metrics import Counter
from frazil.model import Rand

logger = logging.getLogger(__name__)

STATE_NAME = "partition.ckpt"
STATE_KIND = b"PART"
STATE_VERSION = 1
STATE = struct.Struct("<QQ")
DIGESTS_KIND = b"DGST"
DIGESTS_VERSION = 1
SCRATCH_SUFFIXES = (".tmp", ".cleaned", ".spare")
DERIVED_HINT = "It is rebuilt from the log."

CUT = Counter("frazil.log.recovery.cut.bytes", "Bytes of torn, never acknowledged tails cut.")
REBUILT = Counter("frazil.log.recovery.rebuilt.files", "Side files rebuilt from the log.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFolder:
    """Which partition, where, and by which rules."""

    disk: Disk
    folder: str
    identity: int
    config: LogConfig
    rand: Rand

    def new_header(self, base_offset: int, now_ms: int) -> SegmentHeader:
        return SegmentHeader(
            identity=self.identity,
            salt=self.rand.randbytes(SALT_BYTES),
            base_offset=base_offset,
            created_ms=now_ms,
        )


@dataclass(slots=True, kw_only=True)
class Recovered:
    """All a `Partition` starts from."""

    start_offset: int
    end_offset: int
    saved_offset: int
    dropped_count: int
    sealed: list[SegmentView]
    active: LogSegment
    active_digests: list[Digest]
    producers: Producers
    digests: DigestWindow
    marks: WatermarkFile
    digest_files: dict[str, int]
    cut_bytes: int = 0
    rebuilt: list[str] = field(default_factory=list)


def recover(place: PartitionFolder, now_ms: int, *, floor: int, may_create: bool) -> Recovered:
    """Open the partition's files and prove them whole, or raise `Corrupt`.

    `floor` is the highest offset anyone outside is known to have been promised.
    """
    disk, folder = place.disk, place.folder
    try:
        disk.sync_directory(folder)  # a killed process may have given names and not synced them
    except FileNotFoundError:
        raise _missing(folder, 0, max(floor, 1)) from None
    for name in disk.list(folder):
        if name.endswith(SCRATCH_SUFFIXES):
            disk.unlink(f"{folder}/{name}")
    marks, promise = WatermarkFile.open(disk, folder)
    with ExitStack() as undo:
        undo.callback(marks.close)
        found = _read_all(place, marks, promise, now_ms, floor, may_create=may_create)
        undo.pop_all()
        return found


def _read_all(
    place: PartitionFolder,
    marks: WatermarkFile,
    promise: StoredWatermarks,
    now_ms: int,
    floor: int,
    *,
    may_create: bool,
) -> Recovered:
    """Everything but the marks, which say what must be there."""
    state = CheckpointState.load(place, now_ms)
    floor = max(floor, promise.durable_watermark, state.end_offset)
    start_offset, bases = _surviving_segments(place, promise, state, floor, may_create)

    sealed: list[SegmentView] = []
    rebuilt = [f"{place.folder}/{STATE_NAME}"] if state.is_damaged else []
    for base, following in pairwise(bases):
        view, was_rebuilt = _open_sealed(place, base, following, now_ms)
        sealed.append(view)
        rebuilt += [view.path] if was_rebuilt else []

    replay = _Replay(place, state, now_ms)
    replay.load_digests(sealed)
    replay.read_sealed(sealed)
    active, end_offset, cut_bytes = _open_active(
        place, bases[-1], now_ms, floor, replay, is_promise_known=promise.is_known
    )
    marks.durable(end_offset)  # readers will see it: from now on it is promised
    if not promise.is_known:
        marks.trim(start_offset, promise.dropped_count)
    rebuilt += replay.rebuilt
    REBUILT.add(len(rebuilt))
    CUT.add(cut_bytes)
    return Recovered(
        start_offset=start_offset,
        end_offset=end_offset,
        saved_offset=state.end_offset,
        dropped_count=promise.dropped_count,
        sealed=sealed,
        active=active,
        active_digests=replay.active_digests,
        producers=state.producers,
        digests=replay.window,
        marks=marks,
        digest_files=replay.trimmed_files,
        cut_bytes=cut_bytes,
        rebuilt=rebuilt,
    )


@dataclass(slots=True, kw_only=True)
class CheckpointState:
    """What `partition.ckpt` says; all zero where it says nothing."""

    start_offset: int = 0
    end_offset: int = 0
    producers: Producers
    is_known: bool = False
    is_damaged: bool = False

    @classmethod
    def load(cls, place: PartitionFolder, now_ms: int) -> CheckpointState:
        path = f"{place.folder}/{STATE_NAME}"
        try:
            body = read_checkpoint(place.disk, path, STATE_KIND, STATE_VERSION, DERIVED_HINT)
        except Corrupt as damage:
            logger.warning("producer state is rebuilt", extra={"reason": str(damage)})
            return cls(producers=Producers(), is_damaged=True)
        if body is None:
            return cls(producers=Producers())
        start, end = STATE.unpack_from(body)
        producers = Producers.decode(body[STATE.size :], now_ms)
        return cls(start_offset=start, end_offset=end, producers=producers, is_known=True)


def save_state(
    place: PartitionFolder, start_offset: int, end_offset: int, producers: Producers
) -> None:
    """Write `partition.ckpt`: shortens the next recovery, and remembers trimmed producers."""
    body = STATE.pack(start_offset, end_offset) + producers.encode()
    path = f"{place.folder}/{STATE_NAME}"
    write_checkpoint(place.disk, path, STATE_KIND, STATE_VERSION, body)


def save_index(place: PartitionFolder, salt: bytes, facts: SegmentInfo, index: SparseIndex) -> None:
    path = f"{place.folder}/{side_name(facts.base_offset, '.index')}"
    body = encode_index(salt, facts, index)
    write_checkpoint(place.disk, path, INDEX_KIND, INDEX_VERSION, body)


def save_digests(place: PartitionFolder, base_offset: int, entries: list[Digest]) -> None:
    path = f"{place.folder}/{side_name(base_offset, '.digests')}"
    write_checkpoint(place.disk, path, DIGESTS_KIND, DIGESTS_VERSION, encode_digests(entries))


def _surviving_segments(
    place: PartitionFolder,
    promise: StoredWatermarks,
    state: CheckpointState,
    floor: int,
    may_create: bool,
) -> tuple[int, list[int]]:
    """Where the log begins and the base offsets of its segments; at least one is there after."""
    disk, folder = place.disk, place.folder
    names = disk.list(folder)
    bases = base_offsets(names, ".log")
    start_offset = max(promise.start_offset, state.start_offset)
    if not bases:
        if floor > 0 or not may_create:
            raise _missing(folder, start_offset, max(floor, start_offset + 1))
        return start_offset, [start_offset]
    if not promise.is_known and not state.is_known and bases[0] > 0:
        raise Corrupt(
            path=folder,
            position=0,
            expected="marks or a checkpoint that say where the log begins",
            found=f"neither, and a first segment at offset {bases[0]}",
            hint=REPAIR_HINT,
        )
    for base in merged_away(place, bases):  # finish a merge that was cut short
        bases.remove(base)
        for name in (segment_name(base), side_name(base, ".index")):
            if name in names:
                disk.unlink(f"{folder}/{name}")
    while len(bases) > 1 and bases[1] <= start_offset:  # finish a trim that was cut short
        disk.unlink(f"{folder}/{segment_name(bases.pop(0))}")
    if bases[0] > start_offset:
        raise _missing(folder, start_offset, bases[0])
    for base in base_offsets(disk.list(folder), ".index"):
        if base < bases[0]:
            disk.unlink(f"{folder}/{side_name(base, '.index')}")
    if (sealed := _load_index(place, bases[-1])) is not None:  # then another one followed it
        end_offset = sealed[1].end_offset
        raise _missing(folder, end_offset, max(floor, end_offset + 1))
    return start_offset, bases


def merged_away(place: PartitionFolder, bases: list[int]) -> list[int]:
    """Segments that a rewritten one before them reaches over: what was left of them is in it."""
    reach, found = 0, []
    for base in bases:
        if base < reach:
            found.append(base)
            continue
        path = f"{place.folder}/{segment_name(base)}"
        file = place.disk.open(path)
        try:
            header = _own_header(place, file.read(0, HEADER_BYTES), path, base)
        except Corrupt:
            continue  # said by whoever opens it
        finally:
            file.close()
        if header.is_rewritten:
            reach = header.sealed_end_offset
    return found


def _missing(folder: str, begin: int, end: int) -> Corrupt:
    return Corrupt(
        path=folder,
        position=0,
        expected=f"offsets {begin} to {end}",
        found="no file that holds them",
        hint=REPAIR_HINT,
    )


def _open_sealed(
    place: PartitionFolder, base: int, following: int, now_ms: int
) -> tuple[SegmentView, bool]:
    """One sealed segment by its index, or read through; it must reach to the following one."""
    path = f"{place.folder}/{segment_name(base)}"
    file = place.disk.open(path)
    try:
        size = file.size()
        header = _own_header(place, file.read(0, HEADER_BYTES), path, base)
        known = _load_index(place, base)
        if known is not None:
            salt, facts, index = known
            about = (salt, facts.base_offset, facts.end_offset, facts.size_bytes)
            if about == (header.salt, base, following, size):
                if facts.sealed_ms > now_ms:  # the clock was wrong then, or is now
                    facts = facts._replace(sealed_ms=now_ms)
                return SegmentView(path=path, header=header, facts=facts, sparse=index), False
        index = SparseIndex(place.config.index_interval_bytes)
        offset, position, max_timestamp, digest_count = base, HEADER_BYTES, NO_TIME, 0
        for batch in walk_batches(file, header, HEADER_BYTES, size, base):
            index.note(batch.base_offset, batch.position, max_timestamp)
            max_timestamp = max(max_timestamp, batch.header.max_timestamp_ms)
            offset, position = batch.end_offset, batch.end
            digest_count += batch.flags & FLAG_DIGEST
    finally:
        file.close()
    if header.is_rewritten and (header.sealed_bytes, header.sealed_end_offset) == (size, following):
        offset = following if position == size else offset
    if offset != following:
        raise Corrupt(
            path=path,
            position=position,
            expected=f"a batch at offset {offset}, before the next segment at {following}",
            found="bytes that are no such batch" if position < size else "the end of the file",
            hint=REPAIR_HINT,
        )
    facts = SegmentInfo(
        base_offset=base,
        end_offset=following,
        size_bytes=position,
        max_timestamp_ms=max_timestamp,
        sealed_ms=now_ms,
        digest_count=digest_count,
    )
    return SegmentView(path=path, header=header, facts=facts, sparse=index), True


def _own_header(place: PartitionFolder, data: bytes, path: str, base: int) -> SegmentHeader:
    """The header of a segment that must be this partition's, at this offset."""
    header = decode_segment_header(data, path)
    if (header.identity, header.base_offset) != (place.identity, base):
        raise Corrupt(
            path=path,
            position=0,
            expected=f"the segment of this partition at offset {base}",
            found=f"one of another partition or at offset {header.base_offset}",
            hint=REPAIR_HINT,
        )
    return header


def _load_index(place: PartitionFolder, base: int) -> tuple[bytes, SegmentInfo, SparseIndex] | None:
    path = f"{place.folder}/{side_name(base, '.index')}"
    try:
        body = read_checkpoint(place.disk, path, INDEX_KIND, INDEX_VERSION, DERIVED_HINT)
    except Corrupt as damage:
        logger.warning("log index is rebuilt", extra={"reason": str(damage)})
        return None
    return decode_index(body, place.config.index_interval_bytes) if body is not None else None


def _open_active(
    place: PartitionFolder,
    base: int,
    now_ms: int,
    floor: int,
    replay: _Replay,
    *,
    is_promise_known: bool,
) -> tuple[LogSegment, int, int]:
    """The open segment, read through: (segment, end offset, bytes cut from a torn tail)."""
    opened = _open_whole_header(place, base, floor)
    if opened is None:
        if floor > base:
            raise _missing(place.folder, base, floor)
        new = place.new_header(base, now_ms)
        interval_bytes = place.config.index_interval_bytes
        return LogSegment.create(place.disk, place.folder, new, interval_bytes), base, 0
    file, header = opened
    index = SparseIndex(place.config.index_interval_bytes)
    path = f"{place.folder}/{segment_name(base)}"
    segment = LogSegment(file, path, header, index, HEADER_BYTES)
    with ExitStack() as undo:
        undo.callback(file.close)
        offset, cut_bytes = _read_active(segment, floor, replay, is_promise_known)
        undo.pop_all()
        return segment, offset, cut_bytes


def _open_whole_header(
    place: PartitionFolder, base: int, floor: int
) -> tuple[File, SegmentHeader] | None:
    """The open segment's file; None where it was never made, or torn while it was made."""
    path = f"{place.folder}/{segment_name(base)}"
    try:
        file = place.disk.open(path, "edit")
    except FileNotFoundError:
        return None
    try:
        return file, _own_header(place, file.read(0, HEADER_BYTES), path, base)
    except Corrupt:
        size = file.size()
        file.close()
        if size > HEADER_BYTES or floor > base:
            raise
        place.disk.unlink(path)  # nothing was ever acknowledged in it
        return None


def _read_active(
    segment: LogSegment, floor: int, replay: _Replay, is_promise_known: bool
) -> tuple[int, int]:
    """Read the open segment through and cut a torn tail: (end offset, bytes cut)."""
    file, header, offset = segment.file, segment.header, segment.base_offset
    file.settle()  # what kill -9 left in the cache becomes durable before it is served
    size = file.size()
    for batch in walk_batches(file, header, HEADER_BYTES, size, offset):
        batch_header = batch.header
        segment.note(batch.base_offset, batch.position, batch_header.max_timestamp_ms)
        replay.take(batch, batch_header, is_active=True)
        offset, segment.size_bytes = batch.end_offset, batch.end
    cut_bytes = size - segment.size_bytes
    promised = max(floor, promised_after(file, header, segment.size_bytes, size))
    if promised > offset or (cut_bytes and not is_promise_known):
        limit = str(promised) if promised > offset else "the lost marks"
        raise Corrupt(
            path=segment.path,
            position=segment.size_bytes,
            expected=f"a batch at offset {offset}; all below {limit} was acknowledged",
            found="bytes that are no such batch" if cut_bytes else "the end of the file",
            hint=REPAIR_HINT,
        )
    if cut_bytes:
        logger.info("log tail cut", extra={"path": segment.path, "bytes": cut_bytes})
        segment.truncate(segment.size_bytes)
    return offset, cut_bytes


class _Replay:
    """Brings producer state and digests up to date while segments are read."""

    def __init__(self, place: PartitionFolder, state: CheckpointState, now_ms: int) -> None:
        self._place = place
        self._now_ms = now_ms
        self._producers = state.producers
        self._from_offset = state.end_offset
        self.window = DigestWindow(
            window_ms=place.config.digest_window_ms, count_max=place.config.digest_count_max
        )
        self.active_digests: list[Digest] = []
        self.trimmed_files: dict[str, int] = {}
        self.rebuilt: list[str] = []

    def take(self, batch: StoredBatch, header: BatchHeader, *, is_active: bool) -> None:
        if batch.base_offset >= self._from_offset and header.has_producer:
            self._producers.remember(header, batch.base_offset, self._now_ms)
        if is_active and batch.flags & FLAG_DIGEST:
            digest = digest_of(batch.records())
            if digest is not None:
                self.window.add(digest, batch.base_offset, self._now_ms)
                self.active_digests.append((digest, batch.base_offset))

    def load_digests(self, sealed: list[SegmentView]) -> None:
        """Remembered digests of sealed segments, also of ones already trimmed away.

        All count as seen now: a clock that was set between two lives forgets nothing early.
        """
        disk, folder = self._place.disk, self._place.folder
        views = {view.facts.base_offset: view for view in sealed}
        stored = base_offsets(disk.list(folder), ".digests")
        wanted = [base for base, view in views.items() if view.facts.digest_count]
        for base in sorted({*stored, *wanted}):
            path = f"{folder}/{side_name(base, '.digests')}"
            view = views.get(base)
            if view is None:
                self.trimmed_files[path] = self._now_ms
            for digest, offset in self._digests_of(path, view):
                self.window.add(digest, offset, self._now_ms)

    def _digests_of(self, path: str, view: SegmentView | None) -> list[Digest]:
        hint = "It is read anew from the log where the log still has it."
        try:
            body = read_checkpoint(self._place.disk, path, DIGESTS_KIND, DIGESTS_VERSION, hint)
            if body is not None:
                return decode_digests(body)
        except Corrupt as damage:
            logger.warning("request digests are damaged", extra={"reason": str(damage)})
        self.rebuilt.append(path)
        if view is None:
            return []  # its segment is gone: these requests are forgotten before their time
        return digests_in(self._place, view)

    def read_sealed(self, sealed: list[SegmentView]) -> None:
        """Producers of sealed segments the checkpoint does not cover."""
        for view in sealed:
            if view.facts.end_offset > self._from_offset:
                for batch in batches_of(self._place.disk, view):
                    self.take(batch, batch.header, is_active=False)


def digests_in(place: PartitionFolder, view: SegmentView) -> list[Digest]:
    """The digests a sealed segment carries, read from its batches."""
    return [
        (digest, batch.base_offset)
        for batch in batches_of(place.disk, view)
        if batch.flags & FLAG_DIGEST and (digest := digest_of(batch.records()))
    ]
