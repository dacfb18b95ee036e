"""The files of a folder, while others write, rename, truncate and delete them.

A file is known by its inode: a rename does not change it. Links are not followed, neither out of
the folder nor inside it.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from frazil.errors import Malformed, TooLarge, Unavailable, Unknown

FILES_MAX = 5000
"""In the folder. Each is looked at several times a second."""
HEAD_BYTES = 256
"""Begin of a file, by which another content under the same inode is noticed."""


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A regular file of the folder."""

    name: str
    inode: int
    size_bytes: int
    modified_ns: int


def folder_below(folder: str, roots: Sequence[str]) -> str:
    """Return the real path of a folder. `Unknown` if it is below none of the roots."""
    if not folder.startswith("/"):
        raise Malformed(f"FOLDER is {folder!r}; write an absolute path, such as '/var/log/shop'")
    real = os.path.realpath(folder)
    for root in roots:
        path = root.removeprefix("file://")
        if not path.startswith("/"):
            continue
        top = os.path.realpath(path)
        if real == top or real.startswith(top.rstrip("/") + "/"):
            return real
    raise Unknown(
        f"{folder} is not below any of stages.roots in the configuration; add a root, or use a "
        "folder below one"
    )


def files_in(folder: str) -> list[FolderFile]:
    """Return the regular files of a folder, by name."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # deleted meanwhile
                    continue
                if stat.S_ISREG(status.st_mode):
                    found.append(
                        FolderFile(entry.name, status.st_ino, status.st_size, status.st_mtime_ns)
                    )
    except OSError as error:
        raise Unavailable(f"{folder} cannot be listed: {error}") from error
    if len(found) > FILES_MAX:
        raise TooLarge(f"{folder} has more than {FILES_MAX} files; move old ones away")
    return sorted(found, key=lambda file: file.name)


def matches(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern such as `*.log`."""
    return fnmatch.fnmatchcase(name, pattern)


def fingerprint(head: bytes) -> str:
    """Return a digest of the begin of a file."""
    return hashlib.blake2b(head, digest_size=8).hexdigest()


class LocalFile:
    """An open file that others may change."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def open(cls, folder: str, file: FolderFile) -> LocalFile | None:
        """Open a file that was found; None if it is gone, or another one."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(f"{folder}/{file.name}", flags)
        except FileNotFoundError:
            return None
        status = os.fstat(descriptor)
        if status.st_ino != file.inode or not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            return None
        return cls(descriptor)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, size_bytes: int) -> bytes:
        """Return what there is of a range."""
        parts = []
        while size_bytes > 0:
            part = os.pread(self._descriptor, size_bytes, offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            size_bytes -= len(part)
        return b"".join(parts)

    def fingerprint(self, size_bytes: int) -> str:
        """Return a digest of the first bytes; empty if there are not so many."""
        head = self.read(0, size_bytes)
        return fingerprint(head) if len(head) == size_bytes else ""

    def close(self) -> None:
        os.close(self._descriptor)
