"""Check batches from Kafka clients: header, checksum and every record.

Records are checked by compiled code that releases the GIL. The bytes are not copied, except to
decompress them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from google_crc32c import value as crc32c

from frazil.disk import Buffer
from frazil.errors import Malformed
from frazil.log.append import Append
from frazil.log.format.batch import (
    APPEND_TIME,
    CONTROL,
    DELETE_HORIZON,
    FRONT,
    HEADER_BYTES,
    NO_PRODUCER,
    BatchHeader,
    check_count,
    encode_batch,
    parse_header,
    parse_whole,
    with_compression,
    with_max_timestamp,
)
from frazil.log.format.compression import DECOMPRESSED_BYTES_MAX, Compression, decompress
from frazil.log.format.record import Record
from frazil.log.produce.walk import FAULTS, NONE, REST, TIMESTAMP_WIDE, WELL, Bytes, walk


class CrcMismatch(Malformed):
    """The bytes changed on their way: the client may send them again."""


class Produced(NamedTuple):
    """A valid batch, as the log may store it."""

    header: BatchHeader
    payload: Buffer
    keyless_index: int | None
    """The first record without a key, which a compacted topic refuses."""


def append_of_batch(data: Buffer) -> Append:
    """Wrap a batch that a Kafka client encoded. Raises `Malformed` or `TooLarge`.

    The append refers to the memory of `data`, which must not change until it is durable.
    """
    header, payload, keyless_index = validate_produced(data)
    return Append(parts=(payload,), header=header, keyless_index=keyless_index)


def stored_as(
    append: Append, compression: Compression | None, append_time_ms: int | None
) -> Append:
    """Return the batch of a client as its topic stores it. None leaves what the client sent."""
    (payload,) = append.parts
    if compression is not None and compression is not append.header.compression:
        payload = with_compression(payload, compression)
    if append_time_ms is not None:
        payload = with_max_timestamp(payload, append_time_ms, append_time=True)
    return replace(append, parts=(payload,), header=parse_header(payload))


def validate_produced(data: Buffer, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Produced:
    """Check a batch from a client, including its records. Raises `Malformed` or `TooLarge`.

    The bytes are unchanged, unless the client sent a wrong max timestamp: that is corrected, as
    Kafka does, because common clients send none and retention relies on it.
    """
    header = parse_whole(data)
    view = memoryview(data).toreadonly()
    # The library takes bytes and arrays, but no memoryview.
    computed = crc32c(_array(view[FRONT.size :]))
    if computed != header.crc:
        raise CrcMismatch(f"batch CRC32C is {computed:08x}, its header says {header.crc:08x}")
    _check_header(header)
    latest_ms, keyless = _check_records(header, view, bytes_max)
    if latest_ms != header.max_timestamp_ms:
        data = with_max_timestamp(data, latest_ms)
        header = parse_header(data)
    return Produced(header, data, None if keyless == NONE else keyless)


def warm() -> None:
    """Compile the loop, or load it from disk, so that no request waits."""
    validate_produced(encode_batch([Record(offset=0, timestamp_ms=0, key=None, value=None)]))


def _array(view: memoryview) -> Bytes:
    """Return an array over the same memory. Compiled code takes read-only ones."""
    return np.frombuffer(view, np.uint8)


def _check_header(header: BatchHeader) -> None:
    if header.attributes & (APPEND_TIME | CONTROL | DELETE_HORIZON):
        raise Malformed(f"attributes {header.attributes:#x} must not be set by clients")
    if header.base_offset != 0:
        raise Malformed(f"base offset {header.base_offset}; a client must send 0")
    if header.record_count != header.last_offset_delta + 1:
        raise Malformed(
            f"{header.record_count} records with last offset delta {header.last_offset_delta}"
        )
    if header.has_producer and (header.producer_epoch < 0 or header.base_sequence < 0):
        raise Malformed(
            f"producer {header.producer_id} with epoch {header.producer_epoch}"
            f" and sequence {header.base_sequence}"
        )
    if header.producer_id < NO_PRODUCER or (header.is_transactional and not header.has_producer):
        raise Malformed(f"producer id {header.producer_id}")


def _check_records(header: BatchHeader, body: memoryview, bytes_max: int) -> tuple[int, int]:
    """Return the latest timestamp and the index of the first record without a key."""
    count, begin = header.record_count, HEADER_BYTES
    check_count(count)
    if header.compression is not Compression.NONE and len(body) > begin:
        body = decompress(header.compression, body[begin:], bytes_max=bytes_max).toreadonly()
        begin = 0
    fault, first, second, index, latest_ms, keyless = walk(
        _array(body), begin, count, header.base_timestamp_ms
    )
    if fault != WELL:
        if fault == TIMESTAMP_WIDE:
            first += header.base_timestamp_ms
        # Of the numbers, each text has as many as it needs.
        where = "" if fault == REST else f", in record {index}"
        raise Malformed(FAULTS[fault].format(first, second, count - 1) + where)
    return latest_ms, keyless
