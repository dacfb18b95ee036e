"""FileStore: where the files of a table are written to, a folder or a bucket.

Both promise the same: once a file is synced and the names in its folder are, all of it is there and
stays there. Before that it may be there in part, or not at all, and nobody was told of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from frazil.disk import Buffer, Mode, RealDisk

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

LOCAL = frozenset({"", "file"})


class NewFile(Protocol):
    """A file that is being written. Any `File` of a disk is one."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Add all bytes at the end, or raise."""

    def sync(self) -> None:
        """Return once every byte survives. Nothing can be added any more."""

    def close(self) -> None:
        """Give it back. What was not synced may be there in part."""


class FileStore(Protocol):
    """Paths are below the location of a table. Any `Disk` is a store."""

    def open(self, path: str, mode: Mode = "read") -> NewFile:
        """Make a new file; its name must be free."""

    def unlink(self, path: str) -> None:
        """Take a file away."""

    def list(self, path: str) -> list[str]:
        """The names in a folder."""

    def make_directory(self, path: str) -> None:
        """Make a folder; nothing happens when it is there."""

    def sync_directory(self, path: str) -> None:
        """Make the names in a folder durable."""


def open_store(location: str, io: FileIO | None) -> FileStore:
    """The store below a table's location. `io` has what it takes to reach a bucket."""
    parts = urlsplit(location)
    if parts.scheme in LOCAL:
        return RealDisk(unquote(parts.path))
    assert io is not None, f"{location} is no folder"
    return ObjectStore(location, io)


class ObjectStore:
    """A bucket, or what behaves like one: an object is there whole, or not at all."""

    def __init__(self, location: str, io: FileIO) -> None:
        self._location = location.rstrip("/")
        self._io = io

    def open(self, path: str, mode: Mode = "read") -> NewFile:
        assert mode == "create", f"a task of the lake only makes files, not {mode}"
        return _NewObject(self._io.new_output(f"{self._location}/{path}").create())

    def unlink(self, path: str) -> None:
        self._io.delete(f"{self._location}/{path}")

    def list(self, path: str) -> list[str]:
        """A bucket has no folders: whatever is asked for need not be made."""
        return []

    def make_directory(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...


class _NewObject:
    """The store shows it when the upload is completed, which is its promise that it is durable."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def append(self, buffers: Sequence[Buffer]) -> None:
        for each in buffers:
            self._stream.write(each)

    def sync(self) -> None:
        self._stream.close()

    def close(self) -> None:
        """Arrow cannot give an upload up, so it is completed: a part, which nobody was told of."""
        self._stream.close()
