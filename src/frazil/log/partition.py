"""Partition: one ordered log. Batches are appended in groups; readers follow through views.

A group takes four calls. Their order makes an acknowledged batch durable:

    stage     assign each batch its offset; refuse what cannot be appended
    write     write all bytes; on a full disk the whole group is undone
    sync      one fdatasync; a failure ends the process and is never retried
    publish   advance the durable watermark, show the batches to readers

Requests are acknowledged only after `publish`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from frazil.disk import Budget, Buffer, Disk
from frazil.errors import OutOfRange, Unknown
from frazil.log.append import Append, AppendResult
from frazil.log.checkpoint import (
    PartitionFiles,
    save_digests,
    save_index,
    save_state,
    skipped_when_full,
)
from frazil.log.dedup.digests import Digest
from frazil.log.index import SegmentInfo
from frazil.log.recovery import Recovered, digests_in, recover
from frazil.log.removed_segments import RemovedSegments
from frazil.log.segment import (
    HEADER_BYTES,
    LogSegment,
    identity_of,
    side_name,
)
from frazil.log.staging import StagedBatch, check_end, find_duplicate, frame_of
from frazil.log.transactions.state import step_of
from frazil.log.view import PartitionView, SegmentView
from frazil.log.watermarks import StablePoint
from frazil.metrics import Counter
from frazil.model import Rand, SteadyTime
from frazil.settings import LogConfig

APPENDED = Counter("frazil.log.appended.batches", "Batches made durable.")
APPENDED_BYTES = Counter("frazil.log.appended.bytes", "Bytes made durable, frames included.")
ROLLED = Counter("frazil.log.rolled.segments", "Log segments sealed.")


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
        self.sources = recovered.sources
        self._time = time
        self._budget = budget
        self._start_offset = recovered.start_offset
        self._exempt_offset = recovered.exempt_offset
        self._saved_offset = recovered.saved_offset
        self._is_saved = recovered.is_saved
        self._durable_watermark = recovered.end_offset
        self._next_offset = recovered.end_offset
        self._sealed = tuple(recovered.sealed)
        self._active = recovered.active
        self._active_since_ms = time.now_ms()
        self._active_digests = recovered.active_digests
        self._digests = recovered.digests
        self._watermarks = recovered.watermarks
        self.removed = RemovedSegments(files, budget, recovered.digest_files)
        self._staged: list[StagedBatch] = []
        self._buffers: list[Buffer] = []
        self._staged_bytes = 0
        self._is_released = False
        self.is_deleted = False
        """Whether the topic was deleted. Changed by `set_deleted`."""
        self.swap = threading.Lock()
        self.view = self._current_view()
        budget.take(self._size_bytes)
        budget.count_open(not self._active.is_empty)

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
    ) -> Partition:
        """Recover the partition in `folder`. Raises `Corrupt` rather than lose data. A new
        partition has no files before its first append."""
        files = PartitionFiles(
            disk=disk,
            folder=folder,
            identity=identity_of(topic, index),
            config=config,
            rand=rand,
        )
        recovered = recover(files, time.now_ms(), floor=floor)
        return cls(topic, index, files, time, budget, recovered)

    @property
    def disk(self) -> Disk:
        return self.files.disk

    def current_view(self, *, is_stale: bool = False, is_indexed: bool = False) -> PartitionView:
        """Return the view: the owner's is never stale, and its indexes are complete. Raises
        `Unknown` once the topic was deleted."""
        self.check_exists()
        return self.view

    def check_exists(self) -> None:
        if self.is_deleted:
            raise Unknown(f"topic {self.topic} was deleted")

    @property
    def durable_watermark(self) -> int:
        return self._durable_watermark

    def stage(self, append: Append) -> AppendResult:
        """Assign a batch its offset. Raises `Conflict` or subclasses of `Rejected` and then changes
        nothing."""
        self.check_exists()
        header, step = append.header, append.step
        duplicate = find_duplicate(
            append, self.producers, self.sources.positions, self._digests, self._time
        )
        if duplicate is not None:
            return duplicate
        base_offset = self._next_offset
        check_end(append, base_offset)
        position = self._active.size_bytes + self._staged_bytes
        self._stage_bytes(append, base_offset)
        before = source_before = None
        now_ms = self._time.now_ms()
        end_offset = base_offset + header.last_offset_delta + 1
        if header.has_producer:
            before = self.producers.remember(header, base_offset, now_ms)
        if step is not None:
            source_before = self.sources.positions.remember(step, base_offset, end_offset)
        if append.digest is not None:
            self._digests.add(append.digest, base_offset, now_ms)
        self._staged.append(
            StagedBatch(
                position,
                base_offset,
                header.max_timestamp_ms,
                append.digest,
                header.producer_id if header.has_producer else None,
                before,
                step_of(header, base_offset, append.payload) if header.is_transactional else None,
                None if step is None else step.source,
                source_before,
            )
        )
        self._next_offset = end_offset
        return AppendResult(base_offset, end_offset, False)

    def _stage_bytes(self, append: Append, base_offset: int) -> None:
        salt = self._active.header.salt
        buffers, size_bytes = frame_of(append, base_offset, self._durable_watermark, salt)
        self._buffers += buffers
        self._staged_bytes += size_bytes

    @property
    def is_staged(self) -> bool:
        return bool(self._staged)

    def write(self) -> None:
        """Write the staged bytes. After an OSError call `abort`, or end the process."""
        if not self._active.has_file:
            self.create_files()
        self.transactions.reserve(staged.transaction_step for staged in self._staged)
        self._active.append(self._buffers, self._staged_bytes)

    def create_files(self) -> None:
        """Create the files of a new partition. The watermark file is first: without it, recovery
        could not tell a torn append from lost records."""
        if not self._watermarks.has_file:
            self._watermarks.create()
        self._active.create_file(self.files.disk)
        self._budget.take(HEADER_BYTES)

    def abort(self) -> None:
        """Undo the staged group durably."""
        durable_bytes = self._staged[0].position
        if self._active.has_file:
            self._active.truncate(durable_bytes)
        for staged in reversed(self._staged):
            if staged.producer_id is not None:
                self.producers.restore(staged.producer_id, staged.producer_before)
            if staged.source is not None:
                self.sources.positions.restore(staged.source, staged.source_before)
            if staged.digest is not None:
                self._digests.remove(staged.digest)
        self._next_offset = self._staged[0].base_offset
        self._clear_staged()

    def sync(self) -> None:
        """Make the written group durable. An error is final."""
        self._active.file.sync()

    def publish(self) -> None:
        """Advance the durable watermark, index the group and show it to readers."""
        if self._durable_watermark == self._active.base_offset:
            self._budget.count_open(1)
        self._durable_watermark = self._next_offset
        self._is_saved = False
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
        self._staged, self._buffers, self._staged_bytes = [], [], 0

    @property
    def needs_roll(self) -> bool:
        """Whether the open segment is large or old enough to be sealed."""
        if self._active.is_empty:
            return False
        if self._active.size_bytes >= self._budget.segment_bytes_max:
            return True
        age_ms = self._time.now_ms() - self._active_since_ms
        return age_ms >= self.files.config.segment_age_ms_max

    @property
    def is_idle(self) -> bool:
        """Whether maintenance has nothing to do here until the next append."""
        return self._active.is_empty and not (
            self._sealed
            or self._active.has_stale_tail
            or not self.removed.is_empty
            or len(self._digests)
        )

    def is_open_below(self, offset: int) -> bool:
        """Return whether the open segment has records below this offset."""
        return self._active.base_offset < min(offset, self._durable_watermark)

    def roll(self) -> None:
        """Seal the open segment and start the next. Changes nothing if the disk is full.

        The next file and its name are durable before anything is written to it.
        """
        assert not self._staged and not self._active.is_empty
        now_ms = self._time.now_ms()
        self._active.cut_stale_tail()
        next_segment = self._create_segment(now_ms)
        sealed, digests = self._active, self._active_digests
        info = self._info(sealed, now_ms, len(digests))
        self._sealed += (SegmentView(sealed.path, sealed.header, info, sealed.index),)
        self._active, self._active_digests = next_segment, []
        self._active_since_ms = now_ms
        self._budget.take(HEADER_BYTES)
        self._budget.count_open(-1)
        self.view = self._current_view()
        sealed.close()
        self._write_side_files(info, sealed, digests)
        ROLLED.add()

    def _create_segment(self, now_ms: int) -> LogSegment:
        """Create the next segment, from a spare file if there is one."""
        return LogSegment.create(
            self.files.disk,
            self.files.folder,
            self.files.new_header(self._durable_watermark, now_ms),
            self.files.config.index_interval_bytes,
            self.removed.take_spare(),
        )

    def _write_side_files(
        self, info: SegmentInfo, sealed: LogSegment, digests: list[Digest]
    ) -> None:
        """Write index, digests and state."""
        with skipped_when_full():
            save_index(self.files, sealed.header.salt, info, sealed.index)
            if digests:
                save_digests(self.files, info.base_offset, digests)
            self.checkpoint()

    def checkpoint(self) -> None:
        """Save transactions and sources, then producers, start offset and durable watermark."""
        self.transactions.save(self._durable_watermark)
        self.sources.save(self._durable_watermark)
        unseen_since_ms = self._time.now_ms() - self.files.config.producer_expiry_ms
        self.producers.expire(unseen_since_ms, kept=self.transactions.open_offsets)
        save_state(self.files, self._start_offset, self._durable_watermark, self.producers)
        self._saved_offset = self._durable_watermark
        self._is_saved = True

    def trim(self, start_offset: int, *, dropped_count: int = 0) -> int:
        """Remove sealed segments below `start_offset`. Returns their bytes.

        Producers and digests that must outlive them are saved first, and the new start offset is
        durable before the first file is removed. If a full disk prevents that, the segments stay.
        """
        gone = [s for s in self._sealed if s.info.end_offset <= start_offset]
        if not gone:
            return 0
        is_saved = False
        with skipped_when_full():
            self._save_outliving(gone)
            is_saved = True
        if not is_saved:
            return 0
        self.dropped_count += dropped_count
        self._start_at(gone[-1].info.end_offset, gone)
        return sum(segment.info.size_bytes for segment in gone)

    def delete_records(self, before: int) -> int:
        """Make `before` the start of the log, durably, and remove the segments below. Returns the
        start, which never goes back. Raises `OutOfRange` if records below are not there yet, or
        not decided."""
        limit = self.view.last_stable_offset
        if not 0 <= before <= limit:
            raise OutOfRange(
                f"records of {self.topic}/{self.index} can be deleted up to offset {limit}, not up "
                f"to {before}"
            )
        if before <= self._start_offset:
            return self._start_offset
        if before == self._durable_watermark and not self._active.is_empty:
            self.roll()
        gone = [s for s in self._sealed if s.info.end_offset <= before]
        if gone:
            self._save_outliving(gone)
        self._start_at(before, gone, exempt_offset=before)
        return before

    def exempt(self, offset: int) -> None:
        """Let the lake do without the offsets below, durably."""
        if offset > self._exempt_offset:
            self._start_at(self._start_offset, [], exempt_offset=offset)

    def _start_at(
        self, start_offset: int, gone: list[SegmentView], *, exempt_offset: int = 0
    ) -> None:
        """Make the start durable, show it to readers, then remove the files of segments below."""
        exempt_offset = max(exempt_offset, self._exempt_offset)
        self._watermarks.trim(start_offset, self.dropped_count, exempt_offset)
        self._start_offset, self._exempt_offset = start_offset, exempt_offset
        self._is_saved = False
        with self.swap:
            self._sealed = self._sealed[len(gone) :]
            self.view = self._current_view()
        self.transactions.forget_below(start_offset)
        with skipped_when_full():  # the next start removes the files
            self._remove(gone)

    def _save_outliving(self, gone: list[SegmentView]) -> None:
        """Save producer state and digests that exist only in these segments."""
        if gone[-1].info.end_offset > self._saved_offset:
            self.checkpoint()
        names = set(self.files.disk.list(self.files.folder))
        for segment in gone:
            name = side_name(segment.info.base_offset, ".digests")
            if segment.info.digest_count and name not in names:
                save_digests(self.files, segment.info.base_offset, digests_in(self.files, segment))

    def scrub(self) -> None:
        """Free the blocks of removed segments that were kept for reuse."""
        self.removed.drop_spares()
        self._active.cut_stale_tail()
        self.files.disk.sync_directory(self.files.folder)

    def expire_digests(self) -> None:
        """Forget digests outside the window, and remove their files."""
        now_ms = self._time.now_ms()
        self._digests.expire(now_ms)
        self.removed.expire_digests(now_ms)

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
        self._remove(old[1:])

    def _remove(self, segments: Sequence[SegmentView]) -> None:
        if not segments:
            return
        now_ms = self._time.now_ms()
        freed = sum(self.removed.remove(segment, now_ms) for segment in segments)
        self.files.disk.sync_directory(self.files.folder)
        self._budget.take(-freed)

    def close(self) -> None:
        """Save a checkpoint, so that the next start knows where the log ended."""
        assert not self._staged
        self._active.cut_stale_tail()
        self.removed.drop_spares()
        if self._active.has_file and not self._is_saved:
            with skipped_when_full():
                self.checkpoint()
        self.release()

    def set_deleted(self, is_deleted: bool) -> None:
        """Refuse readers and appends from now on, or not any more."""
        with self.swap:
            self.is_deleted = is_deleted

    def release_deleted(self) -> int:
        """Close the files of a deleted topic. Returns their bytes, which count until they are
        removed."""
        self._watermarks.delete()
        size_bytes = self._size_bytes + self.removed.spare_bytes
        self.release()
        self._budget.take(self._size_bytes)
        return size_bytes

    @property
    def _size_bytes(self) -> int:
        """What the files of the log take."""
        return self.view.size_bytes if self._active.has_file else 0

    def release(self) -> None:
        """Close the files without writing, as a killed process would. Idempotent."""
        if self._is_released:
            return
        self._is_released = True
        self._budget.take(-self._size_bytes)
        self._budget.count_open(-(not self._active.is_empty))
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
            self._exempt_offset,
        )
