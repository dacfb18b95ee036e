"""StagedLoad: the requests of one load, on disk until all of them are in the log.

    loads/<table>/<id>.staged/<task>.requests     frames: requests, compressed
                             /load.ckpt           last: what was staged

The log remembers how many requests of which load it has, as the position of a source. So after any
crash the rest is appended, and nothing twice. Nothing that redaction rules remove is in these
files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import zstandard

from frazil.disk import (
    FRAME_HEADER_BYTES,
    HEAD_BYTES,
    DiskReserve,
    RealDisk,
    frame_header,
    read_checkpoint,
    walk_frames,
    write_checkpoint,
)
from frazil.errors import Corrupt, Malformed, Overloaded
from frazil.load.into_log.requests import Requests
from frazil.model import MiB
from frazil.model.arrow import LedgerEntry

LOAD_NAME = "load.ckpt"
LOAD_KIND, LOAD_VERSION = b"LOAD", 1
STAGED = ".staged"
HINT = "the load cannot be finished; its rows up to here are in the log"
REQUESTS = ".requests"
SALT_BYTES = 8
STEP_BYTES = MiB
"""Requests of one step together, unless one is larger."""
LOOK_BYTES = 8 * MiB
"""Written between looks at the free space."""
LEVEL = 1


class StagedFileInfo(msgspec.Struct, frozen=True):
    """A file of requests."""

    name: str
    request_count: int
    size_bytes: int


class StagedLoad(msgspec.Struct, frozen=True):
    """A load that will be appended."""

    id: str
    table: str
    files: tuple[StagedFileInfo, ...]
    entries: tuple[LedgerEntry, ...]
    """Of the ledger, once all requests are in the log."""
    row_count: int

    @property
    def request_count(self) -> int:
        """At least 1: without any, an empty request carries the position."""
        return max(1, sum(file.request_count for file in self.files))


class LoadPosition(NamedTuple):
    """How much of which load the log has."""

    id: str
    request_count: int
    total: int

    def encode(self) -> bytes:
        return f"{self.id}:{self.request_count}/{self.total}".encode()

    @classmethod
    def decode(cls, position: bytes) -> LoadPosition:
        load_id, _, counts = position.decode().partition(":")
        count, _, total = counts.partition("/")
        return cls(load_id, int(count), int(total))


def staged_folder(table_folder: str, load_id: str) -> str:
    return f"{table_folder}/{load_id}{STAGED}"


def _salt(load_id: str) -> bytes:
    return bytes.fromhex(load_id)[:SALT_BYTES]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingTarget:
    """Where a task writes its requests."""

    data: str
    """The data folder."""
    folder: str
    load_id: str
    reserve_bytes: int


class RequestWriter:
    """Writes the requests of one task. Implements `PartWriter`."""

    def __init__(self, target: StagingTarget, name: str) -> None:
        self._disk = RealDisk(target.data)
        self._reserve = DiskReserve(self._disk, target.reserve_bytes)
        self._name = f"{name}{REQUESTS}"
        self._path = f"{target.folder}/{self._name}"
        self._salt = _salt(target.load_id)
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        self._file = self._disk.open(self._path, "create")
        self._size = self._count = self._unseen = 0
        self._whole = 0, 0
        """Size and count at the end of the last whole file."""

    def write(self, part: Requests) -> None:
        for body in part.bodies:
            payload = self._compressor.compress(body)
            head = payload[:HEAD_BYTES]
            header = frame_header(head, len(payload), self._count, 0, 0, self._salt)
            self._file.append([header, payload])
            self._count += 1
            self._size += len(header) + len(payload)
            self._unseen += len(header) + len(payload)
        if self._unseen >= LOOK_BYTES:
            self._unseen = 0
            if self._reserve.missing_bytes():
                raise Overloaded(
                    "there is too little space on the disk for the rows of the load, which are "
                    "staged before they are appended: nothing was loaded; free some, or load "
                    "fewer files at a time with MAX_FILES"
                )

    def end_file(self) -> None:
        self._whole = self._size, self._count

    def drop_file(self) -> None:
        self._size, self._count = self._whole
        self._file.truncate(self._size)

    def finish(self) -> StagedFileInfo:
        """Make the file durable."""
        self._file.sync()
        self._file.close()
        return StagedFileInfo(self._name, self._count, self._size)

    def discard(self) -> None:
        """Remove the file."""
        self._file.close()
        self._disk.unlink(self._path)


def write_staged(disk: RealDisk, folder: str, load: StagedLoad) -> None:
    """Note a load whose files are durable: it may be appended now."""
    disk.sync_directory(folder)
    write_checkpoint(
        disk, f"{folder}/{LOAD_NAME}", LOAD_KIND, LOAD_VERSION, msgspec.json.encode(load)
    )


def read_staged(disk: RealDisk, folder: str) -> StagedLoad | None:
    """Return a load; None if it was never decided. Raises `Corrupt` if it is damaged."""
    body = read_checkpoint(disk, f"{folder}/{LOAD_NAME}", LOAD_KIND, LOAD_VERSION, HINT)
    return None if body is None else msgspec.json.decode(body, type=StagedLoad)


def staged_requests(disk: RealDisk, folder: str, load: StagedLoad, begin: int) -> Iterator[bytes]:
    """Yield the requests of a load from number `begin` on. Raises `Corrupt` if one is damaged."""
    if not any(file.request_count for file in load.files):
        yield from [b""][begin:]
        return
    for file in load.files:
        if begin >= file.request_count:
            begin -= file.request_count
            continue
        yield from _requests_of(disk, f"{folder}/{file.name}", file, _salt(load.id), begin)
        begin = 0


def _requests_of(
    disk: RealDisk, path: str, info: StagedFileInfo, salt: bytes, begin: int
) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor()
    count = 0
    try:
        opened = disk.open(path)
    except FileNotFoundError:
        raise Corrupt(path=path, position=0, expected="a file", found="none", hint=HINT) from None
    with closing(opened) as file:
        for frame in walk_frames(file, 0, info.size_bytes, salt):
            count += 1
            if count <= begin:
                continue
            try:
                yield decompressor.decompress(frame.payload)
            except zstandard.ZstdError as error:
                raise Corrupt(
                    path=path,
                    position=frame.position + FRAME_HEADER_BYTES,
                    expected="a compressed request",
                    found=str(error),
                    hint=HINT,
                ) from error
    if count != info.request_count:
        raise Corrupt(
            path=path,
            position=0,
            expected=f"{info.request_count} requests",
            found=str(count),
            hint=HINT,
        )


def steps(requests: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Group requests that are appended together."""
    group: list[bytes] = []
    size = 0
    for body in requests:
        if group and size + len(body) > STEP_BYTES:
            yield group
            group, size = [], 0
        group.append(body)
        size += len(body)
    if group:
        yield group


def check_entry_count(count: int, most: int) -> None:
    """Raise `Malformed` if a load has too many files to be decided in one checkpoint."""
    if count > most:
        raise Malformed(
            f"{count} files are new, and one load into the log takes at most {most}; add "
            f"MAX_FILES={most}, and run it again for the others"
        )
