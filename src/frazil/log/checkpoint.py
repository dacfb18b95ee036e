"""Files beside the segments that shorten recovery: `partition.ckpt`, `transactions.ckpt`,
`sources.ckpt`, `.index` and `.digests`.

Apart from producers, sources and digests of removed records, all of it can be rebuilt from the log.
The byte layouts are in `docs/formats/checkpoint.md`.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from frazil.disk import SALT_BYTES, Disk, is_full, read_checkpoint, write_checkpoint
from frazil.errors import Corrupt
from frazil.log.dedup.digests import Digest, encode_digests
from frazil.log.dedup.producers import Producers
from frazil.log.dedup.source_positions import SourcePositions
from frazil.log.index import (
    INDEX_KIND,
    INDEX_VERSION,
    SegmentInfo,
    SparseIndex,
    decode_index,
    encode_index,
)
from frazil.log.segment import SegmentHeader, side_name
from frazil.log.transactions.aborted_file import read_aborted
from frazil.log.transactions.state import Transactions, decode_state
from frazil.metrics import Counter
from frazil.model import Rand
from frazil.settings import LogConfig

logger = logging.getLogger(__name__)

STATE_NAME = "partition.ckpt"
STATE_KIND = b"PART"
STATE_VERSION = 2
STATE_VERSION_MIN = 1
"""Version 1 had no producers without batches, and is otherwise the same."""
STATE = struct.Struct("<QQ")
TRANSACTIONS_NAME = "transactions.ckpt"
TRANSACTIONS_KIND = b"TXNS"
TRANSACTIONS_VERSION = 1
SOURCES_NAME = "sources.ckpt"
SOURCES_KIND = b"SRCS"
SOURCES_VERSION = 1
SOURCES = struct.Struct("<Q")
SOURCES_HINT = (
    "Restore the file from a copy, or set it aside with `frazil repair`: then the log does not "
    "know how far connectors and streams have copied into this partition, and they start anew."
)
DIGESTS_KIND = b"DGST"
DIGESTS_VERSION = 1
DERIVED_HINT = "It is rebuilt from the log."

SIDE_FILES_SKIPPED = Counter(
    "frazil.log.side_files.skipped", "Side files not written because the disk was full."
)


@contextmanager
def skipped_when_full() -> Iterator[None]:
    """Leave the rest to the next start if the disk is full: it reads segments instead of side
    files, and removes what is not needed."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        SIDE_FILES_SKIPPED.add()
        logger.warning("disk full: side files are left to the next start")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFiles:
    """Where the files of a partition are, and the settings they are written with."""

    disk: Disk
    folder: str
    identity: int
    config: LogConfig
    rand: Rand

    def new_header(self, base_offset: int, now_ms: int) -> SegmentHeader:
        """Return a segment header with a fresh salt."""
        return SegmentHeader(
            identity=self.identity,
            salt=self.rand.randbytes(SALT_BYTES),
            base_offset=base_offset,
            created_ms=now_ms,
        )


@dataclass(slots=True, kw_only=True)
class CheckpointState:
    """Contents of `partition.ckpt`; zeros if it is missing or damaged."""

    start_offset: int = 0
    end_offset: int = 0
    producers: Producers
    is_known: bool = False
    is_damaged: bool = False

    @classmethod
    def load(cls, files: PartitionFiles, now_ms: int) -> CheckpointState:
        path = f"{files.folder}/{STATE_NAME}"
        try:
            body = read_state(files.disk, path, DERIVED_HINT)
        except Corrupt as damage:
            logger.warning("producer state is rebuilt", extra={"reason": str(damage)})
            return cls(producers=Producers(), is_damaged=True)
        if body is None:
            return cls(producers=Producers())
        start, end = STATE.unpack_from(body)
        producers = Producers.decode(body[STATE.size :], now_ms)
        return cls(start_offset=start, end_offset=end, producers=producers, is_known=True)


def read_state(disk: Disk, path: str, hint: str) -> bytes | None:
    """Return the body of a `partition.ckpt` of any version; None if there is no file."""
    return read_checkpoint(
        disk, path, STATE_KIND, STATE_VERSION, hint, version_min=STATE_VERSION_MIN
    )


def save_state(
    files: PartitionFiles, start_offset: int, end_offset: int, producers: Producers
) -> None:
    """Write `partition.ckpt`. It shortens recovery and keeps producers of trimmed segments."""
    body = STATE.pack(start_offset, end_offset) + producers.encode()
    path = f"{files.folder}/{STATE_NAME}"
    write_checkpoint(files.disk, path, STATE_KIND, STATE_VERSION, body)


def load_transactions(files: PartitionFiles, state_end: int) -> tuple[Transactions, int]:
    """Return the transactions as saved, and the offset from which the log must be replayed.

    Without the file there were none when `partition.ckpt` was saved, up to `state_end`. If it or
    the aborted ones are damaged, everything is replayed.
    """
    path = f"{files.folder}/{TRANSACTIONS_NAME}"
    try:
        body = read_checkpoint(
            files.disk, path, TRANSACTIONS_KIND, TRANSACTIONS_VERSION, DERIVED_HINT
        )
        if body is None:
            return Transactions(), state_end
        end_offset, aborted_count, open_offsets = decode_state(body)
        aborted = read_aborted(files.disk, files.folder, aborted_count)
    except Corrupt as damage:
        logger.warning("transactions are rebuilt", extra={"reason": str(damage)})
        return Transactions(), 0
    return Transactions(open_offsets, aborted), end_offset


def save_transactions(files: PartitionFiles, transactions: Transactions, end_offset: int) -> None:
    """Write `transactions.ckpt`. The file of aborted ones must be synced before."""
    path = f"{files.folder}/{TRANSACTIONS_NAME}"
    body = transactions.encode(end_offset)
    write_checkpoint(files.disk, path, TRANSACTIONS_KIND, TRANSACTIONS_VERSION, body)


def load_sources(
    files: PartitionFiles, state_end: int, *, is_whole: bool
) -> tuple[SourcePositions, int]:
    """Return the positions of sources as saved, and the offset from which the log must be replayed.

    Without the file there were none when `partition.ckpt` was saved, up to `state_end`. If it is
    damaged and the log `is_whole`, everything is replayed. Otherwise an older position could be
    taken for the last one, and records would be copied twice: raises `Corrupt`.
    """
    path = f"{files.folder}/{SOURCES_NAME}"
    try:
        body = read_checkpoint(files.disk, path, SOURCES_KIND, SOURCES_VERSION, SOURCES_HINT)
    except Corrupt as damage:
        if not is_whole:
            raise
        logger.warning("positions of sources are rebuilt", extra={"reason": str(damage)})
        return SourcePositions(), 0
    if body is None:
        return SourcePositions(), state_end
    (end_offset,) = SOURCES.unpack_from(body)
    return SourcePositions.decode(body[SOURCES.size :]), end_offset


def save_sources(files: PartitionFiles, positions: SourcePositions, end_offset: int) -> None:
    """Write `sources.ckpt`."""
    path = f"{files.folder}/{SOURCES_NAME}"
    body = SOURCES.pack(end_offset) + positions.encode()
    write_checkpoint(files.disk, path, SOURCES_KIND, SOURCES_VERSION, body)


def save_index(files: PartitionFiles, salt: bytes, info: SegmentInfo, index: SparseIndex) -> None:
    path = f"{files.folder}/{side_name(info.base_offset, '.index')}"
    body = encode_index(salt, info, index)
    write_checkpoint(files.disk, path, INDEX_KIND, INDEX_VERSION, body)


def load_index(files: PartitionFiles, base: int) -> tuple[bytes, SegmentInfo, SparseIndex] | None:
    """Return salt, info and index of a sealed segment; None if the file is missing or damaged."""
    path = f"{files.folder}/{side_name(base, '.index')}"
    try:
        body = read_checkpoint(files.disk, path, INDEX_KIND, INDEX_VERSION, DERIVED_HINT)
    except Corrupt as damage:
        logger.warning("log index is rebuilt", extra={"reason": str(damage)})
        return None
    return decode_index(body, files.config.index_interval_bytes) if body is not None else None


def save_digests(files: PartitionFiles, base_offset: int, entries: list[Digest]) -> None:
    path = f"{files.folder}/{side_name(base_offset, '.digests')}"
    write_checkpoint(files.disk, path, DIGESTS_KIND, DIGESTS_VERSION, encode_digests(entries))
