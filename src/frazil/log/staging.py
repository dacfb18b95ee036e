"""What a partition has accepted and not written yet: batches with their offsets, as frames."""

from __future__ import annotations

import struct
from typing import NamedTuple

from frazil.disk import HEAD_BYTES, Buffer, frame_header
from frazil.log.append import Append
from frazil.log.dedup.producers import Producer
from frazil.log.segment import FLAG_DIGEST
from frazil.log.transactions.state import TransactionStep

LEADER_EPOCH = 0
"""The only leader epoch; Kafka clients expect one."""
STAMP = struct.Struct(">q4si")
"""The bytes of a record batch that the log fills in: base offset, length, leader epoch."""


class StagedBatch(NamedTuple):
    """One accepted batch, with what is needed to index it, or to undo it."""

    position: int
    base_offset: int
    max_timestamp_ms: int
    digest: bytes | None
    producer_id: int | None
    producer_before: Producer | None
    transaction_step: TransactionStep | None


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
    frame = frame_header(head, append.size_bytes, base_offset, durable_watermark, flags, salt)
    buffers: list[Buffer] = [frame + head, memoryview(first)[HEAD_BYTES:]]
    if first is append.parts[0]:
        buffers += append.parts[1:]
    return buffers, len(frame) + append.size_bytes
