"""The seam to the file system: `Disk` and `File`, and the real ones.

Paths are relative to the disk's root, with forward slashes, so that the same code runs on a
folder and on the simulated disk of the tests. Nothing above this file calls `os` for storage.
"""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from frazil.errors import Held

Mode = Literal["read", "edit", "create"]
Buffer = bytes | memoryview

IOV_MAX = 1024
"""Buffers one vectored write may carry on Linux."""

FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What the kernel says when there is no room. Room may come back, so this is not a fault."""


class File(Protocol):
    """One open file. Owned by one thread; `read` alone may be called from any thread."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Add all bytes at the end, or raise. After an error part of them may be there."""

    def append_from(self, position: int) -> None:
        """Let the next append begin at `position`, over what is there: the file is used again."""

    def write_at(self, position: int, data: bytes) -> None:
        """Overwrite bytes in place. Only for small slots that carry their own checksum."""

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""

    def size(self) -> int:
        """Bytes in the file, written or not yet synced."""

    def truncate(self, size: int) -> None:
        """Forget what lies behind `size`."""

    def sync(self) -> None:
        """Return once every byte written so far survives a power cut. Never call it again
        after it has failed: the kernel has forgotten the pages and would answer ok."""

    def settle(self) -> None:
        """Sync, then drop what is cached, so that later reads show what the disk really has.
        For recovery: after a failed sync of an earlier process the cache may show lost bytes."""

    def map(self) -> Mapped:
        """All bytes there are now, without reading them. For files that never change."""

    def close(self) -> None:
        """Give the handle back. Does not sync."""


class Mapped(Protocol):
    """A file's bytes as memory. They outlive the handle and the name of the file."""

    @property
    def view(self) -> memoryview:
        """The bytes, read from the disk when they are touched. Read-only."""

    def release(self) -> None:
        """Give back the memory that touching them has taken; touching them takes it again."""


class Lock(Protocol):
    """Held until closed or until the process dies."""

    def close(self) -> None:
        """Let the next process in."""


class Disk(Protocol):
    """A folder that survives. A new, renamed or removed name is durable only after
    `sync_directory` of the folder that holds it."""

    def open(self, path: str, mode: Mode = "read") -> File:
        """Open for reading, for reading and writing, or newly made (the name must be free)."""

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, replacing what had it; all or nothing."""

    def unlink(self, path: str) -> None:
        """Take the name away. Open handles go on reading."""

    def list(self, path: str) -> list[str]:
        """The sorted names in a folder; empty when there is no such folder."""

    def make_directory(self, path: str) -> None:
        """Make one folder below an existing one; nothing happens when it is there."""

    def sync_directory(self, path: str) -> None:
        """Make the names in a folder durable."""

    def space(self) -> int:
        """Free bytes an ordinary user may still write."""

    def lock(self, path: str, holder: str) -> Lock:
        """Own this disk alone, or raise `Held` naming who does."""


class RealFile:
    """A file descriptor and where the next append goes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._end = os.fstat(descriptor).st_size

    def append(self, buffers: Sequence[Buffer]) -> None:
        for begin in range(0, len(buffers), IOV_MAX):
            self._append_some(buffers[begin : begin + IOV_MAX])

    def _append_some(self, buffers: Sequence[Buffer]) -> None:
        wanted = sum(map(len, buffers))
        written = os.pwritev(self._descriptor, buffers, self._end)
        self._end += written
        if written == wanted:
            return
        # A short write is legal; a write that makes no progress is a full disk.
        rest = memoryview(b"".join(buffers))[written:]
        while rest:
            written = os.pwrite(self._descriptor, rest, self._end)
            if written == 0:
                raise OSError(errno.ENOSPC, "the disk took no more bytes")
            self._end += written
            rest = rest[written:]

    def write_at(self, position: int, data: bytes) -> None:
        written = os.pwrite(self._descriptor, data, position)
        if written != len(data):
            raise OSError(errno.EIO, f"wrote {written} of {len(data)} bytes in place")
        self._end = max(self._end, position + len(data))

    def append_from(self, position: int) -> None:
        self._end = position

    def read(self, position: int, length: int) -> bytes:
        data = os.pread(self._descriptor, length, position)
        if len(data) == length or not data:
            return data
        parts = [data]
        missing = length - len(data)
        while missing:
            data = os.pread(self._descriptor, missing, position + length - missing)
            if not data:
                break
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)
        self._end = size

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def settle(self) -> None:
        os.fdatasync(self._descriptor)
        os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def map(self) -> RealMapped:
        return RealMapped(self._descriptor, self.size())

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RealMapped:
    """Shared with the page cache, so that it is the kernel's memory and not the process's own.

    Ends when nobody refers to the bytes any more.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        # An empty file cannot be mapped.
        self._map = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) if size else None
        self.view = memoryview(self._map or b"")

    def release(self) -> None:
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)


class RealLock:
    """An advisory lock the kernel drops with the process, so it is never stale."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RealDisk:
    """A folder of this machine. Safe to share between threads."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        missing = [path for path in (self.root, *self.root.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            _sync_directory(path.parent)

    def open(self, path: str, mode: Mode = "read") -> RealFile:
        flags = {
            "read": os.O_RDONLY,
            "edit": os.O_RDWR,
            "create": os.O_RDWR | os.O_CREAT | os.O_EXCL,
        }[mode]
        return RealFile(os.open(self.root / path, flags | os.O_CLOEXEC, 0o640))

    def rename(self, old: str, new: str) -> None:
        os.rename(self.root / old, self.root / new)

    def unlink(self, path: str) -> None:
        os.unlink(self.root / path)

    def list(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.root / path))
        except FileNotFoundError:
            return []

    def make_directory(self, path: str) -> None:
        (self.root / path).mkdir(exist_ok=True)

    def sync_directory(self, path: str) -> None:
        _sync_directory(self.root / path)

    def space(self) -> int:
        stats = os.statvfs(self.root)
        return stats.f_bavail * stats.f_frsize

    def files_left(self) -> int | None:
        """Files that may still be made; None where the file system sets no bound."""
        stats = os.statvfs(self.root)
        return stats.f_favail if stats.f_files else None

    def is_locked(self, path: str) -> bool:
        """Does a process hold this lock now? It is looked at by sharing it for a moment."""
        descriptor = os.open(self.root / path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def lock(self, path: str, holder: str) -> RealLock:
        descriptor = os.open(self.root / path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _holder_of(os.pread(descriptor, 4096, 0))
            os.close(descriptor)
            raise Held(
                f"{self.root} is in use by {owner}; stop that process or use another data folder"
            ) from None
        note = json.dumps({"pid": os.getpid(), "holder": holder}).encode()
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, note, 0)
        except OSError as error:
            if not is_full(error):  # without room the lock holds all the same, only nameless
                os.close(descriptor)
                raise
        return RealLock(descriptor)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _holder_of(note: bytes) -> str:
    try:
        facts = json.loads(note)
        return f"process {facts['pid']} ({facts['holder']})"
    except (ValueError, KeyError, TypeError):
        return "another process (its name is not written yet)"


def is_full(error: OSError) -> bool:
    """Did the call fail only because there is no room?"""
    return error.errno in FULL_ERRNOS


class Folders(Protocol):
    """What a disk says and does about folders."""

    def list(self, path: str) -> list[str]: ...

    def make_directory(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...


def make_directories(disk: Folders, path: str) -> None:
    """Make a folder with its parents, each durable before the next is made in it.

    Also syncs what is there already: a killed process may have made it and not come to that.
    """
    parent = ""
    for name in path.split("/"):
        if name not in disk.list(parent):
            disk.make_directory(f"{parent}/{name}" if parent else name)
        disk.sync_directory(parent)
        parent = f"{parent}/{name}" if parent else name
