"""Copies of files from one disk to another, each with size and SHA-256, synced.

A file that never changes may get a second name instead of a copy, if both disks are one file
system. Nothing is hashed then: that would read what a link need not read.
"""

from __future__ import annotations

import hashlib
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Protocol

from frazil.disk.files import Disk, File, Mode, RealDisk, make_directories
from frazil.model import MiB

CHUNK_BYTES = 4 * MiB


class Hasher(Protocol):
    """A checksum in the making."""

    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedFile:
    """One file of a copy."""

    size_bytes: int
    sha256: str | None
    """None for a hard link."""


class FileCopier:
    """Copies whole files to the same paths on another disk. `files` says what is there."""

    def __init__(self, source: Disk, target: Disk) -> None:
        self.source = source
        self.target = target
        self.files: dict[str, CopiedFile] = {}
        self._folders: set[str] = set()

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents on the target."""
        if path and path not in self._folders:
            make_directories(self.target, path)
            self._folders.add(path)

    def copy(self, path: str) -> None:
        """Copy a file, again if it is there. Raises FileNotFoundError if it has vanished."""
        hasher = hashlib.sha256()
        with closing(self.source.open(path)) as file:
            self.make_folder(path.rpartition("/")[0])
            self.remove(path)
            is_private = isinstance(self.source, RealDisk) and self.source.is_private(path)
            mode: Mode = "create_private" if is_private else "create"
            with closing(self.target.open(path, mode)) as copy:
                size = copy_bytes(file, copy, 0, None, hasher)
                copy.sync()
        self.files[path] = CopiedFile(size_bytes=size, sha256=hasher.hexdigest())

    def link(self, path: str) -> None:
        """Give a file that never changes a second name, or copy it. Does nothing if it is there."""
        if path in self.files:
            return
        self.make_folder(path.rpartition("/")[0])
        source, target = self.source, self.target
        if (
            isinstance(source, RealDisk)
            and isinstance(target, RealDisk)
            and target.link(source.root / path, path)
        ):
            with closing(target.open(path)) as file:
                self.files[path] = CopiedFile(size_bytes=file.size(), sha256=None)
        else:
            self.copy(path)

    def adopt(self, scratch: str, path: str) -> None:
        """Take over a file that was written on the target under another name."""
        with closing(self.target.open(scratch)) as file:
            file.sync()
            size = file.size()
        self.target.rename(scratch, path)
        self.files[path] = CopiedFile(size_bytes=size, sha256=sha256_of(self.target, path))

    def remove(self, path: str) -> None:
        """Remove a file of the target, if it is there."""
        self.files.pop(path, None)
        with suppress(FileNotFoundError):
            self.target.unlink(path)

    def sync(self) -> None:
        """Make the names of all files durable."""
        for folder in sorted({path.rpartition("/")[0] for path in self.files}):
            self.target.sync_directory(folder)


def copy_bytes(source: File, target: File, begin: int, end: int | None, hasher: Hasher) -> int:
    """Append bytes of a file to another, up to `end` or its end. Returns where they end."""
    position = begin
    while end is None or position < end:
        length = CHUNK_BYTES if end is None else min(CHUNK_BYTES, end - position)
        data = source.read(position, length)
        if not data:
            break
        hasher.update(data)
        target.append([data])
        position += len(data)
    return position


def sha256_of(disk: Disk, path: str) -> str:
    """Read a file and return its SHA-256."""
    hasher = hashlib.sha256()
    with closing(disk.open(path)) as file:
        position = 0
        while data := file.read(position, CHUNK_BYTES):
            hasher.update(data)
            position += len(data)
    return hasher.hexdigest()
