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
EXEMPT = struct.Struct("<Q")
"""Offset below which the lake need not have the records; follows the check of a trim slot."""
TRIM, DURABLE, DELETED = b"TRIM", b"DURA", b"GONE"
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
    exempt_offset: int = 0
    is_deleted: bool = False
    """Whether the topic was deleted. Only a process that had the file open before sees it."""

    @property
    def stable_point(self) -> StablePoint:
        return self.stable or StablePoint(self.durable_watermark, 0)


class WatermarkFile:
    """The watermark file of one partition, created by the first write. Owned by the writer
    thread."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._file: File | None = None
        self._trim_turn = 0
        self._durable_turn = 0

    @classmethod
    def open(cls, disk: Disk, folder: str) -> tuple[WatermarkFile, StoredWatermarks]:
        """Open the file, if there is one, and read it."""
        watermarks = cls(disk, folder)
        if NAME not in disk.list(folder):
            return watermarks, _decode(bytes(FILE_BYTES))
        file = watermarks._file = disk.open(f"{folder}/{NAME}", "edit")
        file.settle()  # the page cache may show a trim whose sync failed
        data = file.read(0, FILE_BYTES)
        if len(data) < FILE_BYTES:  # truncated, or torn at creation
            file.append([bytes(FILE_BYTES - len(data))])
            data = data.ljust(FILE_BYTES, b"\0")
        watermarks._trim_turn, _ = _newest(data, TRIM, 0)
        watermarks._durable_turn, _ = _newest(data, DURABLE, 2)
        return watermarks, _decode(data)

    @property
    def has_file(self) -> bool:
        return self._file is not None

    def create(self) -> None:
        """Create the file of a new partition. Its name is durable after the next sync of the
        folder. If the disk is full there is no file."""
        path = f"{self._folder}/{NAME}"
        file = self._disk.open(path, "create")
        try:
            self._trim_turn += 1
            slot = _encode(TRIM, self._trim_turn, 0, 0)
            data = bytearray(FILE_BYTES)
            position = _position(self._trim_turn, 0)
            data[position : position + len(slot)] = slot
            file.append([bytes(data)])
            file.sync()
        except OSError:
            file.close()
            self._disk.unlink(path)
            raise
        self._file = file

    def trim(self, start_offset: int, dropped_count: int, exempt_offset: int = 0) -> None:
        """Store the new start offset. Durable on return."""
        self._trim_turn += 1
        more = [EXEMPT.pack(exempt_offset)] if exempt_offset else []
        self._write(TRIM, self._trim_turn, 0, start_offset, dropped_count, more=more)
        self._opened().sync()

    def delete(self) -> None:
        """Tell processes that have the file open that the topic was deleted."""
        if self._file is not None:
            self._trim_turn += 1
            self._write(DELETED, self._trim_turn, 0, 0, 0)

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
        body = _encode(kind, turn, *values, more=more)
        self._opened().write_at(_position(turn, first_slot), body)

    def _opened(self) -> File:
        """Return the file. A lost one is created anew."""
        if self._file is None:
            self._file = self._disk.open(f"{self._folder}/{NAME}", "create")
            self._disk.sync_directory(self._folder)
            self._file.append([bytes(FILE_BYTES)])
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class WatermarkReader:
    """Reads the watermarks of a partition without owning it. Keeps the file open."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._path = f"{folder}/{NAME}"
        self._file: File | None = None
        self._data = bytes(FILE_BYTES)
        self._decoded = _decode(self._data)

    def read(self) -> StoredWatermarks:
        if self._file is None:
            try:
                self._file = self._disk.open(self._path)
            except FileNotFoundError:
                return self._decoded
        data = self._file.read(0, FILE_BYTES).ljust(FILE_BYTES, b"\0")
        if data != self._data:
            self._data, self._decoded = data, _decode(data)
        return self._decoded

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def read_watermarks(disk: Disk, folder: str) -> StoredWatermarks:
    """Read the watermarks of a partition once."""
    with closing(WatermarkReader(disk, folder)) as reader:
        return reader.read()


def _encode(kind: bytes, turn: int, *values: int, more: Sequence[bytes] = ()) -> bytes:
    slot = SLOT.pack(kind, turn, *values)
    body = slot + CHECK.pack(crc32c(slot))
    for part in more:
        body += part + CHECK.pack(_part_check(slot, part))
    return body


def _position(turn: int, first_slot: int) -> int:
    return (first_slot + turn % 2) * SLOT_BYTES


def _decode(data: bytes) -> StoredWatermarks:
    trim_turn, trim = _newest(data, TRIM, 0)
    turn, durable = _newest(data, DURABLE, 2)
    tail = _part(data, turn, 2, TAIL_AT, TAIL.size) if durable else None
    stable = _part(data, turn, 2, STABLE_AT, STABLE.size) if durable else None
    exempt = _part(data, trim_turn, 0, TAIL_AT, EXEMPT.size) if trim else None
    _, deleted = _newest(data, DELETED, 0)
    return StoredWatermarks(
        is_known=trim is not None,
        start_offset=trim[0] if trim else 0,
        dropped_count=trim[1] if trim else 0,
        durable_watermark=durable[0] if durable else 0,
        tail=SegmentTail(*TAIL.unpack(tail)) if tail else None,
        stable=StablePoint(*STABLE.unpack(stable)) if stable else None,
        exempt_offset=EXEMPT.unpack(exempt)[0] if exempt else 0,
        is_deleted=deleted is not None,
    )


def _part(data: bytes, turn: int, first_slot: int, position: int, size: int) -> bytes | None:
    """Return the bytes at `position` of a slot, if they were written with it."""
    at = _position(turn, first_slot)
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
