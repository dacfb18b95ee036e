"""What a producer asks the log to add, and what it gets back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from frazil.log.dedup.digests import DIGEST_BYTES, DIGEST_HEADER
from frazil.log.format.batch import BatchHeader, encode_parts, validate_produced
from frazil.log.format.compression import Compression
from frazil.log.format.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """One whole record batch, encoded, waiting for its offset.

    It comes in parts that are written one after the other; the first holds the batch header.
    """

    parts: tuple[bytes, ...]
    header: BatchHeader
    digest: bytes | None = None

    @property
    def size_bytes(self) -> int:
        return self.header.size_bytes

    @property
    def payload(self) -> bytes:
        return b"".join(self.parts)


class AppendResult(NamedTuple):
    """Where a batch lies: durable, and readable by everybody."""

    base_offset: int
    end_offset: int
    is_duplicate: bool


def append_of_records(
    records: Sequence[Record],
    *,
    digest: bytes | None = None,
    compression: Compression = Compression.NONE,
) -> Append:
    """Encode records of our own; they get their offsets from the log, in this order.

    A digest makes a repetition within the window a no-op.
    """
    records = [r if r.offset == i else replace(r, offset=i) for i, r in enumerate(records)]
    if digest is not None and records:
        assert len(digest) == DIGEST_BYTES
        first = records[0]
        headers = (*first.headers, (DIGEST_HEADER, digest))
        records = [replace(first, headers=headers), *records[1:]]
    header, parts = encode_parts(records, compression=compression)
    return Append(parts=tuple(parts), header=header, digest=digest)


def append_of_batch(payload: bytes) -> Append:
    """Take a batch a Kafka client has encoded. `Malformed` unless every byte is in order."""
    header, payload = validate_produced(payload)
    return Append(parts=(payload,), header=header)


def digest_of(records: Sequence[Record]) -> bytes | None:
    """The digest a stored batch's records carry, if they do. Ours is the last of that name."""
    for key, value in reversed(records[0].headers) if records else ():
        if key == DIGEST_HEADER and value is not None and len(value) == DIGEST_BYTES:
            return value
    return None
