"""Compaction: keep the latest record of each key. Offsets never change; gaps remain.

Sealed segments are rewritten oldest first, small neighbours merged, each replaced by one rename. A
record is removed only when a later one of its key is durable, so a crash between two segments loses
nothing. A tombstone gets its delete horizon in the round that removed the older records of its key,
and is removed in a round after that: nothing reappears, and readers have the grace period to see
it. So is the marker of a transaction of which no batch is left, unless its producer is known by it
alone; then the aborted transaction is forgotten, too. Reading and rewriting run in the caller's
thread, the replacement in the writer's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Protocol, TypeVar

from frazil.disk import FRAME_HEADER_BYTES, HEAD_BYTES, SALT_BYTES, Buffer, frame_header, is_full
from frazil.errors import Corrupt
from frazil.log.checkpoint import PartitionFiles
from frazil.log.format.batch import BatchHeader, encode_batch
from frazil.log.format.record import Record
from frazil.log.index import NO_TIME, SegmentInfo, SparseIndex
from frazil.log.partition import Partition
from frazil.log.reader import is_aborted
from frazil.log.segment import (
    FLAG_DIGEST,
    HEADER_BYTES,
    SegmentHeader,
    StoredBatch,
)
from frazil.log.transactions.aborted import AbortedTransactions
from frazil.log.view import PartitionView, SegmentView, batches_of
from frazil.metrics import Counter
from frazil.settings import TopicConfig

logger = logging.getLogger(__name__)

T = TypeVar("T")


class RunOnWriter(Protocol):
    """Runs `work` on the writer thread, which owns the partition, and waits for it."""

    def __call__(self, work: Callable[[], T], /) -> T: ...


KEYS_MAX = 2_000_000
"""Keys held in memory at once; dirty segments beyond that wait for the next round."""

REMOVED = Counter("frazil.log.compacted.records", "Records removed by compaction.")
INTERRUPTED = Counter(
    "frazil.log.compaction.interruptions", "Rounds postponed because the disk was full."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """Result of one round."""

    segments_count: int = 0
    removed_count: int = 0
    freed_bytes: int = 0


def is_due(view: PartitionView, config: TopicConfig, now_ms: int, limit: int) -> bool:
    """Return whether enough of the log is dirty, or part of it dirty for too long."""
    eligible = _eligible(view, config, now_ms, limit)
    dirty = [s for s in eligible if not s.header.is_rewritten]
    if not dirty:
        return False
    lag = config.compact_lag_ms_max
    if lag is not None and now_ms - dirty[0].info.sealed_ms >= lag:
        return True
    dirty_bytes = sum(s.info.size_bytes for s in dirty)
    return dirty_bytes >= config.compact_dirty_ratio_min * sum(s.info.size_bytes for s in eligible)


def compact(
    partition: Partition, config: TopicConfig, now_ms: int, limit: int, run: RunOnWriter
) -> Compacted:
    """Compact the sealed segments below offset `limit` once. Returns when the result is durable.

    A full disk, or retention that removes a segment meanwhile, ends the round early.
    """
    files, view = partition.files, partition.view
    done = Compacted()
    try:
        aborted = view.aborted
        latest, covered = _latest_offsets(files, _eligible(view, config, now_ms, limit), aborted)
        run(lambda: partition.sources.save(partition.durable_watermark))  # their records may go
        remembered = run(partition.producers.remembered_offsets)
        markers = _Markers(remembered, now_ms, config.tombstone_grace_ms)
        survivors = (
            _survivors(files, segment, latest, markers, aborted, now_ms, config.tombstone_grace_ms)
            for segment in covered
        )
        span_ms_max = config.retention_ms // 2 if config.is_expired else None
        for group in _groups(survivors, files.config.segment_bytes_max, span_ms_max):
            if len(group) == 1 and group[0].is_clean:
                continue
            old = [kept.segment for kept in group]
            batches = [batch for kept in group for batch in kept.batches]
            new, scratch = rewrite(files, old, batches, view.durable_watermark)
            if run(partial(_replace, partition, old, new, scratch)):
                removed_count = sum(kept.removed_count for kept in group)
                REMOVED.add(removed_count)
                old_bytes = sum(segment.info.size_bytes for segment in old)
                done = Compacted(
                    segments_count=done.segments_count + len(old),
                    removed_count=done.removed_count + removed_count,
                    freed_bytes=done.freed_bytes + old_bytes - new.info.size_bytes,
                )
        if markers.has_removed:
            run(partial(partition.transactions.forget_below, markers.none_below - 1))
    except (FileNotFoundError, Corrupt):
        if partition.view.start_offset == view.start_offset and not partition.is_deleted:
            raise  # only retention removes or reuses segments
    except OSError as error:
        if not is_full(error):
            raise
        INTERRUPTED.add()
        logger.warning("disk full: compaction is postponed")
    return done


def _eligible(
    view: PartitionView, config: TopicConfig, now_ms: int, limit: int
) -> list[SegmentView]:
    """Return sealed segments from the first on, without a gap: if a tombstone in a newer segment
    went first, the record in an older one would reappear."""

    def may_go(segment: SegmentView) -> bool:
        age_ms = now_ms - segment.info.sealed_ms
        return segment.info.end_offset <= limit and age_ms >= config.compact_age_ms_min

    return list(takewhile(may_go, view.segments[:-1]))


def _latest_offsets(
    files: PartitionFiles, segments: list[SegmentView], aborted: AbortedTransactions
) -> tuple[dict[bytes, int], list[SegmentView]]:
    """Return the last offset per key in the dirty segments, and the segments to rewrite.

    Rewritten segments replace nothing: earlier rounds applied their records.
    """
    latest: dict[bytes, int] = {}
    covered: list[SegmentView] = []
    for segment in segments:
        if not segment.header.is_rewritten:
            if len(latest) >= KEYS_MAX:
                break
            for batch in batches_of(files.disk, segment):
                if not batch.header.is_control and not is_aborted(batch, aborted):
                    for record in batch.records():
                        if record.key is not None:
                            latest[record.key] = record.offset
        covered.append(segment)
    return latest, covered


Kept = list[tuple[BatchHeader, bytes, int]]
"""Batches that stay: header, payload, frame flags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Survivors:
    """What remains of one segment."""

    segment: SegmentView
    batches: Kept
    removed_count: int
    is_changed: bool

    @property
    def is_clean(self) -> bool:
        """Whether a rewrite would change nothing."""
        return not self.is_changed and self.segment.header.is_rewritten

    @property
    def size_bytes(self) -> int:
        return sum(FRAME_HEADER_BYTES + len(payload) for _, payload, _ in self.batches)


class _Markers:
    """Decides which markers stay, in the order of the log."""

    def __init__(self, remembered: set[int], now_ms: int, grace_ms: int) -> None:
        self.remembered = remembered
        self.has_removed = False
        self.none_below = 0
        """Offset below which no marker is left."""
        self._now_ms = now_ms
        self._grace_ms = grace_ms
        self._is_first_kept = False
        self._undecided: set[int] = set()
        """Producers with a batch left since their last marker: without the next one, recovery
        would take their transaction for an open one."""

    def keep_batch(self, header: BatchHeader) -> None:
        """Note a batch with records, or without, that stays."""
        if header.is_transactional:
            self._undecided.add(header.producer_id)

    def kept(self, batch: StoredBatch, header: BatchHeader) -> bytes | None:
        """Return the bytes of a marker that stays; None if it goes."""
        is_needed = header.producer_id in self._undecided or batch.base_offset in self.remembered
        self._undecided.discard(header.producer_id)
        horizon_ms = header.delete_horizon_ms
        payload: bytes | None = batch.payload
        if not is_needed and header.is_transactional:
            if horizon_ms is None:
                payload = _thinned(header, batch.records(), self._now_ms + self._grace_ms)
            elif self._now_ms >= horizon_ms:
                payload = None
                self.has_removed = True
        if payload is not None:
            self._is_first_kept = True
        elif not self._is_first_kept:
            self.none_below = batch.end_offset
        return payload


def _survivors(
    files: PartitionFiles,
    segment: SegmentView,
    latest: dict[bytes, int],
    markers: _Markers,
    aborted: AbortedTransactions,
    now_ms: int,
    grace_ms: int,
) -> _Survivors:
    """Return the segment without superseded and aborted records and expired tombstones."""
    batches: Kept = []
    removed_count, is_changed = 0, False
    for batch in batches_of(files.disk, segment):
        header = batch.header
        if header.is_control:
            marker = markers.kept(batch, header)
            is_changed |= marker != batch.payload
            removed_count += marker is None
            if marker is not None:
                batches.append((header, marker, batch.flags))
            continue
        records = batch.records()
        was_aborted = is_aborted(batch, aborted)
        horizon_ms = header.delete_horizon_ms
        is_past_grace = horizon_ms is not None and now_ms >= horizon_ms
        kept = [
            record
            for record in records
            if not was_aborted
            and (
                record.key is None
                or (
                    latest.get(record.key, record.offset) <= record.offset
                    and not (is_past_grace and record.value is None)
                )
            )
        ]
        removed_count += len(records) - len(kept)
        # Only dirty segments get a horizon: `latest` does not cover tombstones of others.
        has_tombstone = any(record.value is None and record.key is not None for record in kept)
        if horizon_ms is None and has_tombstone and not segment.header.is_rewritten:
            horizon_ms = now_ms + grace_ms
        if len(kept) == len(records) and horizon_ms == header.delete_horizon_ms:
            markers.keep_batch(header)
            batches.append((header, batch.payload, batch.flags))
            continue
        is_changed = True
        if kept or batch.base_offset in markers.remembered:
            markers.keep_batch(header)
            payload = _thinned(header, kept, horizon_ms if has_tombstone else None)
            batches.append((header, payload, batch.flags))
    return _Survivors(
        segment=segment, batches=batches, removed_count=removed_count, is_changed=is_changed
    )


def _groups(
    survivors: Iterable[_Survivors], bytes_max: int, span_ms_max: int | None
) -> Iterator[list[_Survivors]]:
    """Yield neighbours that fit into one segment together, so that small ones do not pile up.

    A segment is as old as its newest part. If old ones are removed, each holds a limited span of
    time: records that are due would otherwise stay as long as new ones are merged with them.
    """
    group: list[_Survivors] = []
    size_bytes = HEADER_BYTES
    for kept in survivors:
        is_full_group = size_bytes + kept.size_bytes > bytes_max
        if group and (is_full_group or _is_apart(group[0].segment, kept.segment, span_ms_max)):
            yield group
            group, size_bytes = [], HEADER_BYTES
        group.append(kept)
        size_bytes += kept.size_bytes
    if group:
        yield group


def _is_apart(first: SegmentView, last: SegmentView, span_ms_max: int | None) -> bool:
    """Return whether two segments are too far apart in time to be merged."""
    if span_ms_max is None:
        return False
    return last.info.sealed_ms - first.header.created_ms > span_ms_max


def _thinned(header: BatchHeader, kept: list[Record], delete_horizon_ms: int | None) -> bytes:
    """Encode the batch with fewer records; offsets, producer and sequences stay."""
    return encode_batch(
        kept,
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        max_timestamp_ms=header.max_timestamp_ms,
        append_time=header.uses_append_time,
        delete_horizon_ms=delete_horizon_ms,
        compression=header.compression,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        leader_epoch=header.leader_epoch,
    )


def _replace(partition: Partition, old: list[SegmentView], new: SegmentView, scratch: str) -> bool:
    """Swap in the new file, unless retention removed an old one. Runs on the writer thread."""
    if partition.is_deleted or not set(old) <= set(partition.view.segments):
        with suppress(FileNotFoundError):
            partition.files.disk.unlink(scratch)
        return False
    partition.replace_sealed(old, new, scratch)
    return True


def rewrite(
    files: PartitionFiles, old: Sequence[SegmentView], batches: Kept, durable_watermark: int
) -> tuple[SegmentView, str]:
    """Write neighbouring segments as one scratch file with only these batches; synced, not renamed.

    Its header states end and size, so that a truncated copy is detected in spite of the gaps.
    """
    segment, end_offset = old[0], old[-1].info.end_offset
    salt = files.rand.randbytes(SALT_BYTES)
    index = SparseIndex(files.config.index_interval_bytes)
    buffers: list[Buffer] = []
    position, max_timestamp_ms = HEADER_BYTES, NO_TIME
    for header, payload, flags in batches:
        head = payload[:HEAD_BYTES]
        frame = frame_header(head, len(payload), header.base_offset, durable_watermark, flags, salt)
        index.add(header.base_offset, position, max_timestamp_ms)
        max_timestamp_ms = max(max_timestamp_ms, header.max_timestamp_ms)
        buffers += [frame, payload]
        position += len(frame) + len(payload)
    header_bytes = SegmentHeader(
        identity=segment.header.identity,
        salt=salt,
        base_offset=segment.info.base_offset,
        created_ms=segment.header.created_ms,
        is_rewritten=True,
        sealed_end_offset=end_offset,
        sealed_bytes=position,
    )
    scratch = f"{segment.path}.cleaned"
    if scratch.rpartition("/")[2] in files.disk.list(files.folder):  # left by a failed round
        files.disk.unlink(scratch)
    file = files.disk.open(scratch, "create")
    try:
        file.append([header_bytes.encode(), *buffers])
        file.sync()
    except OSError:
        files.disk.unlink(scratch)
        raise
    finally:
        file.close()
    info = SegmentInfo(
        base_offset=segment.info.base_offset,
        end_offset=end_offset,
        size_bytes=position,
        max_timestamp_ms=max_timestamp_ms,
        sealed_ms=old[-1].info.sealed_ms,
        digest_count=sum(flags & FLAG_DIGEST for _, _, flags in batches),
    )
    view = SegmentView(path=segment.path, header=header_bytes, info=info, sparse=index)
    return view, scratch
