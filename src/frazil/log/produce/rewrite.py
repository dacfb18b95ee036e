"""Change the values, the times or the compression of a client's batch, which keeps its producer and
its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from frazil.log.append import Append
from frazil.log.format.batch import (
    encode_batch,
    parse_header,
    with_compression,
    with_max_timestamp,
)
from frazil.log.format.compression import Compression
from frazil.log.format.record import Record


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
