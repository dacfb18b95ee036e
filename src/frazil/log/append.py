"""Append and AppendResult: what a producer submits, and the response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from frazil.disk import Buffer
from frazil.errors import Malformed, TooLarge
from frazil.log.dedup.digests import DIGEST_BYTES, DIGEST_HEADER
from frazil.log.dedup.source_positions import SourceStep, check_step, header_of_step
from frazil.log.format.batch import BatchHeader, encode_parts
from frazil.log.format.compression import Compression
from frazil.log.format.record import Record
from frazil.settings import TopicConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """One encoded record batch without an offset.

    Its parts are written one after the other; the first contains the batch header.
    """

    parts: tuple[Buffer, ...]
    header: BatchHeader
    digest: bytes | None = None
    step: SourceStep | None = None
    keyless_index: int | None = None
    """The first record without a key; None if every record has one."""
    expects_offset: int | None = None
    """Where the partition must end for the batch to be appended; None: anywhere."""

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
    step: SourceStep | None = None,
    compression: Compression = Compression.NONE,
    append_time: bool = False,
    expects_offset: int | None = None,
) -> Append:
    """Encode our own records. The log assigns their offsets, in this order.

    With a digest, a repetition within the window is not stored again. With a step they are stored
    only if they continue the position of their source. `append_time` tells clients that their
    latest timestamp is when the log took all of them. With `expects_offset` they are refused with
    `Conflict` unless the partition ends there; a repetition is answered all the same.
    """
    records = [r if r.offset == i else replace(r, offset=i) for i, r in enumerate(records)]
    if digest is not None and records:
        assert len(digest) == DIGEST_BYTES
        records = _with_header(records, (DIGEST_HEADER, digest))
    if step is not None:
        check_step(step)
        if not records:
            raise Malformed(f"a step of {step.source} has no records: the log stores none")
        records = _with_header(records, header_of_step(step))
    header, parts = encode_parts(records, compression=compression, append_time=append_time)
    keyless_index = next((i for i, record in enumerate(records) if record.key is None), None)
    return Append(
        parts=tuple(parts),
        header=header,
        digest=digest,
        step=step,
        keyless_index=keyless_index,
        expects_offset=expects_offset,
    )


def _with_header(records: Sequence[Record], header: tuple[str, bytes]) -> list[Record]:
    """Return the records, of which the first has one more header."""
    first = records[0]
    return [replace(first, headers=(*first.headers, header)), *records[1:]]


def check_append(append: Append, topic: str, config: TopicConfig, log_max: int) -> None:
    """Raise `TooLarge` if a batch is above the limit of the log, or of its topic, and `Malformed`
    if a record lacks the key that a compacted topic needs."""
    size, topic_max = append.size_bytes, config.batch_bytes_max
    if size > log_max or (topic_max is not None and size > topic_max):
        limit = f"batch_bytes_max of topic {topic} ({topic_max})"
        if size > log_max:
            limit = f"log.batch_bytes_max ({log_max})"
        raise TooLarge(f"a batch of {size} bytes is above {limit}; send smaller batches")
    if append.keyless_index is not None and config.is_compacted:
        raise Malformed(
            f"topic {topic} is compacted: every record needs a key, but record "
            f"{append.keyless_index} has none"
        )


def digest_of(records: Sequence[Record]) -> bytes | None:
    """Return the digest in a stored batch's records, None if there is none. The last header of
    that name is ours."""
    for key, value in reversed(records[0].headers) if records else ():
        if key == DIGEST_HEADER and value is not None and len(value) == DIGEST_BYTES:
            return value
    return None
