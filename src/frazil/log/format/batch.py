"""Record batches: the same bytes on disk, in memory and in the Kafka protocol.

The layout is Kafka's record batch version 2, see `docs/formats/record-batch.md`. No I/O. Decoders
treat their input as hostile and raise only `Malformed` and `TooLarge`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypedDict, Unpack

from google_crc32c import extend as extend_crc32c
from google_crc32c import value as crc32c

from frazil.disk import Buffer
from frazil.errors import Malformed, TooLarge
from frazil.log.format.compression import DECOMPRESSED_BYTES_MAX, Compression, compress, decompress
from frazil.log.format.record import INT32_MAX, INT64_MAX, Record, append_record, read_record

NO_PRODUCER = -1
NO_SEQUENCE = -1
NO_TIMESTAMP_MS = -1

MAGIC = 2
FRONT = struct.Struct(">qiibI")
"""Base offset, batch length, leader epoch, magic, CRC32C of everything after it."""
CHECKED = struct.Struct(">hiqqqhii")
"""Attributes, last offset delta, base and max timestamp, producer id, producer epoch, base
sequence, record count; then the records."""
STAMP = struct.Struct(">qii")
"""The fields of FRONT that the log assigns, and the length between them."""
HEADER_BYTES = FRONT.size + CHECKED.size
LENGTH_END = 12
"""The batch length counts the bytes after itself."""

COMPRESSION_MASK = 0x07
APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
KNOWN_ATTRIBUTES = 0x7F

RECORD_COUNT_MAX = 1_000_000
"""A record takes 7 bytes encoded and hundreds in memory; real batches have thousands."""


class BatchHeader(NamedTuple):
    """Header fields of a batch. `parse_header` returns only valid values.

    A tuple, because one is created for every batch on its way to the disk.
    """

    base_offset: int
    batch_length: int
    leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """Size of the batch, including the header."""
        return LENGTH_END + self.batch_length

    @property
    def end_offset(self) -> int:
        """First offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> Compression:
        return Compression(self.attributes & COMPRESSION_MASK)

    @property
    def uses_append_time(self) -> bool:
        """Whether all records have the append time, which is `max_timestamp_ms`."""
        return bool(self.attributes & APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may remove the tombstones; None if not decided."""
        return self.base_timestamp_ms if self.attributes & DELETE_HORIZON else None

    @property
    def has_producer(self) -> bool:
        return self.producer_id >= 0

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record. Sequences wrap from 2^31-1 to 0."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & INT32_MAX


class BatchFields(TypedDict, total=False):
    """Arguments of `encode_parts` other than the records."""

    base_offset: int
    last_offset_delta: int | None
    max_timestamp_ms: int | None
    append_time: bool
    delete_horizon_ms: int | None
    compression: Compression
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    control: bool
    leader_epoch: int


def encode_parts(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    last_offset_delta: int | None = None,
    max_timestamp_ms: int | None = None,
    append_time: bool = False,
    delete_horizon_ms: int | None = None,
    compression: Compression = Compression.NONE,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = 0,
) -> tuple[BatchHeader, list[bytes]]:
    """Encode a batch of records with increasing offsets from `base_offset` on, in parts that are
    written one after the other, so that a large value is never copied.

    The first part has the header and the bytes before the first value. None means derived from the
    records; compaction, which removes records, passes the values. A batch without records needs
    `last_offset_delta` and is never compressed.
    """
    attributes = int(compression) if records else 0
    base_timestamp_ms = records[0].timestamp_ms if records else NO_TIMESTAMP_MS
    if delete_horizon_ms is not None:
        attributes, base_timestamp_ms = attributes | DELETE_HORIZON, delete_horizon_ms
    if last_offset_delta is None:
        last_offset_delta = records[-1].offset - base_offset if records else -1
    if max_timestamp_ms is None:
        max_timestamp_ms = (
            base_timestamp_ms
            if len(records) == 1 and delete_horizon_ms is None
            else max((r.timestamp_ms for r in records), default=NO_TIMESTAMP_MS)
        )
    attributes |= append_time * APPEND_TIME | transactional * TRANSACTIONAL | control * CONTROL
    check_count(len(records))

    parts: list[bytes] = []
    lowest = base_offset
    for record in records:
        if record.offset < lowest:
            raise Malformed(f"offset {record.offset}; expected {lowest} or above")
        lowest = record.offset + 1
        append_record(
            parts, record, record.offset - base_offset, record.timestamp_ms - base_timestamp_ms
        )
    if records and compression is not Compression.NONE:
        parts = [compress(compression, b"".join(parts))]
    try:
        checked = CHECKED.pack(
            attributes,
            last_offset_delta,
            base_timestamp_ms,
            max_timestamp_ms,
            producer_id,
            producer_epoch,
            base_sequence,
            len(records),
        )
        front = _front(base_offset, leader_epoch, checked, parts)
    except struct.error as error:
        raise Malformed(f"a batch field is out of range: {error}") from None
    header = parse_header(front)
    if lowest > base_offset + last_offset_delta + 1:
        raise Malformed(f"offset {lowest - 1} is after the last offset delta {last_offset_delta}")
    return header, [front + parts[0], *parts[1:]] if parts else [front]


def encode_batch(records: Sequence[Record], **fields: Unpack[BatchFields]) -> bytes:
    """Encode a batch as one bytes object."""
    _, parts = encode_parts(records, **fields)
    return b"".join(parts)


def parse_header(data: Buffer, position: int = 0) -> BatchHeader:
    """Return the header at `position`. Raises `Malformed` if no batch can start there.

    Reads only the header: records may be missing and the CRC wrong.
    """
    if not 0 <= position <= len(data) - HEADER_BYTES:
        left = len(data) - position
        raise Malformed(f"{left} bytes left; a batch header has {HEADER_BYTES}")
    base_offset, length, leader_epoch, magic, crc = FRONT.unpack_from(data, position)
    if magic != MAGIC:
        raise Malformed(f"record format {magic}; only version {MAGIC} is supported")
    checked = CHECKED.unpack_from(data, position + FRONT.size)
    attributes, last_offset_delta, count = checked[0], checked[1], checked[-1]
    if length < HEADER_BYTES - LENGTH_END:
        raise Malformed(f"batch length {length} is shorter than a header")
    if attributes & ~KNOWN_ATTRIBUTES or attributes & COMPRESSION_MASK > Compression.ZSTD:
        raise Malformed(f"unknown attributes {attributes:#x}")
    if base_offset < 0 or last_offset_delta < 0 or base_offset > INT64_MAX - last_offset_delta - 1:
        raise Malformed(f"base offset {base_offset} with last offset delta {last_offset_delta}")
    if not 0 <= count <= last_offset_delta + 1:
        raise Malformed(f"{count} records in a batch with last offset delta {last_offset_delta}")
    return BatchHeader(base_offset, length, leader_epoch, crc, *checked)


def is_compressed(data: Buffer) -> bool:
    """Return whether the records of a batch are compressed; False if it is too short to tell."""
    low_byte = FRONT.size + 1
    return len(data) > low_byte and bool(data[low_byte] & COMPRESSION_MASK)


def check_batch(data: bytes) -> BatchHeader:
    """Return the header if `data` is exactly one whole, undamaged batch. Raises `Malformed` if
    not."""
    header = parse_whole(data)
    computed = crc32c(data[FRONT.size :])
    if computed != header.crc:
        raise Malformed(f"batch CRC32C is {computed:08x}, its header says {header.crc:08x}")
    return header


def read_records(data: bytes, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """Return the records of one whole batch. Does not check the CRC: `check_batch` does."""
    return list(_iterate_records(parse_whole(data), data, bytes_max))


def with_base_offset(data: bytes, base_offset: int, leader_epoch: int = 0) -> bytes:
    """Return the batch with another base offset. Cheap: the CRC does not cover it."""
    stamp = STAMP.pack(base_offset, len(data) - LENGTH_END, leader_epoch)
    return b"".join((stamp, memoryview(data)[STAMP.size :]))


def with_max_timestamp(data: Buffer, timestamp_ms: int, *, append_time: bool = False) -> bytes:
    """Return the batch with another max timestamp; `append_time` makes it that of each record."""
    base_offset, _, leader_epoch, _, _ = FRONT.unpack_from(data)
    attributes, last_offset_delta, base_timestamp_ms, _, *rest = CHECKED.unpack_from(
        data, FRONT.size
    )
    attributes |= append_time * APPEND_TIME
    checked = CHECKED.pack(attributes, last_offset_delta, base_timestamp_ms, timestamp_ms, *rest)
    body = bytes(data[HEADER_BYTES:])
    return _front(base_offset, leader_epoch, checked, [body]) + body


def with_compression(
    data: Buffer, compression: Compression, *, bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """Return the batch with its records compressed in another way."""
    base_offset, _, leader_epoch, _, _ = FRONT.unpack_from(data)
    attributes, *rest = CHECKED.unpack_from(data, FRONT.size)
    body = bytes(data[HEADER_BYTES:])
    before = Compression(attributes & COMPRESSION_MASK)
    if before is not Compression.NONE:
        body = bytes(decompress(before, body, bytes_max=bytes_max))
    if compression is not Compression.NONE:
        body = compress(compression, body)
    checked = CHECKED.pack(attributes & ~COMPRESSION_MASK | compression, *rest)
    return _front(base_offset, leader_epoch, checked, [body]) + body


def _front(base_offset: int, leader_epoch: int, checked: bytes, parts: Sequence[bytes]) -> bytes:
    """Return the header of a batch that continues with `parts`."""
    length, crc = HEADER_BYTES - LENGTH_END, crc32c(checked)
    for part in parts:
        length += len(part)
        crc = extend_crc32c(crc, part)
    if length > INT32_MAX:
        raise TooLarge(f"a batch of {length} bytes; the limit of its length field is {INT32_MAX}")
    return FRONT.pack(base_offset, length, leader_epoch, MAGIC, crc) + checked


def parse_whole(data: Buffer) -> BatchHeader:
    """Return the header if `data` has the size it states. Raises `Malformed` if not."""
    header = parse_header(data)
    if header.size_bytes != len(data):
        raise Malformed(f"a batch of {header.size_bytes} bytes in {len(data)} bytes")
    return header


def _iterate_records(header: BatchHeader, data: bytes, bytes_max: int) -> Iterator[Record]:
    check_count(header.record_count)
    body, position = data, HEADER_BYTES
    if header.compression is not Compression.NONE and len(data) > HEADER_BYTES:
        packed = memoryview(data)[position:]
        body, position = bytes(decompress(header.compression, packed, bytes_max=bytes_max)), 0
    lowest = header.base_offset
    for _ in range(header.record_count):
        try:
            record, position = read_record(
                body, position, header.base_offset, header.base_timestamp_ms
            )
        except IndexError:
            raise Malformed("the batch ends inside a record") from None
        if not lowest <= record.offset < header.end_offset:
            raise Malformed(f"offset {record.offset} is not in {lowest}..{header.end_offset - 1}")
        lowest = record.offset + 1
        if header.uses_append_time:
            record = replace(record, timestamp_ms=header.max_timestamp_ms)
        yield record
    if position != len(body):
        raise Malformed(f"{len(body) - position} bytes after the last record")


def check_count(count: int) -> None:
    """Raise `TooLarge` if a batch may not have that many records."""
    if count > RECORD_COUNT_MAX:
        raise TooLarge(f"{count} records in one batch; the limit is {RECORD_COUNT_MAX}")
