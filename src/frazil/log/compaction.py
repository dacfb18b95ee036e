"""Compaction: of each key the latest record stays. Offsets never change; gaps remain.

Sealed segments are rewritten one by one, oldest first, each replaced by one rename. A record goes
only when a later one of its key is durable, so a crash between two segments loses nothing; and a
tombstone goes only after the older segments have lost what it deletes, so nothing comes back.
Reading and rewriting happen in the caller's thread; the replacement on the writer's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from frazil.disk import HEAD_BYTES, SALT_BYTES, Buffer, frame_header
from frazil.errors import Corrupt
from frazil.log.batch import BatchHeader, Record, encode_batch
from frazil.log.config import TopicConfig
from frazil.log.index import NO_TIME, SegmentFacts, SparseIndex
from frazil.log.partition import Partition
from frazil.log.recovery import Place
from frazil.log.segment import (
    FLAG_DIGEST,
    HEADER_BYTES,
    REPAIR_HINT,
    SegmentHeader,
    StoredBatch,
    walk_batches,
)
from frazil.log.view import SegmentView, View
from frazil.metrics import Counter

T = TypeVar("T")


class Run(Protocol):
    """Has the writer thread, which owns the partition, do something, and waits for it."""

    def __call__(self, work: Callable[[], T], /) -> T: ...


KEYS_MAX = 2_000_000
"""Keys held in memory at once; more dirty segments than fit are left for the next round."""

REMOVED = Counter("frazil.log.compacted.records", "Records removed by compaction.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What one round did."""

    segments_count: int = 0
    removed_count: int = 0
    freed_bytes: int = 0


def is_due(view: View, config: TopicConfig, now_ms: int, limit: int) -> bool:
    """Is enough of the log dirty, or some of it dirty for too long?"""
    eligible = _eligible(view, config, now_ms, limit)
    dirty = [s for s in eligible if not s.header.is_rewritten]
    if not dirty:
        return False
    lag = config.compact_lag_ms_max
    if lag is not None and now_ms - dirty[0].facts.sealed_ms >= lag:
        return True
    dirty_bytes = sum(s.facts.size_bytes for s in dirty)
    return dirty_bytes >= config.compact_dirty_ratio_min * sum(s.facts.size_bytes for s in eligible)


def compact(
    partition: Partition, config: TopicConfig, now_ms: int, limit: int, run: Run
) -> Compacted:
    """One round over the sealed segments below offset `limit`. Blocks until it is durable."""
    eligible = _eligible(partition.view, config, now_ms, limit)
    latest, covered = _latest_offsets(partition.place, eligible)
    remembered = run(partition.producers.remembered_offsets)
    done = Compacted()
    for segment in covered:
        is_past_grace = now_ms - segment.facts.sealed_ms >= config.tombstone_grace_ms

        def keep(record: Record, is_past_grace: bool = is_past_grace) -> bool:
            if record.key is None:
                return True
            if latest.get(record.key, record.offset) > record.offset:
                return False
            return record.value is not None or not is_past_grace

        batches, removed = _survivors(partition.place, segment, keep, remembered)
        if removed == 0 and segment.header.is_rewritten:
            continue
        new, scratch = rewrite(partition.place, segment, batches, partition.view.durable_watermark)
        run(partial(partition.replace_sealed, segment, new, scratch))
        REMOVED.add(removed)
        done = Compacted(
            segments_count=done.segments_count + 1,
            removed_count=done.removed_count + removed,
            freed_bytes=done.freed_bytes + segment.facts.size_bytes - new.facts.size_bytes,
        )
    return done


def _eligible(view: View, config: TopicConfig, now_ms: int, limit: int) -> list[SegmentView]:
    return [
        s
        for s in view.segments[:-1]
        if s.facts.end_offset <= limit and now_ms - s.facts.sealed_ms >= config.compact_age_ms_min
    ]


def _latest_offsets(
    place: Place, segments: list[SegmentView]
) -> tuple[dict[bytes, int], list[SegmentView]]:
    """Per key its last offset in `segments`, and the segments that were looked through."""
    latest: dict[bytes, int] = {}
    covered: list[SegmentView] = []
    for segment in segments:
        if len(latest) >= KEYS_MAX and not segment.header.is_rewritten:
            break
        covered.append(segment)
        for batch in batches_of(place, segment):
            if not batch.header.is_control:
                for record in batch.records():
                    if record.key is not None:
                        latest[record.key] = record.offset
    return latest, covered


def batches_of(place: Place, segment: SegmentView) -> Iterator[StoredBatch]:
    """Every batch of a sealed segment, or `Corrupt`."""
    file = place.disk.open(segment.path)
    try:
        position = HEADER_BYTES
        size, base = segment.facts.size_bytes, segment.facts.base_offset
        for batch in walk_batches(file, segment.header, HEADER_BYTES, size, base):
            position = batch.end
            yield batch
        if position != size:
            raise Corrupt(
                path=segment.path,
                position=position,
                expected="an acknowledged batch",
                found="bytes that are no such batch",
                hint=REPAIR_HINT,
            )
    finally:
        file.close()


def _survivors(
    place: Place, segment: SegmentView, keep: Callable[[Record], bool], remembered: set[int]
) -> tuple[list[tuple[BatchHeader, bytes, int]], int]:
    """The batches to keep, each with its frame flags, and how many records are left out."""
    batches: list[tuple[BatchHeader, bytes, int]] = []
    removed = 0
    for batch in batches_of(place, segment):
        header = batch.header
        if header.is_control:
            batches.append((header, batch.payload, batch.flags))
            continue
        records = batch.records()
        kept = [record for record in records if keep(record)]
        removed += len(records) - len(kept)
        if len(kept) == len(records):
            batches.append((header, batch.payload, batch.flags))
        elif kept or batch.base_offset in remembered:
            batches.append((header, _thinned(header, kept), batch.flags))
    return batches, removed


def _thinned(header: BatchHeader, kept: list[Record]) -> bytes:
    """The same batch with fewer records: same offsets, same producer, same place in its order."""
    return encode_batch(
        kept,
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        max_timestamp_ms=header.max_timestamp_ms,
        append_time=header.uses_append_time,
        compression=header.compression,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        leader_epoch=header.leader_epoch,
    )


def rewrite(
    place: Place,
    segment: SegmentView,
    batches: list[tuple[BatchHeader, bytes, int]],
    durable_watermark: int,
) -> tuple[SegmentView, str]:
    """Write the segment anew, with only these batches, to a scratch file; synced, not yet named.

    Its header states end and size, so that a cut copy is noticed in spite of the gaps.
    """
    salt = place.rand.randbytes(SALT_BYTES)
    index = SparseIndex(place.config.index_interval_bytes)
    buffers: list[Buffer] = []
    position, max_timestamp_ms = HEADER_BYTES, NO_TIME
    for header, payload, flags in batches:
        head = payload[:HEAD_BYTES]
        frame = frame_header(head, len(payload), header.base_offset, durable_watermark, flags, salt)
        index.note(header.base_offset, position, max_timestamp_ms)
        max_timestamp_ms = max(max_timestamp_ms, header.max_timestamp_ms)
        buffers += [frame, payload]
        position += len(frame) + len(payload)
    header_bytes = SegmentHeader(
        identity=segment.header.identity,
        salt=salt,
        base_offset=segment.facts.base_offset,
        created_ms=segment.header.created_ms,
        is_rewritten=True,
        sealed_end_offset=segment.facts.end_offset,
        sealed_bytes=position,
    )
    scratch = f"{segment.path}.cleaned"
    file = place.disk.open(scratch, "create")
    try:
        file.append([header_bytes.encode(), *buffers])
        file.sync()
    except OSError:
        place.disk.unlink(scratch)
        raise
    finally:
        file.close()
    facts = SegmentFacts(
        base_offset=segment.facts.base_offset,
        end_offset=segment.facts.end_offset,
        size_bytes=position,
        max_timestamp_ms=max_timestamp_ms,
        sealed_ms=segment.facts.sealed_ms,
        digest_count=sum(flags & FLAG_DIGEST for _, _, flags in batches),
    )
    view = SegmentView(path=segment.path, header=header_bytes, facts=facts, index=index)
    return view, scratch
