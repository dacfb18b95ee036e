"""What a partition has accepted and not written yet: batches with their offsets, as frames."""

from __future__ import annotations

import struct
from typing import NamedTuple

from frazil.disk import HEAD_BYTES, Buffer, frame_header
from frazil.errors import Conflict
from frazil.log.append import Append, AppendResult
from frazil.log.dedup.digests import DigestWindow
from frazil.log.dedup.producers import Producer, Producers
from frazil.log.dedup.source_positions import SourcePosition, SourcePositions
from frazil.log.segment import FLAG_DIGEST, FLAG_STEP
from frazil.log.transactions.state import TransactionStep
from frazil.metrics import Counter
from frazil.model import SteadyTime

LEADER_EPOCH = 0
"""The only leader epoch; Kafka clients expect one."""
STAMP = struct.Struct(">q4si")
"""The bytes of a record batch that the log fills in: base offset, length, leader epoch."""


DUPLICATES = Counter(
    "frazil.log.duplicate.batches", "Duplicate batches, answered with their first offset."
)


class StagedBatch(NamedTuple):
    """One accepted batch, with what is needed to index it, or to undo it."""

    position: int
    base_offset: int
    max_timestamp_ms: int
    digest: bytes | None
    producer_id: int | None
    producer_before: Producer | None
    transaction_step: TransactionStep | None
    source: str | None
    source_before: SourcePosition | None


def find_duplicate(
    append: Append,
    producers: Producers,
    sources: SourcePositions,
    digests: DigestWindow,
    time: SteadyTime,
) -> AppendResult | None:
    """Return the offsets of the batch that this one repeats; None if it may be appended. Raises
    subclasses of `Rejected` if it may not."""
    if append.header.has_producer:
        past = producers.find_duplicate(append.header)
        if past is not None:
            DUPLICATES.add(by="producer")
            return AppendResult(past.base_offset, past.end_offset, True)
    if append.step is not None:
        copied = sources.find_duplicate(append.step)
        if copied is not None:
            DUPLICATES.add(by="source")
            return AppendResult(copied.base_offset, copied.end_offset, True)
    if append.digest is not None:
        digests.expire(time.now_ms())
        offset = digests.find(append.digest)
        if offset is not None:
            DUPLICATES.add(by="digest")
            return AppendResult(offset, offset + append.header.last_offset_delta + 1, True)
    return None


def check_end(append: Append, next_offset: int) -> None:
    """Raise `Conflict` unless the partition ends where a batch expects it. `next_offset` counts
    batches that are accepted and not written yet."""
    if append.expects_offset not in (None, next_offset):
        raise Conflict(
            f"the partition ends at offset {next_offset}, not at {append.expects_offset}: another "
            "write came first; read again, then retry"
        )


def frame_of(
    append: Append, base_offset: int, durable_watermark: int, salt: bytes
) -> tuple[list[Buffer], int]:
    """Return the buffers of a batch's frame, without copying the payload, and their bytes."""
    first = append.parts[0]
    stamp = STAMP.pack(base_offset, bytes(first[8:12]), LEADER_EPOCH)
    if len(first) < HEAD_BYTES:
        first = append.payload
    head = stamp + first[STAMP.size : HEAD_BYTES]
    flags = FLAG_DIGEST if append.digest is not None else 0
    if append.step is not None:
        flags |= FLAG_STEP
    frame = frame_header(head, append.size_bytes, base_offset, durable_watermark, flags, salt)
    buffers: list[Buffer] = [frame + head, memoryview(first)[HEAD_BYTES:]]
    if first is append.parts[0]:
        buffers += append.parts[1:]
    return buffers, len(frame) + append.size_bytes
