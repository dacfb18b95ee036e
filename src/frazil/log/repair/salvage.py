"""Salvage: find the whole batches in a damaged segment, and the bytes that are none. Read-only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from google_crc32c import extend as extend_crc32c
from google_crc32c import value as crc32c

from frazil.disk import (
    FRAME_HEADER,
    FRAME_HEADER_BYTES,
    FRAME_MAGIC,
    HEAD_BYTES,
    PAYLOAD_BYTES_MAX,
    SALT_BYTES,
    File,
    find_frames,
    frame_header,
)
from frazil.errors import Corrupt, Malformed
from frazil.log.checkpoint import PartitionFiles
from frazil.log.format.batch import check_batch, parse_header
from frazil.log.segment import (
    HEADER_BYTES,
    SegmentHeader,
    StoredBatch,
    decode_segment_header,
    walk_batches,
)
from frazil.log.staging import LEADER_EPOCH
from frazil.model import OffsetRange


class DamagedBytes(NamedTuple):
    """Positions in a file from `begin` up to, not including, `end`."""

    begin: int
    end: int


def header_of(
    files: PartitionFiles, file: File, base: int
) -> tuple[SegmentHeader | None, bytes | None]:
    """Return the segment's header if it is valid, and the salt if it is another file's header."""
    try:
        header = decode_segment_header(file.read(0, HEADER_BYTES), "")
    except Corrupt:
        return None, None
    if (header.identity, header.base_offset) == (files.identity, base):
        return header, None
    return None, header.salt


def whole_batches(files: PartitionFiles, file: File, base: int, end: int) -> list[StoredBatch]:
    """Return every whole batch of the segment at `base`, anywhere in its file, by offset."""
    data = file.read(0, file.size())
    header, foreign_salt = header_of(files, file, base)
    if header is None:
        candidates = unsalted_batches(data, base, end, foreign_salt)
    else:
        candidates = _salted_batches(file, data, header)
    batches: list[StoredBatch] = []
    # Of two batches at one offset the later one counts: the other was undone.
    for batch in sorted(candidates, key=lambda b: (b.base_offset, -b.durable_watermark)):
        lowest = batches[-1].end_offset if batches else base
        if lowest <= batch.base_offset and batch.end_offset <= end:
            batches.append(batch)
    return batches


def _salted_batches(file: File, data: bytes, header: SegmentHeader) -> list[StoredBatch]:
    """Return the whole batches of a file with a valid header."""
    with_gaps = replace(header, is_rewritten=True)
    candidates: list[StoredBatch] = []
    position = HEADER_BYTES
    for head, _, _ in find_frames(data, 0, header.salt):
        if head >= position:  # not inside a whole batch
            for batch in walk_batches(file, with_gaps, head, len(data), header.base_offset):
                candidates.append(batch)
                position = batch.end
    return candidates


def unsalted_batches(
    data: bytes, base: int, end: int | None, foreign_salt: bytes | None
) -> list[StoredBatch]:
    """Return the whole batches of a file that lost its header, and with it the salt.

    A frame that is whole except for the unknown salt shows the effect of the salt on its checksum.
    The frames with the most common effect are the file's own; others were moved here by a bad disk,
    certainly if the header of their file was moved along.
    """
    by_effect: dict[int, list[StoredBatch]] = {}
    at = data.find(FRAME_MAGIC)
    while at >= 0:
        batch, effect = _unsalted_batch(data, at)
        if batch is None:
            at = data.find(FRAME_MAGIC, at + 1)
            continue
        if base <= batch.base_offset and (end is None or batch.end_offset <= end):
            by_effect.setdefault(effect, []).append(batch)
        at = data.find(FRAME_MAGIC, batch.end)
    if foreign_salt is not None:
        by_effect.pop(_effect(crc32c(foreign_salt), crc32c(bytes(SALT_BYTES)), HEAD_BYTES), None)
    most = max(map(len, by_effect.values()), default=0)
    return [batch for group in by_effect.values() if len(group) == most for batch in group]


def _unsalted_batch(data: bytes, at: int) -> tuple[StoredBatch | None, int]:
    """Return the batch of the frame at `data[at:]` if it is whole, and the effect of the salt."""
    if len(data) - at < FRAME_HEADER_BYTES:
        return None, 0
    _, length, base_offset, durable_watermark, flags, check = FRAME_HEADER.unpack_from(data, at)
    if length > PAYLOAD_BYTES_MAX:
        return None, 0
    frame_end = at + FRAME_HEADER_BYTES + length
    payload = data[at + FRAME_HEADER_BYTES : frame_end]
    try:
        header = check_batch(payload)
    except Malformed:
        return None, 0
    # The batch's checksum does not cover two fields.
    if (header.base_offset, header.leader_epoch, len(payload)) != (
        base_offset,
        LEADER_EPOCH,
        length,
    ):
        return None, 0
    head = payload[:HEAD_BYTES]
    unsalted = frame_header(head, length, base_offset, durable_watermark, flags, bytes(SALT_BYTES))
    effect = _effect(check, int.from_bytes(unsalted[-4:], "little"), HEAD_BYTES - len(head))
    batch = StoredBatch(
        base_offset, header.end_offset, at, frame_end, flags, durable_watermark, payload
    )
    return batch, effect


def _effect(check: int, unsalted: int, rest_bytes: int) -> int:
    """Return how two checksums differ once `rest_bytes` more bytes follow.

    A CRC is linear: the effect of a salt depends only on the number of bytes after it, so all
    frames of a file show the same.
    """
    rest = bytes(rest_bytes)
    effect: int = extend_crc32c(check ^ unsalted, rest) ^ extend_crc32c(0, rest)
    return effect


def uncovered(batches: list[StoredBatch], position: int, size: int) -> Iterator[DamagedBytes]:
    """Yield the bytes of a file that belong to no batch."""
    for batch in sorted(batches, key=lambda b: b.position):
        if batch.position > position:
            yield DamagedBytes(position, batch.position)
        position = batch.end
    if position < size:
        yield DamagedBytes(position, size)


def gaps(
    batches: list[StoredBatch], offsets: OffsetRange, header: SegmentHeader | None, size: int
) -> Iterator[OffsetRange]:
    """Yield the lost offsets. A gap between adjacent batches of a rewritten segment was left by
    compaction and is not a loss."""
    offset, position = offsets.begin, HEADER_BYTES
    is_rewritten = header is not None and header.is_rewritten
    for batch in batches:
        if batch.base_offset > offset and not (is_rewritten and batch.position == position):
            yield OffsetRange(offset, batch.base_offset)
        offset, position = batch.end_offset, batch.end
    if header is not None and is_rewritten and position == size == header.sealed_bytes:
        offset = max(offset, header.sealed_end_offset)
    if offset < offsets.end:
        yield OffsetRange(offset, offsets.end)


def frame_end_offsets(data: bytes, header: SegmentHeader) -> Iterator[int]:
    """Yield the end offset of each frame by its header, whether its batch is whole or not."""
    for position, _, _ in find_frames(data, 0, header.salt):
        try:
            yield parse_header(data, position + FRAME_HEADER_BYTES).end_offset
        except Malformed:
            continue
