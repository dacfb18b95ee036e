"""Record: one record of a batch, and its encoding.

The layout is in `docs/formats/record-batch.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.errors import Malformed

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

SHORT_VARINTS = tuple(bytes((n,)) for n in range(0x80))
NO_HEADERS = SHORT_VARINTS[0]
NULL = SHORT_VARINTS[1]
"""A length of -1."""

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One message and its offset."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def append_record(
    parts: list[bytes], record: Record, offset_delta: int, timestamp_delta: int
) -> None:
    """Append a record to the parts of a batch: bytes before the value, the value, bytes after
    it."""
    if offset_delta > INT32_MAX or max(abs(timestamp_delta), abs(record.timestamp_ms)) > INT64_MAX:
        raise Malformed(
            f"offset {record.offset} or timestamp {record.timestamp_ms} is out of range"
        )
    value = record.value if record.value is not None else b""
    before = b"".join(
        (
            b"\0",
            _varint(timestamp_delta),
            _varint(offset_delta),
            _nullable(record.key),
            _varint(-1 if record.value is None else len(value)),
        )
    )
    after = _headers(record.headers) if record.headers else NO_HEADERS
    length = len(before) + len(value) + len(after)
    parts += (_varint(length) + before, value, after)


def _headers(headers: Headers) -> bytes:
    parts = [_varint(len(headers))]
    for name, content in headers:
        try:
            parts += (_nullable(name.encode()), _nullable(content))
        except UnicodeEncodeError as error:
            raise Malformed(f"a header name is not text: {error}") from None
    return b"".join(parts)


def _nullable(content: bytes | None) -> bytes:
    return NULL if content is None else _varint(len(content)) + content


def _varint(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    if rest < 0x80:
        return SHORT_VARINTS[rest]
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def read_record(
    data: bytes, position: int, base_offset: int, base_timestamp_ms: int
) -> tuple[Record, int]:
    """Return the record at `position` of a batch with these bases, and the position after it.

    Raises `Malformed` if it is invalid, IndexError if the data ends inside it.
    """
    length, position = _read_varint(data, position, 32)
    end = position + length
    if not 0 <= length <= len(data) - position:
        raise Malformed(f"a record of {length} bytes with {len(data) - position} left")
    # Skip the byte of record attributes: no bit is defined.
    timestamp_delta, position = _read_varint(data, position + 1, 64)
    offset_delta, position = _read_varint(data, position, 32)
    key, position = _read_nullable(data, position, end)
    value, position = _read_nullable(data, position, end)
    header_count, position = _read_varint(data, position, 32)
    if not 0 <= header_count <= end - position:
        raise Malformed(f"{header_count} record headers in {end - position} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(header_count):
        name, position = _read_nullable(data, position, end)
        content, position = _read_nullable(data, position, end)
        if name is None:
            raise Malformed("a record header without a name")
        try:
            headers.append((name.decode(), content))
        except UnicodeDecodeError as error:
            raise Malformed(f"a record header's name is not UTF-8: {error.reason}") from None
    if position != end:
        raise Malformed(f"a record of {length} bytes has {position - end + length} bytes of fields")
    timestamp_ms = base_timestamp_ms + timestamp_delta
    if abs(timestamp_ms) > INT64_MAX:
        raise Malformed(f"timestamp {timestamp_ms} does not fit into 64 bits")
    record = Record(
        offset=base_offset + offset_delta,
        timestamp_ms=timestamp_ms,
        key=key,
        value=value,
        headers=tuple(headers),
    )
    return record, position


def _read_nullable(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = _read_varint(data, position, 32)
    if length == -1:
        return None, position
    if not 0 <= length <= end - position:
        raise Malformed(f"a field of {length} bytes with {end - position} left")
    return data[position : position + length], position + length


def _read_varint(data: bytes, position: int, bits: int) -> tuple[int, int]:
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    raw, shift = byte & 0x7F, 7
    while byte & 0x80:
        if shift >= bits:
            raise Malformed(f"a varint has more bytes than {bits} bits need")
        position += 1
        byte = data[position]
        raw |= (byte & 0x7F) << shift
        shift += 7
    if raw >> bits:
        raise Malformed(f"a varint does not fit into {bits} bits")
    return (raw >> 1) ^ -(raw & 1), position + 1
