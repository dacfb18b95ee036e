"""The key index of a partition as a file, to start without reading every key.

Byte layout: `docs/formats/keyed.md`. Written to a temporary file, synced and renamed; a file that
is damaged, or does not belong to the row segments, is rebuilt from them.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from google_crc32c import extend as extend_crc32c
from google_crc32c import value as crc32c

from frazil.disk import Disk, File
from frazil.errors import Corrupt
from frazil.model import MiB
from frazil.tables.keys.kernels import ROW_MASK, SHARDS, Longs
from frazil.tables.keys.key_index import KeyIndex

NAME = "keys.index"
MAGIC = b"FRZKEYS\n"
VERSION = 1
HEADER = struct.Struct("<8sHHIQQQQ12x")
"""magic, version, reserved, identity, offset, rows, deaths, keys; then its CRC32C."""
CHECK = struct.Struct("<I")
HEADER_BYTES = HEADER.size + CHECK.size
COUNTS_BYTES = 4 * SHARDS
PORTION_BYTES = MiB
"""Slots are written and read in portions of about this size."""
HINT = "The index is rebuilt from the row segments; check the health of the disk."


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPosition:
    """What an index file reflects: everything below an offset."""

    identity: int
    offset: int
    row_count: int
    death_count: int


def write_index(disk: Disk, folder: str, index: KeyIndex, position: IndexPosition) -> None:
    """Replace the file. Returns once it survives a power cut."""
    path = f"{folder}/{NAME}"
    scratch = f"{path}.tmp"
    if f"{NAME}.tmp" in disk.list(folder):
        disk.unlink(scratch)
    file = disk.open(scratch, "create")
    try:
        _write(file, index, position)
        file.sync()
        disk.rename(scratch, path)
    except OSError:
        with contextlib.suppress(OSError):  # raise the first error
            disk.unlink(scratch)
        raise
    finally:
        file.close()
    disk.sync_directory(folder)


def _write(file: File, index: KeyIndex, position: IndexPosition) -> None:
    header = HEADER.pack(
        MAGIC,
        VERSION,
        0,
        position.identity,
        position.offset,
        position.row_count,
        position.death_count,
        len(index),
    )
    counts = index.shard_counts().astype("<u4").tobytes()
    file.append([header, CHECK.pack(crc32c(header)), counts])
    check = crc32c(counts)
    portion: list[bytes] = []
    size = 0
    for slots in index.packed():
        portion.append(slots.tobytes())
        check = extend_crc32c(check, portion[-1])
        size += len(portion[-1])
        if size >= PORTION_BYTES:
            file.append(portion)
            portion, size = [], 0
    file.append([*portion, CHECK.pack(check)])


def read_index(disk: Disk, folder: str, identity: int, index: KeyIndex) -> IndexPosition | None:
    """Fill an empty index from the file; None if there is none. Raises `Corrupt` if it cannot be
    used: then the index may have some of it."""
    path = f"{folder}/{NAME}"
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        return _read(file, path, identity, index)
    finally:
        file.close()


def _read(file: File, path: str, identity: int, index: KeyIndex) -> IndexPosition:
    head = file.read(0, HEADER_BYTES)
    if len(head) != HEADER_BYTES or CHECK.pack(crc32c(head[: HEADER.size])) != head[HEADER.size :]:
        raise _damaged(path, 0, f"a header of {HEADER_BYTES} bytes", "other bytes")
    magic, version, _, found, offset, rows, deaths, keys = HEADER.unpack(head[: HEADER.size])
    if (magic, version, found) != (MAGIC, VERSION, identity):
        raise _damaged(path, 0, f"version {VERSION} of this table", f"{magic!r} {version} {found}")
    size = HEADER_BYTES + COUNTS_BYTES + 8 * keys + CHECK.size
    if file.size() != size:
        raise _damaged(path, HEADER_BYTES, f"{size} bytes", f"{file.size()} bytes")
    counts = file.read(HEADER_BYTES, COUNTS_BYTES)
    check = crc32c(counts)
    shard, at = 0, HEADER_BYTES + COUNTS_BYTES
    for shard_counts in _portions(np.frombuffer(counts, "<u4").tolist()):
        data = file.read(at, 8 * sum(shard_counts))
        check = extend_crc32c(check, data)
        for count in shard_counts:
            part, data = data[: 8 * count], data[8 * count :]
            if len(part) != 8 * count or not _load(index, shard, part, rows):
                raise _damaged(path, at, f"{count} sorted slots", "others")
            shard, at = shard + 1, at + len(part)
    (stored,) = CHECK.unpack(file.read(size - CHECK.size, CHECK.size))
    if at != size - CHECK.size or stored != check:
        raise _damaged(path, at, f"CRC32C {check:08x}", f"{stored:08x}")
    return IndexPosition(identity=identity, offset=offset, row_count=rows, death_count=deaths)


def _portions(counts: list[int]) -> Iterator[list[int]]:
    """Cut the counts of shards where their slots are about a portion."""
    portion: list[int] = []
    for count in counts:
        portion.append(count)
        if 8 * sum(portion) >= PORTION_BYTES:
            yield portion
            portion = []
    yield portion


def _load(index: KeyIndex, shard: int, data: bytes, rows: int) -> bool:
    slots: Longs = np.frombuffer(data, "<i8")
    if len(slots) and int((slots & ROW_MASK).max()) >= rows:
        return False
    return index.load(shard, slots)


def _damaged(path: str, position: int, expected: str, found: str) -> Corrupt:
    return Corrupt(path=path, position=position, expected=expected, found=found, hint=HINT)
