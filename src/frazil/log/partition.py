"""Partition: one ordered log. Batches are appended in groups; readers follow through views.

A group takes four calls. Their order makes an acknowledged batch durable:

    stage     assign each batch its offset; refuse what cannot be appended
    write     write all bytes; on a full disk the whole group is undone
    sync      one fdatasync; a failure ends the process and is never retried
    publish   advance the durable watermark, show the batches to readers

Requests are acknowledged only after `publish`.
"""

from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Sequence
from typing import NamedTuple

from frazil.disk import HEAD_BYTES, Budget, Buffer, Disk, frame_header, is_full
from frazil.log.append import Append, AppendResult
from frazil.log.checkpoint import (
    PartitionFiles,
    save_digests,
    save_index,
    save_state,
)
from frazil.log.dedup.digests import Digest
from frazil.log.dedup.producers import Producer
from frazil.log.index import SegmentInfo
from frazil.log.recovery import Recovered, digests_in, recover
from frazil.log.segment import (
    FLAG_DIGEST,
    HEADER_BYTES,
    LogSegment,
    identity_of,
    side_name,
)
from frazil.log.transactions.state import TransactionStep, step_of
from frazil.log.view import PartitionView, SegmentView
from frazil.log.watermarks import StablePoint
from frazil.metrics import Counter
from frazil.model import Rand, SteadyTime
from frazil.settings import LogConfig

logger = logging.getLogger(__name__)

SPARES_MAX = 4
"""Trimmed files kept for reuse; at 256 MB/s one maintenance round per second finds that many."""
LEADER_EPOCH = 0
"""The only leader epoch; Kafka clients expect one."""
STAMP = struct.Struct(">q4si")
"""The bytes of a record batch that the log fills in: base offset, length, leader epoch."""

APPENDED = Counter("frazil.log.appended.batches", "Batches made durable.")
APPENDED_BYTES = Counter("frazil.log.appended.bytes", "Bytes made durable, frames included.")
DUPLICATES = Counter(
    "frazil.log.duplicate.batches", "Duplicate batches, answered with their first offset."
)
ROLLED = Counter("frazil.log.rolled.segments", "Log segments sealed.")
SIDE_FILES_SKIPPED = Counter(
    "frazil.log.side_files.skipped", "Side files not written because the disk was full."
)


class _Staged(NamedTuple):
    position: int
    base_offset: int
    max_timestamp_ms: int
    digest: bytes | None
    producer_id: int | None
    producer_before: Producer | None
    transaction_step: TransactionStep | None


class Partition:
    """Owned by the writer thread; `view` may be read, and readers opened, from any thread.

    `swap` is held while a file is renamed together with the view, and while a reader opens a file
    of the view. No bytes are read or written under it.
    """

    def __init__(
        self,
        topic: str,
        index: int,
        files: PartitionFiles,
        time: SteadyTime,
        budget: Budget,
        recovered: Recovered,
    ) -> None:
        self.topic = topic
        self.index = index
        self.files = files
        self.recovered_cut_bytes = recovered.cut_bytes
        self.recovered_rebuilt = tuple(recovered.rebuilt)
        self.dropped_count = recovered.dropped_count
        self.producers = recovered.producers
        self.transactions = recovered.transactions
        self._time = time
        self._budget = budget
        self._start_offset = recovered.start_offset
        self._saved_offset = recovered.saved_offset
        self._durable_watermark = recovered.end_offset
        self._next_offset = recovered.end_offset
        self._sealed = tuple(recovered.sealed)
        self._active = recovered.active
        self._active_since_ms = time.now_ms()
        self._active_digests = recovered.active_digests
        self._digests = recovered.digests
        self._digest_files = recovered.digest_files
        self._watermarks = recovered.watermarks
        self._spares: list[tuple[str, int]] = []
        self._staged: list[_Staged] = []
        self._buffers: list[Buffer] = []
        self._staged_bytes = 0
        self.swap = threading.Lock()
        self.view = self._current_view()
        budget.take(self.view.size_bytes)

    @classmethod
    def open(
        cls,
        disk: Disk,
        folder: str,
        topic: str,
        index: int,
        config: LogConfig,
        *,
        time: SteadyTime,
        rand: Rand,
        budget: Budget,
        floor: int = 0,
        may_create: bool = False,
    ) -> Partition:
        """Recover the partition in `folder`. Raises `Corrupt` rather than lose data."""
        files = PartitionFiles(
            disk=disk,
            folder=folder,
            identity=identity_of(topic, index),
            config=config,
            rand=rand,
        )
        recovered = recover(files, time.now_ms(), floor=floor, may_create=may_create)
        return cls(topic, index, files, time, budget, recovered)

    @property
    def disk(self) -> Disk:
        return self.files.disk

    def current_view(self, *, is_stale: bool = False, is_indexed: bool = False) -> PartitionView:
        """Return the view: the owner's is never stale, and its indexes are complete."""
        return self.view

    @property
    def durable_watermark(self) -> int:
        return self._durable_watermark

    def stage(self, append: Append) -> AppendResult:
        """Assign a batch its offset. Raises subclasses of `Rejected` and then changes nothing."""
        header = append.header
        duplicate = self._find_duplicate(append)
        if duplicate is not None:
            return duplicate
        base_offset = self._next_offset
        position = self._active.size_bytes + self._staged_bytes
        self._stage_bytes(append, base_offset)
        before = None
        now_ms = self._time.now_ms()
        if header.has_producer:
            before = self.producers.remember(header, base_offset, now_ms)
        if append.digest is not None:
            self._digests.add(append.digest, base_offset, now_ms)
        self._staged.append(
            _Staged(
                position,
                base_offset,
                header.max_timestamp_ms,
                append.digest,
                header.producer_id if header.has_producer else None,
                before,
                step_of(header, base_offset, append.payload) if header.is_transactional else None,
            )
        )
        self._next_offset += header.last_offset_delta + 1
        return AppendResult(base_offset, self._next_offset, False)

    def _find_duplicate(self, append: Append) -> AppendResult | None:
        if append.header.has_producer:
            past = self.producers.find_duplicate(append.header)
            if past is not None:
                DUPLICATES.add(by="producer")
                return AppendResult(past.base_offset, past.end_offset, True)
        if append.digest is not None:
            self._digests.expire(self._time.now_ms())
            offset = self._digests.find(append.digest)
            if offset is not None:
                DUPLICATES.add(by="digest")
                return AppendResult(offset, offset + append.header.last_offset_delta + 1, True)
        return None

    def _stage_bytes(self, append: Append, base_offset: int) -> None:
        """Queue frame header and payload without copying the payload."""
        first = append.parts[0]
        stamp = STAMP.pack(base_offset, bytes(first[8:12]), LEADER_EPOCH)
        if len(first) < HEAD_BYTES:
            first = append.payload
        head = stamp + first[STAMP.size : HEAD_BYTES]
        frame = frame_header(
            head,
            append.size_bytes,
            base_offset,
            self._durable_watermark,
            FLAG_DIGEST if append.digest is not None else 0,
            self._active.header.salt,
        )
        self._buffers += (frame + head, memoryview(first)[HEAD_BYTES:])
        if first is append.parts[0]:
            self._buffers += append.parts[1:]
        self._staged_bytes += len(frame) + append.size_bytes

    @property
    def is_staged(self) -> bool:
        return bool(self._staged)

    def write(self) -> None:
        """Write the staged bytes. After an OSError call `abort`, or end the process."""
        self.transactions.reserve(staged.transaction_step for staged in self._staged)
        self._active.append(self._buffers, self._staged_bytes)

    def abort(self) -> None:
        """Undo the staged group durably."""
        durable_bytes = self._staged[0].position
        self._active.truncate(durable_bytes)
        for staged in reversed(self._staged):
            if staged.producer_id is not None:
                self.producers.restore(staged.producer_id, staged.producer_before)
            if staged.digest is not None:
                self._digests.remove(staged.digest)
        self._next_offset = self._staged[0].base_offset
        self._clear_staged()

    def sync(self) -> None:
        """Make the written group durable. An error is final."""
        self._active.file.sync()

    def publish(self) -> None:
        """Advance the durable watermark, index the group and show it to readers."""
        self._durable_watermark = self._next_offset
        for staged in self._staged:
            self._active.add_to_index(staged.base_offset, staged.position, staged.max_timestamp_ms)
            if staged.digest is not None:
                self._active_digests.append((staged.digest, staged.base_offset))
        self.transactions.apply(staged.transaction_step for staged in self._staged)
        self._watermarks.durable(self._durable_watermark, self._active.tail, self._stable_point)
        APPENDED.add(len(self._staged))
        APPENDED_BYTES.add(self._staged_bytes)
        self._budget.take(self._staged_bytes)
        self._clear_staged()
        self.view = self._current_view()

    @property
    def _stable_point(self) -> StablePoint:
        return self.transactions.stable_point(self._start_offset, self._durable_watermark)

    def _clear_staged(self) -> None:
        self._staged = []
        self._buffers = []
        self._staged_bytes = 0

    @property
    def needs_roll(self) -> bool:
        """Whether the open segment is large or old enough to be sealed."""
        if self._active.size_bytes == HEADER_BYTES:
            return False
        if self._active.size_bytes >= self.files.config.segment_bytes_max:
            return True
        age_ms = self._time.now_ms() - self._active_since_ms
        return age_ms >= self.files.config.segment_age_ms_max

    def is_open_below(self, offset: int) -> bool:
        """Return whether the open segment has records below this offset."""
        return self._active.base_offset < min(offset, self._durable_watermark)

    def roll(self) -> None:
        """Seal the open segment and start the next. Changes nothing if the disk is full.

        The next file and its name are durable before anything is written to it.
        """
        assert not self._staged and self._active.size_bytes > HEADER_BYTES
        now_ms = self._time.now_ms()
        self._active.cut_stale_tail()
        next_segment = self._create_segment(now_ms)
        sealed, digests = self._active, self._active_digests
        info = self._info(sealed, now_ms, len(digests))
        self._sealed += (SegmentView(sealed.path, sealed.header, info, sealed.index),)
        self._active, self._active_digests = next_segment, []
        self._active_since_ms = now_ms
        self._budget.take(HEADER_BYTES)
        self.view = self._current_view()
        sealed.close()
        self._write_side_files(info, sealed, digests)
        ROLLED.add()

    def _create_segment(self, now_ms: int) -> LogSegment:
        """Create the next segment, from a spare file if there is one."""
        path, size_bytes = self._spares.pop() if self._spares else (None, 0)
        self._budget.take(-size_bytes)
        return LogSegment.create(
            self.files.disk,
            self.files.folder,
            self.files.new_header(self._durable_watermark, now_ms),
            self.files.config.index_interval_bytes,
            path,
        )

    def _write_side_files(
        self, info: SegmentInfo, sealed: LogSegment, digests: list[Digest]
    ) -> None:
        """Write index, digests and state. On a full disk recovery scans the segment instead."""
        try:
            save_index(self.files, sealed.header.salt, info, sealed.index)
            if digests:
                save_digests(self.files, info.base_offset, digests)
            self.checkpoint()
        except OSError as error:
            if not is_full(error):
                raise
            SIDE_FILES_SKIPPED.add()
            logger.warning("disk full: recovery will scan the segment instead of its index")

    def checkpoint(self) -> None:
        """Save transactions, then producer state, start offset and durable watermark."""
        self.transactions.save(self._durable_watermark)
        self.producers.expire(self._time.now_ms() - self.files.config.producer_expiry_ms)
        save_state(self.files, self._start_offset, self._durable_watermark, self.producers)
        self._saved_offset = self._durable_watermark

    def _try_checkpoint(self) -> None:
        """Save a checkpoint unless the disk is full."""
        try:
            self.checkpoint()
        except OSError as error:
            if not is_full(error):
                raise
            SIDE_FILES_SKIPPED.add()

    def trim(self, start_offset: int, *, dropped_count: int = 0) -> int:
        """Remove sealed segments below `start_offset`. Returns their bytes.

        Producers and digests that must outlive them are saved first, and the new start offset is
        durable before the first file is removed. If a full disk prevents that, the segments stay.
        """
        gone = [s for s in self._sealed if s.info.end_offset <= start_offset]
        try:
            self._save_outliving(gone)
        except OSError as error:
            if not is_full(error):
                raise
            SIDE_FILES_SKIPPED.add()
            return 0
        if not gone:
            return 0
        self._start_offset = gone[-1].info.end_offset
        self.dropped_count += dropped_count
        self._watermarks.trim(self._start_offset, self.dropped_count)
        with self.swap:
            self._sealed = self._sealed[len(gone) :]
            self.view = self._current_view()
        self.transactions.forget_below(self._start_offset)
        freed = sum(self._remove(segment) for segment in gone)
        self.files.disk.sync_directory(self.files.folder)
        self._budget.take(-freed)
        return sum(segment.info.size_bytes for segment in gone)

    def _save_outliving(self, gone: list[SegmentView]) -> None:
        """Save producer state and digests that exist only in these segments."""
        if gone and gone[-1].info.end_offset > self._saved_offset:
            self.checkpoint()
        names = set(self.files.disk.list(self.files.folder))
        for segment in gone:
            name = side_name(segment.info.base_offset, ".digests")
            if segment.info.digest_count and name not in names:
                save_digests(self.files, segment.info.base_offset, digests_in(self.files, segment))

    def _remove(self, segment: SegmentView) -> int:
        """Remove a segment's files. Its digests stay until their window has passed.

        Returns the bytes freed: 0 if the file is kept as a spare.
        """
        disk, folder = self.files.disk, self.files.folder
        base, size_bytes = segment.info.base_offset, segment.info.size_bytes
        names = disk.list(folder)
        if side_name(base, ".index") in names:
            disk.unlink(f"{folder}/{side_name(base, '.index')}")
        if side_name(base, ".digests") in names:
            digests_path = f"{folder}/{side_name(base, '.digests')}"
            self._digest_files[digests_path] = self._time.now_ms()
        is_useful = 2 * size_bytes >= self.files.config.segment_bytes_max
        if is_useful and len(self._spares) < SPARES_MAX and not self._budget.should_release:
            spare = f"{folder}/{side_name(base, '.spare')}"
            disk.rename(segment.path, spare)
            self._spares.append((spare, size_bytes))
            return 0
        disk.unlink(segment.path)
        return size_bytes

    def drop_spares(self) -> None:
        """Remove spare files."""
        while self._spares:
            path, size_bytes = self._spares.pop()
            self.files.disk.unlink(path)
            self._budget.take(-size_bytes)

    def scrub(self) -> None:
        """Free the blocks of removed segments that were kept for reuse."""
        self.drop_spares()
        self._active.cut_stale_tail()
        self.files.disk.sync_directory(self.files.folder)

    def expire_digests(self) -> None:
        """Forget digests outside the window, and remove their files."""
        now_ms = self._time.now_ms()
        self._digests.expire(now_ms)
        for path, since_ms in list(self._digest_files.items()):
            if since_ms + self.files.config.digest_window_ms < now_ms:
                self.files.disk.unlink(path)
                del self._digest_files[path]

    def replace_sealed(self, old: Sequence[SegmentView], new: SegmentView, scratch: str) -> None:
        """Replace sealed neighbours with one rewritten segment, by one rename.

        It takes the name of the first. The others are removed once that is durable; recovery
        recognises them by the header of the new one.
        """
        at = self._sealed.index(old[0])
        with self.swap:
            self.files.disk.rename(scratch, old[0].path)
            self._sealed = (*self._sealed[:at], new, *self._sealed[at + len(old) :])
            self.view = self._current_view()
        self.files.disk.sync_directory(self.files.folder)
        self._budget.take(new.info.size_bytes - old[0].info.size_bytes)
        save_index(self.files, new.header.salt, new.info, new.sparse)
        if len(old) > 1:
            self._budget.take(-sum(self._remove(segment) for segment in old[1:]))
            self.files.disk.sync_directory(self.files.folder)

    def close(self) -> None:
        """Save a checkpoint, so that the next start knows where the log ended."""
        assert not self._staged
        self._active.cut_stale_tail()
        self.drop_spares()
        self._try_checkpoint()
        self.release()

    def release(self) -> None:
        """Close the files without writing, as a killed process would."""
        self._active.close()
        self.transactions.close()
        self._watermarks.close()

    def _info(self, segment: LogSegment, sealed_ms: int, digest_count: int) -> SegmentInfo:
        return SegmentInfo(
            segment.base_offset,
            self._durable_watermark,
            segment.size_bytes,
            segment.max_timestamp_ms,
            sealed_ms,
            digest_count,
        )

    def _current_view(self) -> PartitionView:
        active = self._active
        info = self._info(active, 0, len(self._active_digests))
        view = SegmentView(active.path, active.header, info, active.index)
        return PartitionView(
            self._start_offset,
            self._durable_watermark,
            (*self._sealed, view),
            self._stable_point.last_stable_offset,
            self.transactions.aborted,
        )
