"""WatermarkFile: start offset and durable watermark of a partition, stored outside its log.

A small file of four slots that are overwritten in place, so that it never needs more space:

- two *trim* slots, written alternately and synced, hold the start offset. They are written before
  a segment is unlinked: a segment missing without that is damage. One of the two is valid at any
  time; if neither is, the file is damaged.
- two *durable* slots, written alternately after every group commit and not synced, hold the
  durable watermark, the end of the open segment and the last stable offset, so that another
  process can follow without reading the segment. After kill -9 they are exact; after a power cut
  they may be old, never ahead.

The byte layout is in `docs/formats/marks.md`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from google_crc32c import value as crc32c

from frazil.disk import Disk, File

NAME = "marks"
SLOT_BYTES = 512
"""One disk sector: a slot is written completely or not at all."""
SLOT = struct.Struct("<4sQQQ")
CHECK = struct.Struct("<I")
TAIL = struct.Struct("<QQq")
"""Base offset, size and latest timestamp of the open segment; follows the check of a slot."""
TAIL_AT = SLOT.size + CHECK.size
STABLE = struct.Struct("<QQ")
"""Last stable offset, number of aborted transactions; follows the check of the tail."""
STABLE_AT = TAIL_AT + TAIL.size + CHECK.size
TRIM, DURABLE = b"TRIM", b"DURA"
FILE_BYTES = 4 * SLOT_BYTES


class SegmentTail(NamedTuple):
    """The open segment up to the durable watermark."""

    base_offset: int
    size_bytes: int
    max_timestamp_ms: int


class StablePoint(NamedTuple):
    """How far transactions are decided."""

    last_stable_offset: int
    aborted_count: int
    """Aborted transactions so far, with those that the log no longer has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWatermarks:
    """Contents of a watermark file; zeros and not `is_known` if it is new or damaged."""

    is_known: bool
    start_offset: int
    dropped_count: int
    durable_watermark: int
    tail: SegmentTail | None = None
    """The segment that ends at the durable watermark; None if an earlier release wrote the file."""
    stable: StablePoint | None = None
    """None if an earlier release wrote the file, which had no transactions."""

    @property
    def stable_point(self) -> StablePoint:
        return self.stable or StablePoint(self.durable_watermark, 0)


class WatermarkFile:
    """The open watermark file of one partition. Owned by the writer thread."""

    def __init__(self, file: File, trim_turn: int, durable_turn: int) -> None:
        self._file = file
        self._trim_turn = trim_turn
        self._durable_turn = durable_turn

    @classmethod
    def open(cls, disk: Disk, folder: str) -> tuple[WatermarkFile, StoredWatermarks]:
        """Open or create the file, and read it."""
        path = f"{folder}/{NAME}"
        if NAME in disk.list(folder):
            file = disk.open(path, "edit")
            file.settle()  # the page cache may show a trim whose sync failed
        else:
            file = disk.open(path, "create")
            disk.sync_directory(folder)
        data = file.read(0, FILE_BYTES)
        if len(data) < FILE_BYTES:  # new, truncated, or torn at creation
            file.append([bytes(FILE_BYTES - len(data))])
            data = data.ljust(FILE_BYTES, b"\0")
        trim_turn, _ = _newest(data, TRIM, 0)
        durable_turn, _ = _newest(data, DURABLE, 2)
        return cls(file, trim_turn, durable_turn), _decode(data)

    def trim(self, start_offset: int, dropped_count: int) -> None:
        """Store the new start offset. Durable on return."""
        self._trim_turn += 1
        self._write(TRIM, self._trim_turn, 0, start_offset, dropped_count)
        self._file.sync()

    def durable(
        self, watermark: int, tail: SegmentTail | None = None, stable: StablePoint | None = None
    ) -> None:
        """Store the durable watermark, the end of the open segment, and how far transactions are
        decided. A hint: not synced."""
        self._durable_turn += 1
        more = [] if tail is None else [TAIL.pack(*tail)]
        if tail is not None and stable is not None:
            more.append(STABLE.pack(*stable))
        self._write(DURABLE, self._durable_turn, 2, watermark, 0, more=more)

    def _write(
        self, kind: bytes, turn: int, first_slot: int, *values: int, more: Sequence[bytes] = ()
    ) -> None:
        slot = SLOT.pack(kind, turn, *values)
        body = slot + CHECK.pack(crc32c(slot))
        for part in more:
            body += part + CHECK.pack(_part_check(slot, part))
        self._file.write_at((first_slot + turn % 2) * SLOT_BYTES, body)

    def close(self) -> None:
        self._file.close()


class WatermarkReader:
    """Reads the watermarks of a partition without owning it. Keeps the file open."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._path = f"{folder}/{NAME}"
        self._file: File | None = None

    def read(self) -> StoredWatermarks:
        if self._file is None:
            try:
                self._file = self._disk.open(self._path)
            except FileNotFoundError:
                return _decode(bytes(FILE_BYTES))
        return _decode(self._file.read(0, FILE_BYTES).ljust(FILE_BYTES, b"\0"))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def read_watermarks(disk: Disk, folder: str) -> StoredWatermarks:
    """Read the watermarks of a partition once."""
    with closing(WatermarkReader(disk, folder)) as reader:
        return reader.read()


def _decode(data: bytes) -> StoredWatermarks:
    _, trim = _newest(data, TRIM, 0)
    turn, durable = _newest(data, DURABLE, 2)
    tail = _part(data, turn, TAIL_AT, TAIL.size) if durable else None
    stable = _part(data, turn, STABLE_AT, STABLE.size) if durable else None
    return StoredWatermarks(
        is_known=trim is not None,
        start_offset=trim[0] if trim else 0,
        dropped_count=trim[1] if trim else 0,
        durable_watermark=durable[0] if durable else 0,
        tail=SegmentTail(*TAIL.unpack(tail)) if tail else None,
        stable=StablePoint(*STABLE.unpack(stable)) if stable else None,
    )


def _part(data: bytes, turn: int, position: int, size: int) -> bytes | None:
    """Return the bytes at `position` of a durable slot, if they were written with it."""
    at = (2 + turn % 2) * SLOT_BYTES
    part = data[at + position : at + position + size]
    (check,) = CHECK.unpack_from(data, at + position + size)
    return part if check == _part_check(data[at : at + SLOT.size], part) else None


def _part_check(slot: bytes, part: bytes) -> int:
    """Return a checksum that ties a part to its slot. The slot's own checksum is left out: a CRC
    over bytes and their CRC is the same for all bytes."""
    check: int = crc32c(slot + part)
    return check


def _newest(data: bytes, kind: bytes, first_slot: int) -> tuple[int, tuple[int, int] | None]:
    """Return the turn and values of the newest valid slot of a kind."""
    best_turn, best = 0, None
    for slot in (first_slot, first_slot + 1):
        at = slot * SLOT_BYTES
        body = data[at : at + SLOT.size]
        found_kind, turn, first, second = SLOT.unpack(body)
        (check,) = CHECK.unpack_from(data, at + SLOT.size)
        if found_kind == kind and check == crc32c(body) and turn >= best_turn:
            best_turn, best = turn, (first, second)
    return best_turn, best
