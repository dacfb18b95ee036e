"""The rules for a client's batch in plain Python: what the compiled code must equal."""

from __future__ import annotations

from frazil.errors import Malformed
from frazil.log.format.batch import (
    BatchHeader,
    check_batch,
    parse_header,
    read_records,
    with_max_timestamp,
)
from frazil.log.format.compression import DECOMPRESSED_BYTES_MAX


def validate_by_records(
    data: bytes, *, bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> tuple[BatchHeader, bytes, int | None]:
    """Decode every record, and look at it."""
    header = check_batch(data)
    if header.is_control or header.uses_append_time or header.delete_horizon_ms is not None:
        raise Malformed(f"attributes {header.attributes:#x} must not be set by clients")
    if header.base_offset != 0:
        raise Malformed(f"base offset {header.base_offset}; a client must send 0")
    if header.record_count != header.last_offset_delta + 1:
        raise Malformed(
            f"{header.record_count} records with last offset delta {header.last_offset_delta}"
        )
    if header.producer_id >= 0 and min(header.producer_epoch, header.base_sequence) < 0:
        raise Malformed(
            f"producer {header.producer_id} with epoch {header.producer_epoch}"
            f" and sequence {header.base_sequence}"
        )
    if header.producer_id < -1 or (header.is_transactional and header.producer_id < 0):
        raise Malformed(f"producer id {header.producer_id}")
    records = read_records(data, bytes_max=bytes_max)
    for record in records:
        if record.timestamp_ms < -1:
            raise Malformed(f"timestamp {record.timestamp_ms} of record {record.offset}")
    latest_ms = max(record.timestamp_ms for record in records)
    keyless = [record.offset for record in records if record.key is None]
    if latest_ms != header.max_timestamp_ms:
        data = with_max_timestamp(data, latest_ms)
    return parse_header(data), data, keyless[0] if keyless else None
