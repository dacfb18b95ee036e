"""The loop over the records of a produced batch, compiled by numba: no objects, no GIL.

It checks all that `format.record.read_record` checks, and has its order, so that both find the same
fault. Compiled code checks no bounds, so every read is proven safe: a position is compared with the
end of the batch before it is read. A position is an address. All numbers are int64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from frazil.model.protobuf import address_of, byte_at, compiled, inlined, is_text, part

WELL, ENDS, VARINT_LONG, VARINT_WIDE, RECORD_LENGTH, FIELD_LENGTH, FIELDS_LENGTH = range(7)
HEADER_COUNT, HEADER_NAMELESS, HEADER_NOT_TEXT, TIMESTAMP_WIDE, TIMESTAMP, OFFSET, REST = range(
    7, 14
)
FAULTS = {
    ENDS: "the batch ends inside a record",
    VARINT_LONG: "a varint has more bytes than {} bits need",
    VARINT_WIDE: "a varint does not fit into {} bits",
    RECORD_LENGTH: "a record of {} bytes with {} left",
    FIELD_LENGTH: "a field of {} bytes with {} left",
    FIELDS_LENGTH: "a record of {} bytes has {} bytes of fields",
    HEADER_COUNT: "{} record headers in {} bytes",
    HEADER_NAMELESS: "a record header without a name",
    HEADER_NOT_TEXT: "a record header's name is not UTF-8",
    TIMESTAMP_WIDE: "timestamp {} does not fit into 64 bits",
    TIMESTAMP: "timestamp {} of record {}",
    OFFSET: "offset {} is not in {}..{}",
    REST: "{} bytes after the last record",
}
"""Texts of the faults, with the numbers that `walk` returns."""

NULL_LENGTH = -1
NO_TIMESTAMP_MS = -1
INT64_MAX = 2**63 - 1
NONE = -1

Bytes = NDArray[np.uint8]
Result = tuple[int, int, int, int, int, int]


@compiled
def walk(body: Bytes, begin: int, count: int, base_timestamp_ms: int) -> Result:
    """Check `count` records from index `begin` of `body` to its end.

    Returns a fault with two numbers for its text, the index of the record, the latest timestamp,
    and the index of the first record without a key (or -1).
    """
    start = address_of(body)
    position = start + begin
    batch_end = start + body.size
    latest_ms = NO_TIMESTAMP_MS
    keyless = NONE
    lowest = 0
    for index in range(count):
        length, position = _read_int(position, batch_end)
        if position < 0:
            return -position, length, 0, index, latest_ms, keyless
        if length < 0 or length > batch_end - position:
            return RECORD_LENGTH, length, batch_end - position, index, latest_ms, keyless
        end = position + length
        # Skip the byte of record attributes: no bit is defined.
        timestamp_delta, position = _read_varint(position + 1, batch_end, 64)
        if position < 0:
            return -position, timestamp_delta, 0, index, latest_ms, keyless
        offset, position = _read_int(position, batch_end)
        if position < 0:
            return -position, offset, 0, index, latest_ms, keyless
        key_length, left, position = _read_field(position, end, batch_end)
        if position < 0:
            return -position, key_length, left, index, latest_ms, keyless
        value_length, left, position = _read_field(position, end, batch_end)
        if position < 0:
            return -position, value_length, left, index, latest_ms, keyless
        detail, left, position = _read_headers(position, end, batch_end)
        if position < 0:
            return -position, detail, left, index, latest_ms, keyless
        if position != end:
            return FIELDS_LENGTH, length, position - end + length, index, latest_ms, keyless
        timestamp_ms = base_timestamp_ms + timestamp_delta
        # The sum has another sign than both terms: it does not fit.
        is_wide = (base_timestamp_ms ^ timestamp_ms) & (timestamp_delta ^ timestamp_ms) < 0
        if is_wide or timestamp_ms == -INT64_MAX - 1:
            return TIMESTAMP_WIDE, timestamp_delta, 0, index, latest_ms, keyless
        if offset < lowest or offset >= count:
            return OFFSET, offset, lowest, index, latest_ms, keyless
        lowest = offset + 1
        if timestamp_ms < NO_TIMESTAMP_MS:
            return TIMESTAMP, timestamp_ms, offset, index, latest_ms, keyless
        latest_ms = max(latest_ms, timestamp_ms)
        if key_length == NULL_LENGTH and keyless == NONE:
            keyless = index
    if position != batch_end:
        return REST, batch_end - position, 0, count, latest_ms, keyless
    return WELL, 0, 0, count, latest_ms, keyless


@inlined
def _read_int(position: int, end: int) -> tuple[int, int]:
    """Read a varint of 32 bits. Returns it and the position after it, or a number for the text of
    the fault and the negated fault."""
    if position < end:
        byte = byte_at(position)
        if byte < 128:
            return byte >> 1 ^ -(byte & 1), position + 1
    return _read_varint(position, end, 32)


@part
def _read_varint(position: int, end: int, bits: int) -> tuple[int, int]:
    """Read a varint of 32 or 64 bits, as `_read_int` does."""
    raw = shift = 0
    is_wide = False
    while True:
        if shift >= bits:
            return bits, -VARINT_LONG
        if position >= end:
            return 0, -ENDS
        byte = byte_at(position)
        low = byte & 127
        is_wide |= low >> min(7, bits - shift) != 0
        raw |= low << shift
        position += 1
        shift += 7
        if byte < 128:
            break
    if is_wide:
        return bits, -VARINT_WIDE
    return raw >> 1 & INT64_MAX ^ -(raw & 1), position


@inlined
def _read_field(position: int, end: int, batch_end: int) -> tuple[int, int, int]:
    """Skip a key, value, header name or header content. Returns its length, 0 and the position
    after it, or two numbers for the text of the fault and the negated fault."""
    length, position = _read_int(position, batch_end)
    if position < 0 or length == NULL_LENGTH:
        return length, 0, position
    if length < 0 or length > end - position:
        return length, end - position, -FIELD_LENGTH
    return length, 0, position + length


@part
def _read_headers(position: int, end: int, batch_end: int) -> tuple[int, int, int]:
    """Skip the headers of a record. Returns as `_read_field` does."""
    count, position = _read_int(position, batch_end)
    if position < 0:
        return count, 0, position
    if count < 0 or count > end - position:
        return count, end - position, -HEADER_COUNT
    for _ in range(count):
        name_length, left, position = _read_field(position, end, batch_end)
        if position < 0:
            return name_length, left, position
        name_end = position
        length, left, position = _read_field(position, end, batch_end)
        if position < 0:
            return length, left, position
        if name_length == NULL_LENGTH:
            return 0, 0, -HEADER_NAMELESS
        if not is_text(name_end - name_length, name_end):
            return 0, 0, -HEADER_NOT_TEXT
    return 0, 0, position
