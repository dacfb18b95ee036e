"""Append and AppendResult: what a producer submits, and the response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from frazil.disk import Buffer
from frazil.errors import TooLarge
from frazil.log.dedup.digests import DIGEST_BYTES, DIGEST_HEADER
from frazil.log.format.batch import BatchHeader, encode_parts
from frazil.log.format.compression import Compression
from frazil.log.format.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """One encoded record batch without an offset.

    Its parts are written one after the other; the first contains the batch header.
    """

    parts: tuple[Buffer, ...]
    header: BatchHeader
    digest: bytes | None = None
    keyless_index: int | None = None
    """The first record without a key; None if every record has one."""

    @property
    def size_bytes(self) -> int:
        return self.header.size_bytes

    @property
    def payload(self) -> bytes:
        return b"".join(self.parts)


class AppendResult(NamedTuple):
    """The offsets of a durable batch."""

    base_offset: int
    end_offset: int
    is_duplicate: bool


def append_of_records(
    records: Sequence[Record],
    *,
    digest: bytes | None = None,
    compression: Compression = Compression.NONE,
    append_time: bool = False,
) -> Append:
    """Encode our own records. The log assigns their offsets, in this order.

    With a digest, a repetition within the window is not stored again. `append_time` tells clients
    that their latest timestamp is when the log took all of them.
    """
    records = [r if r.offset == i else replace(r, offset=i) for i, r in enumerate(records)]
    if digest is not None and records:
        assert len(digest) == DIGEST_BYTES
        first = records[0]
        headers = (*first.headers, (DIGEST_HEADER, digest))
        records = [replace(first, headers=headers), *records[1:]]
    header, parts = encode_parts(records, compression=compression, append_time=append_time)
    keyless_index = next((i for i, record in enumerate(records) if record.key is None), None)
    return Append(parts=tuple(parts), header=header, digest=digest, keyless_index=keyless_index)


def check_size(append: Append, topic: str, log_max: int, topic_max: int | None) -> None:
    """Raise `TooLarge` if a batch is above the limit of the log, or of its topic."""
    size = append.size_bytes
    if size > log_max:
        limit = f"log.batch_bytes_max ({log_max})"
    elif topic_max is not None and size > topic_max:
        limit = f"batch_bytes_max of topic {topic} ({topic_max})"
    else:
        return
    raise TooLarge(f"a batch of {size} bytes is above {limit}; send smaller batches")


def digest_of(records: Sequence[Record]) -> bytes | None:
    """Return the digest in a stored batch's records, None if there is none. The last header of
    that name is ours."""
    for key, value in reversed(records[0].headers) if records else ():
        if key == DIGEST_HEADER and value is not None and len(value) == DIGEST_BYTES:
            return value
    return None
