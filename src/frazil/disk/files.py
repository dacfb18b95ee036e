"""Disk and File: the interface to the file system, and its real implementation.

Paths are relative to the disk's root, with forward slashes, so that the same code runs on a folder
and on the simulated disk of the tests. No other module calls `os` for storage.

Some calls exist on Linux only. Without them the page cache is used where it need not be, and
nothing else changes: a sync is a sync on macOS, too.
"""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, Protocol

from frazil.errors import Held
from frazil.model import KiB, MiB

Mode = Literal["read", "edit", "create", "create_private"]
Buffer = bytes | memoryview

IOV_MAX = 1024
"""Linux limit of buffers in one vectored write."""
PORTION_BYTES = MiB
"""Of a file that is written and synced in portions."""
CACHED_BYTES = 64 * KiB
"""The page cache keeps in one piece what one call writes, and later maps all of it for one byte
that is read. Linux 6.18: 200 random bytes of 512 MiB map 178 MB if the file was written by calls of
1 MiB, and 13 MB if it was written by calls of this size."""

FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors that mean the disk is full. Space may become free again, so they are not faults."""

UNSUPPORTED_ERRNOS = frozenset({errno.ENOTSUP, errno.ENOTTY, errno.EINVAL})
"""Errors of a file system that does not know the call."""
DESCRIPTORS = "/proc/self/fd" if Path("/proc/self/fd").is_dir() else "/dev/fd"

UNLINKABLE_ERRNOS = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.EOPNOTSUPP}
)
"""Errors that mean a file cannot have another name there: it must be copied."""


class File(Protocol):
    """One open file. Owned by one thread; `read` alone may be called from any thread."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Append all bytes, or raise. After an error some of them may be written."""

    def append_synced(self, data: memoryview, *, is_cached: bool) -> None:
        """Append many bytes and sync them, or raise, in portions: a sync of another file waits for
        one of them. Unless they are to be cached, the page cache is left out where the file system
        can: that takes an end of file and an address in memory that are multiples of a page.
        """

    def append_from(self, position: int) -> None:
        """Make the next append start at `position`, overwriting a reused file."""

    def write_at(self, position: int, data: bytes) -> None:
        """Overwrite bytes in place. Only for small slots that carry their own checksum."""

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes; fewer only at the end of the file."""

    def size(self) -> int:
        """Return the bytes in the file, synced or not."""

    def truncate(self, size: int) -> None:
        """Cut the file at `size`."""

    def sync(self) -> None:
        """Return once every byte written so far survives a power cut. Never call it again after
        it failed: the kernel has dropped the pages and would report success."""

    def settle(self) -> None:
        """Sync, then drop the page cache, so that later reads return what is on disk. For
        recovery: after a failed sync of an earlier process the cache may show bytes that are
        lost."""

    def map(self) -> Mapped:
        """Map all current bytes without reading them. Only for files that never change."""

    def close(self) -> None:
        """Close the handle. Does not sync."""


class Mapped(Protocol):
    """A memory-mapped file. Outlives the handle and the name of the file."""

    @property
    def view(self) -> memoryview:
        """The bytes, read-only; loaded from disk on first access."""

    def release(self) -> None:
        """Release the resident memory. The next access loads it again. Until the first release,
        single pages are loaded: whoever looks for something in a file does not read all of it."""


class Lock(Protocol):
    """A lock held until closed or until the process ends."""

    def close(self) -> None:
        """Release the lock."""


class Disk(Protocol):
    """A durable folder. A created, renamed or removed name is durable only after
    `sync_directory` of its folder."""

    def open(self, path: str, mode: Mode = "read") -> File:
        """Open a file to read, to edit, or create it (the name must be free). A private file is
        for this user only."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file atomically, replacing the target."""

    def unlink(self, path: str) -> None:
        """Remove a name. Open handles stay readable."""

    def list(self, path: str) -> list[str]:
        """Return the sorted names in a folder; empty if there is no such folder."""

    def make_directory(self, path: str) -> None:
        """Create a folder in an existing one, if it does not exist."""

    def remove_directory(self, path: str) -> None:
        """Remove an empty folder."""

    def sync_directory(self, path: str) -> None:
        """Make the names in a folder durable."""

    def uncache(self, path: str) -> None:
        """Drop the durable pages of a file from the page cache, if it is still there. Memory that
        is used again costs less than memory that is new."""

    def space(self) -> int:
        """Return the free bytes available to an unprivileged user."""

    def lock(self, path: str, holder: str) -> Lock:
        """Take the exclusive lock of this disk. Raises `Held`, which names the owner."""


class RealFile:
    """A file descriptor and the position of the next append."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._end = os.fstat(descriptor).st_size

    def append(self, buffers: Sequence[Buffer]) -> None:
        for begin in range(0, len(buffers), IOV_MAX):
            self._append_some(buffers[begin : begin + IOV_MAX])

    def _append_some(self, buffers: Sequence[Buffer]) -> None:
        expected = sum(map(len, buffers))
        written = os.pwritev(self._descriptor, buffers, self._end)
        self._end += written
        if written == expected:
            return
        # A short write is legal; a write that makes no progress is a full disk.
        rest = memoryview(b"".join(buffers))[written:]
        while rest:
            written = os.pwrite(self._descriptor, rest, self._end)
            if written == 0:
                raise OSError(errno.ENOSPC, "the disk accepted no more bytes")
            self._end += written
            rest = rest[written:]

    def append_synced(self, data: memoryview, *, is_cached: bool) -> None:
        if is_cached:
            self._append_portions(data, CACHED_BYTES)
            return
        begin = self._end
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags | getattr(os, "O_DIRECT", 0))
            self._append_portions(data[: len(data) // mmap.PAGESIZE * mmap.PAGESIZE])
        except OSError as error:
            if error.errno != errno.EINVAL:  # the file system cannot do it, or not any further
                raise
        finally:
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags)
        self._append_portions(data[self._end - begin :])

    def _append_portions(self, data: memoryview, call_bytes: int = PORTION_BYTES) -> None:
        for begin in range(0, len(data), PORTION_BYTES):
            portion = data[begin : begin + PORTION_BYTES]
            for at in range(0, len(portion), call_bytes):
                self._append_some([portion[at : at + call_bytes]])
            _sync(self._descriptor)

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
        _sync(self._descriptor)

    def settle(self) -> None:
        _sync(self._descriptor)
        _uncache(self._descriptor)

    def map(self) -> RealMapped:
        return RealMapped(self._descriptor, self.size())

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RealMapped:
    """Mapped pages of the page cache, which are not the process's own memory. Unmapped when no
    view refers to them."""

    def __init__(self, descriptor: int, size: int) -> None:
        # An empty file cannot be mapped.
        self._map = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) if size else None
        self.view = memoryview(self._map or b"")
        if self._map is not None:
            self._map.madvise(mmap.MADV_RANDOM)

    def release(self) -> None:
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)
            self._map.madvise(mmap.MADV_NORMAL)


class RealLock:
    """An advisory lock. The kernel drops it with the process, so it is never stale."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RealDisk:
    """A folder on this machine. Safe to share between threads."""

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
            "create_private": os.O_RDWR | os.O_CREAT | os.O_EXCL,
        }[mode]
        rights = 0o600 if mode == "create_private" else 0o640
        return RealFile(os.open(self.root / path, flags | os.O_CLOEXEC, rights))

    def rename(self, old: str, new: str) -> None:
        os.rename(self.root / old, self.root / new)

    def unlink(self, path: str) -> None:
        os.unlink(self.root / path)

    def link(self, source: Path, path: str) -> bool:
        """Give a file outside this disk a name on it. Returns False if it must be copied."""
        try:
            os.link(source, self.root / path, follow_symlinks=False)
        except OSError as error:
            if error.errno in UNLINKABLE_ERRNOS:
                return False
            raise
        return True

    def list(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.root / path))
        except FileNotFoundError:
            return []

    def files(self, left_out: Collection[str] = ()) -> Iterator[tuple[str, int]]:
        """Yield path and size of every regular file, except in the folders left out. Files that
        are removed meanwhile may be missing."""
        for folder, folders, names in os.walk(self.root):
            below = Path(folder).relative_to(self.root)
            folders[:] = [name for name in folders if str(below / name) not in left_out]
            for name in names:
                with suppress(FileNotFoundError):
                    found = os.lstat(self.root / below / name)
                    if stat.S_ISREG(found.st_mode):
                        yield str(below / name), found.st_size

    def make_directory(self, path: str) -> None:
        (self.root / path).mkdir(exist_ok=True)

    def remove_directory(self, path: str) -> None:
        (self.root / path).rmdir()

    def remove_tree(self, path: str) -> None:
        """Remove a folder and everything in it. What cannot be removed is left."""
        shutil.rmtree(self.root / path, ignore_errors=True)

    def sync_directory(self, path: str) -> None:
        _sync_directory(self.root / path)

    def uncache(self, path: str) -> None:
        try:
            descriptor = os.open(self.root / path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            _uncache(descriptor)
        finally:
            os.close(descriptor)

    def is_private(self, path: str) -> bool:
        """Return whether only the owner of a file can read it."""
        return os.stat(self.root / path).st_mode & 0o077 == 0

    def real_path(self, path: str) -> str:
        """Return where another process finds a file."""
        return str(self.root.absolute() / path)

    def space(self) -> int:
        stats = os.statvfs(self.root)
        return stats.f_bavail * stats.f_frsize

    def files_left(self) -> int | None:
        """Return the number of files that can still be created; None if unlimited."""
        stats = os.statvfs(self.root)
        return stats.f_favail if stats.f_files else None

    def is_locked(self, path: str) -> bool:
        """Return whether a process holds this lock, by sharing it for a moment."""
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
            if not is_full(error):  # on a full disk the lock is held without a name
                os.close(descriptor)
                raise
        return RealLock(descriptor)


def _sync(descriptor: int) -> None:
    """Sync the bytes of a file. On macOS `fsync` stops at the cache of the drive; `F_FULLFSYNC`
    does not, but not every file system has it."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
        return
    full_sync: int | None = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        try:
            fcntl.fcntl(descriptor, full_sync)
            return
        except OSError as error:
            if error.errno not in UNSUPPORTED_ERRNOS:
                raise
    os.fsync(descriptor)


def _uncache(descriptor: int) -> None:
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def memory_file(name: str) -> int:
    """Return the descriptor of a file that ends with its last descriptor, in any process. In
    memory; without `memfd_create`, a temporary file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def descriptor_path(descriptor: int) -> str:
    """Return a path that opens the file of a descriptor of this process."""
    return f"{DESCRIPTORS}/{descriptor}"


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _holder_of(note: bytes) -> str:
    try:
        owner = json.loads(note)
        return f"process {owner['pid']} ({owner['holder']})"
    except (ValueError, KeyError, TypeError):
        return "another process (not named in the lock file yet)"


def free_bytes(path: Path) -> int:
    """Return the free bytes of the disk on which a folder is, or would be created."""
    folder = path.absolute()
    while not folder.exists():
        folder = folder.parent
    stats = os.statvfs(folder)
    return stats.f_bavail * stats.f_frsize


def is_full(error: OSError) -> bool:
    """Return whether the call failed because the disk is full."""
    return error.errno in FULL_ERRNOS


class Folders(Protocol):
    """The methods of a disk that concern folders."""

    def list(self, path: str) -> list[str]: ...

    def make_directory(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...


def make_directories(disk: Folders, path: str) -> None:
    """Create a folder and its parents, each durable before the next.

    Existing folders are synced too: a killed process may have created them without a sync.
    """
    parent = ""
    for name in path.split("/"):
        if name not in disk.list(parent):
            disk.make_directory(f"{parent}/{name}" if parent else name)
        disk.sync_directory(parent)
        parent = f"{parent}/{name}" if parent else name
