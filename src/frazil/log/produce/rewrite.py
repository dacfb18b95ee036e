"""Replace the values of a client's batch, which keeps its producer, its order and its codec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from frazil.log.append import Append
from frazil.log.format.batch import encode_batch, parse_header, with_max_timestamp
from frazil.log.format.record import Record


def with_append_time(append: Append, now_ms: int) -> Append:
    """Return a batch whose records all have the time at which the log took them."""
    data = with_max_timestamp(append.payload, now_ms, append_time=True)
    return replace(append, parts=(data,), header=parse_header(data))


def with_values(append: Append, records: Sequence[Record], values: Sequence[bytes]) -> Append:
    """Return a batch with other values in its records, which are all of them."""
    header = append.header
    data = encode_batch(
        [replace(record, value=value) for record, value in zip(records, values, strict=True)],
        last_offset_delta=header.last_offset_delta,
        compression=header.compression,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
    )
    return replace(append, parts=(data,), header=parse_header(data))
